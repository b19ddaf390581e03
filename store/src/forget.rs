//! Forgetting for good: one transaction removes everything that hangs on what is
//! forgotten, then the file is rewritten without it.

use crate::error::StorageError;
use crate::removal::Removal;
use crate::schema::{RECORDS, Row, SESSIONS, SPEAKERS};
use crate::store::Store;
use crate::transaction::{Change, Tables};
use earwitness_api::types::{Forgotten, RecordId, Selection, SessionId, SpeakerId};
use redb::{ReadableTable, TableDefinition};

/// Why nothing was forgotten.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    /// The record does not exist.
    #[error("there is no record {}: it may have been forgotten already", .0.0)]
    NoSuchRecord(RecordId),
    /// The session does not exist.
    #[error("there is no session {}: it may have been forgotten already", .0.0)]
    NoSuchSession(SessionId),
    /// The speaker does not exist.
    #[error("there is no speaker {}: they may have been forgotten already", .0.0)]
    NoSuchSpeaker(SpeakerId),
    /// The file failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Store {
    /// Forgets for good what is selected and everything that hangs on it:
    ///
    /// - a record goes with its key and so with its voiceprint;
    /// - a session goes with its records;
    /// - a speaker goes with their name, records, and every voice of theirs, and is
    ///   replaced by "unknown" where others spoke to them;
    /// - a speaker who has no name and was not enrolled goes with their last
    ///   record. Others stay, with their centroids, until they are forgotten
    ///   themselves.
    ///
    /// It has happened, durably and as a whole, when this returns `Ok`. On a full
    /// medium it takes room that was set aside for it.
    pub fn forget(&self, selection: Selection) -> Result<Forgotten, ForgetError> {
        let _writing = self.begin_writing();
        let removal = match self.write(|change| forget(change, selection)) {
            Err(ForgetError::Storage(StorageError::Failed(_))) => {
                let whole = self.read_committed(|snapshot| Ok(select(snapshot, selection)))??;
                self.forget_in_parts(whole).map_err(ForgetError::from)
            }
            result => result,
        };
        self.vault.forget();
        Ok(self.finish_forgetting(&removal?))
    }

    /// What the medium did not take as one transaction, since it is full: gives the
    /// reserve back and removes a few records after the others, so that what one
    /// transaction frees is room for the next, and in the end what hangs on them. If
    /// the power goes in between, the rest is still there, and nobody was told
    /// otherwise. The caller holds `writer`.
    pub(crate) fn forget_in_parts(&self, whole: Removal) -> Result<Removal, StorageError> {
        self.medium
            .release_reserve()
            .map_err(redb::StorageError::from)?;
        let records: Vec<u64> = whole.records.iter().copied().collect();
        for part in records.chunks(PART) {
            self.write(|change| {
                let part = Removal::of_records(change, |record, _| part.contains(&record.id.0))?;
                part.forget_in_little_room(change)
            })?;
        }
        self.write(|change| whole.forget_in_little_room(change))?;
        Ok(whole)
    }

    /// After the transaction: lets go of keys in memory and of bytes in the file.
    /// The caller holds `writer`.
    pub(crate) fn finish_forgetting(&self, removal: &Removal) -> Forgotten {
        self.change_keys(|keys| keys.remove(&removal.records));
        // Before the attempt to reclaim takes all the room, and after.
        self.keep_reserve();
        let reclaimed = removal.is_empty() || self.erase_removed().is_ok();
        self.keep_reserve();
        Forgotten {
            records: removal.records.len() as u64,
            voiceprints: removal.speakers.len() as u64,
            reclaimed,
        }
    }

    /// Sets room aside for forgetting on a full medium.
    pub(crate) fn keep_reserve(&self) {
        // Where it cannot be set aside, the next session and the next forget try
        // again.
        let _ = self.medium.keep_reserve(RESERVE_BYTES);
    }
}

/// Room that is set aside for forgetting on a full medium: what a transaction
/// writes that removes [`PART`] records of as many voices, each in pages of its own,
/// with some to spare.
const RESERVE_BYTES: u64 = 1024 * 1024;
/// Records that go at a time where there is hardly any room.
const PART: usize = 64;

fn forget(change: &Change<'_>, selection: Selection) -> Result<Removal, ForgetError> {
    let removal = select(change, selection)?;
    removal.forget(change)?;
    Ok(removal)
}

fn select(tables: &impl Tables, selection: Selection) -> Result<Removal, ForgetError> {
    check_exists(tables, selection)?;
    Ok(match selection {
        Selection::Record(id) => Removal::of_records(tables, |record, _| record.id == id),
        Selection::Session(id) => Removal::of_session(tables, id),
        Selection::Speaker(id) => Removal::of_speaker(tables, id),
        Selection::TimeRange { from, to } => {
            Removal::of_records(tables, |record, _| (from..to).contains(&record.unix_ms))
        }
    }?)
}

fn check_exists(tables: &impl Tables, selection: Selection) -> Result<(), ForgetError> {
    match selection {
        Selection::Record(id) if !contains(tables, RECORDS, id.0)? => {
            Err(ForgetError::NoSuchRecord(id))
        }
        Selection::Session(id) if !contains(tables, SESSIONS, id.0)? => {
            Err(ForgetError::NoSuchSession(id))
        }
        Selection::Speaker(id) if !contains(tables, SPEAKERS, id.0)? => {
            Err(ForgetError::NoSuchSpeaker(id))
        }
        _ => Ok(()),
    }
}

fn contains<K>(
    tables: &impl Tables,
    table: TableDefinition<'_, K, Row>,
    key: K,
) -> Result<bool, StorageError>
where
    K: redb::Key + for<'k> redb::Value<SelfType<'k> = K> + 'static,
{
    Ok(tables.table(table)?.get(key)?.is_some())
}
