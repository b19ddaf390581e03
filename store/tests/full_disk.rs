//! A disk that fills up at any point of any write, or does not answer for a while.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/disk.rs"]
mod disk;

use common::{assert_sound, by, by_new, contains, store, turn};
use disk::Disk;
use earwitness_api::types::{RecordFilter, Selection, SessionId, SpeakerId};
use earwitness_store::{AppendError, MasterKey, Options, StorageError, Store};

/// However much fits, a failed append says so, what was acknowledged stays and
/// can be read meanwhile, and writing works again once there is space.
#[test]
fn a_full_disk_loses_nothing_and_is_left_behind() {
    for space in (0..60_000).step_by(1500) {
        let (medium, store, session) = store();
        let kept = store.append(by_new(session, "before")).unwrap();
        medium.limit(Some(space));
        let mut acknowledged = vec![kept];
        let error = loop {
            match store.append(turn(session, "while it lasts")) {
                Ok(record) => acknowledged.push(record),
                Err(error) => break error,
            }
        };
        assert!(matches!(
            error,
            AppendError::Storage(StorageError::Failed(_))
        ));
        let all = store.records(RecordFilter::default()).unwrap();
        assert_eq!(all[..acknowledged.len()], acknowledged, "space {space}");
        assert_eq!(store.keys().len(), all.len());
        assert!(store.append(turn(session, "still full")).is_err());
        assert!(!store.stats().unwrap().writable);

        medium.limit(None);
        let after = store.append(turn(session, "after")).unwrap();
        assert_eq!(store.record(after.id).unwrap(), Some(after));
        assert!(store.stats().unwrap().writable);
        assert_sound(&store);
    }
}

/// With more records than redb caches, so that reading has to go to the medium.
#[test]
fn a_medium_that_does_not_answer_for_a_while_is_read_again_afterwards() {
    let (medium, store, session) = store();
    let long = "long ".repeat(800);
    for _ in 0..2500 {
        store.append(turn(session, &long)).unwrap();
    }
    let count = || store.records(RecordFilter::default()).map(|all| all.len());
    medium.fail_reads(true);
    assert!(matches!(count(), Err(StorageError::Failed(_))));
    assert!(store.append(turn(session, "lost")).is_err());
    medium.fail_reads(false);
    assert_eq!(count().unwrap(), 2500);
    store.append(turn(session, "kept")).unwrap();
    assert_sound(&store);
}

/// A store that fills its disk with turns of three people, one after the other; the
/// ids of the people.
fn fill(disk: &Disk, options: Options) -> (Store, SessionId, Vec<SpeakerId>) {
    let store = Store::open_on_with(disk.clone(), options).unwrap();
    let session = store.begin_session("first", 0).unwrap().id;
    let people: Vec<SpeakerId> = ["Ada", "Ben", "Eve"]
        .map(|name| {
            let record = store.append(by_new(session, name)).unwrap();
            let id = record.speaker.speaker.unwrap();
            store.name_speaker(id, name).unwrap();
            id
        })
        .to_vec();
    for id in people.iter().cycle() {
        let text = format!("<{}> {}", id.0, "long ".repeat(100));
        if store.append(by(*id, session, &text)).is_err() {
            break;
        }
    }
    assert!(!store.stats().unwrap().writable);
    (store, session, people)
}

fn sealed() -> Options {
    Options {
        key: Some(MasterKey::new([7; 32])),
        ..Options::default()
    }
}

/// What makes room on a disk without any is forgetting, so it works on one.
#[test]
fn on_a_full_disk_forgetting_works_and_makes_room() {
    for options in [Options::default(), sealed()] {
        let disk = Disk::new(700);
        let (store, session, people) = fill(&disk, options.clone());
        let before = store.stats().unwrap().records;
        let first = store.records(RecordFilter::default()).unwrap()[0].id;
        assert_eq!(store.forget(Selection::Record(first)).unwrap().records, 1);
        assert_eq!(store.record(first).unwrap(), None);
        assert_eq!(store.stats().unwrap().records, before - 1);
        let forgotten = store.forget(Selection::Speaker(people[1])).unwrap();
        assert!(forgotten.records > 100, "{forgotten:?}");
        assert_eq!(forgotten.voiceprints, 1);
        let forgotten = store.forget(Selection::Speaker(people[2])).unwrap();
        assert!(forgotten.reclaimed, "{forgotten:?}");
        for id in [people[1], people[2]] {
            let text = format!("<{}>", id.0);
            assert!(!contains(&disk.content(), text.as_bytes()));
        }
        assert_sound(&store);
        store.append(turn(session, "there is room")).unwrap();
        assert!(disk.taken() < 650);

        // Whatever was left for later is done once there is room.
        drop(store);
        let store = Store::open_on_with(disk, options).unwrap();
        assert_sound(&store);
        assert!(store.records(RecordFilter::default()).unwrap().len() > 100);
    }
}

/// Where it had to leave the bytes for later, the next opening with some room takes
/// them away.
#[test]
fn what_was_forgotten_without_room_goes_when_there_is_some() {
    for options in [Options::default(), sealed()] {
        let disk = Disk::new(700);
        let (store, _, _) = fill(&disk, options.clone());
        let last = store.records(RecordFilter::default()).unwrap().pop();
        let forgotten = store.forget(Selection::Record(last.unwrap().id)).unwrap();
        assert_eq!((forgotten.records, forgotten.reclaimed), (1, false));
        drop(store);
        let before = disk.content().len();
        disk.resize(2000);
        let store = Store::open_on_with(disk.clone(), options).unwrap();
        assert!(disk.content().len() < before);
        assert_sound(&store);
    }
}
