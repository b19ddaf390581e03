//! Rewriting the file, so that nothing is in it but what the store holds.
//!
//! Removing a row leaves its bytes in free pages and in the gaps of used ones,
//! and moving pages together does not erase them either. So the rows are copied
//! to a new file, which takes the old one's place in one step.

use crate::error::StorageError;
use crate::open::new_database;
use crate::removal::{reclaim_keys, to_reclaim};
use crate::schema::{
    APART, DATA_KEYS, ENROLMENTS, MERGES, META, RECLAIM, RECORDS, SESSIONS, SPEAKERS,
};
use crate::store::{Access, Store};
use crate::transaction::{Snapshot, Tables};
use redb::{Database, ReadableTable, TableDefinition, WriteTransaction};

impl Store {
    /// Rewrites the file without its gaps and without what was removed. Needs
    /// as much free space as the store itself.
    pub fn compact(&self) -> Result<(), StorageError> {
        let _writing = self.begin_writing();
        self.rewrite()
    }

    /// Does what a forget could not finish: no room, or the power went.
    pub(crate) fn finish_reclaiming(&self) {
        let _writing = self.begin_writing();
        if matches!(self.read_committed(to_reclaim), Ok(Some(_))) {
            // Without success the mark stays, and the next opening tries again.
            let _ = self.erase_removed();
        }
    }

    /// Leaves no copy of what was removed, neither in the file nor beside it.
    /// The caller holds `writer`.
    pub(crate) fn erase_removed(&self) -> Result<(), StorageError> {
        self.medium.discard_backups()?;
        let first = self.reclaim_and_rewrite();
        // What is cut off the file may be room enough.
        if first.is_ok() || !self.shrink(true) {
            return first;
        }
        let second = self.reclaim_and_rewrite();
        if second.is_err() {
            // Nor does it keep the room that the attempt has taken.
            self.shrink(true);
        }
        second
    }

    fn reclaim_and_rewrite(&self) -> Result<(), StorageError> {
        let late = self.read_committed(to_reclaim)?;
        if late.is_some_and(|owners| !owners.is_empty()) {
            self.write(reclaim_keys)?;
        }
        self.rewrite()
    }

    /// The caller holds `writer`.
    pub(crate) fn rewrite(&self) -> Result<(), StorageError> {
        self.check_on()?;
        let result = self.copy_and_exchange();
        if result.is_err() {
            // The next rewrite or opening removes what cannot be removed now.
            let _ = self.medium.discard_replacement();
        }
        result
    }

    fn copy_and_exchange(&self) -> Result<(), StorageError> {
        let fresh = self.read_committed(|from| self.copy(from))?;
        // Nobody may open the old file between the exchange and the moment its
        // lock is gone.
        let _hold = self.medium.hold()?;
        let mut access = self.access_mut();
        self.medium.install_replacement()?;
        *access = Access::Full(fresh);
        Ok(())
    }

    fn copy(&self, from: &Snapshot) -> Result<Database, StorageError> {
        let mut fresh = new_database(self.medium.as_ref())?;
        let to = fresh.begin_write()?;
        copy_table(from, &to, META)?;
        to.open_table(META)?.remove(RECLAIM)?;
        copy_table(from, &to, RECORDS)?;
        for table in [SESSIONS, SPEAKERS, ENROLMENTS, MERGES, DATA_KEYS] {
            copy_table(from, &to, table)?;
        }
        copy_table(from, &to, APART)?;
        to.commit()?;
        // A file grows in large steps; this gives back what was not used.
        fresh.compact()?;
        Ok(fresh)
    }
}

/// Rows stay sealed as they are.
fn copy_table<K: redb::Key + 'static, V: redb::Value + 'static>(
    from: &Snapshot,
    to: &WriteTransaction,
    table: TableDefinition<'static, K, V>,
) -> Result<(), StorageError> {
    let mut copy = to.open_table(table)?;
    for row in from.table(table)?.iter()? {
        let (key, value) = row?;
        copy.insert(key.value(), value.value())?;
    }
    Ok(())
}
