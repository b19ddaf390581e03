//! The tables of the file and how their rows are written.
//!
//! A row is a form byte, then postcard or, in a sealed store, what seals it; the
//! row of a turn is put together in `turn`. These two modules alone know the
//! encodings.

use crate::error::StorageError;
use crate::key::KeyLayout;
use crate::transaction::{Change, Tables};
use earwitness_api::types::{Consent, Speaker, SpeakerId};
use redb::{ReadableTable, TableDefinition, TableHandle};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Version of everything in this module. A file with a newer one is refused, one
/// with an older one is migrated.
pub(crate) const SCHEMA: u32 = 2;

/// Says that a redb file is a memory of ours; the value of [`MAGIC`].
pub(crate) const MAGIC_VALUE: &[u8] = b"earwitness";

/// Voiceprints that are kept of one speaker for comparing voices: the newest.
pub const VOICEPRINTS_PER_SPEAKER: usize = 64;

/// Bytes of a table row.
pub(crate) type Row = &'static [u8];

/// Name to value: [`MAGIC`], [`SCHEMA_VERSION`], [`COUNTERS`], [`LAYOUT`],
/// [`VOICEPRINT_MODEL`], [`RECLAIM`].
pub(crate) const META: TableDefinition<&str, Row> = TableDefinition::new("meta");
/// Session id to `Session`.
pub(crate) const SESSIONS: TableDefinition<u32, Row> = TableDefinition::new("sessions");
/// Record id to the turn: record and key.
pub(crate) const RECORDS: TableDefinition<u64, Row> = TableDefinition::new("records");
/// Speaker id to [`SpeakerRow`].
pub(crate) const SPEAKERS: TableDefinition<u32, Row> = TableDefinition::new("speakers");
/// Speaker id to the voiceprints of their enrolment, as [`crate::key::Block`]s.
pub(crate) const ENROLMENTS: TableDefinition<u32, Row> = TableDefinition::new("enrolments");
/// Speaker id to the `Merge` that gave up its identity.
pub(crate) const MERGES: TableDefinition<u32, Row> = TableDefinition::new("merges");
/// Two speaker ids, the lower first, that are not one person.
pub(crate) const APART: TableDefinition<(u32, u32), ()> = TableDefinition::new("apart");

/// Voice id to its data key, wrapped by the master key.
pub(crate) const DATA_KEYS: TableDefinition<u32, Row> = TableDefinition::new("data-keys");

/// In `meta`: [`MAGIC_VALUE`].
pub(crate) const MAGIC: &str = "magic";
/// In `meta`: [`SCHEMA`] as four little-endian bytes, readable by every version.
pub(crate) const SCHEMA_VERSION: &str = "schema";
/// In `meta`: [`Counters`].
pub(crate) const COUNTERS: &str = "counters";
/// In `meta`: the `KeyLayout`, from the first record on.
pub(crate) const LAYOUT: &str = "layout";
/// In `meta`: the `VoiceprintModel`, once it was told.
pub(crate) const VOICEPRINT_MODEL: &str = "voiceprint-model";
/// In `meta` of a sealed store: what only its master key opens.
pub(crate) const PROOF: &str = "proof";
/// In `meta`, while forgotten bytes may still lie in free parts of the file.
pub(crate) const RECLAIM: &str = "reclaim";

/// The last ids given out. They only grow, so an id is never given twice.
///
/// `record` may lag behind the last record in the table, so that an append does
/// not have to write it; removing records brings it up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counters {
    pub record: u64,
    pub session: u32,
    pub speaker: u32,
    pub merge: u32,
    /// Records that had to make room, so far.
    pub evicted: u64,
    /// New voices for which there was no room, so far.
    pub refused_voices: u64,
}

/// A speaker and their voice, as it was heard before any merge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SpeakerRow {
    pub speaker: Speaker,
    pub centroid: Vec<f32>,
    /// Speech the centroid was learned from, in milliseconds.
    pub speech_ms: u64,
    /// Turns the centroid was learned from.
    pub turns: u32,
    /// Whether somebody lent their voice on purpose.
    pub enrolled: bool,
    pub consent: Consent,
}

impl SpeakerRow {
    pub fn new(id: SpeakerId) -> Self {
        Self {
            speaker: Speaker {
                id,
                name: None,
                records: 0,
                first_heard_unix_ms: 0,
                last_heard_unix_ms: 0,
            },
            centroid: Vec::new(),
            speech_ms: 0,
            turns: 0,
            enrolled: false,
            consent: Consent::Unknown,
        }
    }
}

/// The form byte of a row that is not sealed.
pub(crate) const PLAIN: u8 = 1;
/// The form byte of a sealed row; the owner, the nonce and the sealed bytes follow.
pub(crate) const SEALED: u8 = 2;

pub(crate) fn to_postcard<T: Serialize>(row: &T) -> Result<Vec<u8>, StorageError> {
    postcard::to_stdvec(row)
        .map_err(|error| StorageError::Failed(format!("a row cannot be encoded: {error}")))
}

pub(crate) fn from_postcard<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StorageError> {
    match postcard::take_from_bytes(bytes) {
        Ok((row, [])) => Ok(row),
        Ok(_) => Err(StorageError::Damaged("a row is too long".into())),
        Err(error) => Err(StorageError::Damaged(format!(
            "a row cannot be read: {error}"
        ))),
    }
}

/// The number by which a row is found.
pub(crate) trait RowKey:
    redb::Key + for<'k> redb::Value<SelfType<'k> = Self> + Copy + Into<u64> + 'static
{
}

impl<K> RowKey for K where
    K: redb::Key + for<'k> redb::Value<SelfType<'k> = K> + Copy + Into<u64> + 'static
{
}

/// Reads one row of `meta`. None of them is sealed.
pub(crate) fn meta<T: DeserializeOwned>(
    tables: &impl Tables,
    name: &str,
) -> Result<Option<T>, StorageError> {
    let table = tables.table(META)?;
    let row = table.get(name)?;
    row.map(|row| match row.value().split_first() {
        Some((&PLAIN, row)) => from_postcard(row),
        _ => Err(StorageError::Damaged(format!("{name} cannot be read"))),
    })
    .transpose()
}

/// Writes one row of `meta`.
pub(crate) fn put_meta<T: Serialize>(
    change: &Change<'_>,
    name: &str,
    row: &T,
) -> Result<(), StorageError> {
    let row = [&[PLAIN][..], &to_postcard(row)?].concat();
    change.open(META)?.insert(name, row.as_slice())?;
    Ok(())
}

/// Reads one row.
pub(crate) fn row<K: RowKey, T: DeserializeOwned>(
    tables: &impl Tables,
    table: TableDefinition<'_, K, Row>,
    key: K,
) -> Result<Option<T>, StorageError> {
    let rows = tables.table(table)?;
    let row = rows.get(key)?;
    row.map(|row| decode(tables, table, key, row.value()))
        .transpose()
}

/// Reads all rows of a table, in the order of their keys.
pub(crate) fn rows<K: RowKey, T: DeserializeOwned>(
    tables: &impl Tables,
    table: TableDefinition<'_, K, Row>,
) -> Result<Vec<T>, StorageError> {
    let rows = tables.table(table)?;
    let rows = rows.iter()?.map(|row| {
        let (key, row) = row?;
        decode(tables, table, key.value(), row.value())
    });
    rows.collect()
}

/// Unseals and decodes a row.
pub(crate) fn decode<K: RowKey, T: DeserializeOwned>(
    tables: &impl Tables,
    table: TableDefinition<'_, K, Row>,
    key: K,
    bytes: &[u8],
) -> Result<T, StorageError> {
    from_postcard(&tables.unseal(table.name(), key.into(), bytes)?)
}

/// Writes one row, sealed for its owner.
pub(crate) fn put<K: RowKey, T: Serialize>(
    change: &Change<'_>,
    table: TableDefinition<'_, K, Row>,
    key: K,
    owner: u32,
    row: &T,
) -> Result<(), StorageError> {
    let row = change.seal(table.name(), key.into(), owner, &to_postcard(row)?)?;
    change.open(table)?.insert(key, row.as_slice())?;
    Ok(())
}

/// Writes the row of a voice, which it owns.
pub(crate) fn put_speaker(change: &Change<'_>, row: &SpeakerRow) -> Result<(), StorageError> {
    let id = row.speaker.id.0;
    put(change, SPEAKERS, id, id, row)
}

/// The layout of every key, from the first record on.
pub(crate) fn layout(tables: &impl Tables) -> Result<Option<KeyLayout>, StorageError> {
    meta(tables, LAYOUT)
}

/// Gives out the next id of one kind. The first is 1.
pub(crate) fn next_id(
    change: &Change<'_>,
    kind: impl FnOnce(&mut Counters) -> &mut u32,
) -> Result<u32, StorageError> {
    let mut counters = counters(change)?;
    let last = kind(&mut counters);
    *last = last.checked_add(1).ok_or_else(used_up)?;
    let id = *last;
    put_meta(change, COUNTERS, &counters)?;
    Ok(id)
}

/// The id of the next record. It is taken by writing the record.
pub(crate) fn next_record_id(change: &Change<'_>) -> Result<u64, StorageError> {
    let last = counters(change)?.record.max(last_record(change)?);
    last.checked_add(1).ok_or_else(used_up)
}

fn used_up() -> StorageError {
    StorageError::Damaged("there is no id left to give out".into())
}

/// Writes down the last record id, before records are removed.
pub(crate) fn settle_record_id(change: &Change<'_>) -> Result<(), StorageError> {
    let mut counters = counters(change)?;
    counters.record = counters.record.max(last_record(change)?);
    put_meta(change, COUNTERS, &counters)
}

fn last_record(tables: &impl Tables) -> Result<u64, StorageError> {
    let table = tables.table(RECORDS)?;
    Ok(table.last()?.map_or(0, |(id, _)| id.value()))
}

/// The last ids given out.
pub(crate) fn counters(tables: &impl Tables) -> Result<Counters, StorageError> {
    meta(tables, COUNTERS)?
        .ok_or_else(|| StorageError::Damaged("the id counters are missing".into()))
}
