//! Every contradiction that can be made in the tables is found by its name.
#![allow(clippy::unwrap_used)]

mod common;

use common::{by_new, contains, turn};
use earwitness_store::{NewRecord, RecordFilter, Store};
use redb::{Database, TableDefinition, WriteTransaction};

type Rows<K> = TableDefinition<'static, K, &'static [u8]>;

const RECORDS: Rows<u64> = TableDefinition::new("records");
const SESSIONS: Rows<u32> = TableDefinition::new("sessions");
const SPEAKERS: Rows<u32> = TableDefinition::new("speakers");
const ENROLMENTS: Rows<u32> = TableDefinition::new("enrolments");
const MERGES: Rows<u32> = TableDefinition::new("merges");
const APART: TableDefinition<(u32, u32), ()> = TableDefinition::new("apart");
const META: Rows<&str> = TableDefinition::new("meta");

/// What `verify` finds in a store of three turns, by nobody and by two speakers,
/// after `tamper`.
fn findings(tamper: impl FnOnce(&WriteTransaction)) -> Vec<&'static str> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let store = Store::open(&path).unwrap();
    let session = store.begin_session("first", 0).unwrap().id;
    store.append(turn(session, "by nobody")).unwrap();
    store.append(by_new(session, "by somebody")).unwrap();
    store.append(by_new(session, "by another")).unwrap();
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
fn missing_sessions_and_speakers_are_found() {
    let found = findings(|t| drop(remove(t, SESSIONS, 1)));
    assert_eq!(found, ["session-of-record"; 3]);
    let found = findings(|t| drop(remove(t, SPEAKERS, 1)));
    assert_eq!(found, ["speakers-of-record"]);
}

#[test]
fn a_wrong_count_is_found() {
    let found = findings(|t| drop(remove(t, RECORDS, 2)));
    assert_eq!(found, ["records-of-speaker"]);
}

#[test]
fn a_row_under_another_id_and_ids_beyond_the_counters_are_found() {
    let found = findings(|t| {
        let row = remove(t, SPEAKERS, 1);
        insert(t, SPEAKERS, 9, &row);
    });
    assert_eq!(
        found,
        [
            "ids-below-counters",
            "rows-under-own-id",
            "speakers-of-record",
            "records-of-speaker"
        ]
    );
}

/// A merge as postcard: number, from, into, by hand.
fn merge(from: u8, into: u8) -> [u8; 5] {
    [1, 0, from, into, 0]
}

#[test]
fn merges_that_lead_nowhere_or_in_circles_are_found() {
    assert!(findings(|t| insert(t, MERGES, 1, &merge(1, 2))).is_empty());
    let found = findings(|t| insert(t, MERGES, 1, &merge(1, 9)));
    assert_eq!(found, ["merges-of-speakers"]);
    let found = findings(|t| {
        insert(t, MERGES, 1, &merge(1, 2));
        insert(t, MERGES, 2, &merge(2, 1));
    });
    assert_eq!(found, ["merges-form-trees", "merges-form-trees"]);
    for pair in [(2, 1), (1, 9)] {
        let found = findings(|t| {
            t.open_table(APART).unwrap().insert(pair, ()).unwrap();
        });
        assert_eq!(found, ["apart-of-speakers"]);
    }
}

#[test]
fn enrolments_of_nobody_or_of_another_form_are_found() {
    // One block: scale 1.0, then its values.
    let found = findings(|t| insert(t, ENROLMENTS, 9, &[1, 1, 0, 0, 128, 63, 4, 1, 1, 1, 1]));
    assert_eq!(found, ["enrolment-of-speaker"]);
    let found = findings(|t| insert(t, ENROLMENTS, 1, &[1, 1, 0, 0, 128, 63, 1, 1]));
    assert_eq!(found, ["voiceprint-form", "enrolment-of-speaker"]);
}

#[test]
fn an_unreadable_row_is_found() {
    let found = findings(|t| insert(t, SESSIONS, 7, &[1, 2, 3]));
    assert_eq!(found, ["rows-readable"]);
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
    assert_eq!(store.records(RecordFilter::default()).unwrap().len(), 1);
    drop(store);
    tamper(&|t| insert(t, RECORDS, 1, &[1, 0]));
    assert!(Store::open(&path).is_err());
}
