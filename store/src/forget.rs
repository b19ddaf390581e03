//! Forgetting for good: one transaction removes everything that hangs on what is
//! forgotten, then the file is rewritten without it.

use crate::error::StorageError;
use crate::identity::{Aliases, Identities};
use crate::schema::{
    APART, ENROLMENTS, MERGES, META, RECLAIM, RECORDS, Row, SESSIONS, SPEAKERS, SpeakerRow, open,
    put, rows, settle_record_id,
};
use crate::store::Store;
use crate::turn::{each_said, find_turn, put_turn};
use earwitness_api::types::{
    Attribution, Forgotten, Record, RecordId, Selection, SessionId, SpeakerId,
};
use redb::{ReadableTable, TableDefinition, WriteTransaction};
use std::collections::{BTreeMap, BTreeSet};

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

/// What one transaction removes, and what it leaves.
#[derive(Default)]
struct Plan {
    session: Option<SessionId>,
    records: BTreeSet<u64>,
    speakers: BTreeSet<u32>,
    /// What the records that stay say about their speakers.
    heard: BTreeMap<u32, SpeakerRow>,
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
        let plan = self.write(|transaction| {
            let plan = Plan::make(transaction, selection)?;
            plan.carry_out(transaction)?;
            Ok::<_, ForgetError>(plan)
        })?;
        let keys = self.keys().without(|id| plan.records.contains(&id.0));
        self.set_keys(keys);
        Ok(Forgotten {
            records: plan.records.len() as u64,
            voiceprints: plan.speakers.len() as u64,
            reclaimed: plan.is_empty() || self.erase_removed().is_ok(),
        })
    }
}

impl Plan {
    fn make(transaction: &WriteTransaction, selection: Selection) -> Result<Self, ForgetError> {
        check_exists(transaction, selection)?;
        let identities = identities(transaction)?;
        let mut plan = Self::default();
        if let Selection::Session(id) = selection {
            plan.session = Some(id);
        }
        each_said(transaction, |said| {
            plan.sort(selection, &said.record, &identities.aliases);
        })?;
        plan.choose_speakers(selection, &identities);
        Ok(plan)
    }

    fn is_empty(&self) -> bool {
        self.session.is_none() && self.records.is_empty() && self.speakers.is_empty()
    }

    /// Files one record under "goes" or under what is heard of its speaker.
    fn sort(&mut self, selection: Selection, record: &Record, aliases: &Aliases) {
        if is_selected(selection, record, aliases) {
            self.records.insert(record.id.0);
        } else if let Some(speaker) = record.speaker.speaker {
            self.heard
                .entry(speaker.0)
                .or_insert_with(|| SpeakerRow::new(speaker))
                .hear(record);
        }
    }

    /// An identity goes as a whole or not at all.
    fn choose_speakers(&mut self, selection: Selection, identities: &Identities) {
        for (root, voices) in identities.iter() {
            let is_heard = |row: &SpeakerRow| self.heard.contains_key(&row.speaker.id.0);
            let stays = |row: &SpeakerRow| row.is_kept_without_records() || is_heard(row);
            let is_selected = match selection {
                Selection::Speaker(id) => identities.aliases.root(id) == root,
                _ => false,
            };
            if is_selected || !voices.iter().any(stays) {
                self.speakers
                    .extend(voices.iter().map(|row| row.speaker.id.0));
            }
        }
    }

    fn carry_out(&self, transaction: &WriteTransaction) -> Result<(), StorageError> {
        if self.is_empty() {
            return Ok(());
        }
        settle_record_id(transaction)?;
        open(transaction, META)?.insert(RECLAIM, [].as_slice())?;
        if let Some(session) = self.session {
            open(transaction, SESSIONS)?.remove(session.0)?;
        }
        let mut records = open(transaction, RECORDS)?;
        for id in &self.records {
            records.remove(id)?;
        }
        drop(records);
        self.update_speakers(transaction)?;
        self.remove_voices(transaction)?;
        self.forget_mentions(transaction)
    }

    /// Counts anew what is left of those who stay.
    fn update_speakers(&self, transaction: &WriteTransaction) -> Result<(), StorageError> {
        let mut table = open(transaction, SPEAKERS)?;
        for mut row in rows::<_, SpeakerRow>(&table)? {
            let id = row.speaker.id.0;
            let nothing = SpeakerRow::new(row.speaker.id);
            let heard = &self.heard.get(&id).unwrap_or(&nothing).speaker;
            row.speaker.records = heard.records;
            row.speaker.first_heard_unix_ms = heard.first_heard_unix_ms;
            row.speaker.last_heard_unix_ms = heard.last_heard_unix_ms;
            put(&mut table, id, &row)?;
        }
        Ok(())
    }

    /// Removes whole identities: voices, enrolments, merges, and what they were
    /// kept apart from.
    fn remove_voices(&self, transaction: &WriteTransaction) -> Result<(), StorageError> {
        for table in [SPEAKERS, ENROLMENTS, MERGES] {
            let mut table = open(transaction, table)?;
            for id in &self.speakers {
                table.remove(id)?;
            }
        }
        let goes = |id| self.speakers.contains(&id);
        open(transaction, APART)?.retain(|(low, high), ()| !goes(low) && !goes(high))?;
        Ok(())
    }

    /// Makes forgotten speakers unknown where others spoke to them.
    fn forget_mentions(&self, transaction: &WriteTransaction) -> Result<(), StorageError> {
        let is_gone = |to: &Attribution| to.speaker.is_some_and(|id| self.speakers.contains(&id.0));
        let mut mentioned = Vec::new();
        each_said(transaction, |said| {
            if said.record.addressees.iter().any(is_gone) {
                mentioned.push(said.record.id);
            }
        })?;
        for id in mentioned {
            let mut turn = find_turn(transaction, id)?.ok_or_else(|| missing(id))?;
            let addressees = turn.said.record.addressees.iter_mut();
            addressees
                .filter(|to| is_gone(to))
                .for_each(|to| *to = UNKNOWN);
            put_turn(transaction, &turn)?;
        }
        Ok(())
    }
}

/// In place of a forgotten addressee; how well their voice fitted goes as well.
const UNKNOWN: Attribution = Attribution {
    speaker: None,
    score: 0.0,
};

fn is_selected(selection: Selection, record: &Record, aliases: &Aliases) -> bool {
    match selection {
        Selection::Record(id) => record.id == id,
        Selection::Session(id) => record.session == id,
        Selection::Speaker(id) => {
            let speaker = record.speaker.speaker;
            speaker.is_some_and(|speaker| aliases.root(speaker) == aliases.root(id))
        }
        Selection::TimeRange { from, to } => (from..to).contains(&record.unix_ms),
    }
}

fn check_exists(transaction: &WriteTransaction, selection: Selection) -> Result<(), ForgetError> {
    match selection {
        Selection::Record(id) if !contains(transaction, RECORDS, id.0)? => {
            Err(ForgetError::NoSuchRecord(id))
        }
        Selection::Session(id) if !contains(transaction, SESSIONS, id.0)? => {
            Err(ForgetError::NoSuchSession(id))
        }
        Selection::Speaker(id) if !contains(transaction, SPEAKERS, id.0)? => {
            Err(ForgetError::NoSuchSpeaker(id))
        }
        _ => Ok(()),
    }
}

fn contains<K>(
    transaction: &WriteTransaction,
    table: TableDefinition<'_, K, Row>,
    key: K,
) -> Result<bool, StorageError>
where
    K: redb::Key + for<'k> redb::Value<SelfType<'k> = K> + 'static,
{
    Ok(open(transaction, table)?.get(key)?.is_some())
}

fn missing(id: RecordId) -> StorageError {
    StorageError::Damaged(format!("record {} is missing", id.0))
}

fn identities(transaction: &WriteTransaction) -> Result<Identities, StorageError> {
    Identities::read(&open(transaction, SPEAKERS)?, &open(transaction, MERGES)?)
}
