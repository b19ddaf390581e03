//! Where a store's bytes lie: a file, or whatever stands in for one.
//!
//! A medium holds one store and can hold a second one, the replacement, that
//! takes its place in one step. Everything that must not be half done in a file
//! (creating a store, rewriting it) is done in the replacement.

use crate::schema::SCHEMA;
use redb::{StorageBackend, backends::FileBackend};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What a [`Store`](crate::Store) needs of the place its bytes lie in.
pub trait Medium: Send + Sync + 'static {
    /// Its name in error messages.
    fn name(&self) -> String;

    /// Keeps other processes from opening or exchanging the store until the
    /// result is dropped. Held for moments.
    fn hold(&self) -> io::Result<Hold>;

    /// The store for reading; `None` where there is none yet.
    fn read(&self) -> io::Result<Option<Box<dyn StorageBackend>>>;

    /// Bytes that the store takes. What was never written to takes none, where
    /// the medium knows the difference.
    fn size(&self) -> io::Result<u64>;

    /// The store for reading and writing.
    fn write(&self) -> io::Result<Box<dyn StorageBackend>>;

    /// A new, empty replacement instead of any other.
    fn create_replacement(&self) -> io::Result<Box<dyn StorageBackend>>;

    /// Puts the replacement durably in the store's place, in one step.
    fn install_replacement(&self) -> io::Result<()>;

    /// Removes the replacement, where there is one.
    fn discard_replacement(&self) -> io::Result<()>;

    /// Sets so many bytes of room aside, or as many as there are, unless they are
    /// already.
    fn keep_reserve(&self, bytes: u64) -> io::Result<()>;

    /// Gives the room back that was set aside.
    fn release_reserve(&self) -> io::Result<()>;

    /// Keeps the store as it is now beside what will take its place, as the
    /// backup of that format version.
    fn back_up(&self, version: u32) -> io::Result<()>;

    /// Removes every backup: what is forgotten may stand in one.
    fn discard_backups(&self) -> io::Result<()>;
}

/// The right to open or exchange a store. Dropping it gives it up.
#[derive(Debug, Default)]
pub struct Hold {
    /// A locked directory; a medium within one process needs none.
    _directory: Option<File>,
}

/// A store in a file. Its replacement is the file of the same name with
/// `.rewrite` added, its reserve the one with `.reserve`, and the backup of version
/// N the one with `.vN`; all are readable by their owner alone.
#[derive(Debug)]
pub struct FileMedium {
    path: PathBuf,
    directory: PathBuf,
    replacement: PathBuf,
    reserve: PathBuf,
}

impl FileMedium {
    /// The store at `path`, which need not exist yet; its folder has to.
    pub fn new(path: &Path) -> io::Result<Self> {
        // A link is followed once, here, so that exchanging the file does not
        // replace the link.
        let path = match path.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => std::path::absolute(path)?,
            result => result?,
        };
        let directory = path.parent().unwrap_or(&path).to_path_buf();
        Ok(Self {
            directory,
            replacement: beside(&path, ".rewrite"),
            reserve: beside(&path, ".reserve"),
            path,
        })
    }

    fn backup(&self, version: u32) -> PathBuf {
        beside(&self.path, &format!(".v{version}"))
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

/// A new file for its owner's eyes only.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

impl Medium for FileMedium {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn hold(&self) -> io::Result<Hold> {
        let directory = File::open(&self.directory)?;
        directory.lock()?;
        Ok(Hold {
            _directory: Some(directory),
        })
    }

    fn read(&self) -> io::Result<Option<Box<dyn StorageBackend>>> {
        let metadata = match fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result?,
        };
        if !metadata.is_file() {
            let what = "it is not a regular file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        if metadata.len() == 0 {
            return Ok(None);
        }
        backend(File::open(&self.path)?).map(Some)
    }

    fn size(&self) -> io::Result<u64> {
        let metadata = fs::metadata(&self.path)?;
        #[cfg(unix)]
        let bytes = std::os::unix::fs::MetadataExt::blocks(&metadata) * 512;
        #[cfg(not(unix))]
        let bytes = metadata.len();
        Ok(bytes)
    }

    fn write(&self) -> io::Result<Box<dyn StorageBackend>> {
        backend(OpenOptions::new().read(true).write(true).open(&self.path)?)
    }

    fn create_replacement(&self) -> io::Result<Box<dyn StorageBackend>> {
        self.discard_replacement()?;
        backend(create_private(&self.replacement)?)
    }

    fn install_replacement(&self) -> io::Result<()> {
        fs::rename(&self.replacement, &self.path)?;
        File::open(&self.directory)?.sync_all()
    }

    fn discard_replacement(&self) -> io::Result<()> {
        remove(&self.replacement)
    }

    fn keep_reserve(&self, bytes: u64) -> io::Result<()> {
        if fs::metadata(&self.reserve).is_ok_and(|reserve| reserve.len() == bytes) {
            return Ok(());
        }
        remove(&self.reserve)?;
        let mut file = create_private(&self.reserve)?;
        // Written, since a file system gives no room to what is not.
        match io::copy(&mut io::repeat(0).take(bytes), &mut file) {
            Err(error) if error.kind() != io::ErrorKind::StorageFull => Err(error),
            _ => file.sync_all(),
        }
    }

    fn release_reserve(&self) -> io::Result<()> {
        remove(&self.reserve)
    }

    fn back_up(&self, version: u32) -> io::Result<()> {
        let backup = self.backup(version);
        remove(&backup)?;
        // A second name for the same bytes costs nothing, and there is no moment
        // at which the backup is half there.
        fs::hard_link(&self.path, backup)?;
        File::open(&self.directory)?.sync_all()
    }

    fn discard_backups(&self) -> io::Result<()> {
        (1..SCHEMA).try_for_each(|version| remove(&self.backup(version)))
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn backend(file: File) -> io::Result<Box<dyn StorageBackend>> {
    Ok(Box::new(FileBackend::new(file).map_err(io::Error::other)?))
}
