//! What a store may grow to, and what makes room when it has.
//!
//! Records that do not fit are evicted in the transaction of the append that they
//! are in the way of: oldest first, but not those that were retrieved of late. An
//! evicted record is removed like a forgotten one, except that its bytes may stay
//! in free parts of the file until these are written over.

use crate::error::StorageError;
use crate::key::KeyLayout;
use crate::keys::PAGE_ROWS;
use crate::open::CACHE_BYTES;
use crate::removal::Removal;
use crate::schema::{COUNTERS, Counters, RECORDS, SPEAKERS, counters, layout, put_meta};
use crate::store::{Access, Store};
use crate::transaction::Change;
use earwitness_api::types::RecordId;
use redb::{ReadableTable, ReadableTableMetadata};
use std::collections::{BTreeSet, VecDeque};
use std::sync::PoisonError;

/// Limits of a store. Each has its answer when it is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Records; beyond, old ones are evicted.
    pub records: u64,
    /// Bytes that the file takes on its medium; beyond, old records are evicted
    /// and the file is compacted. It can be exceeded by one change, and for
    /// the time of a rewrite by the store's own size.
    pub disk_bytes: u64,
    /// Bytes in memory for keys and for the cache of the file, which takes
    /// [`CACHE_BYTES`]; beyond, old records are evicted.
    pub memory_bytes: u64,
    /// Voices. Beyond, a new voice is written as unknown, and an enrolment or a
    /// split is refused.
    pub speakers: u32,
    /// Sessions; beyond, the oldest is evicted with its records.
    pub sessions: u32,
}

impl Default for Limits {
    /// For a hub with 50,000 records.
    fn default() -> Self {
        Self {
            records: 50_000,
            disk_bytes: 128 * 1024 * 1024,
            memory_bytes: 64 * 1024 * 1024,
            speakers: 1024,
            sessions: 10_000,
        }
    }
}

/// Bytes of memory that a record takes besides the values of its key: its id, its
/// scales, and its share of a page.
pub const RECORD_OVERHEAD_BYTES: usize = 21;

/// Retrievals that are remembered at most.
const RECENT: usize = 1024;

/// What part of the records makes room at a time, so that not every append has to.
const EVICTED_PART: u64 = 64;

/// The same where the file takes too much of its medium. What goes leaves as large
/// a part of the file to be filled from its end, so one append moves no more.
const CROWDED_PART: u64 = 16;

impl Limits {
    /// Records for which there is room on all accounts but the disk's.
    fn room(&self, layout: Option<KeyLayout>) -> u64 {
        let values = layout.map_or(0, |layout| layout.values());
        let each = (values + RECORD_OVERHEAD_BYTES) as u64;
        let memory = self.memory_bytes.saturating_sub(CACHE_BYTES as u64);
        // One page is begun before it is full.
        let in_memory = (memory / each).saturating_sub(PAGE_ROWS as u64);
        self.records.min(in_memory).max(1)
    }

    /// Turns of one transaction of which none is evicted in it.
    pub(crate) fn group(&self) -> usize {
        usize::try_from(self.records / 4).map_or(usize::MAX, |turns| turns.max(1))
    }

    pub(crate) fn has_room_for_voice(&self, change: &Change<'_>) -> Result<bool, StorageError> {
        let voices = change.open(SPEAKERS)?.len()?;
        Ok(voices < u64::from(self.speakers))
    }
}

/// The records that were retrieved last.
#[derive(Debug, Default)]
pub(crate) struct Recent(VecDeque<RecordId>);

impl Recent {
    pub fn retrieved(&mut self, id: RecordId) {
        self.0.retain(|known| *known != id);
        self.0.push_back(id);
        if self.0.len() > RECENT {
            self.0.pop_front();
        }
    }

    /// As many as may be spared, the last retrieved first.
    fn spared(&self, most: usize) -> BTreeSet<u64> {
        self.0.iter().rev().take(most).map(|id| id.0).collect()
    }
}

impl Store {
    /// Evicts what has no room; called in the transaction that wrote. `crowded`
    /// says that the file takes too much of its medium.
    pub(crate) fn make_room(
        &self,
        change: &Change<'_>,
        crowded: bool,
    ) -> Result<Removal, StorageError> {
        let room = self.limits.room(layout(change)?);
        let there = change.open(RECORDS)?.len()?;
        let surplus = match crowded {
            true => there / CROWDED_PART + 1,
            false if there > room => there - room + room / EVICTED_PART,
            false => return Ok(Removal::default()),
        };
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        // Half of what stays can be old.
        let spared = recent.spared((there - surplus.min(there)) as usize / 2);
        drop(recent);
        let victims = oldest(change, surplus, &spared)?;
        let removal = Removal::of_records(change, |record, _| victims.contains(&record.id.0))?;
        removal.carry_out(change)?;
        count_evicted(change, removal.records.len() as u64)?;
        Ok(removal)
    }

    /// Whether the file takes more of its medium than it may.
    pub(crate) fn is_crowded(&self) -> bool {
        let size = self.medium.size();
        size.is_ok_and(|size| size > self.limits.disk_bytes)
    }

    /// Whether the file takes so much that an append has to wait for readers.
    pub(crate) fn is_overcrowded(&self) -> bool {
        let most = self.limits.disk_bytes;
        let most = most.saturating_add(most / CROWDED_PART);
        self.medium.size().is_ok_and(|size| size > most)
    }

    /// Moves what is at the end of the file into gaps further ahead and cuts the
    /// file off; says whether it could. Readers and writers wait meanwhile. Where
    /// somebody is reading, it does nothing unless it `waits` for them to end. The
    /// caller holds `writer`.
    pub(crate) fn shrink(&self, waits: bool) -> bool {
        let mut access = match self.database.try_write() {
            Ok(access) => access,
            Err(_) if waits => self.access_mut(),
            Err(_) => return false,
        };
        match &mut *access {
            Access::Full(database) => database.compact().is_ok(),
            Access::ReadOnly(..) | Access::None(_) => false,
        }
    }
}

/// The newest record is never among them.
fn oldest(
    change: &Change<'_>,
    count: u64,
    spared: &BTreeSet<u64>,
) -> Result<BTreeSet<u64>, StorageError> {
    let records = change.open(RECORDS)?;
    let newest = records.last()?.map_or(0, |(id, _)| id.value());
    let mut victims = BTreeSet::new();
    for row in records.range(..newest)? {
        if victims.len() as u64 >= count {
            break;
        }
        let id = row?.0.value();
        if !spared.contains(&id) {
            victims.insert(id);
        }
    }
    Ok(victims)
}

/// Books records that were evicted.
pub(crate) fn count_evicted(change: &Change<'_>, records: u64) -> Result<(), StorageError> {
    count(change, |counters| {
        counters.evicted = counters.evicted.saturating_add(records);
    })
}

/// Books a voice for which there was no room.
pub(crate) fn count_refused_voice(change: &Change<'_>) -> Result<(), StorageError> {
    count(change, |counters| {
        counters.refused_voices = counters.refused_voices.saturating_add(1);
    })
}

fn count(change: &Change<'_>, book: impl FnOnce(&mut Counters)) -> Result<(), StorageError> {
    let mut counters = counters(change)?;
    book(&mut counters);
    put_meta(change, COUNTERS, &counters)
}
