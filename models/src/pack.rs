//! Model packs: a folder with `manifest.toml` and the files it lists.
//!
//! Nothing of a pack is parsed as a model before its manifest is understood and
//! every file has the hash that the manifest gives. The hashes guard against
//! damage and mix-ups, not against someone who can rewrite the manifest too.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::manifest::{FORMAT, FrontEnd, Kind, Manifest};

/// Name of the file that describes a pack.
pub(crate) const MANIFEST: &str = "manifest.toml";
/// A manifest is a few KiB; anything much larger is no manifest.
const MANIFEST_LIMIT: u64 = 256 * 1024;

/// Why a pack is refused.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A file cannot be read at all.
    #[error("{}: cannot read {file}: {source}; run `cargo xtask models` to build the pack", pack.display())]
    Io {
        /// Folder of the pack.
        pack: PathBuf,
        /// The file inside it.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The manifest is no manifest.
    #[error("{}: {MANIFEST} is malformed: {reason}; rebuild the pack", pack.display())]
    Malformed {
        /// Folder of the pack.
        pack: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The pack was written for another version of the program.
    #[error("{}: {MANIFEST} has format {found}, this program reads {FORMAT}; update the older of the two", pack.display())]
    Format {
        /// Folder of the pack.
        pack: PathBuf,
        /// The format it has.
        found: i64,
    },
    /// The pack is for something else.
    #[error("{}: {MANIFEST} describes a pack of kind `{found}`, not `{expected}`; the folders are mixed up", pack.display())]
    Kind {
        /// Folder of the pack.
        pack: PathBuf,
        /// The kind it has.
        found: Kind,
        /// The kind that was asked for.
        expected: Kind,
    },
    /// A path in the manifest leads out of the pack.
    #[error("{}: {MANIFEST} names the file `{file}`, which is not a plain path inside the pack; do not use it", pack.display())]
    Escape {
        /// Folder of the pack.
        pack: PathBuf,
        /// The path as the manifest has it.
        file: String,
    },
    /// A file is not the one that the manifest describes.
    #[error("{}: {file} is damaged or was replaced (its SHA-256 is {found}, not {expected}); rebuild the pack", pack.display())]
    Hash {
        /// Folder of the pack.
        pack: PathBuf,
        /// The file inside it.
        file: String,
        /// Its hash.
        found: String,
        /// The hash in the manifest.
        expected: String,
    },
    /// The manifest does not list a file that this kind of model needs.
    #[error("{}: {MANIFEST} does not list {file}, which a pack of this kind needs; rebuild the pack", pack.display())]
    Unlisted {
        /// Folder of the pack.
        pack: PathBuf,
        /// The file that is needed.
        file: String,
    },
    /// Nobody has checked that the runtime computes what the original model did.
    #[error("{}: {MANIFEST} holds no parity figure within its bound; run `earwitness-pack seal` on it", pack.display())]
    Unsealed {
        /// Folder of the pack.
        pack: PathBuf,
    },
}

/// A verified pack.
#[derive(Clone, Debug)]
pub struct Pack {
    /// The folder.
    pub dir: PathBuf,
    /// What its manifest says.
    pub manifest: Manifest,
}

impl Pack {
    /// Opens the pack of one kind under `root` and verifies all of it.
    pub fn open(root: &Path, kind: Kind) -> Result<Self, PackError> {
        Self::open_variant(root, kind, None)
    }

    /// The same where there is more than one pack of a kind: variant `x` of kind
    /// `y` lies in the folder `y-x`.
    pub fn open_variant(root: &Path, kind: Kind, variant: Option<&str>) -> Result<Self, PackError> {
        let folder = match variant {
            None => kind.name().to_owned(),
            Some(variant) => format!("{}-{variant}", kind.name()),
        };
        let pack = Self::open_unsealed(&root.join(folder))?;
        if pack.manifest.kind != kind {
            let found = pack.manifest.kind;
            return Err(PackError::Kind {
                pack: pack.dir,
                found,
                expected: kind,
            });
        }
        pack.require_seal()?;
        Ok(pack)
    }

    /// Opens a pack whose parity may still be unknown: for sealing and checking.
    pub fn open_unsealed(dir: &Path) -> Result<Self, PackError> {
        let manifest = read_manifest(dir)?;
        for (file, expected) in &manifest.files {
            verify(dir, file, expected)?;
        }
        Ok(Self {
            dir: dir.to_path_buf(),
            manifest,
        })
    }

    /// An error unless the pack's parity was measured and is within its bound.
    pub fn require_seal(&self) -> Result<(), PackError> {
        let parity = self.manifest.parity;
        let sealed = |value| parity.metric.holds(value, parity.bound);
        if parity.measured.is_some_and(sealed) {
            Ok(())
        } else {
            Err(PackError::Unsealed {
                pack: self.dir.clone(),
            })
        }
    }

    /// The whole content of one of the pack's files.
    pub fn read(&self, file: &str) -> Result<Vec<u8>, PackError> {
        if !self.manifest.files.contains_key(file) {
            return Err(PackError::Unlisted {
                pack: self.dir.clone(),
                file: file.into(),
            });
        }
        fs::read(self.dir.join(file)).map_err(|source| io_error(&self.dir, file, source))
    }

    /// The whole content of one of the pack's text files.
    pub fn read_text(&self, file: &str) -> Result<String, PackError> {
        String::from_utf8(self.read(file)?)
            .map_err(|error| self.malformed(format!("{file} is no text: {error}")))
    }

    /// An error about what the manifest says, for the loaders of the kinds.
    pub(crate) fn malformed(&self, reason: impl ToString) -> PackError {
        PackError::Malformed {
            pack: self.dir.clone(),
            reason: reason.to_string(),
        }
    }
}

/// The packs that the runtime needs.
#[derive(Clone, Debug)]
pub struct PackSet {
    /// Voice activity.
    pub vad: Pack,
    /// Voiceprints.
    pub voiceprint: Pack,
    /// Speech recognition.
    pub asr: Pack,
    /// Text embedding.
    pub embed: Pack,
    /// Retrieval.
    pub threew: Pack,
}

impl PackSet {
    /// Opens and verifies all of them; `root` holds one folder for each kind, and
    /// `voiceprint` says which variant of that kind to take.
    pub fn open(root: &Path, voiceprint: Option<&str>) -> Result<Self, PackError> {
        let embed = Pack::open(root, Kind::Embed)?;
        Ok(Self {
            vad: Pack::open(root, Kind::Vad)?,
            voiceprint: Pack::open_variant(root, Kind::Voiceprint, voiceprint)?,
            asr: Pack::open(root, Kind::Asr)?,
            threew: threew(root, &embed)?,
            embed,
        })
    }
}

/// The retrieval pack, which must have been trained on embeddings of the other.
fn threew(root: &Path, embed: &Pack) -> Result<Pack, PackError> {
    let threew = Pack::open(root, Kind::Threew)?;
    match &threew.manifest.front_end {
        FrontEnd::Sentence { pack, .. } if *pack == embed.manifest.name => Ok(threew),
        other => Err(threew.malformed(format!(
            "it was made for {other:?}, and the embed pack is {}",
            embed.manifest.name
        ))),
    }
}

fn io_error(pack: &Path, file: &str, source: io::Error) -> PackError {
    PackError::Io {
        pack: pack.to_path_buf(),
        file: file.into(),
        source,
    }
}

/// Reads the manifest, looking at its format before anything else in it, since
/// a later format may hold what this program cannot parse.
fn read_manifest(dir: &Path) -> Result<Manifest, PackError> {
    let malformed = |error: toml::de::Error| PackError::Malformed {
        pack: dir.to_path_buf(),
        reason: error.to_string(),
    };
    let mut text = String::new();
    File::open(dir.join(MANIFEST))
        .and_then(|file| file.take(MANIFEST_LIMIT).read_to_string(&mut text))
        .map_err(|source| io_error(dir, MANIFEST, source))?;
    let table: toml::Table = toml::from_str(&text).map_err(malformed)?;
    if let Some(found) = table.get("format").and_then(toml::Value::as_integer)
        && found != i64::from(FORMAT)
    {
        return Err(PackError::Format {
            pack: dir.to_path_buf(),
            found,
        });
    }
    toml::from_str(&text).map_err(malformed)
}

fn verify(dir: &Path, file: &str, expected: &str) -> Result<(), PackError> {
    let plain = |part| matches!(part, Component::Normal(_));
    if file.is_empty() || !Path::new(file).components().all(plain) {
        return Err(PackError::Escape {
            pack: dir.to_path_buf(),
            file: file.into(),
        });
    }
    let found = sha256(&dir.join(file)).map_err(|source| io_error(dir, file, source))?;
    if found != expected {
        let expected = expected.into();
        return Err(PackError::Hash {
            pack: dir.to_path_buf(),
            file: file.into(),
            found,
            expected,
        });
    }
    Ok(())
}

/// SHA-256 of a file in lower-case hexadecimal, read in pieces.
fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            break;
        }
        hash.update(&piece[..count]);
    }
    Ok(hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}
