//! Forgetting: what goes, what stays, and that the bytes are gone.
#![allow(clippy::unwrap_used)]

mod common;

use common::{assert_sound, by, by_new, contains, store, to, turn};
use earwitness_api::types::{Forgotten, RecordFilter, RecordId, Selection, SpeakerId};
use earwitness_store::{Block, ForgetError, Key, MasterKey, NewRecord, Options, Store};
use std::fs;

const SECRET: &str = "the key lies under the third flowerpot";

fn forgotten(records: u64, voiceprints: u64) -> Forgotten {
    Forgotten {
        records,
        voiceprints,
        reclaimed: true,
    }
}

#[test]
fn a_forgotten_text_is_not_in_the_file_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let store = Store::open(&path).unwrap();
    let session = store.begin_session("first", 0).unwrap().id;
    for i in 0..50 {
        store.append(turn(session, &format!("before {i}"))).unwrap();
    }
    let secret = store.append(turn(session, SECRET)).unwrap();
    for i in 0..50 {
        store.append(turn(session, &format!("after {i}"))).unwrap();
    }
    let before = fs::read(&path).unwrap();
    assert!(contains(&before, SECRET.as_bytes()));
    let result = store.forget(Selection::Record(secret.id)).unwrap();
    assert_eq!(result, forgotten(1, 0));
    let after = fs::read(&path).unwrap();
    assert!(!contains(&after, SECRET.as_bytes()));
    assert!(contains(&after, b"before 49") && contains(&after, b"after 0"));
    assert!(after.len() <= before.len());
    assert_eq!(store.keys().len(), 100);
    assert_sound(&store);
}

/// Neither what they said, nor their name, nor the key of it, plain or sealed.
#[test]
fn no_byte_of_a_forgotten_person_is_in_the_file() {
    let values: Vec<i8> = (1..=14).map(|i: i8| i.wrapping_mul(53)).collect();
    let block = |values: &[i8]| Block {
        scale: 0.25,
        values: values.to_vec(),
    };
    let theirs = Key {
        semantic: block(&values[..8]),
        speaker: block(&values[8..12]),
        temporal: block(&values[12..]),
    };
    let bytes: Vec<u8> = values.iter().map(|value| value.to_le_bytes()[0]).collect();
    for key in [None, Some(MasterKey::new([7; 32]))] {
        let is_plain = key.is_none();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory");
        let options = Options {
            key,
            ..Options::default()
        };
        let store = Store::open_with(&path, options).unwrap();
        let session = store.begin_session("first", 0).unwrap().id;
        let new = NewRecord {
            key: theirs.clone(),
            ..by_new(session, SECRET)
        };
        let speaker = store.append(new).unwrap().speaker.speaker.unwrap();
        store.name_speaker(speaker, "Ada Lovelace").unwrap();
        store.append(by_new(session, "somebody else")).unwrap();
        let found = |what: &[u8]| contains(&fs::read(&path).unwrap(), what);
        let all = [SECRET.as_bytes(), b"Ada Lovelace", &bytes];
        assert!(all.iter().all(|what| found(what) == is_plain));
        let result = store.forget(Selection::Speaker(speaker)).unwrap();
        assert_eq!(result, forgotten(1, 1));
        assert!(!all.iter().any(|what| found(what)));
        assert_eq!(found(b"somebody else"), is_plain);
        assert_sound(&store);
    }
}

#[test]
fn a_forgotten_speaker_leaves_no_trace() {
    let (_, store, session) = store();
    let first = store.append(by_new(session, "mine")).unwrap();
    let speaker = first.speaker.speaker.unwrap();
    store.name_speaker(speaker, "Ada").unwrap();
    store.append(by(speaker, session, "mine too")).unwrap();
    let others = store
        .append(NewRecord {
            addressees: vec![to(speaker), to(speaker)],
            ..by_new(session, "to Ada")
        })
        .unwrap();
    let result = store.forget(Selection::Speaker(speaker)).unwrap();
    assert_eq!(result, forgotten(2, 1));
    assert_eq!(store.record(first.id).unwrap(), None);
    let voiceprints = store.voiceprints().unwrap();
    assert!(voiceprints.iter().all(|v| v.speaker != speaker));
    assert!(store.speakers().unwrap().iter().all(|s| s.id != speaker));
    assert!(store.voices().unwrap().iter().all(|v| v.speaker != speaker));
    let kept = store.record(others.id).unwrap().unwrap();
    let known = |to: &earwitness_api::types::Attribution| to.speaker.is_some() || to.score != 0.0;
    assert_eq!(kept.addressees.len(), 2);
    assert!(!kept.addressees.iter().any(known));
    assert_eq!(store.keys().ids().collect::<Vec<_>>(), [others.id]);
    assert_sound(&store);
}

#[test]
fn a_voice_without_a_name_goes_with_its_last_record_and_a_named_one_stays() {
    let (_, store, session) = store();
    let unnamed = store.append(by_new(session, "nobody")).unwrap();
    let named = store.append(by_new(session, "somebody")).unwrap();
    let name = named.speaker.speaker.unwrap();
    store.name_speaker(name, "Ada").unwrap();
    let forget = |id| store.forget(Selection::Record(id)).unwrap();
    assert_eq!(forget(unnamed.id), forgotten(1, 1));
    assert_eq!(forget(named.id), forgotten(1, 0));
    let speakers = store.speakers().unwrap();
    assert_eq!((speakers[0].id, speakers[0].records), (name, 0));
    assert_eq!(store.voices().unwrap()[0].turns, 1);
    assert_eq!(store.voiceprints().unwrap(), []);
    assert_sound(&store);
}

#[test]
fn what_is_left_of_a_speaker_is_counted_anew() {
    let (_, store, session) = store();
    let at = |unix_ms, record| NewRecord { unix_ms, ..record };
    let first = store.append(at(10, by_new(session, "one"))).unwrap();
    let speaker = first.speaker.speaker.unwrap();
    for unix_ms in [20, 30, 40] {
        store
            .append(at(unix_ms, by(speaker, session, "more")))
            .unwrap();
    }
    let range = |from, to| Selection::TimeRange { from, to };
    assert_eq!(store.forget(range(10, 20)).unwrap(), forgotten(1, 0));
    assert_eq!(store.forget(range(40, 41)).unwrap(), forgotten(1, 0));
    let left = &store.speakers().unwrap()[0];
    assert_eq!(
        (
            left.records,
            left.first_heard_unix_ms,
            left.last_heard_unix_ms
        ),
        (2, 20, 30)
    );
    assert_sound(&store);
}

#[test]
fn a_session_goes_with_its_records_and_frees_its_name() {
    let (_, store, first) = store();
    let second = store.begin_session("second", 5).unwrap().id;
    store.append(turn(first, "gone")).unwrap();
    let kept = store.append(turn(second, "kept")).unwrap();
    let result = store.forget(Selection::Session(first)).unwrap();
    assert_eq!(result, forgotten(1, 0));
    assert_eq!(store.session_by_name("first").unwrap(), None);
    let all = store.records(RecordFilter::default()).unwrap();
    assert_eq!(all, [kept]);
    assert!(store.begin_session("first", 6).unwrap().id > second);
}

#[test]
fn ids_are_not_given_twice() {
    let (medium, store, session) = store();
    let last = store.append(by_new(session, "last")).unwrap();
    store.forget(Selection::Session(session)).unwrap();
    drop(store);
    let store = Store::open_on(medium).unwrap();
    let session_again = store.begin_session("first", 0).unwrap().id;
    let next = store.append(by_new(session_again, "next")).unwrap();
    assert!(next.id > last.id);
    assert!(next.speaker.speaker > last.speaker.speaker);
    assert!(session_again > session);
}

#[test]
fn forgetting_nothing_says_so() {
    let (_, store, session) = store();
    store.append(turn(session, "stays")).unwrap();
    let nothing = Selection::TimeRange { from: 5, to: 5 };
    assert_eq!(store.forget(nothing).unwrap(), forgotten(0, 0));
    let missing = store.forget(Selection::Record(RecordId(9)));
    assert!(matches!(missing, Err(ForgetError::NoSuchRecord(_))));
    let missing = store.forget(Selection::Speaker(SpeakerId(9)));
    assert!(matches!(missing, Err(ForgetError::NoSuchSpeaker(_))));
    assert_eq!(store.keys().len(), 1);
}

/// However much room there is, a text is either still remembered or forgotten,
/// and it is gone from the bytes as soon as there is room and the store is opened.
#[test]
fn without_room_the_bytes_go_when_there_is_room_again() {
    let mut late = 0;
    for space in (0..160_000).step_by(4000) {
        let (medium, store, session) = store();
        let secret = store.append(turn(session, SECRET)).unwrap().id;
        medium.limit(Some(space));
        let result = store.forget(Selection::Record(secret));
        let text = store.record(secret).unwrap();
        assert_eq!(text.is_none(), result.is_ok(), "space {space}");
        drop(store);
        medium.limit(None);
        let store = Store::open_on(medium.clone()).unwrap();
        assert_sound(&store);
        let remembered = contains(&medium.content(), SECRET.as_bytes());
        match result {
            Ok(result) => {
                late += u32::from(!result.reclaimed);
                assert!(!remembered, "space {space}");
            }
            Err(_) => assert!(remembered, "space {space}"),
        }
    }
    assert!(late > 0, "no run was short of room for the rewrite alone");
}
