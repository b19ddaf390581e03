//! Cross-checks of everything the tables say about each other.

use crate::error::StorageError;
use crate::key::KeyLayout;
use crate::open::load_keys;
use crate::schema::{
    EMBEDDINGS, EMBEDDINGS_PER_SPEAKER, KEYS, LAYOUT, META, RECORDS, Row, SESSIONS, SPEAKERS,
    SpeakerRow, counters, decode, decode_key, meta,
};
use crate::store::Store;
use earwitness_api::types::{Record, Session};
use redb::{ReadTransaction, ReadableTable, TableDefinition};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// A place where the store contradicts itself. There should be none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The invariant that does not hold, by its name in `DESIGN.md`.
    pub invariant: &'static str,
    /// Where.
    pub detail: String,
}

impl Store {
    /// Reads everything and reports every contradiction; an empty list is good.
    pub fn verify(&self) -> Result<Vec<Finding>, StorageError> {
        // No write may come between reading the tables and looking at the keys.
        let _writing = self.begin_writing();
        self.read_committed(|transaction| {
            let mut audit = Audit::read(transaction)?;
            audit.counters(transaction)?;
            audit.own_ids();
            audit.references();
            audit.speakers();
            audit.embeddings(transaction)?;
            audit.keys(transaction)?;
            let loaded = load_keys(transaction);
            if loaded.is_ok_and(|loaded| loaded != *self.keys()) {
                audit.report(
                    "keys-in-memory",
                    "the keys in memory are not those in the file",
                );
            }
            Ok(audit.findings)
        })
    }
}

struct Audit {
    sessions: BTreeMap<u32, Session>,
    records: BTreeMap<u64, Record>,
    speakers: BTreeMap<u32, SpeakerRow>,
    findings: Vec<Finding>,
}

impl Audit {
    fn read(transaction: &ReadTransaction) -> Result<Self, StorageError> {
        let mut findings = Vec::new();
        Ok(Self {
            sessions: rows(transaction, SESSIONS, &mut findings)?,
            records: rows(transaction, RECORDS, &mut findings)?,
            speakers: rows(transaction, SPEAKERS, &mut findings)?,
            findings,
        })
    }

    fn report(&mut self, invariant: &'static str, detail: impl Into<String>) {
        let detail = detail.into();
        self.findings.push(Finding { invariant, detail });
    }

    fn counters(&mut self, transaction: &ReadTransaction) -> Result<(), StorageError> {
        let last = counters(&transaction.open_table(META)?)?;
        let beyond = [
            ("record", self.records.keys().last().copied(), last.record),
            ("session", highest(&self.sessions), u64::from(last.session)),
            ("speaker", highest(&self.speakers), u64::from(last.speaker)),
        ];
        for (what, highest, last) in beyond {
            if highest.is_some_and(|highest| highest > last) {
                self.report("ids-below-counters", format!("{what} ids go beyond {last}"));
            }
        }
        Ok(())
    }

    fn own_ids(&mut self) {
        let records = self.records.iter().map(|(id, row)| *id == row.id.0);
        let sessions = self.sessions.iter().map(|(id, row)| *id == row.id.0);
        let speakers = self
            .speakers
            .iter()
            .map(|(id, row)| *id == row.speaker.id.0);
        let strays = records.chain(sessions).chain(speakers).filter(|own| !own);
        let count = strays.count();
        if count > 0 {
            self.report("rows-under-own-id", format!("{count} rows"));
        }
    }

    fn references(&mut self) {
        let mut found = Vec::new();
        for (id, record) in &self.records {
            if !self.sessions.contains_key(&record.session.0) {
                found.push(("session-of-record", format!("record {id}")));
            }
            let people = record.addressees.iter().chain([&record.speaker]);
            if people
                .filter_map(|person| person.speaker)
                .any(|person| !self.speakers.contains_key(&person.0))
            {
                found.push(("speakers-of-record", format!("record {id}")));
            }
        }
        for (invariant, detail) in found {
            self.report(invariant, detail);
        }
    }

    fn speakers(&mut self) {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for speaker in self.records.values().filter_map(|r| r.speaker.speaker) {
            *counts.entry(speaker.0).or_default() += 1;
        }
        let dim = self.speakers.values().next().map(|row| row.centroid.len());
        let mut found = Vec::new();
        for (id, row) in &self.speakers {
            if row.speaker.records != counts.get(id).copied().unwrap_or(0) {
                found.push(("records-of-speaker", format!("speaker {id}")));
            }
            let finite = row.centroid.iter().all(|value| value.is_finite());
            if Some(row.centroid.len()) != dim || !finite {
                found.push(("voiceprint-form", format!("speaker {id}")));
            }
        }
        for (invariant, detail) in found {
            self.report(invariant, detail);
        }
    }

    fn embeddings(&mut self, transaction: &ReadTransaction) -> Result<(), StorageError> {
        let table = transaction.open_table(EMBEDDINGS)?;
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for entry in table.iter()? {
            let (key, bytes) = entry?;
            let (speaker, record) = key.value();
            *counts.entry(speaker).or_default() += 1;
            let place = || format!("speaker {speaker}, record {record}");
            let said_by = self.records.get(&record).and_then(|r| r.speaker.speaker);
            if said_by.is_none_or(|by| by.0 != speaker) {
                self.report("embedding-of-turn", place());
            }
            let dim = self.speakers.get(&speaker).map(|row| row.centroid.len());
            match decode::<Vec<f32>>(bytes.value()) {
                Ok(values) if Some(values.len()) == dim => {}
                _ => self.report("voiceprint-form", place()),
            }
        }
        for (speaker, count) in counts {
            if count > EMBEDDINGS_PER_SPEAKER {
                self.report("embeddings-bounded", format!("speaker {speaker}: {count}"));
            }
        }
        Ok(())
    }

    fn keys(&mut self, transaction: &ReadTransaction) -> Result<(), StorageError> {
        let layout: Option<KeyLayout> = meta(&transaction.open_table(META)?, LAYOUT)?;
        let table = transaction.open_table(KEYS)?;
        for entry in table.iter()? {
            let (id, bytes) = entry?;
            let id = id.value();
            if !self.records.contains_key(&id) {
                self.report("key-per-record", format!("key {id} has no record"));
            }
            if layout.is_none_or(|layout| decode_key(bytes.value(), layout).is_err()) {
                self.report("key-layout", format!("key {id}"));
            }
        }
        for id in self.records.keys().copied().collect::<Vec<_>>() {
            if table.get(id)?.is_none() {
                self.report("key-per-record", format!("record {id} has no key"));
            }
        }
        Ok(())
    }
}

fn highest<T>(rows: &BTreeMap<u32, T>) -> Option<u64> {
    rows.keys().last().copied().map(u64::from)
}

fn rows<K, T>(
    transaction: &ReadTransaction,
    table: TableDefinition<'_, K, Row>,
    findings: &mut Vec<Finding>,
) -> Result<BTreeMap<K, T>, StorageError>
where
    K: redb::Key + for<'k> redb::Value<SelfType<'k> = K> + Ord + 'static,
    T: DeserializeOwned,
{
    let mut rows = BTreeMap::new();
    for entry in transaction.open_table(table)?.iter()? {
        let (key, bytes) = entry?;
        match decode(bytes.value()) {
            Ok(row) => drop(rows.insert(key.value(), row)),
            Err(error) => findings.push(Finding {
                invariant: "rows-readable",
                detail: format!("{table}: {error}"),
            }),
        }
    }
    Ok(rows)
}
