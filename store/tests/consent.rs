//! What may be kept of whom, for how long, and the switch.
#![allow(clippy::unwrap_used)]

mod common;

use common::{assert_sound, by, by_new, contains, store, turn};
use earwitness_api::types::{
    Consent, MergeReason, Record, RecordFilter, Selection, SessionId, SpeakerId,
};
use earwitness_store::medium::{Hold, Medium};
use earwitness_store::{
    AppendError, ConsentError, NewMerge, NewRecord, Options, Retention, StorageError, Store,
};
use redb::{StorageBackend, backends::InMemoryBackend};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn said(store: &Store) -> Vec<String> {
    let records = store.records(RecordFilter::default()).unwrap();
    records.into_iter().map(|record| record.text).collect()
}

fn voice(store: &Store, session: SessionId, text: &str) -> SpeakerId {
    let record: Record = store.append(by_new(session, text)).unwrap();
    record.speaker.speaker.unwrap()
}

#[test]
fn who_refuses_is_forgotten_and_recognised_to_be_left_out() {
    let (medium, store, session) = store();
    let ada = voice(&store, session, "what Ada said");
    let bob = voice(&store, session, "what Bob said");
    let one = store.set_consent(ada, Consent::Refused).unwrap();
    assert_eq!((one.consent, one.speaker.records), (Consent::Refused, 0));
    assert_eq!(said(&store), ["what Bob said"]);
    assert_eq!(store.keys().len(), 1);
    assert!(!contains(&medium.content(), b"what Ada said"));
    let error = store.append(by(ada, session, "more of Ada")).unwrap_err();
    assert!(matches!(error, AppendError::NoConsent(id) if id == ada));
    let group = [turn(session, "x"), by(ada, session, "more of Ada")];
    assert!(store.append_all(&group).is_err());
    assert!(!contains(&medium.content(), b"more of Ada"));
    let voices = store.voices().unwrap();
    assert_eq!(voices[0].consent, Consent::Refused);
    assert_eq!(voices[0].turns, 1);
    drop(store);
    let store = Store::open_on(medium).unwrap();
    assert!(store.append(by(ada, session, "more of Ada")).is_err());
    store.append(by(bob, session, "more of Bob")).unwrap();
    store.set_consent(ada, Consent::Given).unwrap();
    store.append(by(ada, session, "Ada again")).unwrap();
    assert_eq!(said(&store), ["what Bob said", "more of Bob", "Ada again"]);
    let nobody = store.set_consent(SpeakerId(9), Consent::Guest);
    assert!(matches!(nobody, Err(ConsentError::NoSuchSpeaker(_))));
    assert_sound(&store);
}

#[test]
fn a_refusal_holds_for_every_voice_of_a_person() {
    let (_, store, session) = store();
    let a = voice(&store, session, "a");
    let b = voice(&store, session, "bb");
    store.set_consent(b, Consent::Refused).unwrap();
    let merge = NewMerge {
        into: a,
        from: b,
        why: MergeReason::ByHand,
        despite_names: false,
    };
    assert_eq!(store.merge(merge).unwrap().consent, Consent::Refused);
    let error = store.append(by(a, session, "more")).unwrap_err();
    assert!(matches!(error, AppendError::NoConsent(_)));
    store.set_consent(a, Consent::Given).unwrap();
    store.append(by(b, session, "more")).unwrap();
    assert_eq!(store.identities().unwrap()[0].consent, Consent::Given);
}

#[test]
fn records_are_kept_as_long_as_their_speaker_agreed_to() {
    let medium = common::MemoryMedium::default();
    let retention = Retention {
        unknown: Some(Duration::from_millis(1000)),
        guest: Some(Duration::from_millis(100)),
    };
    let options = Options {
        retention,
        ..Options::default()
    };
    let store = Store::open_on_with(medium.clone(), options).unwrap();
    let session = store.begin_session("first", 0).unwrap().id;
    let at = |unix_ms, new| NewRecord { unix_ms, ..new };
    store.append(at(0, turn(session, "of nobody"))).unwrap();
    for (text, consent) in [
        ("guest", Consent::Guest),
        ("agreed", Consent::Given),
        ("not asked", Consent::Unknown),
    ] {
        let id = store.append(at(0, by_new(session, text))).unwrap();
        store
            .set_consent(id.speaker.speaker.unwrap(), consent)
            .unwrap();
    }
    let named = store.append(at(0, by_new(session, "named"))).unwrap();
    store
        .name_speaker(named.speaker.speaker.unwrap(), "Ada")
        .unwrap();
    assert_eq!(store.expire(100).unwrap().records, 0);
    assert_eq!(store.expire(101).unwrap().records, 1);
    assert_eq!(said(&store), ["of nobody", "agreed", "not asked", "named"]);
    assert!(!contains(&medium.content(), b"guest"));
    let forgotten = store.expire(1001).unwrap();
    assert_eq!((forgotten.records, forgotten.voiceprints), (2, 1));
    assert_eq!(store.expire(i64::MAX).unwrap().records, 0);
    assert_eq!(said(&store), ["agreed", "named"]);
    assert_sound(&store);
}

/// Counts every call that reaches the medium.
#[derive(Debug)]
struct Counting {
    bytes: Arc<InMemoryBackend>,
    calls: Arc<AtomicUsize>,
}

impl Counting {
    fn count(&self) -> &InMemoryBackend {
        self.calls.fetch_add(1, Ordering::Relaxed);
        &self.bytes
    }

    fn again(&self) -> Box<dyn StorageBackend> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Box::new(Self {
            bytes: Arc::clone(&self.bytes),
            calls: Arc::clone(&self.calls),
        })
    }
}

impl StorageBackend for Counting {
    fn len(&self) -> io::Result<u64> {
        self.count().len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.count().read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.count().set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.count().sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.count().write(offset, data)
    }
}

impl Medium for Counting {
    fn name(&self) -> String {
        "counting".into()
    }

    fn hold(&self) -> io::Result<Hold> {
        self.count();
        Ok(Hold::default())
    }

    fn read(&self) -> io::Result<Option<Box<dyn StorageBackend>>> {
        let empty = self.count().len()? == 0;
        Ok((!empty).then(|| self.again()))
    }

    fn size(&self) -> io::Result<u64> {
        self.count().len()
    }

    fn write(&self) -> io::Result<Box<dyn StorageBackend>> {
        Ok(self.again())
    }

    fn create_replacement(&self) -> io::Result<Box<dyn StorageBackend>> {
        Ok(self.again())
    }

    fn install_replacement(&self) -> io::Result<()> {
        self.count();
        Ok(())
    }

    fn discard_replacement(&self) -> io::Result<()> {
        self.count();
        Ok(())
    }

    fn keep_reserve(&self, _bytes: u64) -> io::Result<()> {
        self.count();
        Ok(())
    }

    fn release_reserve(&self) -> io::Result<()> {
        self.count();
        Ok(())
    }

    fn back_up(&self, _version: u32) -> io::Result<()> {
        self.count();
        Ok(())
    }

    fn discard_backups(&self) -> io::Result<()> {
        self.count();
        Ok(())
    }
}

#[test]
fn a_memory_that_is_off_leaves_its_medium_alone() {
    let calls = Arc::new(AtomicUsize::new(0));
    let medium = Counting {
        bytes: Arc::new(InMemoryBackend::new()),
        calls: Arc::clone(&calls),
    };
    let store = Store::open_on(medium).unwrap();
    let session = store.begin_session("first", 0).unwrap().id;
    let ada = voice(&store, session, "before");
    store.switch(false);
    let before = calls.load(Ordering::Relaxed);
    let off = |error: &StorageError| matches!(error, StorageError::Off);
    let record = store.append(turn(session, "while off")).unwrap_err();
    assert!(
        matches!(&record, AppendError::Storage(error) if off(error)),
        "{record}"
    );
    assert!(store.append_all(&[turn(session, "while off")]).is_err());
    assert!(store.begin_session("second", 0).is_err());
    assert!(off(&store.records(RecordFilter::default()).unwrap_err()));
    assert!(off(&store.stats().unwrap_err()));
    assert!(off(&store.voices().unwrap_err()));
    assert!(off(&store.voiceprints().unwrap_err()));
    assert!(off(&store.verify().unwrap_err()));
    assert!(off(&store.compact().unwrap_err()));
    assert!(off(&store.expire(i64::MAX).unwrap_err()));
    assert!(store.set_consent(ada, Consent::Guest).is_err());
    assert!(store.forget(Selection::Speaker(ada)).is_err());
    assert!(store.name_speaker(ada, "Ada").is_err());
    assert_eq!(calls.load(Ordering::Relaxed), before);
    store.switch(true);
    store.append(turn(session, "after")).unwrap();
    assert_eq!(said(&store), ["before", "after"]);
    assert!(calls.load(Ordering::Relaxed) > before);
}
