//! Rankings and scores that can be worked out by hand.

use anyhow::Result;
use serde_json::{Value, json};

use super::*;
use crate::{episodes::Episode, metrics::RetrievalMeans};

/// An episode of sessions of one-line turns, each said by `p1` (Ann) or `p2`
/// (Ben), with questions `(session, text, evidence)`.
fn episode(id: &str, sessions: &[&[&str]], questions: &[(&str, &str, &[&str])]) -> Episode {
    let turn = |session: usize, place: usize, text: &str| {
        json!({"id": format!("s{session}t{place}"), "speaker": format!("p{}", 1 + place % 2),
               "text": text, "start_ms": place * 1000, "end_ms": place * 1000 + 900})
    };
    let sessions: Vec<Value> = (1..).zip(sessions).map(|(number, texts)| {
        let turns: Vec<Value> =
            texts.iter().enumerate().map(|(place, text)| turn(number, place, text)).collect();
        json!({"id": format!("s{number}"), "start": format!("2026-03-0{number}T18:00:00Z"), "turns": turns})
    }).collect();
    let questions: Vec<Value> = questions.iter().enumerate().map(|(place, (session, text, evidence))| {
        json!({"id": format!("q{place}"), "session": session, "text": text, "task": format!("task{place}"),
               "speaker_query": if place == 0 { json!("self_to_fact") } else { Value::Null },
               "answer": "", "evidence": evidence})
    }).collect();
    let participants = json!([{"id": "p1", "name": "Ann"}, {"id": "p2", "name": "Ben"}]);
    serde_json::from_value(json!({
        "id": id, "scenario": id[..1], "participants": participants, "sessions": sessions, "questions": questions
    }))
    .unwrap()
}

fn trips() -> Episode {
    episode(
        "a1",
        &[
            &[
                "The dentist is booked for Tuesday.",
                "We bought a red bicycle.",
            ],
            &["Dinner will be late.", "The bicycle has a flat tyre."],
            &["Where is the bicycle?", "Good evening."],
        ],
        &[
            ("s3", "Which colour has the bicycle?", &["s1t1"]),
            ("s3", "What became of the bicycles?", &["s1t1", "s2t1"]),
            ("s3", "Who is the mayor?", &[]),
        ],
    )
}

/// Ranks the records as listed, with falling scores.
struct Listed(&'static [usize]);

impl Retriever for Listed {
    fn index(&mut self, _: &[PoolRecord<'_>]) -> Result<()> {
        Ok(())
    }

    fn rank(&mut self, _: &Asked<'_>) -> Result<Vec<Ranked>> {
        Ok(self
            .0
            .iter()
            .copied()
            .zip((0..10).rev().map(|score| score as f32))
            .collect())
    }
}

/// Counts the letters `a`, `b` and `c`.
struct Letters;

impl Embed for Letters {
    fn embed(&mut self, text: &str) -> Result<Vec<f32>> {
        let count = |letter| text.matches(letter).count() as f32;
        let vector = ['a', 'b', 'c'].map(count);
        let norm = vector
            .iter()
            .map(|value| value * value)
            .sum::<f32>()
            .sqrt()
            .max(1.0);
        Ok(vector.map(|value| value / norm).to_vec())
    }
}

fn rank_first(retriever: &mut dyn Retriever, episode: &Episode) -> Vec<usize> {
    let pools = pools(std::slice::from_ref(episode), PoolSize::All);
    retriever.index(&pools[0].records).unwrap();
    let ranked = retriever.rank(&pools[0].questions[0]).unwrap();
    ranked.into_iter().map(|(record, _)| record).collect()
}

#[test]
fn history_ends_before_the_session_of_the_question() {
    let episode = trips();
    let pools = pools(std::slice::from_ref(&episode), PoolSize::Episode);
    let texts: Vec<&str> = pools[0]
        .records
        .iter()
        .filter_map(|record| record.turn.text.as_deref())
        .collect();
    assert_eq!(texts.len(), 4);
    assert!(!texts.contains(&"Where is the bicycle?"));
    assert_eq!(
        pools[0].records[3].document(),
        "Ben (2 March 2026): The bicycle has a flat tyre."
    );
}

#[test]
fn a_session_that_gives_evidence_is_history_and_later_ones_are_not() {
    let sessions: &[&[&str]] = &[&["One."], &["Two."], &["Three."]];
    let asked: &[(&str, &str, &[&str])] = &[("s2", "?", &["s2t0"]), ("s3", "?", &["s1t0"])];
    let episode = episode("a1", sessions, asked);
    let pools = pools(std::slice::from_ref(&episode), PoolSize::Episode);
    let known = |question: usize| {
        let records = pools[0].records.iter();
        records
            .filter(|record| pools[0].questions[question].may_draw_on(record))
            .count()
    };
    assert_eq!((pools[0].records.len(), known(0), known(1)), (2, 2, 2));

    let early = self::episode("a1", sessions, &[("s1", "?", &[]), ("s3", "?", &["s1t0"])]);
    let pools = self::pools(std::slice::from_ref(&early), PoolSize::Episode);
    let first = &pools[0].questions[0];
    assert!(
        pools[0]
            .records
            .iter()
            .all(|record| !first.may_draw_on(record))
    );
}

#[test]
fn pools_are_dealt_evenly_over_scenarios() {
    let lines: &[&[&str]] = &[&["One.", "Two."]];
    let episodes: Vec<Episode> = ["a1", "a2", "b1", "b2"]
        .iter()
        .map(|id| episode(id, lines, &[]))
        .collect();
    let ids = |size| -> Vec<Vec<String>> {
        let of_pool = |pool: &Pool<'_>| {
            let records = pool.records.iter().step_by(2);
            records.map(|record| record.episode.id.clone()).collect()
        };
        pools(&episodes, size).iter().map(of_pool).collect()
    };
    assert_eq!(ids(PoolSize::Records(4)), [["a1", "b1"], ["a2", "b2"]]);
    assert_eq!(ids(PoolSize::Records(1)).len(), 4);
    assert_eq!(ids(PoolSize::All), [["a1", "a2", "b1", "b2"]]);
    assert_eq!(ids(PoolSize::Episode).len(), 4);
    assert!(pools(&[], PoolSize::Records(5))[0].records.is_empty());
}

#[test]
fn pool_sizes_are_read_from_words_and_numbers() {
    assert_eq!("episode".parse(), Ok(PoolSize::Episode));
    assert_eq!("all".parse(), Ok(PoolSize::All));
    assert_eq!("4331".parse(), Ok(PoolSize::Records(4331)));
    for wrong in ["0", "-3", "some", ""] {
        assert!(wrong.parse::<PoolSize>().is_err(), "{wrong:?}");
    }
}

#[test]
fn a_perfect_ranking_scores_in_full_and_questions_without_evidence_are_skipped() {
    let episode = trips();
    let pools = pools(std::slice::from_ref(&episode), PoolSize::Episode);
    let mut pools_done = 0;
    let report = evaluate(&pools, &mut Listed(&[1, 0, 3, 2]), || pools_done += 1).unwrap();
    let RetrievalMeans { n, r1, r3, em3, .. } = report.overall.means();
    assert_eq!((n, r1, r3, em3), (2, 0.75, 1.0, 1.0));
    assert_eq!((report.skipped, pools_done), (1, 1));
    assert_eq!(
        report.by_task.keys().collect::<Vec<_>>(),
        ["task0", "task1"]
    );
    assert_eq!(report.by_task["task1"].means().r1, 0.5);
    assert_eq!(report.by_speaker_query["self_to_fact"].means().n, 1);
}

#[test]
fn what_is_not_history_takes_no_rank() {
    let other = episode("b1", &[&["Elsewhere."]], &[]);
    let asked = episode(
        "a1",
        &[&["One."], &["Two."], &["Three."]],
        &[("s2", "?", &["s1t0"]), ("s3", "?", &["s2t0"])],
    );
    let episodes = [asked, other];
    let pools = pools(&episodes, PoolSize::All);
    // Records: a1/s1, a1/s2, b1. The first question may not draw on a1/s2.
    let report = evaluate(&pools, &mut Listed(&[1, 0, 2]), || {}).unwrap();
    assert_eq!(report.by_task["task0"].means().r1, 1.0);
    assert_eq!(report.by_task["task1"].means().r1, 1.0);
}

#[test]
fn bm25_stems_words_and_knows_speaker_and_date() {
    let about = |text| {
        episode(
            "a1",
            &[trip_lines()[0], trip_lines()[1]],
            &[("s2", text, &["s1t0"])],
        )
    };
    let mut bm25 = Bm25::default();
    assert_eq!(rank_first(&mut bm25, &about("Bicycles?"))[0], 1);
    assert_eq!(rank_first(&mut bm25, &about("What did Ann say?"))[0], 0);
    assert_eq!(rank_first(&mut bm25, &about("xylophone")), [0; 0]);
}

fn trip_lines() -> [&'static [&'static str]; 2] {
    [
        &[
            "The dentist is booked for Tuesday.",
            "We bought a red bicycle.",
        ],
        &["Dinner will be late."],
    ]
}

#[test]
fn dense_ranks_by_cosine_and_breaks_ties_by_order() {
    let episode = episode(
        "a1",
        &[&["bbb", "ccc", "bbb", "zzz"], &[]],
        &[("s2", "bb", &["s1t0"])],
    );
    let ranked = rank_first(
        &mut Dense::new(SharedEmbedder::new(Box::new(Letters))),
        &episode,
    );
    assert_eq!(ranked.len(), 4);
    assert_eq!(ranked[..2], [0, 2]);
}

#[test]
fn a_record_is_embedded_once_and_a_question_each_time() {
    struct Counting(std::rc::Rc<std::cell::Cell<usize>>);
    impl Embed for Counting {
        fn embed(&mut self, _: &str) -> Result<Vec<f32>> {
            self.0.set(self.0.get() + 1);
            Ok(vec![1.0])
        }
    }
    let calls = std::rc::Rc::default();
    let shared = SharedEmbedder::new(Box::new(Counting(std::rc::Rc::clone(&calls))));
    for _ in 0..2 {
        shared.document("one").unwrap();
        shared.question("one").unwrap();
    }
    assert_eq!(calls.get(), 3);
}

#[test]
fn rank_fusion_adds_reciprocal_ranks() {
    let mut rrf = Rrf::new(vec![
        Box::new(Listed(&[0, 1, 2])),
        Box::new(Listed(&[2, 1])),
    ]);
    // 2: 1/63 + 1/61, 1: 1/62 + 1/62, 0: 1/61.
    assert_eq!(rank_first(&mut rrf, &trips()), [2, 1, 0]);
}

#[test]
fn min_max_fusion_adds_scaled_scores() {
    let mut fusion = MinMax::new(vec![
        Box::new(Listed(&[0, 1, 2, 3])),
        Box::new(Listed(&[3])),
    ]);
    // First: 1, 2/3, 1/3, 0. Second: 1 for record 3 and 0 for those left out.
    assert_eq!(rank_first(&mut fusion, &trips()), [0, 3, 1, 2]);
}

/// Thinks that Ben is always right.
#[derive(Default)]
struct Believer(Vec<f32>);

impl Retriever for Believer {
    fn index(&mut self, records: &[PoolRecord<'_>]) -> Result<()> {
        let belief = |record: &PoolRecord<'_>| f32::from(record.turn.speaker == "p2");
        self.0 = records.iter().map(belief).collect();
        Ok(())
    }

    fn rank(&mut self, _: &Asked<'_>) -> Result<Vec<Ranked>> {
        Ok(self.0.iter().copied().enumerate().collect())
    }
}

#[test]
fn another_voice_is_tried_where_the_answer_depends_on_the_speaker() {
    let episode = trips();
    let pools = pools(std::slice::from_ref(&episode), PoolSize::Episode);
    // One question of the first kind; Ben said its evidence, and Ann could have.
    let heard = counterfactual(&pools, &mut Believer::default(), || {}).unwrap();
    assert_eq!((heard.pairs, heard.share()), (1, Some(1.0)));
    let deaf = counterfactual(&pools, &mut Listed(&[0, 1, 2, 3]), || {}).unwrap();
    assert_eq!((deaf.pairs, deaf.share()), (1, Some(0.0)));
}
