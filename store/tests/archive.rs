//! Export and import.
#![allow(clippy::unwrap_used)]

mod common;

use common::{MemoryMedium, assert_sound, by, by_new, contains, store, to, turn};
use earwitness_api::types::{Consent, MergeReason, RecordFilter, Selection, SpeakerId};
use earwitness_store::{
    Enrolment, ImportError, Limits, MAX_LINE_BYTES, MasterKey, NewMerge, NewRecord, Options, Store,
    VoiceprintModel,
};

/// A store with something of everything.
fn full() -> Store {
    let (_, store, session) = store();
    let model = VoiceprintModel {
        name: "ecapa-tdnn".into(),
        dim: 4,
    };
    store.use_voiceprint_model(&model).unwrap();
    for text in ["a", "bb", "ccc", "gone"] {
        store.append(by_new(session, text)).unwrap();
    }
    let id = SpeakerId;
    store.name_speaker(id(1), "Ada \"the countess\"").unwrap();
    store.set_consent(id(1), Consent::Given).unwrap();
    let merge = NewMerge {
        into: id(1),
        from: id(2),
        why: MergeReason::Reconciled {
            similarity: 0.75,
            runner_up: None,
            cohesion: 0.5,
        },
        despite_names: false,
    };
    store.merge(merge).unwrap();
    store
        .merge(NewMerge {
            from: id(3),
            ..merge
        })
        .unwrap();
    store.unmerge(id(3)).unwrap();
    store.forget(Selection::Speaker(id(4))).unwrap();
    let enrolment = Enrolment {
        name: "Grace".into(),
        embeddings: vec![vec![0.5; 4]],
        centroid: vec![0.5; 4],
        speech_ms: 900,
    };
    store.enrol(&enrolment).unwrap();
    let session = store.begin_session("second", 77).unwrap().id;
    let shown = earwitness_api::types::Attachment {
        kind: "image".into(),
        caption: "a kettle\nwith two lines".into(),
    };
    let new = NewRecord {
        addressees: vec![to(id(3))],
        attachments: vec![shown],
        ..by(id(2), session, "shown")
    };
    store.append(new).unwrap();
    store.append(turn(session, "of nobody")).unwrap();
    store
}

fn export(store: &Store, voiceprints: bool) -> Vec<u8> {
    let mut archive = Vec::new();
    store.export(&mut archive, voiceprints).unwrap();
    archive
}

fn import(archive: &[u8]) -> Result<Store, ImportError> {
    let store = Store::open_on(MemoryMedium::default()).unwrap();
    let result = store.import(&mut &archive[..]);
    assert_sound(&store);
    if result.is_err() {
        assert_eq!(store.stats().unwrap().sessions, 0);
    }
    result.map(|()| store)
}

/// What people see of a store.
fn assert_same(a: &Store, b: &Store) {
    let all = RecordFilter::default();
    assert_eq!(a.records(all).unwrap(), b.records(all).unwrap());
    assert_eq!(a.sessions().unwrap(), b.sessions().unwrap());
    assert_eq!(a.speakers().unwrap(), b.speakers().unwrap());
    assert_eq!(a.merges().unwrap(), b.merges().unwrap());
    assert_eq!(a.apart().unwrap(), b.apart().unwrap());
    assert_eq!(a.voiceprint_model().unwrap(), b.voiceprint_model().unwrap());
}

#[test]
fn an_archive_with_voiceprints_restores_everything() {
    let store = full();
    let archive = export(&store, true);
    let copy = import(&archive).unwrap();
    assert_same(&store, &copy);
    assert_eq!(store.voices().unwrap(), copy.voices().unwrap());
    assert_eq!(store.voiceprints().unwrap(), copy.voiceprints().unwrap());
    assert_eq!(*store.keys(), *copy.keys());
    assert!(export(&copy, true) == archive);
    // Ids go on where they had been.
    let session = store.sessions().unwrap()[0].id;
    let next = |store: &Store| store.append(by_new(session, "next")).unwrap();
    assert_eq!(next(&store), next(&copy));
}

#[test]
fn an_archive_without_voiceprints_holds_none() {
    let store = full();
    let archive = export(&store, false);
    for word in ["Grace", "countess", "shown", "of nobody"] {
        assert!(contains(&archive, word.as_bytes()), "{word}");
    }
    let text = String::from_utf8(archive.clone()).unwrap();
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line.get("enrolment").is_none());
        let centroid = line.pointer("/speaker/centroid");
        assert!(centroid.is_none_or(|c| c.as_array().unwrap().is_empty()));
        let block = line.pointer("/turn/speaker");
        assert!(block.is_none_or(serde_json::Value::is_null));
    }
    let copy = import(&archive).unwrap();
    assert_same(&store, &copy);
    assert_eq!(copy.voiceprints().unwrap(), []);
    let silent = |centroid: &Vec<f32>| centroid.iter().all(|value| *value == 0.0);
    assert!(
        copy.voices()
            .unwrap()
            .iter()
            .all(|voice| silent(&voice.centroid))
    );
    assert_eq!(copy.keys().len(), store.keys().len());
}

#[test]
fn an_archive_moves_a_memory_into_a_sealed_one() {
    let store = full();
    let medium = MemoryMedium::default();
    let options = Options {
        key: Some(MasterKey::new([1; 32])),
        ..Options::default()
    };
    let sealed = Store::open_on_with(medium.clone(), options).unwrap();
    sealed.import(&mut &export(&store, true)[..]).unwrap();
    assert_same(&store, &sealed);
    assert_sound(&sealed);
    assert!(!contains(&medium.content(), b"of nobody"));
    assert!(export(&sealed, true) == export(&store, true));
    let again = sealed.import(&mut &export(&store, true)[..]);
    assert!(matches!(again, Err(ImportError::NotEmpty)));
}

#[test]
fn archives_that_are_none_or_wrong_are_refused_as_a_whole() {
    let archive = String::from_utf8(export(&full(), true)).unwrap();
    for other in ["", "Dear diary\n", "{}", "[1]\n"] {
        let error = import(other.as_bytes()).unwrap_err();
        assert!(matches!(error, ImportError::NotAnArchive), "{other}");
    }
    let newer = archive.replacen("\"archive\":1", "\"archive\":2", 1);
    let error = import(newer.as_bytes()).unwrap_err();
    assert!(matches!(error, ImportError::NotAnArchive));
    let lines: Vec<&str> = archive.lines().collect();
    // Every line is missed or half there.
    for cut in 1..lines.len() {
        let half = &lines[cut][..lines[cut].len() / 2];
        let broken = [&lines[..cut], &[half]].concat().join("\n");
        let error = import(broken.as_bytes()).unwrap_err();
        assert!(matches!(error, ImportError::Line { line, .. } if line == cut + 1));
        let missed = [&lines[..cut], &lines[cut + 1..]].concat().join("\n");
        assert!(import(missed.as_bytes()).is_err());
    }
    let bad_name = archive.replacen("\"name\":\"first\"", "\"name\":\"\\u001b[2J\"", 1);
    let error = import(bad_name.as_bytes()).unwrap_err();
    assert!(matches!(error, ImportError::Line { .. }));
    let endless = "x".repeat(MAX_LINE_BYTES as usize + 1);
    let error = import(format!("{}\n{endless}", lines[0]).as_bytes()).unwrap_err();
    assert!(matches!(error, ImportError::Line { line: 2, .. }));
    let nobody = archive.replacen("\"session\":2,\"start", "\"session\":9,\"start", 1);
    let error = import(nobody.as_bytes()).unwrap_err();
    assert!(matches!(error, ImportError::Contradiction(_)), "{error}");
}

#[test]
fn an_archive_that_is_too_large_is_refused() {
    let archive = export(&full(), true);
    let limits = Limits {
        records: 3,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let small = Store::open_on_with(MemoryMedium::default(), options).unwrap();
    let error = small.import(&mut &archive[..]).unwrap_err();
    assert!(matches!(error, ImportError::TooMuch("records")));
    assert_eq!(small.stats().unwrap().records, 0);
}
