//! The row of a turn: what was said together with the key to find it by.
//!
//! The key stands first and uncompressed, so that opening a store takes the keys
//! of all turns without decoding the rest.
//!
//! The speaker block of the key is the voiceprint of the turn: there is no second
//! copy of it.

use crate::error::StorageError;
use crate::key::{Block, Key, KeyError, KeyLayout, in_range};
use crate::schema::{RECORDS, from_postcard, layout};
use crate::transaction::{Change, NOBODY, Tables};
use earwitness_api::types::{Record, RecordId};
use redb::{ReadableTable, TableHandle};
use serde::{Deserialize, Serialize};
use std::ops::{Range, RangeBounds};

/// A row of the table of records.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Turn {
    pub key: Key,
    pub said: Said,
}

/// A turn without its key. Speakers are those that the turn was attributed to
/// when it was heard, before any merge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Said {
    pub record: Record,
    /// Whether its speaker's voice learned from it.
    pub taught: bool,
}

impl Turn {
    /// Three little-endian scales, all values of the key, and the rest as postcard.
    fn encode(&self) -> Result<Vec<u8>, StorageError> {
        let scales = self.key.scales().into_iter().flat_map(f32::to_le_bytes);
        let mut bytes: Vec<u8> = scales.collect();
        for block in self.key.blocks() {
            bytes.extend(block.values.iter().map(|value| value.to_le_bytes()[0]));
        }
        postcard::to_extend(&self.said, bytes)
            .map_err(|error| StorageError::Failed(format!("a turn cannot be encoded: {error}")))
    }

    /// From an unsealed row.
    pub fn decode(bytes: &[u8], layout: KeyLayout) -> Result<Self, StorageError> {
        Ok(Self {
            key: decode_key(bytes, layout)?,
            said: decode_said(bytes, layout)?,
        })
    }
}

/// The voice that said it owns a turn.
pub(crate) fn owner(record: &Record) -> u32 {
    record.speaker.speaker.map_or(NOBODY, |id| id.0)
}

/// All but the key.
pub(crate) fn decode_said(bytes: &[u8], layout: KeyLayout) -> Result<Said, StorageError> {
    let rest = bytes.get(KEY_SCALES + layout.values()..);
    from_postcard(rest.ok_or_else(short)?)
}

/// A key as it lies in a row.
pub(crate) struct KeyBytes<'row> {
    pub scales: [f32; 3],
    /// One byte a value: semantic, speaker, temporal.
    pub values: &'row [u8],
}

impl<'row> KeyBytes<'row> {
    pub fn of(bytes: &'row [u8], layout: KeyLayout) -> Result<Self, StorageError> {
        let (scales, rest) = bytes.split_first_chunk::<KEY_SCALES>().ok_or_else(short)?;
        let values = rest.get(..layout.values()).ok_or_else(short)?;
        let (scales, _) = scales.as_chunks::<4>();
        let scales = [0, 1, 2].map(|block| f32::from_le_bytes(scales[block]));
        if let Some(scale) = scales.into_iter().find(|scale| !in_range(*scale)) {
            return Err(StorageError::Damaged(KeyError::Scale(scale).to_string()));
        }
        Ok(Self { scales, values })
    }
}

/// The key alone.
pub(crate) fn decode_key(bytes: &[u8], layout: KeyLayout) -> Result<Key, StorageError> {
    let KeyBytes { scales, values } = KeyBytes::of(bytes, layout)?;
    let [semantic, speaker, temporal] = layout.ends();
    let block = |index: usize, range: Range<usize>| Block {
        scale: scales[index],
        values: values[range]
            .iter()
            .map(|v| i8::from_le_bytes([*v]))
            .collect(),
    };
    Ok(Key {
        semantic: block(0, 0..semantic),
        speaker: block(1, semantic..speaker),
        temporal: block(2, speaker..temporal),
    })
}

/// Bytes of the three scales.
const KEY_SCALES: usize = 12;

fn short() -> StorageError {
    StorageError::Damaged("a turn is too short for its key".into())
}

/// Visits the turns of the table, unsealed, in the order of their ids or the
/// other way round, for as long as `visit` says so.
pub(crate) fn each_turn(
    tables: &impl Tables,
    newest_first: bool,
    range: impl RangeBounds<u64>,
    mut visit: impl FnMut(u64, &[u8], KeyLayout) -> Result<bool, StorageError>,
) -> Result<(), StorageError> {
    let table = tables.table(RECORDS)?;
    let Some(layout) = layout(tables)? else {
        return Ok(());
    };
    let mut rows = table.range(range)?;
    while let Some(row) = if newest_first {
        rows.next_back()
    } else {
        rows.next()
    } {
        let (id, bytes) = row?;
        let bytes = tables.unseal(RECORDS.name(), id.value(), bytes.value())?;
        if !visit(id.value(), &bytes, layout)? {
            break;
        }
    }
    Ok(())
}

/// Visits all turns in the order of their ids, without their keys.
pub(crate) fn each_said(
    tables: &impl Tables,
    mut visit: impl FnMut(Said),
) -> Result<(), StorageError> {
    each_turn(tables, false, .., |_, bytes, layout| {
        visit(decode_said(bytes, layout)?);
        Ok(true)
    })
}

/// One turn; `None` where there is none of that id.
pub(crate) fn find_turn(tables: &impl Tables, id: RecordId) -> Result<Option<Turn>, StorageError> {
    let mut found = None;
    each_turn(tables, false, id.0..=id.0, |_, bytes, layout| {
        found = Some(Turn::decode(bytes, layout)?);
        Ok(false)
    })?;
    Ok(found)
}

/// Writes one turn, new or changed.
pub(crate) fn put_turn(change: &Change<'_>, turn: &Turn) -> Result<(), StorageError> {
    let id = turn.said.record.id.0;
    let owner = owner(&turn.said.record);
    let row = change.seal(RECORDS.name(), id, owner, &turn.encode()?)?;
    change.open(RECORDS)?.insert(id, row.as_slice())?;
    Ok(())
}
