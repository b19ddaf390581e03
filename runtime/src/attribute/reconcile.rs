//! Reconciling identities after a session (VoxPolyMem appendix B.1).
//!
//! The tracker sometimes opens a second identity for a voice it has met before.
//! With more evidence at hand, small groups of turns are merged into large ones
//! where everything speaks for it and nothing against. Turns keep their original
//! identity and voiceprint; the outcome is an alias map.
//!
//! Cost: every pair of turns of different groups is compared, so the caller
//! bounds the number of turns.

use std::collections::{BTreeMap, BTreeSet};

use earwitness_api::types::{SessionId, SpeakerId};
use earwitness_dsp::dot::dot_f32;

/// One attributed turn.
#[derive(Clone, Debug)]
pub struct Utterance {
    /// The identity that the tracker gave it.
    pub speaker: SpeakerId,
    /// The session it was said in.
    pub session: SessionId,
    /// Its voiceprint, of unit length.
    pub embedding: Vec<f32>,
}

/// When two identities are one; similarities are cosines.
#[derive(Clone, Copy, Debug)]
pub struct ReconcileOptions {
    /// A group merges only into one at least so many times its size.
    pub size_ratio: usize,
    /// How far the best candidate must be ahead of the runner-up.
    pub separation: f32,
    /// Least cross-group similarity, as a share of the cohesion of the less
    /// cohesive group.
    pub cohesion_share: f32,
    /// Least size of the target of a singleton.
    pub singleton_target: usize,
    /// Utterances of the target that a singleton is compared with.
    pub singleton_nearest: usize,
    /// Least similarity of a singleton to its target, and of any group.
    pub merge_at: f32,
}

impl ReconcileOptions {
    /// The configuration of appendix B.1 with a pack's own merge threshold.
    pub fn new(merge_at: f32) -> Self {
        Self {
            size_ratio: 3,
            separation: 0.1,
            cohesion_share: 0.8,
            singleton_target: 10,
            singleton_nearest: 5,
            merge_at,
        }
    }
}

/// Merged identities and what they are an alias of; never a chain.
pub type Aliases = BTreeMap<SpeakerId, SpeakerId>;

/// Finds the identities that are the same voice. Merges the best eligible pair
/// and looks again, until no pair is eligible.
pub fn reconcile(utterances: &[Utterance], options: &ReconcileOptions) -> Aliases {
    let mut groups: BTreeMap<SpeakerId, Vec<&Utterance>> = BTreeMap::new();
    for utterance in utterances {
        groups.entry(utterance.speaker).or_default().push(utterance);
    }
    let mut aliases = Aliases::new();
    while let Some((source, target)) = best_pair(&groups, options) {
        let merged = groups.remove(&source).unwrap_or_default();
        groups.entry(target).or_default().extend(merged);
        for aliased in aliases.values_mut().filter(|aliased| **aliased == source) {
            *aliased = target;
        }
        aliases.insert(source, target);
    }
    aliases
}

type Groups<'a> = BTreeMap<SpeakerId, Vec<&'a Utterance>>;

/// The eligible pair of highest similarity, as (source, target).
fn best_pair(groups: &Groups<'_>, options: &ReconcileOptions) -> Option<(SpeakerId, SpeakerId)> {
    groups
        .keys()
        .filter_map(|&source| {
            let (target, score) = candidate(groups, source, options)?;
            Some((score, source, target))
        })
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
        .map(|(_, source, target)| (source, target))
}

/// The group that a source may merge into, with their similarity.
fn candidate(
    groups: &Groups<'_>,
    source: SpeakerId,
    options: &ReconcileOptions,
) -> Option<(SpeakerId, f32)> {
    let (target, score, runner_up) = closest(groups, source, options)?;
    let (from, into) = (&groups[&source], &groups[&target]);
    let separated = runner_up.is_none_or(|second| score - second >= options.separation);
    let sized = from.len() * options.size_ratio <= into.len();
    let fits = if from.len() == 1 {
        into.len() >= options.singleton_target
    } else {
        let mutual = closest(groups, target, options).is_some_and(|(back, ..)| back == source);
        let least = options.cohesion_share * cohesion(from).min(cohesion(into));
        mutual && score >= least && share_sessions(from, into)
    };
    (sized && separated && fits && score >= options.merge_at).then_some((target, score))
}

/// The most similar other group, its similarity, and that of the runner-up.
fn closest(
    groups: &Groups<'_>,
    source: SpeakerId,
    options: &ReconcileOptions,
) -> Option<(SpeakerId, f32, Option<f32>)> {
    let mut scored: Vec<(SpeakerId, f32)> = groups
        .iter()
        .filter(|(id, _)| **id != source)
        .map(|(id, group)| (*id, similarity(&groups[&source], group, options)))
        .collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let &(best, score) = scored.first()?;
    Some((best, score, scored.get(1).map(|second| second.1)))
}

/// Median cross-group similarity; for a singleton, the mean over the closest
/// utterances of the other group.
fn similarity(from: &[&Utterance], into: &[&Utterance], options: &ReconcileOptions) -> f32 {
    let mut cross: Vec<f32> = from
        .iter()
        .flat_map(|a| into.iter().map(|b| dot_f32(&a.embedding, &b.embedding)))
        .collect();
    if from.len() > 1 {
        return median(&mut cross);
    }
    cross.sort_by(|a, b| b.total_cmp(a));
    cross.truncate(options.singleton_nearest);
    cross.iter().sum::<f32>() / cross.len() as f32
}

/// Median similarity within a group; 1 for a singleton.
fn cohesion(group: &[&Utterance]) -> f32 {
    let mut within: Vec<f32> = group
        .iter()
        .enumerate()
        .flat_map(|(i, a)| {
            group[..i]
                .iter()
                .map(|b| dot_f32(&a.embedding, &b.embedding))
        })
        .collect();
    if within.is_empty() {
        1.0
    } else {
        median(&mut within)
    }
}

/// Whether the groups share at least half of the sessions of the one with fewer.
fn share_sessions(a: &[&Utterance], b: &[&Utterance]) -> bool {
    let sessions = |group: &[&Utterance]| -> BTreeSet<SessionId> {
        group.iter().map(|utterance| utterance.session).collect()
    };
    let (a, b) = (sessions(a), sessions(b));
    2 * a.intersection(&b).count() >= a.len().min(b.len())
}

/// The median of a non-empty list, which is sorted on the way.
fn median(values: &mut [f32]) -> f32 {
    values.sort_by(f32::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of one identity in one session whose voiceprints point along an
    /// angle, each a little off.
    fn turns(speaker: u32, session: u32, degrees: f32, count: usize) -> Vec<Utterance> {
        (0..count)
            .map(|i| {
                let angle = (degrees + i as f32 % 3.0 - 1.0).to_radians();
                Utterance {
                    speaker: SpeakerId(speaker),
                    session: SessionId(session),
                    embedding: vec![angle.cos(), angle.sin()],
                }
            })
            .collect()
    }

    fn aliases(groups: &[Vec<Utterance>]) -> Vec<(u32, u32)> {
        let all: Vec<Utterance> = groups.concat();
        let found = reconcile(&all, &ReconcileOptions::new(0.35));
        found.iter().map(|(from, into)| (from.0, into.0)).collect()
    }

    #[test]
    fn a_fragment_joins_its_voice() {
        let groups = [
            turns(1, 1, 0.0, 12),
            turns(2, 1, 90.0, 12),
            turns(3, 1, 8.0, 3),
        ];
        assert_eq!(aliases(&groups), [(3, 1)]);
    }

    #[test]
    fn a_singleton_needs_a_large_target() {
        let lone = turns(3, 1, 5.0, 1);
        assert_eq!(
            aliases(&[turns(1, 1, 0.0, 10), turns(2, 1, 90.0, 9), lone.clone()]),
            [(3, 1)]
        );
        assert_eq!(
            aliases(&[turns(1, 1, 0.0, 9), turns(2, 1, 90.0, 9), lone]),
            []
        );
    }

    #[test]
    fn groups_of_like_size_stay_apart_however_close() {
        assert_eq!(aliases(&[turns(1, 1, 0.0, 6), turns(2, 1, 1.0, 5)]), []);
    }

    #[test]
    fn a_fragment_between_two_voices_stays_apart() {
        let groups = [
            turns(1, 1, 0.0, 12),
            turns(2, 1, 40.0, 12),
            turns(3, 1, 20.0, 3),
        ];
        assert_eq!(aliases(&groups), []);
    }

    #[test]
    fn voices_of_different_sessions_stay_apart() {
        assert_eq!(aliases(&[turns(1, 1, 0.0, 12), turns(2, 2, 0.0, 3)]), []);
    }

    #[test]
    fn fragments_merge_one_after_the_other_without_chains() {
        let groups = [
            turns(1, 1, 0.0, 12),
            turns(2, 1, 90.0, 20),
            turns(3, 1, 7.0, 2),
            turns(4, 1, 95.0, 1),
        ];
        assert_eq!(aliases(&groups), [(3, 1), (4, 2)]);
    }
}
