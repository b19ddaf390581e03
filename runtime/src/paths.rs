//! Where things lie on this device unless the command line says otherwise.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The store: below `$XDG_DATA_HOME`, or `~/.local/share`.
pub fn default_store() -> PathBuf {
    base("XDG_DATA_HOME", ".local/share").join("earwitness/memory.redb")
}

/// The model packs that came with the image, or those below the user's data.
pub fn default_packs() -> PathBuf {
    let system = Path::new("/usr/share/earwitness/packs");
    if system.is_dir() {
        return system.to_owned();
    }
    base("XDG_DATA_HOME", ".local/share").join("earwitness/packs")
}

/// The socket of the daemon that serves a store lies beside the store, so that
/// whoever knows the store finds its daemon: the whole name of the file, links
/// followed, and `.sock` behind it. No two stores share one.
pub fn socket_of(store: &Path) -> PathBuf {
    beside(store, ".sock")
}

/// The file that switches a store off while it is there (see [`crate::switch`]).
pub fn switch_of(store: &Path) -> PathBuf {
    beside(store, ".off")
}

fn beside(store: &Path, ending: &str) -> PathBuf {
    let mut name = store
        .canonicalize()
        .unwrap_or_else(|_| store.to_owned())
        .into_os_string();
    name.push(ending);
    name.into()
}

fn base(variable: &str, below_home: &str) -> PathBuf {
    match env::var_os(variable).filter(|value| !value.is_empty()) {
        Some(directory) => PathBuf::from(directory),
        None => PathBuf::from(env::var_os("HOME").unwrap_or_else(|| "/".into())).join(below_home),
    }
}
