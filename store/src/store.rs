//! The store itself: who holds which lock, and how a transaction is run.
//!
//! Lock order: `writer`, then `voices`, then `database`, then `keys` or `recent`.
//! Writers hold `writer` for the whole operation and `database` only for reading, so
//! readers go on beside them; `database` is locked for writing only while the
//! database behind it is exchanged or compacted.

use crate::consent::Retention;
use crate::error::StorageError;
use crate::keys::KeyTable;
use crate::limits::{Limits, Recent};
use crate::medium::Medium;
use crate::open;
use crate::transaction::{Change, Snapshot};
use crate::vault::Vault;
use crate::voices::VoiceCache;
use redb::{Database, ReadTransaction, ReadableDatabase, WriteTransaction};
use std::fmt::{self, Debug};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A memory that this process has opened. Share it between threads by reference
/// or in an `Arc`; dropping it closes the file.
pub struct Store {
    pub(crate) medium: Box<dyn Medium>,
    pub(crate) writer: Mutex<()>,
    pub(crate) database: RwLock<Access>,
    pub(crate) keys: RwLock<Arc<KeyTable>>,
    /// Whether the medium refused the last write.
    pub(crate) failing: AtomicBool,
    pub(crate) limits: Limits,
    pub(crate) retention: Retention,
    /// Whether somebody switched the memory off.
    pub(crate) off: AtomicBool,
    /// Whether what was evicted for want of disk still has to be cut off the file.
    pub(crate) shrink_due: AtomicBool,
    pub(crate) vault: Vault,
    pub(crate) recent: Mutex<Recent>,
    pub(crate) voices: VoiceCache,
}

/// What the store can do with its file at the moment.
pub(crate) enum Access {
    /// Read and write.
    Full(Database),
    /// Writing failed and has not worked since; the file is read as it was last
    /// committed. The reason is kept.
    ReadOnly(Database, String),
    /// The file could not even be read. The reason is kept.
    None(String),
}

impl Access {
    fn begin_write(&self) -> Result<WriteTransaction, StorageError> {
        match self {
            Self::Full(database) => Ok(database.begin_write()?),
            Self::ReadOnly(_, reason) | Self::None(reason) => {
                Err(StorageError::Failed(reason.clone()))
            }
        }
    }

    pub fn begin_read(&self) -> Result<ReadTransaction, StorageError> {
        match self {
            Self::Full(database) | Self::ReadOnly(database, _) => Ok(database.begin_read()?),
            Self::None(reason) => Err(StorageError::Failed(reason.clone())),
        }
    }
}

impl Store {
    /// A snapshot of all retrieval keys. It costs nothing to take and is not
    /// changed by later writes.
    pub fn keys(&self) -> Arc<KeyTable> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_keys(&self, keys: KeyTable) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
    }

    pub(crate) fn change_keys(&self, change: impl FnOnce(&mut KeyTable)) {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut keys));
    }

    /// Waits until no other thread writes.
    pub(crate) fn begin_writing(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn access(&self) -> RwLockReadGuard<'_, Access> {
        self.database.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn access_mut(&self) -> RwLockWriteGuard<'_, Access> {
        self.database
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the last committed state, and once more where a failure of
    /// the medium had stopped redb. The caller does not hold `writer`.
    pub(crate) fn read<T>(
        &self,
        work: impl Fn(&Snapshot) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let result = self.read_committed(&work);
        if matches!(result, Ok(_) | Err(StorageError::Off)) {
            return result;
        }
        let _writing = self.begin_writing();
        if self.recover() {
            return self.read_committed(work);
        }
        result
    }

    /// Runs `work` on the last committed state.
    pub(crate) fn read_committed<T>(
        &self,
        work: impl FnOnce(&Snapshot) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        self.check_on()?;
        let access = self.access();
        work(&Snapshot::new(access.begin_read()?, &self.vault)?)
    }

    /// Runs `work` as one durable transaction: committed when it returns `Ok`,
    /// without a trace when it returns `Err`. The caller holds `writer`.
    pub(crate) fn write<T, E: From<StorageError>>(
        &self,
        work: impl FnOnce(&Change<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.check_on()?;
        self.recover();
        let result = self.transact(work);
        self.voices.forget();
        let refused = result.is_err() && self.recover();
        self.failing.store(refused, Ordering::Relaxed);
        result
    }

    pub(crate) fn check_on(&self) -> Result<(), StorageError> {
        match self.off.load(Ordering::Acquire) {
            true => Err(StorageError::Off),
            false => Ok(()),
        }
    }

    fn transact<T, E: From<StorageError>>(
        &self,
        work: impl FnOnce(&Change<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let access = self.access();
        // redb's default durability: on the medium when `commit` returns.
        let change = Change::new(access.begin_write()?, &self.vault)?;
        let value = work(&change)?;
        change.commit()?;
        Ok(value)
    }

    /// Where a failure of the medium has stopped redb, which then refuses every
    /// further call, opens the file anew: for writing, or else for reading.
    /// Returns whether it had to. The caller holds `writer`.
    fn recover(&self) -> bool {
        if self.access().begin_write().is_ok() {
            return false;
        }
        let mut access = self.access_mut();
        // The old database has to be gone before its file is opened again.
        *access = Access::None(String::new());
        *access = open::reopen(self.medium.as_ref());
        // A commit that failed halfway may have become durable all the same.
        if let Ok(transaction) = access.begin_read()
            && let Ok(snapshot) = Snapshot::new(transaction, &self.vault)
            && let Ok(keys) = open::load_keys(&snapshot)
        {
            self.set_keys(keys);
        }
        drop(access);
        self.voices.forget();
        true
    }
}

impl Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.medium.name()).finish()
    }
}
