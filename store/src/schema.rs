//! The tables of the file and how their rows are written.
//!
//! A row is a version byte followed by postcard; keys have their own compact
//! form. This module alone knows the encodings.

use crate::error::StorageError;
use crate::key::{Block, Key, KeyLayout};
use earwitness_api::types::{Speaker, SpeakerId};
use redb::{ReadableTable, Table, TableDefinition, WriteTransaction};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::ops::RangeInclusive;

/// Version of everything in this module. A file with a newer one is refused.
pub(crate) const SCHEMA: u32 = 1;

/// Says that a redb file is a memory of ours; the value of [`MAGIC`].
pub(crate) const MAGIC_VALUE: &[u8] = b"earwitness";

/// Turn embeddings that are kept of one speaker: the newest.
pub const EMBEDDINGS_PER_SPEAKER: usize = 64;

/// Bytes of a table row.
pub(crate) type Row = &'static [u8];

/// Name to value: [`MAGIC`], [`SCHEMA_VERSION`], [`COUNTERS`], [`LAYOUT`], [`RECLAIM`].
pub(crate) const META: TableDefinition<&str, Row> = TableDefinition::new("meta");
/// Session id to `Session`.
pub(crate) const SESSIONS: TableDefinition<u32, Row> = TableDefinition::new("sessions");
/// Record id to `Record`.
pub(crate) const RECORDS: TableDefinition<u64, Row> = TableDefinition::new("records");
/// Record id to its key.
pub(crate) const KEYS: TableDefinition<u64, Row> = TableDefinition::new("keys");
/// Speaker id to [`SpeakerRow`].
pub(crate) const SPEAKERS: TableDefinition<u32, Row> = TableDefinition::new("speakers");
/// Speaker id and record id to the embedding of that turn.
pub(crate) const EMBEDDINGS: TableDefinition<(u32, u64), Row> = TableDefinition::new("embeddings");

/// In `meta`: [`MAGIC_VALUE`].
pub(crate) const MAGIC: &str = "magic";
/// In `meta`: [`SCHEMA`] as four little-endian bytes, readable by every version.
pub(crate) const SCHEMA_VERSION: &str = "schema";
/// In `meta`: [`Counters`].
pub(crate) const COUNTERS: &str = "counters";
/// In `meta`: the `KeyLayout`, from the first record on.
pub(crate) const LAYOUT: &str = "layout";
/// In `meta`, while forgotten bytes may still lie in free parts of the file.
pub(crate) const RECLAIM: &str = "reclaim";

/// The last ids given out. They only grow, so an id is never given twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counters {
    pub record: u64,
    pub session: u32,
    pub speaker: u32,
}

/// A speaker and their voice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SpeakerRow {
    pub speaker: Speaker,
    pub centroid: Vec<f32>,
    /// Speech the centroid was learned from, in milliseconds.
    pub learned_ms: u64,
    /// Turns the centroid was learned from.
    pub turns: u32,
}

const ROW_VERSION: u8 = 1;

pub(crate) fn encode<T: Serialize>(row: &T) -> Result<Vec<u8>, StorageError> {
    postcard::to_extend(row, vec![ROW_VERSION])
        .map_err(|error| StorageError::Failed(format!("a row cannot be encoded: {error}")))
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StorageError> {
    let damaged = |what: String| StorageError::Damaged(what);
    match bytes.split_first() {
        Some((&ROW_VERSION, row)) => match postcard::take_from_bytes(row) {
            Ok((row, [])) => Ok(row),
            Ok(_) => Err(damaged("a row is too long".into())),
            Err(error) => Err(damaged(format!("a row cannot be read: {error}"))),
        },
        Some((version, _)) => Err(damaged(format!("a row has the unknown version {version}"))),
        None => Err(damaged("a row is empty".into())),
    }
}

/// Version, three little-endian scales, then all values.
pub(crate) fn encode_key(key: &Key) -> Vec<u8> {
    let mut bytes = vec![ROW_VERSION];
    bytes.extend(key.scales().into_iter().flat_map(f32::to_le_bytes));
    for block in key.blocks() {
        bytes.extend(block.values.iter().map(|value| value.to_le_bytes()[0]));
    }
    bytes
}

pub(crate) fn decode_key(bytes: &[u8], layout: KeyLayout) -> Result<Key, StorageError> {
    let damaged = || StorageError::Damaged("a key cannot be read".into());
    let (&version, rest) = bytes.split_first().ok_or_else(damaged)?;
    let (scales, values) = rest.split_first_chunk::<12>().ok_or_else(damaged)?;
    if version != ROW_VERSION || values.len() != layout.values() {
        return Err(damaged());
    }
    let (scales, _) = scales.as_chunks::<4>();
    let [semantic, speaker, temporal] = layout.ends();
    let block = |index: usize, range: std::ops::Range<usize>| Block {
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
    key.check(Some(layout)).map_err(|_| damaged())?;
    Ok(key)
}

/// Reads one row of `meta`.
pub(crate) fn meta<T: DeserializeOwned>(
    table: &impl ReadableTable<&'static str, Row>,
    name: &str,
) -> Result<Option<T>, StorageError> {
    table.get(name)?.map(|row| decode(row.value())).transpose()
}

/// Reads one row of a table with number keys.
pub(crate) fn row<K, T>(
    table: &impl ReadableTable<K, Row>,
    key: K,
) -> Result<Option<T>, StorageError>
where
    K: redb::Key + for<'k> redb::Value<SelfType<'k> = K> + 'static,
    T: DeserializeOwned,
{
    table.get(key)?.map(|row| decode(row.value())).transpose()
}

/// Writes one row.
pub(crate) fn put<K, T>(table: &mut Table<K, Row>, key: K, row: &T) -> Result<(), StorageError>
where
    K: redb::Key + for<'k> redb::Value<SelfType<'k> = K> + 'static,
    T: Serialize,
{
    table.insert(key, encode(row)?.as_slice())?;
    Ok(())
}

/// Opens a table for writing.
pub(crate) fn open<'t, K: redb::Key + 'static>(
    transaction: &'t WriteTransaction,
    table: TableDefinition<'_, K, Row>,
) -> Result<Table<'t, K, Row>, StorageError> {
    Ok(transaction.open_table(table)?)
}

/// The keys of all embeddings of one speaker.
pub(crate) fn of_speaker(speaker: SpeakerId) -> RangeInclusive<(u32, u64)> {
    (speaker.0, 0)..=(speaker.0, u64::MAX)
}

/// Gives out the next id of one kind. The first is 1.
pub(crate) fn next_id<T: Copy + std::ops::AddAssign>(
    transaction: &WriteTransaction,
    kind: impl FnOnce(&mut Counters) -> &mut T,
    one: T,
) -> Result<T, StorageError> {
    let mut table = open(transaction, META)?;
    let mut counters = counters(&table)?;
    let last = kind(&mut counters);
    *last += one;
    let id = *last;
    table.insert(COUNTERS, encode(&counters)?.as_slice())?;
    Ok(id)
}

/// The last ids given out.
pub(crate) fn counters(
    table: &impl ReadableTable<&'static str, Row>,
) -> Result<Counters, StorageError> {
    meta(table, COUNTERS)?
        .ok_or_else(|| StorageError::Damaged("the id counters are missing".into()))
}
