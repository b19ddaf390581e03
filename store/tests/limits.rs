//! Limits, and what makes room when they are reached.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/disk.rs"]
mod disk;

use common::{MemoryMedium, assert_sound, by, by_new, turn};
use disk::Disk;
use earwitness_api::types::{RecordFilter, RecordId, SessionId, SpeakerId};
use earwitness_store::{
    AppendError, CACHE_BYTES, EnrolError, Enrolment, Limits, NewRecord, Options,
    RECORD_OVERHEAD_BYTES, SplitError, Store,
};
use std::fs;
use std::io::{self, Write};

fn limited(limits: Limits) -> (MemoryMedium, Store, SessionId) {
    let medium = MemoryMedium::default();
    let options = Options {
        limits,
        ..Options::default()
    };
    let store = Store::open_on_with(medium.clone(), options).unwrap();
    let session = store.begin_session("first", 0).unwrap().id;
    (medium, store, session)
}

fn ids(store: &Store) -> Vec<u64> {
    let records = store.records(RecordFilter::default()).unwrap();
    let ids: Vec<_> = records.iter().map(|record| record.id.0).collect();
    assert_eq!(store.keys().ids().map(|id| id.0).collect::<Vec<_>>(), ids);
    ids
}

#[test]
fn the_oldest_records_make_room_for_new_ones() {
    let limits = Limits {
        records: 100,
        ..Limits::default()
    };
    let (medium, store, session) = limited(limits);
    for n in 1..=1000 {
        store.append(turn(session, &format!("turn {n}"))).unwrap();
        assert!(store.keys().len() <= 100);
    }
    let kept = ids(&store);
    assert!(kept.len() >= 98, "{}", kept.len());
    let newest: Vec<u64> = (1001 - kept.len() as u64..=1000).collect();
    assert_eq!(kept, newest);
    assert_eq!(store.stats().unwrap().evicted, 1000 - kept.len() as u64);
    assert_sound(&store);
    // The limit of the next opening holds for what is there.
    drop(store);
    let limits = Limits {
        records: 10,
        ..limits
    };
    let store = Store::open_on_with(
        medium,
        Options {
            limits,
            ..Options::default()
        },
    )
    .unwrap();
    store.append(turn(session, "one more")).unwrap();
    assert_eq!(ids(&store), (992..=1001).collect::<Vec<_>>());
    assert_sound(&store);
}

#[test]
fn what_was_retrieved_of_late_stays() {
    let limits = Limits {
        records: 64,
        ..Limits::default()
    };
    let (_, store, session) = limited(limits);
    for n in 1..=300 {
        store.append(turn(session, &format!("turn {n}"))).unwrap();
        for wanted in [3, 7] {
            store.record(RecordId(wanted)).unwrap();
        }
    }
    let kept = ids(&store);
    assert_eq!(kept[..2], [3, 7]);
    assert_eq!(kept[kept.len() - 1], 300);
    assert!(kept[2] > 200);
}

/// Retrieving everything keeps no record from making room.
#[test]
fn records_make_room_even_if_all_are_retrieved() {
    let limits = Limits {
        records: 20,
        ..Limits::default()
    };
    let (_, store, session) = limited(limits);
    for n in 1..=100 {
        store.append(turn(session, "x")).unwrap();
        for id in ids(&store) {
            store.record(RecordId(id)).unwrap();
        }
        assert!(ids(&store).len() <= 20 && ids(&store).contains(&n));
    }
}

#[test]
fn people_of_whom_nothing_is_left_go_with_their_last_record() {
    let limits = Limits {
        records: 10,
        ..Limits::default()
    };
    let (_, store, session) = limited(limits);
    let passing = store.append(by_new(session, "a")).unwrap().speaker.speaker;
    let named = store.append(by_new(session, "bb")).unwrap().speaker.speaker;
    store.name_speaker(named.unwrap(), "Ada").unwrap();
    for _ in 0..20 {
        store.append(turn(session, "x")).unwrap();
    }
    let left: Vec<_> = store
        .speakers()
        .unwrap()
        .iter()
        .map(|s| Some(s.id))
        .collect();
    assert_eq!(left, [named]);
    assert!(passing.is_some());
    assert_sound(&store);
}

#[test]
fn a_group_is_as_large_as_nothing_of_it_is_evicted() {
    let limits = Limits {
        records: 40,
        ..Limits::default()
    };
    let (_, store, session) = limited(limits);
    let group: Vec<NewRecord> = (0..10).map(|_| turn(session, "x")).collect();
    for round in 0..10 {
        let written = store.append_all(&group).unwrap();
        let newest: Vec<u64> = written.iter().map(|record| record.id.0).collect();
        assert_eq!(
            newest,
            (round * 10 + 1..=round * 10 + 10).collect::<Vec<_>>()
        );
        assert!(ids(&store).ends_with(&newest) && ids(&store).len() <= 40);
    }
    let error = store
        .append_all(&[&group[..], &group[..1]].concat())
        .unwrap_err();
    assert!(matches!(error, AppendError::TooLong { most: 10, .. }));
    let bad = NewRecord {
        session: SessionId(9),
        ..turn(session, "x")
    };
    let before = ids(&store);
    let error = store.append_all(&[turn(session, "x"), bad]).unwrap_err();
    assert!(matches!(error, AppendError::NoSuchSession(_)));
    assert_eq!(ids(&store), before);
    assert_sound(&store);
}

#[test]
fn beyond_the_last_voice_nobody_is_known() {
    let limits = Limits {
        speakers: 2,
        ..Limits::default()
    };
    let (_, store, session) = limited(limits);
    store.append(by_new(session, "a")).unwrap();
    store.append(by_new(session, "bb")).unwrap();
    let third = store.append(by_new(session, "ccc")).unwrap();
    assert_eq!(third.speaker.speaker, None);
    assert_eq!(store.stats().unwrap().refused_voices, 1);
    let enrolment = Enrolment {
        name: "Ada".into(),
        embeddings: vec![vec![1.0; 4]],
        centroid: vec![1.0; 4],
        speech_ms: 1,
    };
    assert!(matches!(store.enrol(&enrolment), Err(EnrolError::Full)));
    let known = SpeakerId(1);
    store.append(by(known, session, "dddd")).unwrap();
    let split = store.split(known, &[RecordId(4)]);
    assert!(matches!(split, Err(SplitError::Full)));
    assert_sound(&store);
}

#[test]
fn the_oldest_session_makes_room_for_a_new_one() {
    let limits = Limits {
        sessions: 3,
        ..Limits::default()
    };
    let (_, store, session) = limited(limits);
    store.append(turn(session, "old")).unwrap();
    for n in 0..3 {
        let session = store.begin_session(&format!("later {n}"), 0).unwrap().id;
        store.append(turn(session, "new")).unwrap();
    }
    let names: Vec<_> = store
        .sessions()
        .unwrap()
        .into_iter()
        .map(|s| s.name)
        .collect();
    assert_eq!(names, ["later 0", "later 1", "later 2"]);
    assert_eq!(ids(&store), [2, 3, 4]);
    assert_eq!(store.stats().unwrap().evicted, 1);
    assert_sound(&store);
}

/// However many records come, the file stays below its limit, and shrinks when
/// the limit does.
#[test]
fn the_file_is_bounded_and_shrinks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let long = "long ".repeat(600);
    let open = |disk_bytes| {
        let limits = Limits {
            disk_bytes,
            ..Limits::default()
        };
        Store::open_with(
            &path,
            Options {
                limits,
                ..Options::default()
            },
        )
        .unwrap()
    };
    let store = open(2 << 20);
    let session = store.begin_session("first", 0).unwrap().id;
    for n in 0..80 {
        let group: Vec<_> = (0..16).map(|_| turn(session, &long)).collect();
        store.append_all(&group).unwrap();
        // A transaction may be written before the next one notices.
        let bytes = store.stats().unwrap().bytes;
        assert!(bytes <= (2 << 20) + (128 << 10), "{n}: {bytes}");
    }
    assert!(store.stats().unwrap().evicted > 500);
    assert!(ids(&store).len() > 300);
    drop(store);
    let store = open(1 << 20);
    for _ in 0..40 {
        store.append(turn(session, "short")).unwrap();
    }
    assert_sound(&store);
    drop(store);
    assert!(fs::metadata(&path).unwrap().len() <= 2 << 20);
    assert!(open(1 << 20).stats().unwrap().bytes <= 1 << 20);
}

#[test]
fn memory_bounds_the_records_as_well() {
    let values = common::key(0).layout().unwrap().values();
    let each = (values + RECORD_OVERHEAD_BYTES) as u64;
    let limits = Limits {
        memory_bytes: CACHE_BYTES as u64 + 300 * each,
        ..Limits::default()
    };
    let (_, store, session) = limited(limits);
    for _ in 0..60 {
        let group: Vec<_> = (0..10).map(|_| turn(session, "x")).collect();
        store.append_all(&group).unwrap();
    }
    // One page of 128 keys is begun before it is full.
    assert!(
        (150..=172).contains(&store.keys().len()),
        "{}",
        store.keys().len()
    );
    assert_sound(&store);
}

/// A store on a disk of its own, so large that the file is at its limit.
fn at_its_limit(disk: &Disk) -> (Store, SessionId) {
    let store = Store::open_on_with(disk.clone(), with_disk(2 << 20)).unwrap();
    let session = store.begin_session("first", 0).unwrap().id;
    while store.stats().unwrap().evicted == 0 {
        store.append(turn(session, &long())).unwrap();
    }
    (store, session)
}

fn with_disk(disk_bytes: u64) -> Options {
    Options {
        limits: Limits {
            disk_bytes,
            ..Limits::default()
        },
        ..Options::default()
    }
}

fn long() -> String {
    "long ".repeat(600)
}

/// The file is made smaller by a part at a time: no append moves more of it.
#[test]
fn an_append_moves_a_bounded_part_of_the_file() {
    let disk = Disk::new(10_000);
    let (store, session) = at_its_limit(&disk);
    let (mut most, mut times, mut evicted) = (0, 0, 0);
    for _ in 0..400 {
        let before = disk.written();
        store.append(turn(session, &long())).unwrap();
        most = most.max(disk.written() - before);
        let stats = store.stats().unwrap();
        times += u32::from(stats.evicted > evicted);
        evicted = stats.evicted;
        assert!(stats.bytes <= (2 << 20) + (128 << 10), "{stats:?}");
    }
    assert!(times > 3, "{times}");
    assert!(most < (2 << 20) / 3, "{most}");
    assert_sound(&store);
}

/// Appends while somebody exports the memory, slowly.
struct Appending<'s> {
    store: &'s Store,
    session: SessionId,
    left: u32,
}

impl Write for Appending<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left > 0 {
            self.left -= 1;
            let new = turn(self.session, "meanwhile");
            self.store.append(new).map_err(io::Error::other)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Nobody waits for a reader, even if the file has to be made smaller; nor does
/// more have to go than is given back when the reader is done.
#[test]
fn an_append_waits_for_no_reader() {
    let disk = Disk::new(10_000);
    let (store, session) = at_its_limit(&disk);
    let size = store.stats().unwrap().bytes;
    drop(store);
    let store = Store::open_on_with(disk, with_disk(size - 1)).unwrap();
    let before = store.stats().unwrap();
    let mut export = Appending {
        store: &store,
        session,
        left: 2,
    };
    store.export(&mut export, false).unwrap();
    assert_eq!(export.left, 0);
    let during = store.stats().unwrap();
    assert!(during.bytes > before.bytes, "{during:?}");
    store.append(turn(session, "afterwards")).unwrap();
    let after = store.stats().unwrap();
    assert!(after.bytes < size, "{after:?}");
    assert_eq!(after.evicted, during.evicted);
    assert_eq!(
        after.evicted - before.evicted,
        (before.records + 1) / 16 + 1
    );
    assert_sound(&store);
}
