//! Which questions a split asks, in the published proportions (PERSIST, table 11).

use std::collections::VecDeque;

use fastrand::Rng;

/// What a question needs of memory (PERSIST, table 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    /// A fact that was said.
    DirectRecall,
    /// When it was said.
    TemporalLocalization,
    /// The newest state of a fact that changed.
    LatestState,
    /// An earlier state of a fact that changed.
    HistoricalState,
    /// Both states.
    ChangeComparison,
    /// Two facts together.
    MultiHop,
    /// What was just said, and not the stale history.
    CurrentOnly,
    /// What was never said.
    MissingEvidence,
}

/// How a question refers to people (PERSIST, table 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SpeakerQuery {
    /// To nobody in particular.
    SpeakerIndependent,
    /// To the asker.
    SelfToFact,
    /// To somebody by name.
    PersonToFact,
    /// It asks who.
    FactToPerson,
}

use SpeakerQuery::{FactToPerson, PersonToFact, SelfToFact, SpeakerIndependent};

/// How often each task is asked in the published evaluation set.
const PUBLISHED: [(Task, usize); 8] = [
    (Task::DirectRecall, 194),
    (Task::TemporalLocalization, 179),
    (Task::LatestState, 200),
    (Task::HistoricalState, 197),
    (Task::ChangeComparison, 203),
    (Task::MultiHop, 133),
    (Task::CurrentOnly, 40),
    (Task::MissingEvidence, 54),
];

const SPEAKER_QUERIES: [SpeakerQuery; 4] =
    [SpeakerIndependent, SelfToFact, PersonToFact, FactToPerson];

impl Task {
    /// The name in episodes.
    pub fn name(self) -> &'static str {
        match self {
            Self::DirectRecall => "direct_recall",
            Self::TemporalLocalization => "temporal_localization",
            Self::LatestState => "latest_state",
            Self::HistoricalState => "historical_state",
            Self::ChangeComparison => "change_comparison",
            Self::MultiHop => "multi_hop",
            Self::CurrentOnly => "current_only",
            Self::MissingEvidence => "missing_evidence",
        }
    }

    /// Whether the answer rests on the history sessions.
    pub fn needs_history(self) -> bool {
        !matches!(self, Self::CurrentOnly | Self::MissingEvidence)
    }
}

impl SpeakerQuery {
    /// The name in episodes.
    pub fn name(self) -> &'static str {
        match self {
            SpeakerIndependent => "speaker_independent",
            SelfToFact => "self_to_fact",
            PersonToFact => "person_to_fact",
            FactToPerson => "fact_to_person",
        }
    }
}

/// A kind of question.
pub(crate) type Kind = (Task, SpeakerQuery);

/// The kinds of question of each episode: `questions` in all, spread evenly.
pub(crate) fn schedule(episodes: usize, questions: usize, rng: &mut Rng) -> Vec<Vec<Kind>> {
    let mut kinds: Vec<Kind> = counts(questions)
        .into_iter()
        .flat_map(|(task, count)| std::iter::repeat_n(task, count))
        .zip(SPEAKER_QUERIES.into_iter().cycle())
        .collect();
    rng.shuffle(&mut kinds);
    let mut waiting = VecDeque::from(kinds);
    (0..episodes)
        .map(|episode| {
            let count = questions / episodes + usize::from(episode < questions % episodes);
            deal(&mut waiting, count)
        })
        .collect()
}

/// How many questions of each task: the published shares, largest remainders first.
fn counts(questions: usize) -> Vec<(Task, usize)> {
    let total: usize = PUBLISHED.iter().map(|(_, count)| count).sum();
    let mut counts: Vec<(Task, usize)> = PUBLISHED
        .iter()
        .map(|(task, count)| (*task, count * questions / total))
        .collect();
    let missing = questions - counts.iter().map(|(_, count)| count).sum::<usize>();
    let mut by_remainder: Vec<usize> = (0..counts.len()).collect();
    by_remainder.sort_by_key(|&task| std::cmp::Reverse(PUBLISHED[task].1 * questions % total));
    for &task in &by_remainder[..missing] {
        counts[task].1 += 1;
    }
    counts
}

/// Takes `count` kinds that one episode has room for.
fn deal(waiting: &mut VecDeque<Kind>, count: usize) -> Vec<Kind> {
    let mut dealt: Vec<Kind> = Vec::with_capacity(count);
    for _ in 0..count {
        let fitting = waiting.iter().position(|kind| has_room(&dealt, *kind));
        dealt.extend(waiting.remove(fitting.unwrap_or(0)));
    }
    dealt
}

/// Whether an episode that asks `dealt` has a relation left that all share: a
/// subscenario has three, and a question of two hops takes two.
fn has_room(dealt: &[Kind], kind: Kind) -> bool {
    let needs = |(task, who): &Kind| match (who, task) {
        (SpeakerIndependent, Task::MultiHop) => 2,
        (SpeakerIndependent, _) => 1,
        _ => 0,
    };
    dealt.iter().map(needs).sum::<usize>() + needs(&kind) <= 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_evaluation_set_comes_out_exactly() {
        let kinds: Vec<Kind> = schedule(1200, 1200, &mut Rng::with_seed(1)).concat();
        for (task, count) in PUBLISHED {
            assert_eq!(kinds.iter().filter(|kind| kind.0 == task).count(), count);
        }
        for who in SPEAKER_QUERIES {
            assert_eq!(kinds.iter().filter(|kind| kind.1 == who).count(), 300);
        }
    }

    #[test]
    fn questions_are_spread_over_all_episodes_and_none_is_lost() {
        let dealt = schedule(100, 307, &mut Rng::with_seed(1));
        assert_eq!(dealt.concat().len(), 307);
        assert!(dealt.iter().all(|episode| (3..=4).contains(&episode.len())));
        assert_eq!(counts(0).iter().map(|(_, count)| count).sum::<usize>(), 0);
    }
}
