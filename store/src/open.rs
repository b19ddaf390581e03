//! Opening: look first, touch later.
//!
//! A file is opened for writing only after it was found to be a memory of ours:
//! it is first opened behind a layer that keeps every write to itself, its
//! checksums are verified and its `meta` table is read. A new store is built in
//! the medium's replacement and put in place whole, so that a power cut leaves a
//! complete store or none.

use crate::backend::Backend;
use crate::error::StorageError;
use crate::key::KeyLayout;
use crate::keys::KeyTable;
use crate::medium::{FileMedium, Medium};
use crate::migrate;
use crate::schema::{
    APART, COUNTERS, Counters, ENROLMENTS, LAYOUT, MAGIC, MAGIC_VALUE, MERGES, META, RECORDS,
    SCHEMA, SCHEMA_VERSION, SESSIONS, SPEAKERS, encode, meta,
};
use crate::store::{Access, Store};
use crate::turn::decode_key;
use earwitness_api::types::RecordId;
use redb::{
    Builder, Database, DatabaseError, ReadTransaction, ReadableDatabase, ReadableTable,
    WriteTransaction,
};
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};

/// Memory for redb's own page cache.
const CACHE_BYTES: usize = 8 * 1024 * 1024;

/// Why a store was not opened. Whatever lies at the path is as it was.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error(
        "{0} is in use by another process: a daemon answers `ask`, `memory` and `speakers` \
         itself; for anything else stop that process first"
    )]
    InUse(String),
    /// It is something else than a memory.
    #[error("{path} is not an Earwitness memory ({reason}); it was not touched: name another file")]
    NotAStore {
        /// The file.
        path: String,
        /// How one can tell.
        reason: String,
    },
    /// A newer program has written it.
    #[error(
        "{path} has the memory format {found}, this program knows up to {SCHEMA}; it was not \
         touched: update the program"
    )]
    Newer {
        /// The file.
        path: String,
        /// Its format.
        found: u32,
    },
    /// It was a memory once.
    #[error("{path} is damaged ({reason}); it was not touched: restore it from a copy")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The system refused.
    #[error("{path} cannot be opened ({reason}): check that its folder exists and may be written")]
    Failed {
        /// The file.
        path: String,
        /// What the system said.
        reason: String,
    },
}

impl Store {
    /// Opens the memory in the file at `path`, or makes one where there is no
    /// file or an empty one.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let medium = FileMedium::new(path).map_err(|error| OpenError::Failed {
            path: path.display().to_string(),
            reason: error.to_string(),
        })?;
        Self::open_on(medium)
    }

    /// Opens the memory on any medium.
    pub fn open_on(medium: impl Medium) -> Result<Self, OpenError> {
        let name = medium.name();
        let (database, keys) = open_or_create(&medium).map_err(|problem| problem.named(name))?;
        let store = Self {
            medium: Box::new(medium),
            writer: Mutex::new(()),
            database: RwLock::new(Access::Full(database)),
            keys: RwLock::new(Arc::new(keys)),
            failing: AtomicBool::new(false),
        };
        store.finish_reclaiming();
        Ok(store)
    }
}

/// What can go wrong below, before it is told with the medium's name.
enum Problem {
    InUse,
    NotAStore(String),
    Newer(u32),
    Damaged(String),
    Failed(String),
}

impl Problem {
    fn named(self, path: String) -> OpenError {
        match self {
            Self::InUse => OpenError::InUse(path),
            Self::NotAStore(reason) => OpenError::NotAStore { path, reason },
            Self::Newer(found) => OpenError::Newer { path, found },
            Self::Damaged(reason) => OpenError::Damaged { path, reason },
            Self::Failed(reason) => OpenError::Failed { path, reason },
        }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<io::ErrorKind> for Problem {
    fn from(kind: io::ErrorKind) -> Self {
        Self::Failed(kind.to_string())
    }
}

impl From<DatabaseError> for Problem {
    fn from(error: DatabaseError) -> Self {
        use redb::StorageError::{Corrupted, Io};
        match error {
            DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => Self::InUse,
            DatabaseError::UpgradeRequired(_) => {
                Self::NotAStore("it is a database of another kind".into())
            }
            DatabaseError::Storage(Corrupted(reason)) => Self::Damaged(reason),
            DatabaseError::Storage(Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                Self::NotAStore("it is no database".into())
            }
            DatabaseError::Storage(Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Self::Damaged("its end is missing".into())
            }
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<StorageError> for Problem {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Damaged(reason) => Self::Damaged(reason),
            StorageError::Failed(reason) => Self::Failed(reason),
        }
    }
}

fn open_or_create(medium: &dyn Medium) -> Result<(Database, KeyTable), Problem> {
    let _hold = medium.hold()?;
    let database = match medium.read()? {
        Some(storage) => {
            let version = inspect(Backend::untouched(storage)?)?;
            if version < SCHEMA {
                migrate(medium, version)?;
            }
            let database = builder().create_with_backend(Backend::direct(medium.write()?))?;
            // What a rewrite left behind when the power went.
            medium.discard_replacement()?;
            database
        }
        None => create(medium)?,
    };
    let keys = load_keys(&database.begin_read().map_err(StorageError::from)?)?;
    Ok((database, keys))
}

/// Puts a store of this version in the place of an older one, which is kept
/// beside it.
fn migrate(medium: &dyn Medium, version: u32) -> Result<(), Problem> {
    let storage = medium.read()?.ok_or(io::ErrorKind::NotFound)?;
    let old = builder().create_with_backend(Backend::untouched(storage)?)?;
    let mut new = new_database(medium)?;
    let to = new.begin_write().map_err(StorageError::from)?;
    migrate::from_v1(&old.begin_read().map_err(StorageError::from)?, &to)?;
    to.commit().map_err(StorageError::from)?;
    new.compact().map_err(StorageError::from)?;
    drop((old, new));
    medium.back_up(version)?;
    medium.install_replacement()?;
    Ok(())
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Whether this is a sound memory of ours, and of which version.
fn inspect(backend: Backend) -> Result<u32, Problem> {
    let database = builder()
        .set_check_integrity_on_open(true)
        .create_with_backend(backend)?;
    let transaction = database.begin_read().map_err(StorageError::from)?;
    let foreign = || Problem::NotAStore("it is a database of another kind".into());
    let table = transaction.open_table(META).map_err(|_| foreign())?;
    let magic = table.get(MAGIC).map_err(StorageError::from)?;
    if magic.is_none_or(|magic| magic.value() != MAGIC_VALUE) {
        return Err(foreign());
    }
    let version = table.get(SCHEMA_VERSION).map_err(StorageError::from)?;
    let version = version.and_then(|bytes| bytes.value().try_into().ok());
    match version.map(u32::from_le_bytes) {
        Some(known @ 1..=SCHEMA) => Ok(known),
        Some(newer) if newer > SCHEMA => Err(Problem::Newer(newer)),
        _ => Err(Problem::Damaged("its format has no known version".into())),
    }
}

fn create(medium: &dyn Medium) -> Result<Database, Problem> {
    let database = new_database(medium)?;
    let transaction = database.begin_write().map_err(StorageError::from)?;
    create_tables(&transaction)?;
    transaction.commit().map_err(StorageError::from)?;
    medium.install_replacement()?;
    Ok(database)
}

/// An empty database in the medium's replacement.
pub(crate) fn new_database(medium: &dyn Medium) -> Result<Database, StorageError> {
    let storage = medium.create_replacement()?;
    Ok(builder().create_with_backend(Backend::direct(storage))?)
}

pub(crate) fn create_tables(transaction: &WriteTransaction) -> Result<(), StorageError> {
    let mut meta = transaction.open_table(META)?;
    meta.insert(MAGIC, MAGIC_VALUE)?;
    meta.insert(SCHEMA_VERSION, SCHEMA.to_le_bytes().as_slice())?;
    meta.insert(COUNTERS, encode(&Counters::default())?.as_slice())?;
    transaction.open_table(SESSIONS)?;
    transaction.open_table(RECORDS)?;
    transaction.open_table(SPEAKERS)?;
    transaction.open_table(ENROLMENTS)?;
    transaction.open_table(MERGES)?;
    transaction.open_table(APART)?;
    Ok(())
}

/// Opens a file known to be ours again, for reading where writing fails.
pub(crate) fn reopen(medium: &dyn Medium) -> Access {
    let writable = medium
        .write()
        .map_err(Problem::from)
        .and_then(|storage| Ok(builder().create_with_backend(Backend::direct(storage))?));
    let reason = match writable {
        Ok(database) => return Access::Full(database),
        Err(problem) => problem.named(medium.name()).to_string(),
    };
    let readable = medium
        .read()
        .and_then(|storage| storage.ok_or_else(|| io::ErrorKind::NotFound.into()))
        .and_then(Backend::untouched)
        .map_err(Problem::from)
        .and_then(|backend| Ok(builder().create_with_backend(backend)?));
    match readable {
        Ok(database) => Access::ReadOnly(database, reason),
        Err(_) => Access::None(reason),
    }
}

/// All keys of a committed state.
pub(crate) fn load_keys(transaction: &ReadTransaction) -> Result<KeyTable, StorageError> {
    let layout: Option<KeyLayout> = meta(&transaction.open_table(META)?, LAYOUT)?;
    let mut keys = KeyTable::new(layout);
    for row in transaction.open_table(RECORDS)?.iter()? {
        let (id, bytes) = row?;
        let layout =
            layout.ok_or_else(|| StorageError::Damaged("the key layout is missing".into()))?;
        keys.push(
            RecordId(id.value()),
            &decode_key(bytes.value(), layout)?,
            layout,
        );
    }
    Ok(keys)
}
