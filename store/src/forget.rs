//! Forgetting for good: one transaction removes everything that hangs on what is
//! forgotten, then the file is rewritten without it.

use crate::error::StorageError;
use crate::schema::{
    EMBEDDINGS, KEYS, META, RECLAIM, RECORDS, Row, SESSIONS, SPEAKERS, SpeakerRow, decode, open,
    put,
};
use crate::store::Store;
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
    heard: BTreeMap<u32, Heard>,
}

/// What the records of one speaker come to.
struct Heard {
    records: u64,
    first_unix_ms: i64,
    last_unix_ms: i64,
}

/// Also of who was heard, but in forgotten records alone.
const NEVER_HEARD: Heard = Heard {
    records: 0,
    first_unix_ms: 0,
    last_unix_ms: 0,
};

impl Store {
    /// Forgets for good what is selected and everything that hangs on it:
    ///
    /// - a record goes with its key and its turn's embedding;
    /// - a session goes with its records;
    /// - a speaker goes with their name, voice, embeddings and records, and is
    ///   replaced by "unknown" where others spoke to them;
    /// - a speaker without a name goes with their last record. A named one stays,
    ///   with their centroid, until they are forgotten themselves.
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
            reclaimed: plan.is_empty() || self.rewrite().is_ok(),
        })
    }
}

impl Plan {
    fn make(transaction: &WriteTransaction, selection: Selection) -> Result<Self, ForgetError> {
        check_exists(transaction, selection)?;
        let mut plan = Self::default();
        if let Selection::Session(id) = selection {
            plan.session = Some(id);
        }
        each_record(transaction, |record| plan.sort(selection, &record))?;
        plan.choose_speakers(transaction, selection)?;
        Ok(plan)
    }

    fn is_empty(&self) -> bool {
        self.session.is_none() && self.records.is_empty() && self.speakers.is_empty()
    }

    /// Files one record under "goes" or under what is heard of its speaker.
    fn sort(&mut self, selection: Selection, record: &Record) {
        if is_selected(selection, record) {
            self.records.insert(record.id.0);
        } else if let Some(speaker) = record.speaker.speaker {
            let heard = self.heard.entry(speaker.0).or_insert(Heard {
                records: 0,
                first_unix_ms: record.unix_ms,
                last_unix_ms: record.unix_ms,
            });
            heard.records += 1;
            heard.first_unix_ms = heard.first_unix_ms.min(record.unix_ms);
            heard.last_unix_ms = heard.last_unix_ms.max(record.unix_ms);
        }
    }

    fn choose_speakers(
        &mut self,
        transaction: &WriteTransaction,
        selection: Selection,
    ) -> Result<(), StorageError> {
        for row in speaker_rows(transaction)? {
            let id = row.speaker.id;
            let nothing_left = row.speaker.name.is_none() && !self.heard.contains_key(&id.0);
            if nothing_left || selection == Selection::Speaker(id) {
                self.speakers.insert(id.0);
            }
        }
        Ok(())
    }

    fn carry_out(&self, transaction: &WriteTransaction) -> Result<(), StorageError> {
        if self.is_empty() {
            return Ok(());
        }
        open(transaction, META)?.insert(RECLAIM, [].as_slice())?;
        if let Some(session) = self.session {
            open(transaction, SESSIONS)?.remove(session.0)?;
        }
        self.remove_records(transaction)?;
        self.update_speakers(transaction)?;
        self.forget_mentions(transaction)
    }

    fn remove_records(&self, transaction: &WriteTransaction) -> Result<(), StorageError> {
        let mut records = open(transaction, RECORDS)?;
        let mut keys = open(transaction, KEYS)?;
        for id in &self.records {
            records.remove(id)?;
            keys.remove(id)?;
        }
        let mut embeddings = open(transaction, EMBEDDINGS)?;
        embeddings.retain(|(speaker, record), _| {
            !self.speakers.contains(&speaker) && !self.records.contains(&record)
        })?;
        Ok(())
    }

    fn update_speakers(&self, transaction: &WriteTransaction) -> Result<(), StorageError> {
        for mut row in speaker_rows(transaction)? {
            let mut table = open(transaction, SPEAKERS)?;
            let speaker = &mut row.speaker;
            let id = speaker.id.0;
            if self.speakers.contains(&id) {
                table.remove(id)?;
                continue;
            }
            let heard = self.heard.get(&id).unwrap_or(&NEVER_HEARD);
            speaker.records = heard.records;
            speaker.first_heard_unix_ms = heard.first_unix_ms;
            speaker.last_heard_unix_ms = heard.last_unix_ms;
            put(&mut table, id, &row)?;
        }
        Ok(())
    }

    /// Makes forgotten speakers unknown where others spoke to them.
    fn forget_mentions(&self, transaction: &WriteTransaction) -> Result<(), StorageError> {
        let mut changed = Vec::new();
        each_record(transaction, |mut record| {
            let mut mentioned = false;
            for to in &mut record.addressees {
                if to.speaker.is_some_and(|id| self.speakers.contains(&id.0)) {
                    *to = UNKNOWN;
                    mentioned = true;
                }
            }
            if mentioned {
                changed.push(record);
            }
        })?;
        let mut records = open(transaction, RECORDS)?;
        for record in changed {
            put(&mut records, record.id.0, &record)?;
        }
        Ok(())
    }
}

/// In place of a forgotten addressee; how well their voice fitted goes as well.
const UNKNOWN: Attribution = Attribution {
    speaker: None,
    score: 0.0,
};

fn is_selected(selection: Selection, record: &Record) -> bool {
    match selection {
        Selection::Record(id) => record.id == id,
        Selection::Session(id) => record.session == id,
        Selection::Speaker(id) => record.speaker.speaker == Some(id),
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

fn each_record(
    transaction: &WriteTransaction,
    mut visit: impl FnMut(Record),
) -> Result<(), StorageError> {
    for row in open(transaction, RECORDS)?.iter()? {
        visit(decode(row?.1.value())?);
    }
    Ok(())
}

fn speaker_rows(transaction: &WriteTransaction) -> Result<Vec<SpeakerRow>, StorageError> {
    let table = open(transaction, SPEAKERS)?;
    let rows = table.iter()?;
    rows.map(|row| decode(row?.1.value())).collect()
}
