//! The tables of the file and how their rows are written.
//!
//! A row is a form byte followed by postcard; the row of a turn is put together
//! in `turn`. These two modules alone know the encodings.

use crate::error::StorageError;
use crate::key::KeyLayout;
use earwitness_api::types::{Speaker, SpeakerId};
use redb::{ReadableTable, Table, TableDefinition, WriteTransaction};
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
        }
    }
}

/// The form byte of a row.
pub(crate) const PLAIN: u8 = 1;

pub(crate) fn encode<T: Serialize>(row: &T) -> Result<Vec<u8>, StorageError> {
    postcard::to_extend(row, vec![PLAIN])
        .map_err(|error| StorageError::Failed(format!("a row cannot be encoded: {error}")))
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StorageError> {
    from_postcard(plain(bytes)?)
}

/// What follows the form byte.
pub(crate) fn plain(bytes: &[u8]) -> Result<&[u8], StorageError> {
    match bytes.split_first() {
        Some((&PLAIN, row)) => Ok(row),
        Some((form, _)) => Err(damaged(format!("a row has the unknown form {form}"))),
        None => Err(damaged("a row is empty".into())),
    }
}

pub(crate) fn from_postcard<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StorageError> {
    match postcard::take_from_bytes(bytes) {
        Ok((row, [])) => Ok(row),
        Ok(_) => Err(damaged("a row is too long".into())),
        Err(error) => Err(damaged(format!("a row cannot be read: {error}"))),
    }
}

fn damaged(what: String) -> StorageError {
    StorageError::Damaged(what)
}

/// Reads one row of `meta`.
pub(crate) fn meta<T: DeserializeOwned>(
    table: &impl ReadableTable<&'static str, Row>,
    name: &str,
) -> Result<Option<T>, StorageError> {
    table.get(name)?.map(|row| decode(row.value())).transpose()
}

/// The layout of every key, from the first record on.
pub(crate) fn layout(transaction: &WriteTransaction) -> Result<Option<KeyLayout>, StorageError> {
    meta(&open(transaction, META)?, LAYOUT)
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

/// Reads all rows of a table, in the order of their keys.
pub(crate) fn rows<K: redb::Key + 'static, T: DeserializeOwned>(
    table: &impl ReadableTable<K, Row>,
) -> Result<Vec<T>, StorageError> {
    table.iter()?.map(|row| decode(row?.1.value())).collect()
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
pub(crate) fn open<'t, K: redb::Key + 'static, V: redb::Value + 'static>(
    transaction: &'t WriteTransaction,
    table: TableDefinition<'_, K, V>,
) -> Result<Table<'t, K, V>, StorageError> {
    Ok(transaction.open_table(table)?)
}

/// Gives out the next id of one kind. The first is 1.
pub(crate) fn next_id(
    transaction: &WriteTransaction,
    kind: impl FnOnce(&mut Counters) -> &mut u32,
) -> Result<u32, StorageError> {
    let mut table = open(transaction, META)?;
    let mut counters = counters(&table)?;
    let last = kind(&mut counters);
    *last += 1;
    let id = *last;
    put_counters(&mut table, counters)?;
    Ok(id)
}

/// The id of the next record. It is taken by writing the record.
pub(crate) fn next_record_id(transaction: &WriteTransaction) -> Result<u64, StorageError> {
    let counted = counters(&open(transaction, META)?)?.record;
    let last = last_record(&open(transaction, RECORDS)?)?;
    Ok(counted.max(last) + 1)
}

/// Writes down the last record id, before records are removed.
pub(crate) fn settle_record_id(transaction: &WriteTransaction) -> Result<(), StorageError> {
    let last = last_record(&open(transaction, RECORDS)?)?;
    let mut table = open(transaction, META)?;
    let mut counters = counters(&table)?;
    counters.record = counters.record.max(last);
    put_counters(&mut table, counters)
}

fn last_record(table: &impl ReadableTable<u64, Row>) -> Result<u64, StorageError> {
    Ok(table.last()?.map_or(0, |(id, _)| id.value()))
}

fn put_counters(table: &mut Table<&str, Row>, counters: Counters) -> Result<(), StorageError> {
    table.insert(COUNTERS, encode(&counters)?.as_slice())?;
    Ok(())
}

/// The last ids given out.
pub(crate) fn counters(
    table: &impl ReadableTable<&'static str, Row>,
) -> Result<Counters, StorageError> {
    meta(table, COUNTERS)?
        .ok_or_else(|| StorageError::Damaged("the id counters are missing".into()))
}
