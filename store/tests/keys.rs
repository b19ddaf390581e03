//! Scoring against a slow twin, and snapshots beside a writer.
#![allow(clippy::unwrap_used)]

mod common;

use common::{key, store, turn};
use earwitness_api::types::{PartialScores, RecordId, Selection};
use earwitness_store::{
    Block, Key, KeyError, KeyTable, NewRecord, Query, QueryError, Scored, Weights,
};
use std::sync::atomic::{AtomicBool, Ordering};

const WEIGHTS: Weights = Weights {
    who: 0.5,
    what: 1.0,
    when: 0.25,
};

/// The same from the definition: dequantise, multiply, weigh, sort.
fn slow_top(keys: &[(RecordId, Key)], query: &Key, weights: Weights, k: usize) -> Vec<Scored> {
    let part = |weight: f32, key: &Block, asked: &Block| {
        let dot: f64 = key
            .values
            .iter()
            .zip(&asked.values)
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum();
        let scales = f64::from(key.scale) * f64::from(asked.scale);
        (f64::from(weight) * scales * dot) as f32
    };
    let mut all: Vec<Scored> = keys
        .iter()
        .map(|(id, key)| Scored {
            id: *id,
            scores: PartialScores {
                who: part(weights.who, &key.speaker, &query.speaker),
                what: part(weights.what, &key.semantic, &query.semantic),
                when: part(weights.when, &key.temporal, &query.temporal),
            },
        })
        .collect();
    all.sort_by(|a, b| b.scores.total().total_cmp(&a.scores.total()));
    all.truncate(k);
    all
}

fn assert_close(found: &[Scored], expected: &[Scored]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.id, expected.id);
        let close = |a: f32, b: f32| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
        let (found, expected) = (found.scores, expected.scores);
        assert!(close(found.who, expected.who), "{found:?} {expected:?}");
        assert!(close(found.what, expected.what), "{found:?} {expected:?}");
        assert!(close(found.when, expected.when), "{found:?} {expected:?}");
    }
}

fn top(table: &KeyTable, key: &Key, weights: Weights, k: usize) -> Vec<Scored> {
    let query = Query::new(key.clone(), weights).unwrap();
    table.score_top_k(&query, &[], k).unwrap()
}

#[test]
fn the_best_keys_are_those_of_the_slow_twin() {
    let (_, store, session) = store();
    let mut keys = Vec::new();
    for seed in 0..300 {
        let mut key = key(seed * seed);
        if seed % 5 == 0 {
            key.speaker = Block::unknown(4);
        }
        let new = NewRecord {
            key: key.clone(),
            ..turn(session, "x")
        };
        keys.push((store.append(new).unwrap().id, key));
    }
    store.forget(Selection::Record(keys[100].0)).unwrap();
    keys.remove(100);
    for seed in 0..20 {
        let query = key(seed + 1000);
        for k in [0, 1, 15, 299, 1000] {
            let expected = slow_top(&keys, &query, WEIGHTS, k);
            assert_close(&top(&store.keys(), &query, WEIGHTS, k), &expected);
        }
    }
}

#[test]
fn equal_scores_rank_by_age() {
    let (_, store, session) = store();
    for _ in 0..300 {
        store.append(turn(session, "same")).unwrap();
    }
    let nothing = Weights {
        who: 0.0,
        what: 0.0,
        when: 0.0,
    };
    for weights in [WEIGHTS, nothing] {
        let best = top(&store.keys(), &key(9), weights, 5);
        let ids: Vec<u64> = best.iter().map(|scored| scored.id.0).collect();
        assert_eq!(ids, [1, 2, 3, 4, 5]);
    }
}

#[test]
fn the_largest_numbers_give_a_finite_score() {
    let (_, store, session) = store();
    let mut huge = key(1);
    for block in [&mut huge.semantic, &mut huge.speaker, &mut huge.temporal] {
        block.scale = 1e6;
        block.values.fill(-128);
    }
    let new = NewRecord {
        key: huge.clone(),
        ..turn(session, "x")
    };
    store.append(new).unwrap();
    let weights = Weights {
        who: 1e6,
        what: 1e6,
        when: 1e6,
    };
    let best = top(&store.keys(), &huge, weights, 1);
    assert!(best[0].scores.total().is_finite());
}

#[test]
fn queries_that_do_not_fit_are_refused() {
    let (_, store, session) = store();
    let query = Query::new(key(1), WEIGHTS).unwrap();
    assert_eq!(store.keys().score_top_k(&query, &[], 3), Ok(Vec::new()));
    store.append(turn(session, "x")).unwrap();
    let mut longer = key(1);
    longer.semantic.values.push(0);
    let query = Query::new(longer, WEIGHTS).unwrap();
    let error = store.keys().score_top_k(&query, &[], 3);
    assert!(matches!(
        error,
        Err(QueryError::Key(KeyError::Layout { .. }))
    ));
    for who in [f32::NAN, -0.5, f32::INFINITY] {
        let error = Query::new(key(1), Weights { who, ..WEIGHTS });
        assert!(matches!(error, Err(QueryError::Weight(_))));
    }
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let (_, store, session) = store();
    for _ in 0..130 {
        store.append(turn(session, "x")).unwrap();
    }
    let snapshot = store.keys();
    let ids: Vec<_> = snapshot.ids().collect();
    for _ in 0..200 {
        store.append(turn(session, "x")).unwrap();
    }
    store.forget(Selection::Record(RecordId(1))).unwrap();
    assert_eq!(snapshot.ids().collect::<Vec<_>>(), ids);
    assert_eq!(snapshot.len(), 130);
    assert_eq!(store.keys().len(), 329);
}

#[test]
fn readers_see_whole_records_while_turns_are_written() {
    let (_, store, session) = store();
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    let keys = store.keys();
                    let best = top(&keys, &key(5), WEIGHTS, 3);
                    assert_eq!(best.len(), keys.len().min(3));
                    for scored in best {
                        // A key is there only once its record is durable.
                        assert!(store.record(scored.id).unwrap().is_some());
                    }
                }
            });
        }
        for i in 0..300 {
            store.append(turn(session, &"x".repeat(i % 40))).unwrap();
        }
        done.store(true, Ordering::Release);
    });
    assert_eq!(store.keys().len(), 300);
}
