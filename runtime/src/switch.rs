//! The switch of the memory, which outlives the daemon: a file beside the store,
//! its name and `.off` behind it. While it is there, the store is not opened, and
//! a daemon that has it open neither reads nor writes it.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use crate::paths;

/// Whether the memory may be read and written.
pub fn is_on(store: &Path) -> bool {
    !paths::switch_of(store).exists()
}

/// Switches the memory on or off for whoever opens it next.
pub fn set(store: &Path, on: bool) -> io::Result<()> {
    let switch = paths::switch_of(store);
    if !on {
        return File::create(switch)?.sync_all();
    }
    match fs::remove_file(switch) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
