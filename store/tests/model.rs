//! A store beside a twin made of plain maps: whatever is done to both, they say
//! the same.
#![allow(clippy::unwrap_used)]

mod common;

use common::{MemoryMedium, assert_sound, key, to, voice};
use earwitness_api::types::{
    Attribution, Consent, Identity, MergeReason, Record, RecordFilter, RecordId, Selection,
    Session, SessionId, Speaker, SpeakerId,
};
use earwitness_store::{
    EnrolError, Enrolment, MasterKey, MergeError, NewMerge, NewRecord, Options, Speaking,
    SplitError, Store,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers choose among what exists; `who` also chooses what is learned.
#[derive(Clone, Debug)]
enum Step {
    Begin,
    Append {
        who: usize,
        to: usize,
        unix_ms: i64,
    },
    Name(usize),
    Enrol(usize),
    Merge {
        into: usize,
        from: usize,
        by_hand: bool,
    },
    Unmerge(usize),
    Split(usize, usize),
    Forget(usize, usize),
    Compact,
    Reopen,
}

/// Records name the voices that they were attributed to.
#[derive(Debug, Default)]
struct Twin {
    sessions: BTreeMap<SessionId, Session>,
    records: BTreeMap<RecordId, Record>,
    voices: BTreeMap<SpeakerId, Own>,
    /// From, into, in the order in which they were made.
    merges: Vec<(SpeakerId, SpeakerId)>,
    apart: BTreeSet<(SpeakerId, SpeakerId)>,
    last: (u32, u64, u32),
}

/// What belongs to a voice itself.
#[derive(Clone, Debug, Default)]
struct Own {
    name: Option<String>,
    enrolled: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => Just(Step::Begin),
        12 => (any::<usize>(), any::<usize>(), 0..50i64)
            .prop_map(|(who, to, unix_ms)| Step::Append { who, to, unix_ms }),
        2 => any::<usize>().prop_map(Step::Name),
        1 => any::<usize>().prop_map(Step::Enrol),
        4 => (any::<usize>(), any::<usize>(), any::<bool>())
            .prop_map(|(into, from, by_hand)| Step::Merge { into, from, by_hand }),
        2 => any::<usize>().prop_map(Step::Unmerge),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(who, some)| Step::Split(who, some)),
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
        let addressees: Vec<_> = choose(&self.voices, whom).map(to).into_iter().collect();
        let (speaking, speaker) = self.speak(who);
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
        assert_eq!(store.append(new).unwrap(), self.resolve(&record));
        self.records.insert(record.id, record);
    }

    fn speak(&mut self, who: usize) -> (Speaking, Attribution) {
        let score = 0.5;
        let (speaking, speaker) = match choose(&self.voices, who / 4) {
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
            self.voices.entry(id).or_default();
        }
        (speaking, Attribution { speaker, score })
    }

    /// Every identity as the set of its voices, by the voice that stands for it.
    fn identities(&self) -> BTreeMap<SpeakerId, BTreeSet<SpeakerId>> {
        let mut sets: BTreeMap<_, _> = self
            .voices
            .keys()
            .map(|id| (*id, BTreeSet::from([*id])))
            .collect();
        for (from, into) in &self.merges {
            let moved = sets.remove(from).unwrap();
            let into = *sets.iter().find(|(_, set)| set.contains(into)).unwrap().0;
            sets.get_mut(&into).unwrap().extend(moved);
        }
        sets
    }

    fn root(&self, id: SpeakerId) -> SpeakerId {
        let sets = self.identities();
        *sets.iter().find(|(_, set)| set.contains(&id)).unwrap().0
    }

    fn resolve(&self, record: &Record) -> Record {
        let mut record = record.clone();
        for person in record.addressees.iter_mut().chain([&mut record.speaker]) {
            person.speaker = person.speaker.map(|id| self.root(id));
        }
        record
    }

    fn name_of(&self, root: SpeakerId, set: &BTreeSet<SpeakerId>) -> Option<String> {
        let mut ids = std::iter::once(&root).chain(set);
        ids.find_map(|id| self.voices[id].name.clone())
    }

    fn describe(&self) -> Vec<Identity> {
        let describe = |(root, set): (SpeakerId, BTreeSet<SpeakerId>)| {
            let said = self.records.values();
            let times: Vec<i64> = said
                .filter(|record| record.speaker.speaker.is_some_and(|id| set.contains(&id)))
                .map(|record| record.unix_ms)
                .collect();
            Identity {
                speaker: Speaker {
                    id: root,
                    name: self.name_of(root, &set),
                    records: times.len() as u64,
                    first_heard_unix_ms: times.iter().copied().min().unwrap_or(0),
                    last_heard_unix_ms: times.iter().copied().max().unwrap_or(0),
                },
                enrolled: set.iter().any(|id| self.voices[id].enrolled),
                consent: Consent::Unknown,
                members: set.into_iter().collect(),
            }
        };
        self.identities().into_iter().map(describe).collect()
    }

    fn name(&mut self, store: &Store, which: usize) {
        if let Some(id) = choose(&self.voices, which) {
            let name = format!("name {}", which % 4);
            let root = self.root(id);
            assert_eq!(store.name_speaker(id, &name).unwrap().id, root);
            self.voices.get_mut(&root).unwrap().name = Some(name);
        }
    }

    fn enrol(&mut self, store: &Store, which: usize) {
        let name = format!("name {}", which % 4);
        let enrolment = Enrolment {
            name: name.clone(),
            embeddings: vec![vec![1.0, which as f32 % 7.0, 0.0, 0.5]],
            centroid: vec![1.0, 0.0, 0.0, 0.5],
            speech_ms: 3000,
        };
        let known: Vec<_> = self
            .describe()
            .into_iter()
            .filter(|one| one.speaker.name.as_ref() == Some(&name))
            .map(|one| one.speaker.id)
            .collect();
        let result = store.enrol(&enrolment);
        let id = match known.as_slice() {
            [] => {
                self.last.2 += 1;
                SpeakerId(self.last.2)
            }
            [id] => *id,
            _ => return assert!(matches!(result, Err(EnrolError::Ambiguous(_)))),
        };
        assert_eq!(result.unwrap().speaker.id, id);
        let own = self.voices.entry(id).or_default();
        (own.name, own.enrolled) = (Some(name), true);
    }

    fn merge(&mut self, store: &Store, into: usize, from: usize, by_hand: bool) {
        let (Some(into), Some(from)) = (choose(&self.voices, into), choose(&self.voices, from))
        else {
            return;
        };
        let why = match by_hand {
            true => MergeReason::ByHand,
            false => MergeReason::Reconciled {
                similarity: 0.9,
                runner_up: None,
                cohesion: 0.8,
            },
        };
        let despite_names = false;
        let result = store.merge(NewMerge {
            into,
            from,
            why,
            despite_names,
        });
        let (into, from) = (self.root(into), self.root(from));
        if into == from {
            return assert!(matches!(result, Err(MergeError::Same(..))));
        }
        let sets = self.identities();
        let names = [into, from].map(|root| self.name_of(root, &sets[&root]));
        if names[0] != names[1] && names.iter().all(Option::is_some) {
            return assert!(matches!(result, Err(MergeError::Names { .. })));
        }
        let (a, b) = (&sets[&into], &sets[&from]);
        let between = |(x, y): &(SpeakerId, SpeakerId)| {
            a.contains(x) && b.contains(y) || a.contains(y) && b.contains(x)
        };
        if !by_hand && self.apart.iter().any(between) {
            return assert!(matches!(result, Err(MergeError::Apart(..))));
        }
        self.apart.retain(|pair| !between(pair));
        self.merges.push((from, into));
        let mut described = self.describe().into_iter();
        let expected = described.find(|one| one.speaker.id == into);
        assert_eq!(Some(result.unwrap()), expected);
    }

    fn unmerge(&mut self, store: &Store, which: usize) {
        let Some(index) = which.checked_rem(self.merges.len()) else {
            return;
        };
        let (from, into) = self.merges.remove(index);
        let undone = store.unmerge(from).unwrap();
        assert_eq!((undone.from, undone.into), (from, into));
        self.apart.insert((from.min(into), from.max(into)));
    }

    fn split(&mut self, store: &Store, who: usize, some: usize) {
        let Some(id) = choose(&self.voices, who) else {
            return;
        };
        let root = self.root(id);
        let set = self.identities()[&root].clone();
        let theirs = self.records.values();
        let theirs: Vec<_> = theirs
            .filter(|record| record.speaker.speaker.is_some_and(|id| set.contains(&id)))
            .map(|record| record.id)
            .collect();
        let chosen: Vec<_> = (0..theirs.len())
            .filter(|i| some >> (i % 60) & 1 == 1)
            .map(|i| theirs[i])
            .collect();
        let result = store.split(id, &chosen);
        let is_kept = set.iter().any(|id| {
            let own = &self.voices[id];
            own.name.is_some() || own.enrolled
        });
        if chosen.is_empty() {
            return assert!(matches!(result, Err(SplitError::Nothing)));
        }
        if chosen.len() == theirs.len() && !is_kept {
            return assert!(matches!(result, Err(SplitError::Everything(_))));
        }
        self.last.2 += 1;
        let new = SpeakerId(self.last.2);
        assert_eq!(result.unwrap().id, new);
        for id in chosen {
            self.records.get_mut(&id).unwrap().speaker.speaker = Some(new);
        }
        self.voices.insert(new, Own::default());
        self.apart.extend(set.into_iter().map(|id| (id, new)));
    }

    fn forget(&mut self, store: &Store, kind: usize, which: usize) {
        let selection = match kind % 4 {
            0 => choose(&self.records, which).map(Selection::Record),
            1 => choose(&self.sessions, which).map(Selection::Session),
            2 => choose(&self.voices, which).map(Selection::Speaker),
            _ => {
                let from = which as i64 % 50;
                let to = from + 5;
                Some(Selection::TimeRange { from, to })
            }
        };
        if let Some(selection) = selection {
            let before = self.records.len();
            self.apply(selection);
            let forgotten = store.forget(selection).unwrap();
            assert_eq!(forgotten.records as usize, before - self.records.len());
            assert!(forgotten.reclaimed);
        }
    }

    fn apply(&mut self, selection: Selection) {
        let gone_identity = match selection {
            Selection::Speaker(id) => self.identities().remove(&self.root(id)),
            _ => None,
        };
        let by_gone = |record: &Record| {
            let speaker = record.speaker.speaker;
            speaker.is_some_and(|id| gone_identity.as_ref().is_some_and(|set| set.contains(&id)))
        };
        self.records.retain(|_, record| match selection {
            Selection::Record(id) => record.id != id,
            Selection::Session(id) => record.session != id,
            Selection::Speaker(_) => !by_gone(record),
            Selection::TimeRange { from, to } => record.unix_ms < from || record.unix_ms >= to,
        });
        if let Selection::Session(id) = selection {
            self.sessions.remove(&id);
        }
        for one in self.describe() {
            let nothing_left =
                one.speaker.records == 0 && one.speaker.name.is_none() && !one.enrolled;
            let is_gone = |set: &BTreeSet<SpeakerId>| set.contains(&one.speaker.id);
            if nothing_left || gone_identity.as_ref().is_some_and(is_gone) {
                self.lose(&one.members);
            }
        }
    }

    fn lose(&mut self, voices: &[SpeakerId]) {
        let is_gone = |id: &SpeakerId| voices.contains(id);
        self.voices.retain(|id, _| !is_gone(id));
        self.merges.retain(|(from, _)| !is_gone(from));
        self.apart.retain(|(a, b)| !is_gone(a) && !is_gone(b));
        for record in self.records.values_mut() {
            for to in &mut record.addressees {
                if to.speaker.as_ref().is_some_and(is_gone) {
                    (to.speaker, to.score) = (None, 0.0);
                }
            }
        }
    }

    fn assert_equals(&self, store: &Store) {
        let records = self.records.values();
        let records: Vec<_> = records.map(|record| self.resolve(record)).collect();
        assert_eq!(store.records(RecordFilter::default()).unwrap(), records);
        let sessions: Vec<_> = self.sessions.values().cloned().collect();
        assert_eq!(store.sessions().unwrap(), sessions);
        let identities = self.describe();
        assert_eq!(store.identities().unwrap(), identities);
        for one in identities {
            let filter = RecordFilter {
                speaker: one.members.last().copied(),
                ..RecordFilter::default()
            };
            let said = store.records(filter).unwrap().len();
            assert_eq!(said as u64, one.speaker.records);
        }
        let apart: Vec<_> = self.apart.iter().copied().collect();
        assert_eq!(store.apart().unwrap(), apart);
        let merges = store.merges().unwrap();
        let merges: Vec<_> = merges
            .iter()
            .map(|merge| (merge.from, merge.into))
            .collect();
        assert_eq!(merges, self.merges);
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
    fn a_store_says_what_its_twin_says(steps in steps(), sealed in any::<bool>()) {
        let medium = MemoryMedium::default();
        let open = || {
            let key = sealed.then(|| MasterKey::new([7; 32]));
            let options = Options { key, ..Options::default() };
            Store::open_on_with(medium.clone(), options).unwrap()
        };
        let mut store = open();
        let mut twin = Twin::default();
        twin.begin(&store);
        for step in steps {
            match step {
                Step::Begin => twin.begin(&store),
                Step::Append { who, to, unix_ms } => twin.append(&store, who, to, unix_ms),
                Step::Name(which) => twin.name(&store, which),
                Step::Enrol(which) => twin.enrol(&store, which),
                Step::Merge { into, from, by_hand } => {
                    twin.merge(&store, into, from, by_hand);
                }
                Step::Unmerge(which) => twin.unmerge(&store, which),
                Step::Split(who, some) => twin.split(&store, who, some),
                Step::Forget(kind, which) => twin.forget(&store, kind, which),
                Step::Compact => store.compact().unwrap(),
                Step::Reopen => {
                    drop(store);
                    store = open();
                }
            }
            twin.assert_equals(&store);
        }
    }
}
