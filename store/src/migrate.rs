//! Bringing an older file up to this version.
//!
//! The old file is only read. Everything is written to the medium's replacement,
//! which takes the old file's place in one step after the old one was put aside:
//! a power cut leaves the old store or the new one, complete.

use crate::error::StorageError;
use crate::schema::{
    COUNTERS, Counters, LAYOUT, META, RECLAIM, RECORDS, Row, SESSIONS, SPEAKERS, SpeakerRow,
    decode, layout, meta, put, put_meta, put_speaker, rows,
};
use crate::transaction::{Change, NOBODY, Snapshot, Tables};
use crate::turn::{Said, Turn, decode_key, put_turn};
use earwitness_api::types::{Consent, Record, Session, Speaker};
use redb::{ReadableTable, TableDefinition, TableHandle};
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

/// Copies everything of a version 1 store into a new one.
pub(crate) fn from_v1(from: &Snapshot, to: &Change<'_>) -> Result<(), StorageError> {
    copy_meta(from, to)?;
    for session in rows::<_, Session>(from, SESSIONS)? {
        put(to, SESSIONS, session.id.0, NOBODY, &session)?;
    }
    for old in rows::<_, v1::SpeakerRow>(from, SPEAKERS)? {
        let new = SpeakerRow {
            centroid: old.centroid,
            speech_ms: old.learned_ms,
            turns: old.turns,
            enrolled: false,
            consent: Consent::Unknown,
            speaker: old.speaker,
        };
        put_speaker(to, &new)?;
    }
    copy_turns(from, to)
}

fn copy_meta(from: &Snapshot, to: &Change<'_>) -> Result<(), StorageError> {
    let counted: Option<v1::Counters> = meta(from, COUNTERS)?;
    let counted =
        counted.ok_or_else(|| StorageError::Damaged("the id counters are missing".into()))?;
    let counters = Counters {
        record: counted.record,
        session: counted.session,
        speaker: counted.speaker,
        ..Counters::default()
    };
    put_meta(to, COUNTERS, &counters)?;
    for name in [LAYOUT, RECLAIM] {
        if let Some(value) = from.table(META)?.get(name)? {
            to.open(META)?.insert(name, value.value())?;
        }
    }
    Ok(())
}

fn copy_turns(from: &Snapshot, to: &Change<'_>) -> Result<(), StorageError> {
    let layout = layout(from)?;
    let keys = from.table(v1::KEYS)?;
    let embeddings = from.table(v1::EMBEDDINGS)?;
    for row in from.table(RECORDS)?.iter()? {
        let (id, bytes) = row?;
        let id = id.value();
        let record: Record = decode(from, RECORDS, id, bytes.value())?;
        let key = match (keys.get(id)?, layout) {
            (Some(bytes), Some(layout)) => {
                let bytes = from.unseal(v1::KEYS.name(), id, bytes.value())?;
                decode_key(&bytes, layout)?
            }
            _ => return Err(StorageError::Damaged(format!("record {id} has no key"))),
        };
        let taught = match record.speaker.speaker {
            Some(speaker) => embeddings.get((speaker.0, id))?.is_some(),
            None => false,
        };
        let said = Said { record, taught };
        put_turn(to, &Turn { key, said })?;
    }
    Ok(())
}
