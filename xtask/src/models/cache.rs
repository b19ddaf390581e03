//! Where downloads, the Python environment and the packs are kept, and whether
//! a pack there is intact.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::process::root;

/// The project's corner of the user's cache.
pub struct Cache {
    /// The corner itself: `$XDG_CACHE_HOME/earwitness`, or `~/.cache/earwitness`.
    pub folder: PathBuf,
    /// The packs that belong to this checkout's recipes; `EARWITNESS_PACKS` where set.
    pub packs: PathBuf,
}

impl Cache {
    /// Finds the folders and makes them.
    pub fn open() -> Result<Self> {
        let base = match env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
            Some(base) => PathBuf::from(base),
            None => env::home_dir()
                .context("there is no home directory; set XDG_CACHE_HOME")?
                .join(".cache"),
        };
        let folder = base.join("earwitness");
        let packs = match env::var_os("EARWITNESS_PACKS").filter(|value| !value.is_empty()) {
            Some(packs) => PathBuf::from(packs),
            None => folder.join("packs").join(recipes_hash()?),
        };
        for made in [&folder, &packs] {
            fs::create_dir_all(made).with_context(|| format!("cannot make {}", made.display()))?;
        }
        Ok(Self { folder, packs })
    }

    /// Keeps other runs out for as long as the file is open.
    pub fn lock(&self) -> Result<File> {
        let path = self.folder.join("lock");
        let file =
            File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {
                eprintln!("waiting for another run to finish with {}", path.display());
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        file.lock()
            .with_context(|| format!("cannot lock {}", path.display()))?;
        Ok(file)
    }

    /// An empty folder beside the packs, for one that is being built.
    pub fn staging(&self, name: &str) -> Result<PathBuf> {
        let staging = self.packs.join(format!(".building-{name}"));
        if staging.exists() {
            fs::remove_dir_all(&staging)
                .with_context(|| format!("cannot remove {}", staging.display()))?;
        }
        fs::create_dir(&staging).with_context(|| format!("cannot make {}", staging.display()))?;
        Ok(staging)
    }
}

/// What of a manifest is needed to tell whether a pack is intact.
#[derive(Deserialize)]
struct Manifest {
    files: BTreeMap<String, String>,
    parity: Parity,
}

/// The comparison with the original model.
#[derive(Deserialize)]
struct Parity {
    /// Written when the pack was sealed.
    measured: Option<f64>,
}

/// An error unless a pack is sealed and every file has its hash.
///
/// The runtime does the same, and more, whenever it opens a pack; here it must
/// not cost the build of the runtime.
pub fn verify(pack: &Path) -> Result<()> {
    let text = fs::read_to_string(pack.join("manifest.toml"))
        .context("its manifest.toml cannot be read")?;
    let manifest: Manifest = toml::from_str(&text).context("its manifest.toml is malformed")?;
    if manifest.parity.measured.is_none() {
        bail!("it was never compared with the original model");
    }
    for (file, expected) in &manifest.files {
        let content =
            fs::read(pack.join(file)).with_context(|| format!("its {file} cannot be read"))?;
        if hexadecimal(Sha256::digest(content)) != *expected {
            bail!("its {file} is damaged");
        }
    }
    Ok(())
}

/// A name for the recipes as they are: 16 hexadecimal digits over names and contents.
fn recipes_hash() -> Result<String> {
    let folder = root().join("models/recipes");
    let mut files = BTreeMap::new();
    for entry in
        fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry?.path();
        if path.is_file() {
            files.insert(path.file_name().map(ToOwned::to_owned), fs::read(&path)?);
        }
    }
    let mut hash = Sha256::new();
    for (name, content) in files {
        hash.update(name.unwrap_or_default().as_encoded_bytes());
        hash.update(content.len().to_le_bytes());
        hash.update(content);
    }
    let mut name = hexadecimal(hash.finalize());
    name.truncate(16);
    Ok(name)
}

/// Bytes as lower-case hexadecimal digits.
pub fn hexadecimal(bytes: impl AsRef<[u8]>) -> String {
    bytes
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
