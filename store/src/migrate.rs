//! Bringing an older file up to this version.
//!
//! The old file is only read. Everything is written to the medium's replacement,
//! which takes the old file's place in one step after the old one was put aside:
//! a power cut leaves the old store or the new one, complete.

use crate::error::StorageError;
use crate::key::KeyLayout;
use crate::open::create_tables;
use crate::schema::{
    COUNTERS, Counters, LAYOUT, META, RECLAIM, RECORDS, Row, SESSIONS, SPEAKERS, SpeakerRow,
    decode, encode, meta, open, put,
};
use crate::turn::{Said, Turn, decode_key};
use earwitness_api::types::{Record, Session, Speaker};
use redb::{ReadTransaction, ReadableTable, TableDefinition, WriteTransaction};
use serde::Deserialize;

/// What version 1 wrote otherwise.
mod v1 {
    use super::{Deserialize, Row, Speaker, TableDefinition};

    /// Record id to its key, which had the form that now begins a turn.
    pub const KEYS: TableDefinition<u64, Row> = TableDefinition::new("keys");
    /// Speaker id and record id of the turns that a voice learned from.
    pub const EMBEDDINGS: TableDefinition<(u32, u64), Row> = TableDefinition::new("embeddings");

    #[derive(Deserialize)]
    pub struct Counters {
        pub record: u64,
        pub session: u32,
        pub speaker: u32,
    }

    #[derive(Deserialize)]
    pub struct SpeakerRow {
        pub speaker: Speaker,
        pub centroid: Vec<f32>,
        pub learned_ms: u64,
        pub turns: u32,
    }
}

/// Copies everything of a version 1 store into a new database.
pub(crate) fn from_v1(from: &ReadTransaction, to: &WriteTransaction) -> Result<(), StorageError> {
    create_tables(to)?;
    copy_meta(from, to)?;
    for row in from.open_table(SESSIONS)?.iter()? {
        let session: Session = decode(row?.1.value())?;
        put(&mut open(to, SESSIONS)?, session.id.0, &session)?;
    }
    for row in from.open_table(SPEAKERS)?.iter()? {
        let old: v1::SpeakerRow = decode(row?.1.value())?;
        let new = SpeakerRow {
            centroid: old.centroid,
            speech_ms: old.learned_ms,
            turns: old.turns,
            enrolled: false,
            speaker: old.speaker,
        };
        put(&mut open(to, SPEAKERS)?, new.speaker.id.0, &new)?;
    }
    copy_turns(from, to)
}

fn copy_meta(from: &ReadTransaction, to: &WriteTransaction) -> Result<(), StorageError> {
    let old = from.open_table(META)?;
    let mut new = open(to, META)?;
    let counters: v1::Counters = meta(&old, COUNTERS)?
        .ok_or_else(|| StorageError::Damaged("the id counters are missing".into()))?;
    let counters = Counters {
        record: counters.record,
        session: counters.session,
        speaker: counters.speaker,
        merge: 0,
    };
    new.insert(COUNTERS, encode(&counters)?.as_slice())?;
    for name in [LAYOUT, RECLAIM] {
        if let Some(value) = old.get(name)? {
            new.insert(name, value.value())?;
        }
    }
    Ok(())
}

fn copy_turns(from: &ReadTransaction, to: &WriteTransaction) -> Result<(), StorageError> {
    let layout: Option<KeyLayout> = meta(&from.open_table(META)?, LAYOUT)?;
    let keys = from.open_table(v1::KEYS)?;
    let embeddings = from.open_table(v1::EMBEDDINGS)?;
    let mut turns = open(to, RECORDS)?;
    for row in from.open_table(RECORDS)?.iter()? {
        let record: Record = decode(row?.1.value())?;
        let id = record.id.0;
        let key = match (keys.get(id)?, layout) {
            (Some(bytes), Some(layout)) => decode_key(bytes.value(), layout)?,
            _ => return Err(StorageError::Damaged(format!("record {id} has no key"))),
        };
        let taught = match record.speaker.speaker {
            Some(speaker) => embeddings.get((speaker.0, id))?.is_some(),
            None => false,
        };
        let turn = Turn {
            key,
            said: Said { record, taught },
        };
        turns.insert(id, turn.encode()?.as_slice())?;
    }
    Ok(())
}
