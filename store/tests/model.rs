//! A store beside a twin made of plain maps: whatever is done to both, they say
//! the same.
#![allow(clippy::unwrap_used)]

mod common;

use common::{MemoryMedium, assert_sound, key, to, voice};
use earwitness_api::types::{
    Attribution, Record, RecordFilter, RecordId, Selection, Session, SessionId, Speaker, SpeakerId,
};
use earwitness_store::{NewRecord, Speaking, Store};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;

/// Numbers choose among what exists; `who` also chooses what is learned.
#[derive(Clone, Debug)]
enum Step {
    Begin,
    Append { who: usize, to: usize, unix_ms: i64 },
    Name(usize),
    Forget(usize, usize),
    Compact,
    Reopen,
}

#[derive(Debug, Default)]
struct Twin {
    sessions: BTreeMap<SessionId, Session>,
    records: BTreeMap<RecordId, Record>,
    speakers: BTreeMap<SpeakerId, Speaker>,
    last: (u32, u64, u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => Just(Step::Begin),
        12 => (any::<usize>(), any::<usize>(), 0..50i64)
            .prop_map(|(who, to, unix_ms)| Step::Append { who, to, unix_ms }),
        2 => any::<usize>().prop_map(Step::Name),
        2 => (any::<usize>(), any::<usize>()).prop_map(|(kind, which)| Step::Forget(kind, which)),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..60)
}

fn choose<K: Copy, V>(from: &BTreeMap<K, V>, which: usize) -> Option<K> {
    let index = which.checked_rem(from.len())?;
    from.keys().nth(index).copied()
}

impl Twin {
    fn begin(&mut self, store: &Store) {
        self.last.0 += 1;
        let session = Session {
            id: SessionId(self.last.0),
            name: format!("session {}", self.last.0),
            started_unix_ms: 5,
        };
        assert_eq!(store.begin_session(&session.name, 5).unwrap(), session);
        self.sessions.insert(session.id, session);
    }

    fn append(&mut self, store: &Store, who: usize, whom: usize, unix_ms: i64) {
        let Some(session) = choose(&self.sessions, whom) else {
            return;
        };
        self.last.1 += 1;
        let addressees: Vec<_> = choose(&self.speakers, whom).map(to).into_iter().collect();
        let (speaking, speaker) = self.speak(who, unix_ms);
        let record = Record {
            id: RecordId(self.last.1),
            session,
            start_ms: 10,
            end_ms: 30,
            unix_ms,
            speaker,
            addressees: addressees.clone(),
            text: format!("said {who}"),
            attachments: Vec::new(),
        };
        let new = NewRecord {
            session,
            start_ms: 10,
            end_ms: 30,
            unix_ms,
            speaker: speaking,
            addressees,
            text: record.text.clone(),
            attachments: Vec::new(),
            key: key(self.last.1),
        };
        assert_eq!(store.append(new).unwrap(), record);
        self.records.insert(record.id, record);
    }

    fn speak(&mut self, who: usize, unix_ms: i64) -> (Speaking, Attribution) {
        let score = 0.5;
        let (speaking, speaker) = match choose(&self.speakers, who / 4) {
            _ if who.is_multiple_of(4) => (Speaking::Unknown { score }, None),
            Some(id) if who % 4 != 1 => {
                let learned = (who % 4 == 2).then(|| voice(who as u64 % 100));
                (Speaking::Known { id, score, learned }, Some(id))
            }
            _ => {
                self.last.2 += 1;
                let learned = voice(7);
                let id = SpeakerId(self.last.2);
                (Speaking::New { score, learned }, Some(id))
            }
        };
        if let Some(id) = speaker {
            let new = Speaker {
                id,
                name: None,
                records: 0,
                first_heard_unix_ms: unix_ms,
                last_heard_unix_ms: unix_ms,
            };
            let known = self.speakers.entry(id).or_insert(new);
            known.records += 1;
            if known.records == 1 {
                known.first_heard_unix_ms = unix_ms;
            }
            known.first_heard_unix_ms = known.first_heard_unix_ms.min(unix_ms);
            known.last_heard_unix_ms = known.last_heard_unix_ms.max(unix_ms);
        }
        (speaking, Attribution { speaker, score })
    }

    fn name(&mut self, store: &Store, which: usize) {
        if let Some(id) = choose(&self.speakers, which) {
            let name = format!("name {which}");
            store.name_speaker(id, &name).unwrap();
            self.speakers.get_mut(&id).unwrap().name = Some(name);
        }
    }

    fn forget(&mut self, store: &Store, kind: usize, which: usize) {
        let from = which as i64 & 31;
        let range = Selection::TimeRange { from, to: from + 9 };
        let selection = match kind % 4 {
            0 => choose(&self.records, which).map(Selection::Record),
            1 => choose(&self.sessions, which).map(Selection::Session),
            2 => choose(&self.speakers, which).map(Selection::Speaker),
            _ => Some(range),
        };
        let Some(selection) = selection else { return };
        let before = (self.records.len(), self.speakers.len());
        self.remove(selection);
        let result = store.forget(selection).unwrap();
        assert!(result.reclaimed);
        assert_eq!(result.records, (before.0 - self.records.len()) as u64);
        assert_eq!(result.voiceprints, (before.1 - self.speakers.len()) as u64);
    }

    fn remove(&mut self, selection: Selection) {
        self.records.retain(|_, record| match selection {
            Selection::Record(id) => record.id != id,
            Selection::Session(id) => record.session != id,
            Selection::Speaker(id) => record.speaker.speaker != Some(id),
            Selection::TimeRange { from, to } => record.unix_ms < from || record.unix_ms >= to,
        });
        match selection {
            Selection::Session(id) => drop(self.sessions.remove(&id)),
            Selection::Speaker(id) => drop(self.speakers.remove(&id)),
            _ => {}
        }
        self.recount();
        for record in self.records.values_mut() {
            for to in &mut record.addressees {
                if to
                    .speaker
                    .is_some_and(|id| !self.speakers.contains_key(&id))
                {
                    (to.speaker, to.score) = (None, 0.0);
                }
            }
        }
    }

    fn recount(&mut self) {
        let records = &self.records;
        self.speakers.retain(|id, speaker| {
            let times: Vec<i64> = records
                .values()
                .filter(|record| record.speaker.speaker == Some(*id))
                .map(|record| record.unix_ms)
                .collect();
            speaker.records = times.len() as u64;
            speaker.first_heard_unix_ms = times.iter().copied().min().unwrap_or(0);
            speaker.last_heard_unix_ms = times.iter().copied().max().unwrap_or(0);
            speaker.name.is_some() || !times.is_empty()
        });
    }

    fn assert_equals(&self, store: &Store) {
        let records: Vec<_> = self.records.values().cloned().collect();
        assert_eq!(store.records(RecordFilter::default()).unwrap(), records);
        let sessions: Vec<_> = self.sessions.values().cloned().collect();
        assert_eq!(store.sessions().unwrap(), sessions);
        let speakers: Vec<_> = self.speakers.values().cloned().collect();
        assert_eq!(store.speakers().unwrap(), speakers);
        let ids: Vec<_> = self.records.keys().copied().collect();
        assert_eq!(store.keys().ids().collect::<Vec<_>>(), ids);
        assert_sound(store);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_store_says_what_its_twin_says(steps in steps()) {
        let medium = MemoryMedium::default();
        let mut store = Store::open_on(medium.clone()).unwrap();
        let mut twin = Twin::default();
        twin.begin(&store);
        for step in steps {
            match step {
                Step::Begin => twin.begin(&store),
                Step::Append { who, to, unix_ms } => twin.append(&store, who, to, unix_ms),
                Step::Name(which) => twin.name(&store, which),
                Step::Forget(kind, which) => twin.forget(&store, kind, which),
                Step::Compact => store.compact().unwrap(),
                Step::Reopen => {
                    drop(store);
                    store = Store::open_on(medium.clone()).unwrap();
                }
            }
            twin.assert_equals(&store);
        }
    }
}
