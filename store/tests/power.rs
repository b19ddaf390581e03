//! Power cuts and failures at every point of a long run.
//!
//! `EARWITNESS_POWER_SEED` and `EARWITNESS_POWER_OPERATIONS` choose another run
//! and a longer one.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/trace.rs"]
mod trace;

use common::{MemoryMedium, Random, assert_sound, by, by_new, to, turn};
use earwitness_api::types::{
    Identity, Merge, MergeReason, Record, RecordFilter, Selection, Session, SessionId, SpeakerId,
};
use earwitness_store::medium::Medium;
use earwitness_store::{Enrolment, Limits, NewMerge, NewRecord, Options, Store};
use std::collections::BTreeSet;
use trace::{Event, Replay, TraceMedium};

/// All that a store says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
struct Said {
    sessions: Vec<Session>,
    records: Vec<Record>,
    identities: Vec<Identity>,
    merges: Vec<Merge>,
    apart: Vec<(SpeakerId, SpeakerId)>,
    voiceprints: usize,
    evicted: u64,
}

impl Said {
    fn by(store: &Store) -> Self {
        Self {
            sessions: store.sessions().unwrap(),
            records: store.records(RecordFilter::default()).unwrap(),
            identities: store.identities().unwrap(),
            merges: store.merges().unwrap(),
            apart: store.apart().unwrap(),
            voiceprints: store.voiceprints().unwrap().len(),
            evicted: store.stats().unwrap().evicted,
        }
    }

    fn texts(&self) -> BTreeSet<String> {
        let texts = self.records.iter().map(|record| record.text.clone());
        let names = self.sessions.iter().map(|session| session.name.clone());
        texts.chain(names).collect()
    }
}

/// Does something to the store, chosen at random; whether it worked.
fn operate(store: &Store, random: &mut Random, number: usize) -> bool {
    let sessions = store.sessions().unwrap_or_default();
    let records = store.records(RecordFilter::default()).unwrap_or_default();
    let voices = store.voices().unwrap_or_default();
    let voices: Vec<SpeakerId> = voices.iter().map(|voice| voice.speaker).collect();
    let text = format!("said<{number}>");
    let Some(session) = pick(random, &sessions) else {
        return store.begin_session(&text, 0).is_ok();
    };
    match random.below(40) {
        0 => store.begin_session(&text, 0).is_ok(),
        1..=4 => store.append(by_new(session.id, &text)).is_ok(),
        5..=6 => store.enrol(&enrolment(random)).is_ok(),
        7..=10 => merge(store, random, &voices),
        11..=12 => pick(random, &store.merges().unwrap_or_default())
            .is_some_and(|merge| store.unmerge(merge.from).is_ok()),
        13..=14 => split(store, random, &records),
        15..=16 => pick(random, &voices).is_some_and(|id| {
            store
                .name_speaker(id, &format!("name {}", number % 5))
                .is_ok()
        }),
        17 | 18 => forget(store, random, &records, &voices, &sessions),
        21 => store.compact().is_ok(),
        19 | 20 => store
            .append_all(&[turn(session.id, &text), turn(session.id, &text)])
            .is_ok(),
        22..=26 => store.append(turn(session.id, &text)).is_ok(),
        _ => pick(random, &voices)
            .is_some_and(|id| store.append(addressed(id, session.id, &text)).is_ok()),
    }
}

fn pick<T: Clone>(random: &mut Random, from: &[T]) -> Option<T> {
    (!from.is_empty()).then(|| from[random.below(from.len())].clone())
}

fn addressed(id: SpeakerId, session: SessionId, text: &str) -> NewRecord {
    NewRecord {
        addressees: vec![to(id)],
        ..by(id, session, text)
    }
}

fn enrolment(random: &mut Random) -> Enrolment {
    Enrolment {
        name: format!("name {}", random.below(5)),
        embeddings: vec![vec![1.0, 0.0, 0.5, 0.0]],
        centroid: vec![1.0, 0.0, 0.5, 0.0],
        speech_ms: 1000,
    }
}

fn merge(store: &Store, random: &mut Random, voices: &[SpeakerId]) -> bool {
    let (Some(into), Some(from)) = (pick(random, voices), pick(random, voices)) else {
        return false;
    };
    let merge = NewMerge {
        into,
        from,
        why: MergeReason::ByHand,
        despite_names: true,
    };
    store.merge(merge).is_ok()
}

fn split(store: &Store, random: &mut Random, records: &[Record]) -> bool {
    let said = pick(random, records);
    let by = said.as_ref().and_then(|record| record.speaker.speaker);
    match (said, by) {
        (Some(record), Some(speaker)) => store.split(speaker, &[record.id]).is_ok(),
        _ => false,
    }
}

fn forget(
    store: &Store,
    random: &mut Random,
    records: &[Record],
    voices: &[SpeakerId],
    sessions: &[Session],
) -> bool {
    let selection = match random.below(4) {
        0 => pick(random, voices).map(Selection::Speaker),
        1 => sessions.first().map(|one| Selection::Session(one.id)),
        _ => pick(random, records).map(|record| Selection::Record(record.id)),
    };
    selection.is_some_and(|selection| store.forget(selection).is_ok())
}

fn argument(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().unwrap())
}

fn seed() -> u64 {
    argument("EARWITNESS_POWER_SEED", 1)
}

/// Few enough records and sessions that many are evicted, and so few bytes that
/// the file is compacted now and then.
fn open(medium: impl Medium) -> Store {
    let limits = Limits {
        records: 30,
        sessions: 4,
        disk_bytes: 160 << 10,
        ..Limits::default()
    };
    Store::open_on_with(
        medium,
        Options {
            limits,
            ..Options::default()
        },
    )
    .unwrap()
}

/// What was done, and what the store said after each operation.
struct Run {
    events: Vec<Event>,
    states: Vec<Said>,
    /// Texts that were evicted, which leaves their bytes until they are
    /// written over.
    evicted: BTreeSet<String>,
}

fn run(seed: u64, operations: usize) -> Run {
    let medium = TraceMedium::default();
    let store = open(medium.clone());
    let mut random = Random(seed);
    let mut states = vec![Said::by(&store)];
    let mut evicted = BTreeSet::new();
    medium.acknowledge(0);
    for number in 1..=operations {
        operate(&store, &mut random, number);
        let (before, after) = (&states[number - 1], Said::by(&store));
        if before.evicted < after.evicted {
            evicted.extend(before.texts().difference(&after.texts()).cloned());
        }
        states.push(after);
        medium.acknowledge(number);
    }
    Run {
        events: medium.take_events(),
        states,
        evicted,
    }
}

/// Whether this event ends a stretch in which the medium may still lose things.
fn is_cut_point(event: &Event) -> bool {
    matches!(event, Event::Sync(_) | Event::Install(_))
}

/// A store that was cut off holds what it had acknowledged, or also what it was
/// about to; says nothing against itself; holds no byte of what was forgotten;
/// and goes on.
fn check(bytes: Vec<u8>, run: &Run, acknowledged: usize) {
    let medium = MemoryMedium::default();
    medium.set_content(bytes);
    let store = open(medium.clone());
    let found = Said::by(&store);
    let next = run.states.get(acknowledged + 1);
    let is_next = next == Some(&found);
    assert!(is_next || found == run.states[acknowledged]);
    assert_sound(&store);
    let mut known = found.texts();
    // What was being written may lie there without being a record.
    known.insert(format!("said<{}>", acknowledged + 1));
    for text in texts(&medium.content()) {
        let is_known = known.contains(&text) || run.evicted.contains(&text);
        assert!(is_known, "{text} was forgotten");
    }
    let session = store.begin_session("after", 0).unwrap().id;
    let more = store.append(turn(session, "after")).unwrap();
    assert!(found.records.iter().all(|record| record.id < more.id));
    assert_eq!(
        store.records(RecordFilter::default()).unwrap().pop(),
        Some(more)
    );
}

/// Every text that stands somewhere in a file, whole.
fn texts(bytes: &[u8]) -> BTreeSet<String> {
    let starts = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(b"said<"));
    let whole = starts.filter_map(|at| {
        let number = &bytes[at + 5..];
        let digits = number.iter().take_while(|byte| byte.is_ascii_digit());
        let end = digits.count();
        let is_whole = number.get(end) == Some(&b'>');
        is_whole.then(|| String::from_utf8_lossy(&bytes[at..at + end + 6]).into_owned())
    });
    whole.collect()
}

#[test]
fn a_power_cut_at_any_sync_point_loses_nothing_and_brings_nothing_back() {
    let operations = argument("EARWITNESS_POWER_OPERATIONS", 600) as usize;
    let mut random = Random(seed());
    let mut run = run(random.next(), operations);
    let mut replay = Replay::default();
    let mut cuts = 0;
    for event in std::mem::take(&mut run.events) {
        if is_cut_point(&event) {
            for _ in 0..2 {
                if let Some(bytes) = replay.cut(&mut random) {
                    check(bytes, &run, replay.acknowledged);
                    cuts += 1;
                }
            }
        }
        replay.step(event);
    }
    println!(
        "{cuts} cut points, {operations} operations, seed {}",
        seed()
    );
    // At least 2,000 in a run of the usual length.
    assert!(cuts >= operations * 10 / 3, "{cuts} cuts");
}

/// After a write or sync that failed, the store says what it said before, or what
/// it would say had nothing failed; and it goes on.
#[test]
fn a_medium_that_fails_at_any_point_loses_nothing() {
    let mut random = Random(seed());
    let medium = TraceMedium::default();
    let store = open(medium.clone());
    let mut failures = 0;
    for number in 1..=500 {
        let before = Said::by(&store);
        let whole = without_failure(&medium, &random, number);
        medium.fail_in(random.clone().below(40));
        let worked = operate(&store, &mut random, number);
        let failed = medium.mend();
        let after = Said::by(&store);
        assert!(after == whole || failed && !worked && after == before);
        assert_sound(&store);
        failures += usize::from(failed);
    }
    assert!(failures > 50, "{failures}");
}

/// What the store would say after the operation.
fn without_failure(medium: &TraceMedium, random: &Random, number: usize) -> Said {
    let copy = MemoryMedium::default();
    copy.set_content(medium.content());
    let store = open(copy);
    operate(&store, &mut random.clone(), number);
    Said::by(&store)
}
