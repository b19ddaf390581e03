//! Removing records and all that hangs on them, in one transaction: what is
//! forgotten, and what has to make room.

use crate::error::StorageError;
use crate::identity::{Aliases, Identities};
use crate::schema::{
    APART, ENROLMENTS, MERGES, META, RECLAIM, RECORDS, SESSIONS, SPEAKERS, SpeakerRow, meta,
    put_meta, put_speaker, rows, settle_record_id,
};
use crate::transaction::{Change, NOBODY, Tables};
use crate::turn::{each_said, find_turn, owner, put_turn};
use earwitness_api::types::{Attribution, Record, RecordId, SessionId, Speaker, SpeakerId};
use redb::ReadableTable;
use std::collections::{BTreeMap, BTreeSet};

/// What one transaction removes, and what it leaves.
#[derive(Default)]
pub(crate) struct Removal {
    pub records: BTreeSet<u64>,
    pub speakers: BTreeSet<u32>,
    pub sessions: BTreeSet<u32>,
    /// Whose rows go.
    owners: BTreeSet<u32>,
    /// What the records that stay say about their speakers.
    heard: BTreeMap<u32, SpeakerRow>,
}

impl Removal {
    /// Removes the records that are selected, and the speakers of whom nothing is
    /// left then.
    pub fn of_records(
        tables: &impl Tables,
        is_selected: impl Fn(&Record, &Aliases) -> bool,
    ) -> Result<Self, StorageError> {
        let identities = Identities::read(tables)?;
        let mut removal = Self::default();
        each_said(tables, |said| {
            let selected = is_selected(&said.record, &identities.aliases);
            removal.sort(selected, &said.record);
        })?;
        removal.choose_speakers(&identities);
        Ok(removal)
    }

    /// Removes a session with its records.
    pub fn of_session(tables: &impl Tables, id: SessionId) -> Result<Self, StorageError> {
        let mut removal = Self::of_records(tables, |record, _| record.session == id)?;
        removal.sessions.insert(id.0);
        removal.owners.insert(NOBODY);
        Ok(removal)
    }

    /// Removes the identity of a voice with its records.
    pub fn of_speaker(tables: &impl Tables, id: SpeakerId) -> Result<Self, StorageError> {
        let mut removal = Self::of_records(tables, |record, aliases| {
            let speaker = record.speaker.speaker;
            speaker.is_some_and(|speaker| aliases.root(speaker) == aliases.root(id))
        })?;
        let identities = Identities::read(tables)?;
        let voices = identities.members(id).iter();
        removal.speakers.extend(voices.map(|row| row.speaker.id.0));
        Ok(removal)
    }

    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.records.is_empty() && self.speakers.is_empty()
    }

    /// Files one record under "goes" or under what is heard of its speaker.
    fn sort(&mut self, goes: bool, record: &Record) {
        if goes {
            self.records.insert(record.id.0);
            self.owners.insert(owner(record));
        } else if let Some(speaker) = record.speaker.speaker {
            self.heard
                .entry(speaker.0)
                .or_insert_with(|| SpeakerRow::new(speaker))
                .hear(record);
        }
    }

    /// An identity goes as a whole or not at all.
    fn choose_speakers(&mut self, identities: &Identities) {
        for (_, voices) in identities.iter() {
            let is_heard = |row: &SpeakerRow| self.heard.contains_key(&row.speaker.id.0);
            let stays = |row: &SpeakerRow| row.is_kept_without_records() || is_heard(row);
            if !voices.iter().any(stays) {
                self.speakers
                    .extend(voices.iter().map(|row| row.speaker.id.0));
            }
        }
    }

    /// Does it.
    pub fn carry_out(&self, change: &Change<'_>) -> Result<(), StorageError> {
        settle_record_id(change)?;
        for session in &self.sessions {
            change.open(SESSIONS)?.remove(session)?;
        }
        let mut records = change.open(RECORDS)?;
        for id in &self.records {
            records.remove(id)?;
        }
        drop(records);
        self.update_speakers(change)?;
        self.remove_voices(change)?;
        self.forget_mentions(change)
    }

    /// Does it for good: nothing opens what is removed any more, and the file has
    /// to be rewritten.
    pub fn forget(&self, change: &Change<'_>) -> Result<(), StorageError> {
        if self.is_empty() {
            return Ok(());
        }
        self.carry_out(change)?;
        let stay = self.owners.difference(&self.speakers).copied();
        change.renew_keys(&stay.collect())?;
        leave_to_reclaim(change, &BTreeSet::new())
    }

    /// The same, but leaves to [`reclaim_keys`] what takes much room: whoever stays
    /// keeps their data key until then.
    pub fn forget_in_little_room(&self, change: &Change<'_>) -> Result<(), StorageError> {
        if self.is_empty() {
            return Ok(());
        }
        self.carry_out(change)?;
        leave_to_reclaim(change, &self.owners)
    }

    /// Counts anew what is left of those who stay.
    fn update_speakers(&self, change: &Change<'_>) -> Result<(), StorageError> {
        for mut row in rows::<_, SpeakerRow>(change, SPEAKERS)? {
            let id = row.speaker.id.0;
            let nothing = SpeakerRow::new(row.speaker.id);
            let heard = &self.heard.get(&id).unwrap_or(&nothing).speaker;
            let left = Speaker {
                name: row.speaker.name.clone(),
                ..*heard
            };
            if row.speaker != left && !self.speakers.contains(&id) {
                row.speaker = left;
                put_speaker(change, &row)?;
            }
        }
        Ok(())
    }

    /// Removes whole identities: voices, enrolments, merges, and what they were
    /// kept apart from.
    fn remove_voices(&self, change: &Change<'_>) -> Result<(), StorageError> {
        for table in [SPEAKERS, ENROLMENTS, MERGES] {
            let mut table = change.open(table)?;
            for id in &self.speakers {
                table.remove(id)?;
            }
        }
        for id in &self.speakers {
            change.destroy_key(*id)?;
        }
        let goes = |id| self.speakers.contains(&id);
        change
            .open(APART)?
            .retain(|(low, high), ()| !goes(low) && !goes(high))?;
        Ok(())
    }

    /// Makes forgotten speakers unknown where others spoke to them.
    fn forget_mentions(&self, change: &Change<'_>) -> Result<(), StorageError> {
        let is_gone = |to: &Attribution| to.speaker.is_some_and(|id| self.speakers.contains(&id.0));
        let mut mentioned = Vec::new();
        each_said(change, |said| {
            if said.record.addressees.iter().any(is_gone) {
                mentioned.push(said.record.id);
            }
        })?;
        for id in mentioned {
            let mut turn = find_turn(change, id)?.ok_or_else(|| missing(id))?;
            let addressees = turn.said.record.addressees.iter_mut();
            addressees
                .filter(|to| is_gone(to))
                .for_each(|to| *to = UNKNOWN);
            put_turn(change, &turn)?;
        }
        Ok(())
    }
}

/// Writes down that the file has to be rewritten, and whose data key renewed before.
fn leave_to_reclaim(change: &Change<'_>, owners: &BTreeSet<u32>) -> Result<(), StorageError> {
    let mut all = to_reclaim(change)?.unwrap_or_default();
    all.extend(owners);
    put_meta(change, RECLAIM, &all)
}

/// Whose data key has to be renewed before the file is rewritten; `None` where
/// nothing is left to be reclaimed.
pub(crate) fn to_reclaim(tables: &impl Tables) -> Result<Option<BTreeSet<u32>>, StorageError> {
    let is_bare = tables
        .table(META)?
        .get(RECLAIM)?
        .map(|row| row.value().is_empty());
    match is_bare {
        // As it was written before anything could be left for later.
        Some(true) => Ok(Some(BTreeSet::new())),
        Some(false) => meta(tables, RECLAIM),
        None => Ok(None),
    }
}

/// Does what was left for later: nothing opens any more what was forgotten.
pub(crate) fn reclaim_keys(change: &Change<'_>) -> Result<(), StorageError> {
    change.renew_keys(&to_reclaim(change)?.unwrap_or_default())?;
    put_meta(change, RECLAIM, &BTreeSet::<u32>::new())
}

/// In place of a forgotten addressee; how well their voice fitted goes as well.
const UNKNOWN: Attribution = Attribution {
    speaker: None,
    score: 0.0,
};

fn missing(id: RecordId) -> StorageError {
    StorageError::Damaged(format!("record {} is missing", id.0))
}
