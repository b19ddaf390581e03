//! Would the same words in another voice have been found as well? (PERSIST,
//! section 4.3)

use std::collections::BTreeSet;

use anyhow::Result;
use serde::Serialize;

use super::{Asked, Pool, PoolRecord, Retriever};

/// How questions refer to people where the answer depends on who said it.
const DEPENDENT: [&str; 2] = ["self_to_fact", "person_to_fact"];

/// How often the record that was said by the right person is preferred.
#[derive(Debug, Default, Serialize)]
pub struct Counterfactual {
    /// Pairs of a supporting record and the same record said by somebody else.
    pub pairs: usize,
    /// In how many of them the supporting record scores higher.
    pub gold_preferred: usize,
}

impl Counterfactual {
    /// The share of all pairs; nothing where there are none.
    pub fn share(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.gold_preferred as f64 / self.pairs as f64)
    }
}

/// Puts every question whose answer depends on the speaker to its memory, and again
/// to memories in which somebody else of its episode said the supporting record;
/// `done` is told after each pool.
pub fn counterfactual(
    pools: &[Pool<'_>],
    retriever: &mut dyn Retriever,
    mut done: impl FnMut(),
) -> Result<Counterfactual> {
    let mut result = Counterfactual::default();
    for pool in pools {
        let asked = pool.questions.iter().filter(|asked| depends(asked));
        for asked in asked {
            for &gold in &asked.support {
                compare(pool, asked, gold, retriever, &mut result)?;
            }
        }
        done();
    }
    Ok(result)
}

fn depends(asked: &Asked<'_>) -> bool {
    let kind = asked.question.speaker_query.as_deref();
    kind.is_some_and(|kind| DEPENDENT.contains(&kind))
}

fn compare(
    pool: &Pool<'_>,
    asked: &Asked<'_>,
    gold: usize,
    retriever: &mut dyn Retriever,
    result: &mut Counterfactual,
) -> Result<()> {
    let right = score(&pool.records, asked, gold, retriever)?;
    let own = &pool.records[gold];
    let people: BTreeSet<&String> = pool
        .records
        .iter()
        .filter(|record| record.episode.id == own.episode.id)
        .map(|record| &record.turn.speaker)
        .collect();
    for person in people {
        if *person == own.turn.speaker {
            continue;
        }
        let mut turn = own.turn.clone();
        turn.speaker.clone_from(person);
        let mut records = pool.records.clone();
        records[gold] = PoolRecord {
            turn: &turn,
            ..own.clone()
        };
        result.pairs += 1;
        let wrong = score(&records, asked, gold, retriever)?;
        result.gold_preferred += usize::from(right > wrong);
    }
    Ok(())
}

/// The score of one record; the lowest of all where it is left out.
fn score(
    records: &[PoolRecord<'_>],
    asked: &Asked<'_>,
    place: usize,
    retriever: &mut dyn Retriever,
) -> Result<f32> {
    retriever.index(records)?;
    let ranked = retriever.rank(asked)?;
    let found = ranked.into_iter().find(|(record, _)| *record == place);
    Ok(found.map_or(f32::NEG_INFINITY, |(_, score)| score))
}
