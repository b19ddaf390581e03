//! How well the voices of this household can be told apart, judged by the turns
//! that are kept of each.
//!
//! Every kept turn is held against its own voice without that turn, and against
//! every other person: what share would have been rejected, and what share taken
//! for somebody else? These are estimates from the turns that the voices learned
//! from, so turns that were too short or too uncertain to learn from are not in
//! them.

use std::collections::BTreeMap;

use earwitness_api::{
    message::{NearestVoice, VoiceEstimate},
    types::SpeakerId,
};
use earwitness_dsp::dot::dot_f32;
use earwitness_models::manifest::Calibration;
use earwitness_store::Voiceprint;

use super::unit;

/// Estimates for everybody whose voice is kept, in the order of their ids.
pub fn estimate(
    kept: &[Voiceprint],
    match_at: f32,
    calibration: Calibration,
) -> Vec<VoiceEstimate> {
    let mut people: BTreeMap<SpeakerId, Person> = BTreeMap::new();
    for voiceprint in kept {
        if let Some(turn) = unit(&voiceprint.embedding) {
            people.entry(voiceprint.identity).or_default().add(turn);
        }
    }
    let others = |id: SpeakerId| people.iter().filter(move |(other, _)| **other != id);
    people
        .iter()
        .map(|(&identity, person)| {
            let turns_of_others = others(identity).flat_map(|(_, other)| &other.turns);
            VoiceEstimate {
                identity,
                turns: person.turns.len() as u32,
                false_reject: share((0..person.turns.len()).filter_map(|turn| {
                    let score = person.similarity_without(turn)?;
                    Some(score < match_at)
                })),
                false_accept: share(
                    turns_of_others.map(|turn| person.similarity(turn) >= match_at),
                ),
                nearest: others(identity)
                    .map(|(&id, other)| (person.mean_similarity(other), id))
                    .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
                    .map(|(similarity, identity)| NearestVoice {
                        identity,
                        similarity,
                        same: calibration.probability(similarity),
                    }),
            }
        })
        .collect()
}

/// The turns of one person, of unit length, and their sum.
#[derive(Default)]
struct Person {
    turns: Vec<Vec<f32>>,
    sum: Vec<f32>,
}

impl Person {
    fn add(&mut self, turn: Vec<f32>) {
        self.sum.resize(turn.len(), 0.0);
        self.sum
            .iter_mut()
            .zip(&turn)
            .for_each(|(sum, x)| *sum += x);
        self.turns.push(turn);
    }

    /// Cosine of somebody's turn to this person's centroid.
    fn similarity(&self, turn: &[f32]) -> f32 {
        dot_f32(&self.sum, turn) / dot_f32(&self.sum, &self.sum).sqrt()
    }

    /// Cosine of one of this person's turns to the centroid of the others.
    fn similarity_without(&self, turn: usize) -> Option<f32> {
        let turn = &self.turns[turn];
        let others: Vec<f32> = self.sum.iter().zip(turn).map(|(sum, x)| sum - x).collect();
        (self.turns.len() > 1).then(|| dot_f32(&unit(&others).unwrap_or(others), turn))
    }

    /// Mean cosine over all pairs of turns of the two.
    fn mean_similarity(&self, other: &Self) -> f32 {
        dot_f32(&self.sum, &other.sum) / (self.turns.len() * other.turns.len()) as f32
    }
}

/// The share of those that are true; `None` of nothing.
fn share(verdicts: impl Iterator<Item = bool>) -> Option<f32> {
    let (mut of, mut holds) = (0, 0);
    for verdict in verdicts {
        of += 1;
        holds += usize::from(verdict);
    }
    (of > 0).then(|| holds as f32 / of as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALIBRATION: Calibration = Calibration {
        slope: 30.0,
        offset: -12.0,
    };

    fn voiceprints(turns: &[(u32, f32)]) -> Vec<Voiceprint> {
        turns
            .iter()
            .map(|&(speaker, degrees)| Voiceprint {
                speaker: SpeakerId(speaker),
                identity: SpeakerId(speaker),
                turn: None,
                embedding: vec![degrees.to_radians().cos(), degrees.to_radians().sin()],
            })
            .collect()
    }

    #[test]
    fn one_turn_that_strays_and_one_that_is_too_close_are_counted() {
        let kept = voiceprints(&[
            (1, 0.0),
            (1, 0.0),
            (1, 0.0),
            (1, 80.0),
            (2, 120.0),
            (2, 120.0),
        ]);
        let found = estimate(&kept, 0.5, CALIBRATION);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].turns, 4);
        assert_eq!(found[0].false_reject, Some(0.25));
        assert_eq!(found[0].false_accept, Some(0.0));
        assert_eq!(found[1].false_reject, Some(0.0));
        assert_eq!(found[1].false_accept, Some(0.25));
        let nearest = found[1].nearest.unwrap();
        assert_eq!(nearest.identity, SpeakerId(1));
        let mean = (3.0 * 120_f32.to_radians().cos() + 40_f32.to_radians().cos()) / 4.0;
        assert!((nearest.similarity - mean).abs() < 1e-5);
        assert!(nearest.same < 1e-3);
    }

    #[test]
    fn one_person_with_one_turn_leaves_nothing_to_count() {
        let found = estimate(&voiceprints(&[(7, 0.0)]), 0.5, CALIBRATION);
        assert_eq!(found[0].false_reject, None);
        assert_eq!(found[0].false_accept, None);
        assert_eq!(found[0].nearest, None);
    }

    #[test]
    fn a_person_heard_as_two_voices_is_likely_one() {
        let found = estimate(&voiceprints(&[(1, 0.0), (2, 10.0)]), 0.5, CALIBRATION);
        assert!(found[0].nearest.unwrap().same > 0.99);
    }
}
