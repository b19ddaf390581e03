//! Cross-checks of everything the tables say about each other.

use crate::error::StorageError;
use crate::key::Block;
use crate::open::load_keys;
use crate::schema::{
    APART, ENROLMENTS, MERGES, RECORDS, Row, RowKey, SESSIONS, SPEAKERS, SpeakerRow,
    VOICEPRINT_MODEL, VOICEPRINTS_PER_SPEAKER, counters, from_postcard, layout, meta,
};
use crate::store::Store;
use crate::transaction::Tables;
use crate::turn::Turn;
use crate::voiceprint::VoiceprintModel;
use earwitness_api::types::{Merge, Session};
use redb::{ReadableTable, TableDefinition, TableHandle};
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
        self.read_committed(|snapshot| {
            let mut findings = audit(snapshot)?;
            let loaded = load_keys(snapshot);
            if loaded.is_ok_and(|loaded| loaded != *self.keys()) {
                findings.push(Finding {
                    invariant: "keys-in-memory",
                    detail: "the keys in memory are not those in the file".into(),
                });
            }
            Ok(findings)
        })
    }
}

/// Every contradiction between the tables.
pub(crate) fn audit(tables: &impl Tables) -> Result<Vec<Finding>, StorageError> {
    let mut audit = Audit::read(tables)?;
    audit.counters(tables)?;
    audit.own_ids();
    audit.references();
    audit.speakers();
    audit.voiceprints(tables)?;
    audit.merges();
    audit.apart(tables)?;
    Ok(audit.findings)
}

struct Audit {
    sessions: BTreeMap<u32, Session>,
    turns: BTreeMap<u64, Turn>,
    speakers: BTreeMap<u32, SpeakerRow>,
    enrolments: BTreeMap<u32, Vec<Block>>,
    merges: BTreeMap<u32, Merge>,
    findings: Vec<Finding>,
}

impl Audit {
    fn read(tables: &impl Tables) -> Result<Self, StorageError> {
        let mut findings = Vec::new();
        let layout = layout(tables)?;
        let turn = |bytes: &[u8]| match layout {
            Some(layout) => Turn::decode(bytes, layout),
            None => Err(StorageError::Damaged("the key layout is missing".into())),
        };
        Ok(Self {
            sessions: rows(tables, SESSIONS, from_postcard, &mut findings)?,
            turns: rows(tables, RECORDS, turn, &mut findings)?,
            speakers: rows(tables, SPEAKERS, from_postcard, &mut findings)?,
            enrolments: rows(tables, ENROLMENTS, from_postcard, &mut findings)?,
            merges: rows(tables, MERGES, from_postcard, &mut findings)?,
            findings,
        })
    }

    fn report(&mut self, invariant: &'static str, detail: impl Into<String>) {
        let detail = detail.into();
        self.findings.push(Finding { invariant, detail });
    }

    fn counters(&mut self, tables: &impl Tables) -> Result<(), StorageError> {
        let last = counters(tables)?;
        let beyond = [
            ("session", highest(&self.sessions), last.session),
            ("speaker", highest(&self.speakers), last.speaker),
            (
                "merge",
                self.merges.values().map(|m| m.number).max(),
                last.merge,
            ),
        ];
        for (what, highest, last) in beyond {
            if highest.is_some_and(|highest| highest > last) {
                self.report("ids-below-counters", format!("{what} ids go beyond {last}"));
            }
        }
        Ok(())
    }

    fn own_ids(&mut self) {
        let turns = self.turns.iter();
        let turns = turns.map(|(id, turn)| *id == turn.said.record.id.0);
        let sessions = self.sessions.iter().map(|(id, row)| *id == row.id.0);
        let speakers = self
            .speakers
            .iter()
            .map(|(id, row)| *id == row.speaker.id.0);
        let merges = self.merges.iter().map(|(id, row)| *id == row.from.0);
        let own = turns.chain(sessions).chain(speakers).chain(merges);
        let count = own.filter(|own| !own).count();
        if count > 0 {
            self.report("rows-under-own-id", format!("{count} rows"));
        }
    }

    fn references(&mut self) {
        let mut found = Vec::new();
        for (id, turn) in &self.turns {
            let record = &turn.said.record;
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
        let records = self.turns.values().map(|turn| &turn.said.record);
        for speaker in records.filter_map(|record| record.speaker.speaker) {
            *counts.entry(speaker.0).or_default() += 1;
        }
        let mut found = Vec::new();
        for (id, row) in &self.speakers {
            if row.speaker.records != counts.get(id).copied().unwrap_or(0) {
                found.push(("records-of-speaker", format!("speaker {id}")));
            }
        }
        for (invariant, detail) in found {
            self.report(invariant, detail);
        }
    }

    fn voiceprints(&mut self, tables: &impl Tables) -> Result<(), StorageError> {
        let dim = self.voiceprint_dim(tables)?;
        let mut found = Vec::new();
        for (id, row) in &self.speakers {
            let finite = row.centroid.iter().all(|value| value.is_finite());
            if Some(row.centroid.len()) != dim || !finite {
                found.push(("voiceprint-form", format!("speaker {id}")));
            }
        }
        for (id, blocks) in &self.enrolments {
            let place = format!("enrolment of speaker {id}");
            if blocks.iter().any(|block| Some(block.values.len()) != dim) {
                found.push(("voiceprint-form", place.clone()));
            }
            if blocks.len() > VOICEPRINTS_PER_SPEAKER {
                found.push(("enrolments-bounded", place.clone()));
            }
            if self.speakers.get(id).is_none_or(|row| !row.enrolled) {
                found.push(("enrolment-of-speaker", place));
            }
        }
        for (invariant, detail) in found {
            self.report(invariant, detail);
        }
        Ok(())
    }

    /// What every voiceprint has to have: as the model says, the layout of the
    /// keys, or else the first voice.
    fn voiceprint_dim(&self, tables: &impl Tables) -> Result<Option<usize>, StorageError> {
        let model: Option<VoiceprintModel> = meta(tables, VOICEPRINT_MODEL)?;
        let layout = layout(tables)?;
        let first = self.speakers.values().next();
        Ok(model
            .map(|model| usize::from(model.dim))
            .or(layout.map(|layout| usize::from(layout.speaker)))
            .or(first.map(|row| row.centroid.len())))
    }

    /// A merge leads from one voice to another, and never in a circle.
    fn merges(&mut self) {
        let mut found = Vec::new();
        for (id, merge) in &self.merges {
            let place = format!("merge of speaker {id}");
            if [merge.from, merge.into]
                .iter()
                .any(|voice| !self.speakers.contains_key(&voice.0))
            {
                found.push(("merges-of-speakers", place.clone()));
            }
            let up = |id: &u32| self.merges.get(id).map(|merge| merge.into.0);
            let path = std::iter::successors(Some(*id), up);
            if path.take(self.merges.len() + 2).count() > self.merges.len() + 1 {
                found.push(("merges-form-trees", place));
            }
        }
        for (invariant, detail) in found {
            self.report(invariant, detail);
        }
    }

    fn apart(&mut self, tables: &impl Tables) -> Result<(), StorageError> {
        for row in tables.table(APART)?.iter()? {
            let (low, high) = row?.0.value();
            let exist = [low, high].iter().all(|id| self.speakers.contains_key(id));
            if low >= high || !exist {
                self.report("apart-of-speakers", format!("speakers {low} and {high}"));
            }
        }
        Ok(())
    }
}

fn highest<T>(rows: &BTreeMap<u32, T>) -> Option<u32> {
    rows.keys().last().copied()
}

/// Reads what can be read of a table.
fn rows<K: RowKey + Ord, T>(
    tables: &impl Tables,
    table: TableDefinition<'_, K, Row>,
    decode: impl Fn(&[u8]) -> Result<T, StorageError>,
    findings: &mut Vec<Finding>,
) -> Result<BTreeMap<K, T>, StorageError> {
    let mut rows = BTreeMap::new();
    for entry in tables.table(table)?.iter()? {
        let (key, bytes) = entry?;
        let unsealed = tables.unseal(table.name(), key.value().into(), bytes.value());
        match unsealed.and_then(|row| decode(&row)) {
            Ok(row) => drop(rows.insert(key.value(), row)),
            Err(error) => findings.push(Finding {
                invariant: "rows-readable",
                detail: format!("{table}: {error}"),
            }),
        }
    }
    Ok(rows)
}
