//! Reconciling identities after a session (VoxPolyMem appendix B.1).
//!
//! The tracker sometimes opens a second identity for a voice it has met before.
//! With more evidence at hand, small groups of turns are merged into large ones
//! where everything speaks for it and nothing against. Turns keep their original
//! speaker and voiceprint; the outcome is a list of merges, which the store can
//! undo one by one.
//!
//! Merges that hold already are where the grouping begins, so none is ever taken
//! back here; and what somebody set apart stays apart.
//!
//! Cost: every pair of turns of different groups is compared once, so the caller
//! bounds the number of turns; a merge compares its own group anew.

use std::collections::{BTreeMap, BTreeSet};

use earwitness_api::types::{SessionId, SpeakerId};
use earwitness_dsp::dot::dot_f32;

/// One attributed turn.
#[derive(Clone, Debug)]
pub struct Utterance {
    /// The identity that it belongs to.
    pub identity: SpeakerId,
    /// The session it was said in; `None` for a piece of an enrolment.
    pub session: Option<SessionId>,
    /// Its voiceprint, of unit length.
    pub embedding: Vec<f32>,
}

/// When two identities are one; similarities are cosines between turns.
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

/// Two identities that are one, and what speaks for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// The identity that is given up.
    pub from: SpeakerId,
    /// The identity that takes it over.
    pub into: SpeakerId,
    /// Their similarity.
    pub similarity: f32,
    /// Similarity of `from` to the next best group, where there is one.
    pub runner_up: Option<f32>,
    /// Median similarity within the less cohesive of the two; 1 for a single turn.
    pub cohesion: f32,
}

/// Pairs of identities, the lower id first, that are not one whatever they sound
/// like.
pub type Apart = BTreeSet<(SpeakerId, SpeakerId)>;

/// Finds the identities that are the same voice, in the order in which they are
/// to be merged. Merges the best eligible pair and looks again, until no pair is
/// eligible.
pub fn reconcile(
    utterances: &[Utterance],
    apart: &Apart,
    options: &ReconcileOptions,
) -> Vec<Match> {
    let mut groups = Groups::new(utterances, apart.clone(), options);
    let mut merges = Vec::new();
    while let Some(best) = groups.best_match() {
        groups.merge(best.from, best.into);
        merges.push(best);
    }
    merges
}

/// A pair of identities with the lower id first, as [`Apart`] has it.
pub fn pair(a: SpeakerId, b: SpeakerId) -> (SpeakerId, SpeakerId) {
    (a.min(b), a.max(b))
}

/// Utterances by identity, with what was found out about the groups so far.
struct Groups<'a> {
    members: BTreeMap<SpeakerId, Vec<&'a Utterance>>,
    /// From each group to each other one; from a singleton it is another measure
    /// than to it.
    similarity: BTreeMap<(SpeakerId, SpeakerId), f32>,
    cohesion: BTreeMap<SpeakerId, f32>,
    apart: Apart,
    options: &'a ReconcileOptions,
}

/// The group that is most like another.
struct Closest {
    id: SpeakerId,
    similarity: f32,
    runner_up: Option<f32>,
}

impl<'a> Groups<'a> {
    fn new(utterances: &'a [Utterance], apart: Apart, options: &'a ReconcileOptions) -> Self {
        let mut members: BTreeMap<SpeakerId, Vec<&Utterance>> = BTreeMap::new();
        for utterance in utterances {
            members
                .entry(utterance.identity)
                .or_default()
                .push(utterance);
        }
        let mut groups = Self {
            members,
            similarity: BTreeMap::new(),
            cohesion: BTreeMap::new(),
            apart,
            options,
        };
        let ids: Vec<SpeakerId> = groups.members.keys().copied().collect();
        for id in ids {
            groups.measure(id);
        }
        groups
    }

    /// Measures one group against itself and all others.
    fn measure(&mut self, id: SpeakerId) {
        let own = &self.members[&id];
        self.cohesion.insert(id, cohesion(own));
        for (&other, group) in self.members.iter().filter(|(other, _)| **other != id) {
            let mut cross = similarities(own, group);
            cross.sort_by(|a, b| b.total_cmp(a));
            for (from, into, size) in [(id, other, own.len()), (other, id, group.len())] {
                let measured = if size == 1 {
                    mean(&cross[..cross.len().min(self.options.singleton_nearest)])
                } else {
                    median(&cross)
                };
                self.similarity.insert((from, into), measured);
            }
        }
    }

    /// The eligible pair of highest similarity.
    fn best_match(&self) -> Option<Match> {
        let eligible = self.members.keys().filter_map(|&id| self.match_of(id));
        eligible.max_by(|a, b| {
            let by_similarity = a.similarity.total_cmp(&b.similarity);
            by_similarity.then(b.from.cmp(&a.from))
        })
    }

    /// The group that `from` may merge into.
    fn match_of(&self, from: SpeakerId) -> Option<Match> {
        let options = self.options;
        let closest = self.closest(from)?;
        let (into, similarity) = (closest.id, closest.similarity);
        let (source, target) = (&self.members[&from], &self.members[&into]);
        let cohesion = self.cohesion[&from].min(self.cohesion[&into]);
        let separated = closest
            .runner_up
            .is_none_or(|second| similarity - second >= options.separation);
        let sized = source.len() * options.size_ratio <= target.len();
        let fits = if source.len() == 1 {
            target.len() >= options.singleton_target
        } else {
            let mutual = self.closest(into).is_some_and(|back| back.id == from);
            mutual
                && similarity >= options.cohesion_share * cohesion
                && share_sessions(source, target)
        };
        let allowed = !self.apart.contains(&pair(from, into));
        (allowed && sized && separated && fits && similarity >= options.merge_at).then_some(Match {
            from,
            into,
            similarity,
            runner_up: closest.runner_up,
            cohesion,
        })
    }

    /// The most similar other group; of equals the one with the lower id.
    fn closest(&self, id: SpeakerId) -> Option<Closest> {
        let mut closest: Option<Closest> = None;
        for &other in self.members.keys().filter(|other| **other != id) {
            let similarity = self.similarity[&(id, other)];
            match &mut closest {
                Some(best) if similarity <= best.similarity => {
                    let second = best.runner_up.map_or(similarity, |s| s.max(similarity));
                    best.runner_up = Some(second);
                }
                best => {
                    *best = Some(Closest {
                        id: other,
                        similarity,
                        runner_up: best.as_ref().map(|beaten| beaten.similarity),
                    });
                }
            }
        }
        closest
    }

    /// Puts one group into another, which is set apart from whatever either was.
    fn merge(&mut self, from: SpeakerId, into: SpeakerId) {
        let members = self.members.remove(&from).unwrap_or_default();
        self.members.entry(into).or_default().extend(members);
        let renamed = |id| if id == from { into } else { id };
        self.apart = self
            .apart
            .iter()
            .map(|&(a, b)| pair(renamed(a), renamed(b)))
            .collect();
        self.measure(into);
    }
}

/// Every cosine between two groups.
fn similarities(a: &[&Utterance], b: &[&Utterance]) -> Vec<f32> {
    a.iter()
        .flat_map(|x| b.iter().map(|y| dot_f32(&x.embedding, &y.embedding)))
        .collect()
}

/// Median similarity within a group; 1 for a singleton.
fn cohesion(group: &[&Utterance]) -> f32 {
    let mut within: Vec<f32> = group
        .iter()
        .enumerate()
        .flat_map(|(i, a)| similarities(&[a], &group[..i]))
        .collect();
    within.sort_by(f32::total_cmp);
    if within.is_empty() {
        1.0
    } else {
        median(&within)
    }
}

/// Whether the groups share at least half of the sessions of the one with fewer.
/// A voice that was only ever enrolled has none, which nothing speaks against.
fn share_sessions(a: &[&Utterance], b: &[&Utterance]) -> bool {
    let sessions = |group: &[&Utterance]| -> BTreeSet<SessionId> {
        group.iter().filter_map(|turn| turn.session).collect()
    };
    let (a, b) = (sessions(a), sessions(b));
    2 * a.intersection(&b).count() >= a.len().min(b.len())
}

fn mean(values: &[f32]) -> f32 {
    values.iter().sum::<f32>() / values.len() as f32
}

/// The median of a sorted list that is not empty.
fn median(sorted: &[f32]) -> f32 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        (sorted[middle - 1] + sorted[middle]) / 2.0
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
                    identity: SpeakerId(speaker),
                    session: Some(SessionId(session)),
                    embedding: vec![angle.cos(), angle.sin()],
                }
            })
            .collect()
    }

    fn merges(groups: &[Vec<Utterance>], apart: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let apart = apart
            .iter()
            .map(|&(a, b)| pair(SpeakerId(a), SpeakerId(b)))
            .collect();
        let found = reconcile(&groups.concat(), &apart, &ReconcileOptions::new(0.35));
        found
            .iter()
            .map(|merge| (merge.from.0, merge.into.0))
            .collect()
    }

    #[test]
    fn a_fragment_joins_its_voice() {
        let groups = [
            turns(1, 1, 0.0, 12),
            turns(2, 1, 90.0, 12),
            turns(3, 1, 8.0, 3),
        ];
        assert_eq!(merges(&groups, &[]), [(3, 1)]);
    }

    #[test]
    fn a_match_says_what_spoke_for_it() {
        let groups = [
            turns(1, 1, 0.0, 12),
            turns(2, 1, 90.0, 12),
            turns(3, 1, 8.0, 3),
        ];
        let all = groups.concat();
        let found = reconcile(&all, &Apart::new(), &ReconcileOptions::new(0.35));
        let Match {
            similarity,
            runner_up,
            cohesion,
            ..
        } = found[0];
        let cosine = |degrees: f32| degrees.to_radians().cos();
        assert!((similarity - cosine(8.0)).abs() < 1e-4, "{similarity}");
        assert!((runner_up.unwrap() - cosine(82.0)).abs() < 1e-4);
        assert!((cohesion - cosine(1.0)).abs() < 1e-4, "{cohesion}");
    }

    #[test]
    fn a_singleton_needs_a_large_target() {
        let lone = turns(3, 1, 5.0, 1);
        let other = turns(2, 1, 90.0, 9);
        let large = [turns(1, 1, 0.0, 10), other.clone(), lone.clone()];
        assert_eq!(merges(&large, &[]), [(3, 1)]);
        assert_eq!(merges(&[turns(1, 1, 0.0, 9), other, lone], &[]), []);
    }

    #[test]
    fn a_singleton_is_held_to_its_five_nearest() {
        // Five turns as close as can be, seven so far off that a median would fail.
        let mut target = turns(1, 1, 0.0, 5);
        target.extend(turns(1, 1, 100.0, 7));
        assert_eq!(merges(&[target, turns(3, 1, 0.0, 1)], &[]), [(3, 1)]);
    }

    #[test]
    fn groups_of_like_size_stay_apart_however_close() {
        assert_eq!(merges(&[turns(1, 1, 0.0, 6), turns(2, 1, 1.0, 5)], &[]), []);
    }

    #[test]
    fn a_fragment_between_two_voices_stays_apart() {
        let groups = [
            turns(1, 1, 0.0, 12),
            turns(2, 1, 40.0, 12),
            turns(3, 1, 20.0, 3),
        ];
        assert_eq!(merges(&groups, &[]), []);
    }

    #[test]
    fn voices_of_different_sessions_stay_apart() {
        let groups = [turns(1, 1, 0.0, 12), turns(2, 2, 0.0, 3)];
        assert_eq!(merges(&groups, &[]), []);
    }

    #[test]
    fn an_enrolment_has_no_sessions_to_share() {
        let mut enrolled = turns(2, 1, 0.0, 3);
        enrolled.iter_mut().for_each(|piece| piece.session = None);
        assert_eq!(merges(&[turns(1, 1, 0.0, 12), enrolled], &[]), [(2, 1)]);
    }

    #[test]
    fn fragments_merge_one_after_the_other_without_chains() {
        let groups = [
            turns(1, 1, 0.0, 12),
            turns(2, 1, 90.0, 20),
            turns(3, 1, 7.0, 2),
            turns(4, 1, 95.0, 1),
        ];
        assert_eq!(merges(&groups, &[]), [(4, 2), (3, 1)]);
    }

    #[test]
    fn what_was_set_apart_stays_apart_through_other_merges() {
        let groups = [
            turns(1, 1, 0.0, 40),
            turns(3, 1, 30.0, 9),
            turns(4, 1, 35.0, 3),
        ];
        assert_eq!(merges(&groups, &[]), [(4, 3), (3, 1)]);
        assert_eq!(merges(&groups, &[(1, 3)]), [(4, 3)]);
        assert_eq!(merges(&groups, &[(1, 4)]), [(4, 3)]);
    }
}
