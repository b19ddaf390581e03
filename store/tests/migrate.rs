//! Files of every released version: `golden/vN.redb` is what version N wrote, and
//! is read by every later one.
//!
//! When a test here fails, a file of somebody in the field can no longer be
//! opened: mend the code, not the golden file. A new version adds its own file.
#![allow(clippy::unwrap_used)]

mod common;

use common::{MemoryMedium, assert_sound};
use earwitness_api::types::{
    Attachment, Consent, MergeReason, Record, RecordFilter, RecordId, Selection, SpeakerId,
};
use earwitness_store::{
    Block, Key, Learned, MasterKey, NewMerge, NewRecord, Options, Query, Speaking, Store,
    VoiceprintModel, Weights,
};
use std::fs;
use std::path::Path;

const V1: &[u8] = include_bytes!("golden/v1.redb");
const V2: &[u8] = include_bytes!("golden/v2.redb");
const V2_SEALED: &[u8] = include_bytes!("golden/v2-sealed.redb");
const ARCHIVE_1: &[u8] = include_bytes!("golden/archive-1.jsonl");

/// What the golden files hold: two sessions, Ada and another, four turns, and an
/// id that was given to a forgotten fifth.
fn assert_golden(store: &Store) {
    assert_sound(store);
    let sessions = store.sessions().unwrap();
    let names: Vec<_> = sessions.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["breakfast", "dinner"]);
    let records = store.records(RecordFilter::default()).unwrap();
    let said: Vec<_> = records.iter().map(line).collect();
    assert_eq!(
        said,
        [
            (Some(1), None, "The kettle is on."),
            (Some(2), Some(1), "Thank you."),
            (Some(1), Some(2), "I leave on Monday."),
            (Some(2), None, "Short."),
        ]
    );
    assert_eq!(records[0].attachments[0].caption, "a red kettle");
    assert_eq!(
        (records[2].start_ms, records[2].speaker.score),
        (3000, 0.75)
    );
    let speakers = store.speakers().unwrap();
    let names: Vec<_> = speakers.iter().map(|s| s.name.as_deref()).collect();
    assert_eq!(names, [Some("Ada"), None]);
    let voices = store.voices().unwrap();
    assert_eq!(voices[0].centroid, [1.5, 1.0, 0.5, 0.25]);
    assert_eq!((voices[0].speech_ms, voices[0].turns), (1800, 2));
    let prints = store.voiceprints().unwrap();
    let prints: Vec<_> = prints
        .iter()
        .map(|v| (v.speaker.0, v.turn.unwrap().0.0))
        .collect();
    assert_eq!(prints, [(1, 1), (1, 3), (2, 2)]);
    assert_key(store, 3);
}

fn line(record: &Record) -> (Option<u32>, Option<u32>, &str) {
    let to = record.addressees.first().and_then(|to| to.speaker);
    let by = record.speaker.speaker;
    (by.map(|id| id.0), to.map(|id| id.0), &record.text)
}

/// The key of the golden files' turn `n`.
fn golden_key(n: i16) -> Key {
    let block = |dim: i16, seed: i16| Block {
        scale: 1.0 / 127.0,
        values: (0..dim)
            .map(|i| i8::try_from((seed * 31 + i * 17) % 255 - 127).unwrap())
            .collect(),
    };
    Key {
        semantic: block(8, n),
        speaker: block(4, n + 50),
        temporal: block(2, n + 90),
    }
}

/// Against itself, the key of turn `n` scores the square of its own length.
fn assert_key(store: &Store, n: i16) {
    let key = golden_key(n);
    let blocks = [&key.semantic, &key.speaker, &key.temporal];
    let values = blocks.iter().flat_map(|block| &block.values);
    let square: f32 = values.map(|v| f32::from(*v) * f32::from(*v)).sum();
    let weights = Weights {
        who: 1.0,
        what: 1.0,
        when: 1.0,
    };
    let query = Query::new(key, weights).unwrap();
    let scored = store.keys().score_top_k(&query, &[], 9).unwrap();
    let own = scored.iter().find(|scored| scored.id.0 == n as u64);
    let total = own.unwrap().scores.total();
    assert!((total - square / 127.0 / 127.0).abs() < 1e-3, "{total}");
}

#[test]
fn a_file_of_version_1_is_brought_up_and_kept_beside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let backup = folder.path().join("memory.v1");
    fs::write(&path, V1).unwrap();
    assert_golden(&Store::open(&path).unwrap());
    assert!(fs::read(&backup).unwrap() == V1);
    let store = Store::open(&path).unwrap();
    assert_golden(&store);
    let session = store.begin_session("supper", 0).unwrap().id;
    let mut next = common::by(SpeakerId(1), session, "next");
    next.key = Key {
        semantic: Block::unknown(8),
        speaker: Block::unknown(4),
        temporal: Block::unknown(2),
    };
    assert_eq!(store.append(next).unwrap().id.0, 6);
    // What is forgotten is not kept in a backup either.
    store.forget(Selection::Speaker(SpeakerId(1))).unwrap();
    assert!(!backup.exists());
}

fn key() -> Option<MasterKey> {
    Some(MasterKey::new([7; 32]))
}

/// A store of this version with the content of the golden files.
fn write_golden(path: &Path, key: Option<MasterKey>) {
    let options = Options {
        key,
        ..Options::default()
    };
    let store = Store::open_with(path, options).unwrap();
    let model = VoiceprintModel {
        name: "golden".into(),
        dim: 4,
    };
    store.use_voiceprint_model(&model).unwrap();
    let first = store.begin_session("breakfast", 1_772_000_000_000);
    let first = first.unwrap().id;
    let second = store.begin_session("dinner", 1_772_040_000_000);
    let second = second.unwrap().id;
    let learned = |x| Learned {
        centroid: vec![x, 1.0, 0.5, 0.25],
        speech_ms: 900,
    };
    let (ada, other) = (SpeakerId(1), SpeakerId(2));
    let new = |score, x| Speaking::New {
        score,
        learned: learned(x),
    };
    let known = |id, score, learned| Speaking::Known { id, score, learned };
    let turns = [
        (first, new(0.0, 1.0), None, "The kettle is on."),
        (first, new(0.25, -1.0), Some(ada), "Thank you."),
        (
            first,
            known(ada, 0.75, Some(learned(1.5))),
            Some(other),
            "I leave on Monday.",
        ),
        (second, known(other, 0.5, None), None, "Short."),
        (
            second,
            Speaking::Unknown { score: 0.125 },
            None,
            "forgotten words",
        ),
    ];
    let mut last = RecordId(0);
    for (n, (session, speaker, to, text)) in (1..).zip(turns) {
        let kettle = Attachment {
            kind: "image".into(),
            caption: "a red kettle".into(),
        };
        let new = NewRecord {
            session,
            start_ms: n as u64 * 1000,
            end_ms: n as u64 * 1000 + 900,
            unix_ms: 1_772_000_000_000 + i64::from(n) * 1000,
            speaker,
            addressees: to.into_iter().map(common::to).collect(),
            text: text.into(),
            attachments: (n == 1).then_some(kettle).into_iter().collect(),
            key: golden_key(n),
        };
        last = store.append(new).unwrap().id;
    }
    store.name_speaker(ada, "Ada").unwrap();
    store.set_consent(ada, Consent::Given).unwrap();
    let merge = NewMerge {
        into: ada,
        from: other,
        why: MergeReason::ByHand,
        despite_names: false,
    };
    store.merge(merge).unwrap();
    store.unmerge(other).unwrap();
    store.forget(Selection::Record(last)).unwrap();
}

/// What version 2 says besides.
fn assert_golden_v2(store: &Store) {
    assert_golden(store);
    assert_eq!(store.identities().unwrap()[0].consent, Consent::Given);
    assert_eq!(store.apart().unwrap(), [(SpeakerId(1), SpeakerId(2))]);
    assert_eq!(store.voiceprint_model().unwrap().unwrap().name, "golden");
    let session = store.begin_session("supper", 0).unwrap().id;
    let mut next = common::turn(session, "next");
    next.key = golden_key(9);
    assert_eq!(store.append(next).unwrap().id.0, 6);
    assert_sound(store);
}

#[test]
#[ignore = "writes the golden files of this version, before it is released"]
fn write_golden_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (name, key) in [("v2.redb", None), ("v2-sealed.redb", key())] {
        let path = folder.join(name);
        let _ = fs::remove_file(&path);
        write_golden(&path, key);
    }
    let store = Store::open(&folder.join("v2.redb")).unwrap();
    let mut archive = fs::File::create(folder.join("archive-1.jsonl")).unwrap();
    store.export(&mut archive, true).unwrap();
}

#[test]
fn files_of_version_2_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for (golden, key) in [(V2, None), (V2_SEALED, key())] {
        let path = folder.path().join("memory");
        fs::write(&path, golden).unwrap();
        let options = Options {
            key,
            ..Options::default()
        };
        assert_golden_v2(&Store::open_with(&path, options).unwrap());
    }
}

#[test]
fn archives_of_version_1_are_read() {
    let store = Store::open_on(MemoryMedium::default()).unwrap();
    store.import(&mut &ARCHIVE_1[..]).unwrap();
    assert_golden_v2(&store);
}

/// However soon the disk is full, there is the old store or the new one.
#[test]
fn a_migration_that_fails_leaves_the_old_file() {
    let mut failed = 0;
    for space in (0..400_000).step_by(4000) {
        let medium = MemoryMedium::default();
        medium.set_content(V1.to_vec());
        medium.limit(Some(space));
        if Store::open_on(medium.clone()).is_err() {
            failed += 1;
            medium.limit(None);
            assert_golden(&Store::open_on(medium).unwrap());
        }
    }
    assert!((1..100).contains(&failed), "{failed}");
}
