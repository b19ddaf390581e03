//! A disk that fills up at any point of any write, or does not answer for a while.

mod common;

use common::{assert_sound, by_new, store, turn};
use earwitness_api::types::RecordFilter;
use earwitness_store::{AppendError, StorageError};

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
