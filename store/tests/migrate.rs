//! Files of every released version: `golden/vN.redb` is what version N wrote, and
//! is read by every later one.
//!
//! When a test here fails, a file of somebody in the field can no longer be
//! opened: mend the code, not the golden file. A new version adds its own file.
#![allow(clippy::unwrap_used)]

mod common;

use common::{MemoryMedium, assert_sound};
use earwitness_api::types::{Record, RecordFilter, Selection, SpeakerId};
use earwitness_store::{Block, Key, Query, Store, Weights};
use std::fs;

const V1: &[u8] = include_bytes!("golden/v1.redb");

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

/// The key of turn `n` is that of the golden files: against itself it scores the
/// square of its own length.
fn assert_key(store: &Store, n: i16) {
    let block = |dim: i16, seed: i16| Block {
        scale: 1.0 / 127.0,
        values: (0..dim)
            .map(|i| i8::try_from((seed * 31 + i * 17) % 255 - 127).unwrap())
            .collect(),
    };
    let key = Key {
        semantic: block(8, n),
        speaker: block(4, n + 50),
        temporal: block(2, n + 90),
    };
    let blocks = [&key.semantic, &key.speaker, &key.temporal];
    let values = blocks.iter().flat_map(|block| &block.values);
    let square: f32 = values.map(|v| f32::from(*v) * f32::from(*v)).sum();
    let weights = Weights {
        who: 1.0,
        what: 1.0,
        when: 1.0,
    };
    let query = Query::new(key, weights).unwrap();
    let scored = store.keys().score_top_k(&query, 9).unwrap();
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
