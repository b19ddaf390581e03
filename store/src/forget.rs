//! Forgetting for good: one transaction removes everything that hangs on what is
//! forgotten, then the file is rewritten without it.

use crate::error::StorageError;
use crate::removal::Removal;
use crate::schema::{RECORDS, Row, SESSIONS, SPEAKERS};
use crate::store::Store;
use crate::transaction::Change;
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
    /// It has happened, durably and as a whole, when this returns `Ok`.
    pub fn forget(&self, selection: Selection) -> Result<Forgotten, ForgetError> {
        let _writing = self.begin_writing();
        let removal = self.write(|change| forget(change, selection));
        self.vault.forget();
        Ok(self.finish_forgetting(&removal?))
    }

    /// After the transaction: lets go of keys in memory and of bytes in the file.
    /// The caller holds `writer`.
    pub(crate) fn finish_forgetting(&self, removal: &Removal) -> Forgotten {
        self.change_keys(|keys| keys.remove(&removal.records));
        Forgotten {
            records: removal.records.len() as u64,
            voiceprints: removal.speakers.len() as u64,
            reclaimed: removal.is_empty() || self.erase_removed().is_ok(),
        }
    }
}

fn forget(change: &Change<'_>, selection: Selection) -> Result<Removal, ForgetError> {
    check_exists(change, selection)?;
    let removal = match selection {
        Selection::Record(id) => Removal::of_records(change, |record, _| record.id == id),
        Selection::Session(id) => Removal::of_session(change, id),
        Selection::Speaker(id) => Removal::of_speaker(change, id),
        Selection::TimeRange { from, to } => {
            Removal::of_records(change, |record, _| (from..to).contains(&record.unix_ms))
        }
    }?;
    removal.forget(change)?;
    Ok(removal)
}

fn check_exists(change: &Change<'_>, selection: Selection) -> Result<(), ForgetError> {
    match selection {
        Selection::Record(id) if !contains(change, RECORDS, id.0)? => {
            Err(ForgetError::NoSuchRecord(id))
        }
        Selection::Session(id) if !contains(change, SESSIONS, id.0)? => {
            Err(ForgetError::NoSuchSession(id))
        }
        Selection::Speaker(id) if !contains(change, SPEAKERS, id.0)? => {
            Err(ForgetError::NoSuchSpeaker(id))
        }
        _ => Ok(()),
    }
}

fn contains<K>(
    change: &Change<'_>,
    table: TableDefinition<'_, K, Row>,
    key: K,
) -> Result<bool, StorageError>
where
    K: redb::Key + for<'k> redb::Value<SelfType<'k> = K> + 'static,
{
    Ok(change.open(table)?.get(key)?.is_some())
}
