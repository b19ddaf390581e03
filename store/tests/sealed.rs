//! A sealed store: nothing can be read without its key, and nothing that was
//! forgotten can be read with it.
#![allow(clippy::unwrap_used)]

mod common;

use common::{assert_sound, by, by_new, contains, turn};
use earwitness_api::types::{Attachment, RecordFilter, RecordId, Selection, SessionId, SpeakerId};
use earwitness_store::{
    Enrolment, MasterKey, MasterKeyError, NewRecord, OpenError, Options, Store,
};
use redb::{Database, ReadableTable, TableDefinition};
use std::fs;
use std::path::{Path, PathBuf};

const RECORDS: TableDefinition<u64, &[u8]> = TableDefinition::new("records");
const SAID: &str = "the key lies under the third flowerpot";

fn with_key(byte: u8) -> Options {
    Options {
        key: Some(MasterKey::new([byte; 32])),
        ..Options::default()
    }
}

struct Sealed {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Sealed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory");
        Self {
            _folder: folder,
            path,
        }
    }

    fn open(&self) -> Store {
        Store::open_with(&self.path, with_key(7)).unwrap()
    }

    /// The sealed row of a record.
    fn row(&self, id: u64) -> Vec<u8> {
        let database = Database::open(&self.path).unwrap();
        let transaction = database.begin_write().unwrap();
        let table = transaction.open_table(RECORDS).unwrap();
        let row = table.get(id).unwrap().unwrap();
        row.value().to_vec()
    }

    /// Puts a sealed row into the file.
    fn put_row(&self, id: u64, row: &[u8]) {
        let database = Database::open(&self.path).unwrap();
        let transaction = database.begin_write().unwrap();
        let mut table = transaction.open_table(RECORDS).unwrap();
        table.insert(id, row).unwrap();
        drop(table);
        transaction.commit().unwrap();
    }
}

/// Two people, three turns, an enrolment.
fn fill(store: &Store) -> SessionId {
    let session = store.begin_session("breakfast in bed", 0).unwrap().id;
    let shown = Attachment {
        kind: "image".into(),
        caption: "a photograph of flowerpots".into(),
    };
    let new = NewRecord {
        attachments: vec![shown],
        ..by_new(session, SAID)
    };
    store.append(new).unwrap();
    store.name_speaker(SpeakerId(1), "Ada Lovelace").unwrap();
    store.append(by_new(session, "another voice")).unwrap();
    store.append(turn(session, "nobody known")).unwrap();
    let enrolment = Enrolment {
        name: "Grace Hopper".into(),
        embeddings: vec![vec![0.3; 4]],
        centroid: vec![0.123_456_79; 4],
        speech_ms: 1,
    };
    store.enrol(&enrolment).unwrap();
    session
}

#[test]
fn nothing_of_what_anybody_said_or_is_can_be_found_in_the_file() {
    let key = common::key(SAID.len() as u64).semantic.values;
    let key: Vec<u8> = key.iter().map(|value| value.to_le_bytes()[0]).collect();
    let secrets: [&[u8]; 8] = [
        SAID.as_bytes(),
        b"another voice",
        b"nobody known",
        b"breakfast",
        b"Lovelace",
        b"Hopper",
        b"photograph",
        &key,
    ];
    let centroid = 0.123_456_79f32.to_le_bytes();
    for sealed in [false, true] {
        let place = Sealed::new();
        let options = if sealed {
            with_key(7)
        } else {
            Options::default()
        };
        let store = Store::open_with(&place.path, options).unwrap();
        fill(&store);
        store.compact().unwrap();
        assert_sound(&store);
        drop(store);
        let bytes = fs::read(&place.path).unwrap();
        for secret in secrets {
            assert_eq!(contains(&bytes, secret), !sealed, "{secret:?}");
        }
        assert_eq!(contains(&bytes, &centroid.repeat(4)), !sealed);
        assert!(!contains(&bytes, &[7; 32]));
    }
}

#[test]
fn without_the_right_key_it_is_not_opened_and_not_touched() {
    let place = Sealed::new();
    fill(&place.open());
    let before = fs::read(&place.path).unwrap();
    let refused = |options: Options| {
        let error = Store::open_with(&place.path, options).unwrap_err();
        assert!(fs::read(&place.path).unwrap() == before, "{error}");
        error
    };
    assert!(matches!(refused(Options::default()), OpenError::Locked(_)));
    assert!(matches!(refused(with_key(8)), OpenError::WrongKey(_)));
    let store = place.open();
    let all = store.records(RecordFilter::default()).unwrap();
    assert_eq!(all[0].text, SAID);
    assert_eq!(store.keys().len(), 3);
    assert_sound(&store);
    let plain = Sealed::new();
    drop(Store::open(&plain.path).unwrap());
    let error = Store::open_with(&plain.path, with_key(7)).unwrap_err();
    assert!(matches!(error, OpenError::NotSealed(_)));
}

/// What is left of `id` in an older copy of the file is not opened by any key
/// that the store has now.
fn assert_shredded(place: &Sealed, id: u64, old: &[u8]) {
    place.put_row(id, old);
    let opened = Store::open_with(&place.path, with_key(7));
    assert!(matches!(opened.unwrap_err(), OpenError::Damaged { .. }));
}

#[test]
fn a_forgotten_person_cannot_be_read_from_an_older_copy() {
    let place = Sealed::new();
    fill(&place.open());
    let old = place.row(1);
    let store = place.open();
    store.forget(Selection::Speaker(SpeakerId(1))).unwrap();
    assert_sound(&store);
    drop(store);
    assert_shredded(&place, 1, &old);
}

#[test]
fn a_forgotten_turn_of_somebody_who_stays_cannot_either() {
    for id in [1, 3] {
        let place = Sealed::new();
        let session = fill(&place.open());
        place
            .open()
            .append(by(SpeakerId(1), session, "stays"))
            .unwrap();
        let old = place.row(id);
        let store = place.open();
        store.forget(Selection::Record(RecordId(id))).unwrap();
        let all = store.records(RecordFilter::default()).unwrap();
        assert_eq!(all.len(), 3);
        assert!(all.iter().any(|record| record.text == "stays"));
        assert_eq!(store.sessions().unwrap()[0].name, "breakfast in bed");
        assert_sound(&store);
        drop(store);
        assert_shredded(&place, id, &old);
    }
}

#[test]
fn a_turn_that_was_split_off_and_forgotten_cannot_either() {
    let place = Sealed::new();
    let session = fill(&place.open());
    let store = place.open();
    store.append(by(SpeakerId(1), session, "not mine")).unwrap();
    drop(store);
    let old = place.row(4);
    let store = place.open();
    let new = store.split(SpeakerId(1), &[RecordId(4)]).unwrap();
    assert_sound(&store);
    store.forget(Selection::Speaker(new.id)).unwrap();
    drop(store);
    assert_shredded(&place, 4, &old);
}

#[test]
fn a_row_in_another_place_is_not_opened() {
    let place = Sealed::new();
    fill(&place.open());
    let row = place.row(1);
    place.put_row(2, &row);
    let error = Store::open_with(&place.path, with_key(7)).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    let plain: Vec<u8> = [&[1], &row[1..]].concat();
    place.put_row(2, &plain);
    assert!(Store::open_with(&place.path, with_key(7)).is_err());
}

fn key_file(folder: &Path, content: &[u8]) -> Result<MasterKey, MasterKeyError> {
    let path = folder.join("key");
    fs::write(&path, content).unwrap();
    MasterKey::from_file(&path)
}

#[test]
fn a_key_is_32_bytes_or_64_digits_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let key = MasterKey::new([0xa5; 32]);
    let digits = "a5".repeat(32);
    let read = |content: &[u8]| key_file(folder.path(), content);
    assert_eq!(read(&[0xa5; 32]).unwrap(), key);
    assert_eq!(read(digits.as_bytes()).unwrap(), key);
    assert_eq!(
        read(format!("{}\n", digits.to_uppercase()).as_bytes()).unwrap(),
        key
    );
    for wrong in [&b""[..], b"a5a5", &[0xa5; 31], "g5".repeat(32).as_bytes()] {
        assert!(matches!(read(wrong), Err(MasterKeyError::Form(_))));
    }
    let missing = MasterKey::from_file(&folder.path().join("none"));
    assert!(matches!(missing, Err(MasterKeyError::File { .. })));
    assert_eq!(format!("{key:?}"), "MasterKey");
    let (a, b) = (
        MasterKey::generate().unwrap(),
        MasterKey::generate().unwrap(),
    );
    assert!(a != b);
}

const KEY_VARIABLE: &str = "EARWITNESS_TEST_KEY";

/// Runs itself again in a process that has the variable.
#[test]
fn a_key_comes_from_the_environment() {
    if std::env::var_os(KEY_VARIABLE).is_some() {
        let key = MasterKey::from_env(KEY_VARIABLE).unwrap();
        assert_eq!(key, MasterKey::new([0xa5; 32]));
        return;
    }
    let missing = MasterKey::from_env(KEY_VARIABLE);
    assert!(matches!(missing, Err(MasterKeyError::Variable(_))));
    let no_key = MasterKey::from_env("PATH");
    assert!(matches!(no_key, Err(MasterKeyError::Form(_))));
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_key_comes_from_the_environment"])
        .env(KEY_VARIABLE, "a5".repeat(32))
        .status();
    assert!(status.unwrap().success());
}

/// In a container the kernel may refuse to keep keys; then the error says so.
#[cfg(target_os = "linux")]
#[test]
fn a_key_comes_from_the_kernels_keyring() {
    use linux_keyutils::{KeyRing, KeyRingIdentifier};
    let name = format!("earwitness-test-{}", std::process::id());
    let refused = MasterKey::from_keyring(&name).unwrap_err();
    assert!(matches!(refused, MasterKeyError::Keyring { .. }));
    assert!(refused.to_string().contains(&name), "{refused}");
    let ring = KeyRing::from_special_id(KeyRingIdentifier::Session, true);
    let Ok(kept) = ring.and_then(|ring| ring.add_key(&name, &"a5".repeat(32))) else {
        eprintln!("this kernel keeps no keys");
        return;
    };
    let key = MasterKey::from_keyring(&name).unwrap();
    assert_eq!(key, MasterKey::new([0xa5; 32]));
    kept.update(&"short").unwrap();
    let no_key = MasterKey::from_keyring(&name).unwrap_err();
    assert!(matches!(no_key, MasterKeyError::Form(_)), "{no_key}");
    kept.invalidate().unwrap();
}
