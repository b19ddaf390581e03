//! Reading records, and counting what is there. What goes out names identities,
//! not the voices that they were made of.

use crate::error::StorageError;
use crate::identity::Aliases;
use crate::schema::{LAYOUT, MERGES, META, RECORDS, SESSIONS, SPEAKERS, meta};
use crate::store::Store;
use crate::turn::decode_said;
use earwitness_api::types::{Record, RecordFilter, RecordId};
use redb::{ReadTransaction, ReadableTableMetadata};
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
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// Whether the medium took the last write.
    pub writable: bool,
}

impl Store {
    /// One record; `None` where there is none of that id.
    pub fn record(&self, id: RecordId) -> Result<Option<Record>, StorageError> {
        self.read(|transaction| {
            let Some(layout) = meta(&transaction.open_table(META)?, LAYOUT)? else {
                return Ok(None);
            };
            let Some(row) = transaction.open_table(RECORDS)?.get(id.0)? else {
                return Ok(None);
            };
            let aliases = Aliases::read(&transaction.open_table(MERGES)?)?;
            Ok(Some(
                aliases.resolve(decode_said(row.value(), layout)?.record),
            ))
        })
    }

    /// The records that pass a filter, in the order of their ids.
    ///
    /// There is no index: records are read one after the other until the limit
    /// is reached, so the newest few are found at once and a rare speaker or an
    /// early session costs a pass over all records.
    pub fn records(&self, filter: RecordFilter) -> Result<Vec<Record>, StorageError> {
        let limit = filter.limit.map_or(usize::MAX, |limit| limit as usize);
        self.read(|transaction| {
            let Some(layout) = meta(&transaction.open_table(META)?, LAYOUT)? else {
                return Ok(Vec::new());
            };
            let aliases = Aliases::read(&transaction.open_table(MERGES)?)?;
            let filter = RecordFilter {
                speaker: filter.speaker.map(|id| aliases.root(id)),
                ..filter
            };
            let table = transaction.open_table(RECORDS)?;
            let first = filter.after.map_or(0, |id| id.0.saturating_add(1));
            let rows = table.range(first..)?.map(|row| {
                let said = decode_said(row?.1.value(), layout)?;
                Ok(aliases.resolve(said.record))
            });
            let wanted = |record: &Result<Record, StorageError>| {
                record
                    .as_ref()
                    .map_or(true, |record| passes(&filter, record))
            };
            if filter.newest_first {
                rows.rev().filter(wanted).take(limit).collect()
            } else {
                rows.filter(wanted).take(limit).collect()
            }
        })
    }

    /// Counts and size.
    pub fn stats(&self) -> Result<Stats, StorageError> {
        let bytes = self.medium.size().map_err(redb::StorageError::from)?;
        self.read(|transaction| {
            Ok(Stats {
                records: transaction.open_table(RECORDS)?.len()?,
                sessions: transaction.open_table(SESSIONS)?.len()?,
                speakers: identities(transaction)?,
                bytes,
                writable: !self.failing.load(Ordering::Relaxed),
            })
        })
    }
}

/// Every merge makes two identities one.
fn identities(transaction: &ReadTransaction) -> Result<u64, StorageError> {
    let voices = transaction.open_table(SPEAKERS)?.len()?;
    let merges = transaction.open_table(MERGES)?.len()?;
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
