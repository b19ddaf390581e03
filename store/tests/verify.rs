//! Every contradiction that can be made in the tables is found by its name.
#![allow(clippy::unwrap_used)]

mod common;

use common::{by_new, contains, turn};
use earwitness_store::{NewRecord, Store};
use redb::{Database, TableDefinition, WriteTransaction};

type Rows<K> = TableDefinition<'static, K, &'static [u8]>;

const RECORDS: Rows<u64> = TableDefinition::new("records");
const KEYS: Rows<u64> = TableDefinition::new("keys");
const SESSIONS: Rows<u32> = TableDefinition::new("sessions");
const SPEAKERS: Rows<u32> = TableDefinition::new("speakers");
const EMBEDDINGS: Rows<(u32, u64)> = TableDefinition::new("embeddings");
const META: Rows<&str> = TableDefinition::new("meta");

/// What `verify` finds in a store of two turns after `tamper`.
fn findings(tamper: impl FnOnce(&WriteTransaction)) -> Vec<&'static str> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let store = Store::open(&path).unwrap();
    let session = store.begin_session("first", 0).unwrap().id;
    store.append(turn(session, "by nobody")).unwrap();
    store.append(by_new(session, "by somebody")).unwrap();
    assert_eq!(store.verify().unwrap(), []);
    drop(store);
    let database = Database::open(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    tamper(&transaction);
    transaction.commit().unwrap();
    drop(database);
    let store = Store::open(&path).unwrap();
    let findings = store.verify().unwrap();
    findings.into_iter().map(|found| found.invariant).collect()
}

fn remove<K: redb::Key + for<'k> redb::Value<SelfType<'k> = K>>(
    transaction: &WriteTransaction,
    table: Rows<K>,
    key: K,
) -> Vec<u8> {
    let mut table = transaction.open_table(table).unwrap();
    let row = table.remove(key).unwrap();
    row.unwrap().value().to_vec()
}

fn insert<'k, K: redb::Key>(
    transaction: &WriteTransaction,
    table: Rows<K>,
    key: K::SelfType<'k>,
    row: &[u8],
) {
    let mut table = transaction.open_table(table).unwrap();
    table.insert(key, row).unwrap();
}

#[test]
fn nothing_is_found_in_what_was_not_touched() {
    assert!(findings(|_| ()).is_empty());
}

#[test]
fn records_without_keys_and_keys_without_records_are_found() {
    let found = findings(|t| drop(remove(t, KEYS, 1)));
    assert_eq!(found, ["key-per-record"]);
    let found = findings(|t| drop(remove(t, RECORDS, 1)));
    assert_eq!(found, ["key-per-record"]);
}

#[test]
fn missing_sessions_and_speakers_are_found() {
    let found = findings(|t| drop(remove(t, SESSIONS, 1)));
    assert_eq!(found, ["session-of-record", "session-of-record"]);
    let found = findings(|t| drop(remove(t, SPEAKERS, 1)));
    assert_eq!(found, ["speakers-of-record", "voiceprint-form"]);
}

#[test]
fn a_wrong_count_and_a_stray_embedding_are_found() {
    let found = findings(|t| {
        remove(t, RECORDS, 2);
        remove(t, KEYS, 2);
    });
    assert_eq!(found, ["records-of-speaker", "embedding-of-turn"]);
    let found = findings(|t| insert(t, EMBEDDINGS, (1, 2), &[7]));
    assert_eq!(found, ["voiceprint-form"]);
}

#[test]
fn a_row_under_another_id_and_ids_beyond_the_counters_are_found() {
    let found = findings(|t| {
        for table in [RECORDS, KEYS] {
            let row = remove(t, table, 1);
            insert(t, table, 9, &row);
        }
    });
    assert_eq!(found, ["ids-below-counters", "rows-under-own-id"]);
}

#[test]
fn an_unreadable_row_is_found() {
    let found = findings(|t| insert(t, RECORDS, 1, &[1, 2, 3]));
    assert_eq!(found, ["rows-readable", "key-per-record"]);
}

#[test]
fn a_store_whose_keys_or_counters_cannot_be_read_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let store = Store::open(&path).unwrap();
    let session = store.begin_session("first", 0).unwrap().id;
    store.append(turn(session, "x")).unwrap();
    drop(store);
    let tamper = |change: &dyn Fn(&WriteTransaction)| {
        let database = Database::open(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        change(&transaction);
        transaction.commit().unwrap();
    };
    tamper(&|t| insert(t, META, "counters", &[9]));
    let store = Store::open(&path).unwrap();
    let new: NewRecord = turn(session, "y");
    let error = store.append(new).unwrap_err().to_string();
    assert!(contains(error.as_bytes(), b"damaged"), "{error}");
    assert_eq!(store.stats().unwrap().records, 1);
    drop(store);
    tamper(&|t| insert(t, KEYS, 1, &[1, 0]));
    assert!(Store::open(&path).is_err());
}
