//! Opening: look first, touch later.
//!
//! A file is opened for writing only after it was found to be a memory of ours:
//! it is first opened behind a layer that keeps every write to itself, its
//! checksums are verified and its `meta` table is read. A new store is built in
//! the medium's replacement and put in place whole, so that a power cut leaves a
//! complete store or none.

use crate::backend::Backend;
use crate::consent::Retention;
use crate::error::StorageError;
use crate::keys::KeyTable;
use crate::limits::Limits;
use crate::medium::{FileMedium, Medium};
use crate::migrate;
use crate::schema::{
    APART, COUNTERS, Counters, DATA_KEYS, ENROLMENTS, MAGIC, MAGIC_VALUE, MERGES, META, PROOF,
    RECORDS, SCHEMA, SCHEMA_VERSION, SESSIONS, SPEAKERS, layout, meta, put_meta,
};
use crate::store::{Access, Store};
use crate::transaction::{Change, Snapshot};
use crate::turn::{KeyBytes, each_turn};
use crate::vault::{MasterKey, Vault};
use crate::voices::VoiceCache;
use earwitness_api::types::RecordId;
use redb::{Builder, Database, DatabaseError, ReadableDatabase, WriteTransaction};
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};

/// Memory for the pages of the file that were used last.
pub const CACHE_BYTES: usize = 8 * 1024 * 1024;

/// How a store is opened.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What it may grow to.
    pub limits: Limits,
    /// How long records are kept.
    pub retention: Retention,
    /// The key that the store is sealed with, or will be if it is new; `None` for
    /// a store in plain.
    pub key: Option<MasterKey>,
}

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
    /// It is sealed, and there is no key.
    #[error("{0} is encrypted; it was not touched: give its key with --key-file")]
    Locked(String),
    /// It is sealed with another key.
    #[error(
        "{0} is encrypted with another key; it was not touched: give the right one with --key-file"
    )]
    WrongKey(String),
    /// There is a key, but it is not sealed.
    #[error(
        "{0} is not encrypted, but a key was given; it was not touched: leave the key out, or \
         export it and import it into a new memory"
    )]
    NotSealed(String),
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
    /// file or an empty one, with the default limits.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_with(path, Options::default())
    }

    /// The same, as the options say.
    pub fn open_with(path: &Path, options: Options) -> Result<Self, OpenError> {
        let medium = FileMedium::new(path).map_err(|error| OpenError::Failed {
            path: path.display().to_string(),
            reason: error.to_string(),
        })?;
        Self::open_on_with(medium, options)
    }

    /// Opens the memory on any medium, with the default limits.
    pub fn open_on(medium: impl Medium) -> Result<Self, OpenError> {
        Self::open_on_with(medium, Options::default())
    }

    /// The same, as the options say.
    pub fn open_on_with(medium: impl Medium, options: Options) -> Result<Self, OpenError> {
        let name = medium.name();
        let vault = Vault::new(options.key);
        let opened = open_or_create(&medium, &vault);
        let (database, keys) = opened.map_err(|problem| problem.named(name))?;
        let store = Self {
            medium: Box::new(medium),
            writer: Mutex::new(()),
            database: RwLock::new(Access::Full(database)),
            keys: RwLock::new(Arc::new(keys)),
            failing: AtomicBool::new(false),
            limits: options.limits,
            retention: options.retention,
            off: AtomicBool::new(false),
            vault,
            recent: Mutex::default(),
            shrink_due: AtomicBool::new(false),
            voices: VoiceCache::default(),
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
    Locked,
    WrongKey,
    NotSealed,
    Damaged(String),
    Failed(String),
}

impl Problem {
    fn named(self, path: String) -> OpenError {
        match self {
            Self::InUse => OpenError::InUse(path),
            Self::NotAStore(reason) => OpenError::NotAStore { path, reason },
            Self::Newer(found) => OpenError::Newer { path, found },
            Self::Locked => OpenError::Locked(path),
            Self::WrongKey => OpenError::WrongKey(path),
            Self::NotSealed => OpenError::NotSealed(path),
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
            StorageError::Off => Self::Failed(error.to_string()),
        }
    }
}

fn open_or_create(medium: &dyn Medium, vault: &Vault) -> Result<(Database, KeyTable), Problem> {
    let _hold = medium.hold()?;
    let database = match medium.read()? {
        Some(storage) => {
            let version = inspect(Backend::untouched(storage)?, vault)?;
            if version < SCHEMA {
                migrate(medium, version)?;
            }
            let database = builder().create_with_backend(Backend::direct(medium.write()?))?;
            // What a rewrite left behind when the power went.
            medium.discard_replacement()?;
            database
        }
        None => create(medium, vault)?,
    };
    let snapshot = snapshot(&database, vault)?;
    let keys = load_keys(&snapshot)?;
    drop(snapshot);
    Ok((database, keys))
}

fn snapshot(database: &Database, vault: &Vault) -> Result<Snapshot, StorageError> {
    Snapshot::new(database.begin_read()?, vault)
}

/// Puts a store of this version in the place of an older one, which is kept
/// beside it. No older version was sealed.
fn migrate(medium: &dyn Medium, version: u32) -> Result<(), Problem> {
    let storage = medium.read()?.ok_or(io::ErrorKind::NotFound)?;
    let old = builder().create_with_backend(Backend::untouched(storage)?)?;
    let mut new = new_database(medium)?;
    let vault = Vault::default();
    let from = snapshot(&old, &vault)?;
    fill(&new, &vault, |to| migrate::from_v1(&from, to))?;
    new.compact().map_err(StorageError::from)?;
    drop((from, old, new));
    medium.back_up(version)?;
    medium.install_replacement()?;
    Ok(())
}

/// Makes the tables of a new store, and what is to be in them.
fn fill(
    database: &Database,
    vault: &Vault,
    fill: impl FnOnce(&Change<'_>) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    let transaction = database.begin_write()?;
    create_tables(&transaction)?;
    let change = Change::new(transaction, vault)?;
    put_meta(&change, COUNTERS, &Counters::default())?;
    if let Some(proof) = vault.proof()? {
        put_meta(&change, PROOF, &proof)?;
    }
    fill(&change)?;
    change.commit()
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Whether this is a sound memory of ours that the vault opens, and of which
/// version.
fn inspect(backend: Backend, vault: &Vault) -> Result<u32, Problem> {
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
        Some(known @ 1..=SCHEMA) => {
            drop((table, transaction));
            check_key(&database, vault)?;
            Ok(known)
        }
        Some(newer) if newer > SCHEMA => Err(Problem::Newer(newer)),
        _ => Err(Problem::Damaged("its format has no known version".into())),
    }
}

fn check_key(database: &Database, vault: &Vault) -> Result<(), Problem> {
    let plain = Vault::default();
    let proof: Option<Vec<u8>> = meta(&snapshot(database, &plain)?, PROOF)?;
    match proof {
        None if vault.seals() => Err(Problem::NotSealed),
        Some(_) if !vault.seals() => Err(Problem::Locked),
        Some(proof) if !vault.accepts(&proof) => Err(Problem::WrongKey),
        _ => Ok(()),
    }
}

fn create(medium: &dyn Medium, vault: &Vault) -> Result<Database, Problem> {
    let database = new_database(medium)?;
    fill(&database, vault, |_| Ok(()))?;
    medium.install_replacement()?;
    Ok(database)
}

/// An empty database in the medium's replacement.
pub(crate) fn new_database(medium: &dyn Medium) -> Result<Database, StorageError> {
    let storage = medium.create_replacement()?;
    Ok(builder().create_with_backend(Backend::direct(storage))?)
}

fn create_tables(transaction: &WriteTransaction) -> Result<(), StorageError> {
    let mut meta = transaction.open_table(META)?;
    meta.insert(MAGIC, MAGIC_VALUE)?;
    meta.insert(SCHEMA_VERSION, SCHEMA.to_le_bytes().as_slice())?;
    transaction.open_table(RECORDS)?;
    for table in [SESSIONS, SPEAKERS, ENROLMENTS, MERGES, DATA_KEYS] {
        transaction.open_table(table)?;
    }
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
pub(crate) fn load_keys(snapshot: &Snapshot) -> Result<KeyTable, StorageError> {
    let mut keys = KeyTable::new(layout(snapshot)?);
    each_turn(snapshot, false, .., |id, bytes, layout| {
        keys.push_row(RecordId(id), KeyBytes::of(bytes, layout)?);
        Ok(true)
    })?;
    Ok(keys)
}
