//! The row of a turn: what was said together with the key to find it by.
//!
//! The key stands first and uncompressed, so that opening a store takes the keys
//! of all turns without decoding the rest.
//!
//! The speaker block of the key is the voiceprint of the turn: there is no second
//! copy of it.

use crate::error::StorageError;
use crate::key::{Block, Key, KeyLayout};
use crate::schema::{PLAIN, RECORDS, from_postcard, layout, open, plain};
use earwitness_api::types::{Record, RecordId};
use redb::{ReadableTable, WriteTransaction};
use serde::{Deserialize, Serialize};
use std::ops::Range;

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
    /// The form byte, three little-endian scales, all values of the key, and the
    /// rest as postcard.
    pub fn encode(&self) -> Result<Vec<u8>, StorageError> {
        let mut bytes = vec![PLAIN];
        bytes.extend(self.key.scales().into_iter().flat_map(f32::to_le_bytes));
        for block in self.key.blocks() {
            bytes.extend(block.values.iter().map(|value| value.to_le_bytes()[0]));
        }
        postcard::to_extend(&self.said, bytes)
            .map_err(|error| StorageError::Failed(format!("a turn cannot be encoded: {error}")))
    }

    pub fn decode(bytes: &[u8], layout: KeyLayout) -> Result<Self, StorageError> {
        Ok(Self {
            key: decode_key(bytes, layout)?,
            said: decode_said(bytes, layout)?,
        })
    }
}

/// All but the key.
pub(crate) fn decode_said(bytes: &[u8], layout: KeyLayout) -> Result<Said, StorageError> {
    let rest = plain(bytes)?.get(KEY_SCALES + layout.values()..);
    from_postcard(rest.ok_or_else(short)?)
}

/// The key alone.
pub(crate) fn decode_key(bytes: &[u8], layout: KeyLayout) -> Result<Key, StorageError> {
    let (scales, rest) = plain(bytes)?
        .split_first_chunk::<KEY_SCALES>()
        .ok_or_else(short)?;
    let values = rest.get(..layout.values()).ok_or_else(short)?;
    let (scales, _) = scales.as_chunks::<4>();
    let [semantic, speaker, temporal] = layout.ends();
    let block = |index: usize, range: Range<usize>| Block {
        scale: f32::from_le_bytes(scales[index]),
        values: values[range]
            .iter()
            .map(|v| i8::from_le_bytes([*v]))
            .collect(),
    };
    let key = Key {
        semantic: block(0, 0..semantic),
        speaker: block(1, semantic..speaker),
        temporal: block(2, speaker..temporal),
    };
    key.check(Some(layout))
        .map_err(|error| StorageError::Damaged(format!("a key is wrong: {error}")))?;
    Ok(key)
}

/// Bytes of the three scales.
const KEY_SCALES: usize = 12;

fn short() -> StorageError {
    StorageError::Damaged("a turn is too short for its key".into())
}

/// Visits all turns of a table in the order of their ids, without their keys.
pub(crate) fn each_said(
    transaction: &WriteTransaction,
    mut visit: impl FnMut(Said),
) -> Result<(), StorageError> {
    let Some(layout) = layout(transaction)? else {
        return Ok(());
    };
    for row in open(transaction, RECORDS)?.iter()? {
        visit(decode_said(row?.1.value(), layout)?);
    }
    Ok(())
}

/// One turn; `None` where there is none of that id.
pub(crate) fn find_turn(
    transaction: &WriteTransaction,
    id: RecordId,
) -> Result<Option<Turn>, StorageError> {
    let Some(layout) = layout(transaction)? else {
        return Ok(None);
    };
    let table = open(transaction, RECORDS)?;
    let row = table.get(id.0)?;
    row.map(|row| Turn::decode(row.value(), layout)).transpose()
}

/// Writes one turn, new or changed.
pub(crate) fn put_turn(transaction: &WriteTransaction, turn: &Turn) -> Result<(), StorageError> {
    let row = turn.encode()?;
    open(transaction, RECORDS)?.insert(turn.said.record.id.0, row.as_slice())?;
    Ok(())
}
