//! Reading records, and counting what is there. What goes out names identities,
//! not the voices that they were made of.

use crate::error::StorageError;
use crate::identity::Aliases;
use crate::schema::{MERGES, RECORDS, SESSIONS, SPEAKERS, counters};
use crate::store::Store;
use crate::transaction::{Snapshot, Tables};
use crate::turn::{decode_said, each_turn, find_turn};
use earwitness_api::types::{Record, RecordFilter, RecordId};
use redb::ReadableTableMetadata;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// How much is in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Records kept.
    pub records: u64,
    /// Sessions kept.
    pub sessions: u64,
    /// Speakers kept, each identity counted once.
    pub speakers: u64,
    /// Bytes that the file takes on its medium.
    pub bytes: u64,
    /// Records that had to make room for others, since the store was made.
    pub evicted: u64,
    /// New voices that were written as unknown for want of room, likewise.
    pub refused_voices: u64,
    /// Whether the medium took the last write.
    pub writable: bool,
}

impl Store {
    /// One record; `None` where there is none of that id. Reading it keeps it from
    /// eviction for a while.
    pub fn record(&self, id: RecordId) -> Result<Option<Record>, StorageError> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retrieved(id);
        drop(recent);
        self.read(|snapshot| {
            let aliases = Aliases::read(snapshot)?;
            let turn = find_turn(snapshot, id)?;
            Ok(turn.map(|turn| aliases.resolve(turn.said.record)))
        })
    }

    /// The records that pass a filter, in the order of their ids.
    ///
    /// There is no index: records are read one after the other until the limit
    /// is reached, so the newest few are found at once and a rare speaker or an
    /// early session costs a pass over all records.
    pub fn records(&self, filter: RecordFilter) -> Result<Vec<Record>, StorageError> {
        let limit = filter.limit.map_or(usize::MAX, |limit| limit as usize);
        self.read(|snapshot| {
            let aliases = Aliases::read(snapshot)?;
            let filter = RecordFilter {
                speaker: filter.speaker.map(|id| aliases.root(id)),
                ..filter
            };
            let first = filter.after.map_or(0, |id| id.0.saturating_add(1));
            let mut found = Vec::new();
            each_turn(
                snapshot,
                filter.newest_first,
                first..,
                |_, bytes, layout| {
                    let record = aliases.resolve(decode_said(bytes, layout)?.record);
                    if found.len() < limit && passes(&filter, &record) {
                        found.push(record);
                    }
                    Ok(found.len() < limit)
                },
            )?;
            Ok(found)
        })
    }

    /// Counts and size.
    pub fn stats(&self) -> Result<Stats, StorageError> {
        self.check_on()?;
        let bytes = self.medium.size().map_err(redb::StorageError::from)?;
        self.read(|snapshot| {
            let counted = counters(snapshot)?;
            Ok(Stats {
                evicted: counted.evicted,
                refused_voices: counted.refused_voices,
                records: snapshot.table(RECORDS)?.len()?,
                sessions: snapshot.table(SESSIONS)?.len()?,
                speakers: identities(snapshot)?,
                bytes,
                writable: !self.failing.load(Ordering::Relaxed),
            })
        })
    }
}

/// Every merge makes two identities one.
fn identities(snapshot: &Snapshot) -> Result<u64, StorageError> {
    let voices = snapshot.table(SPEAKERS)?.len()?;
    let merges = snapshot.table(MERGES)?.len()?;
    Ok(voices.saturating_sub(merges))
}

fn passes(filter: &RecordFilter, record: &Record) -> bool {
    filter.session.is_none_or(|id| record.session == id)
        && filter
            .speaker
            .is_none_or(|id| record.speaker.speaker == Some(id))
        && filter
            .from_unix_ms
            .is_none_or(|from| record.unix_ms >= from)
        && filter.to_unix_ms.is_none_or(|to| record.unix_ms < to)
}
