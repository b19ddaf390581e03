//! The three splits, and what belongs to which.

use clap::ValueEnum;

/// A part of the benchmark with grammar, values, names and voices of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Split {
    /// To learn from.
    Train,
    /// To choose a checkpoint by.
    Validation,
    /// To measure with.
    Evaluation,
}

/// Which split the items of a list belong to, over and over.
const TURNS: [Split; 5] = [
    Split::Train,
    Split::Evaluation,
    Split::Train,
    Split::Validation,
    Split::Evaluation,
];

impl Split {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Train, Self::Validation, Self::Evaluation];

    /// The name of its folder.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Evaluation => "evaluation",
        }
    }

    /// Episodes and questions as published (PERSIST, table 10).
    pub fn published_size(self) -> (usize, usize) {
        match self {
            Self::Train => (9119, 27_985),
            Self::Validation => (1013, 3185),
            Self::Evaluation => (1200, 1200),
        }
    }

    /// How many questions go with `episodes` episodes, in the published ratio.
    pub fn questions(self, episodes: usize) -> usize {
        let (of_episodes, questions) = self.published_size();
        (episodes * questions).div_ceil(of_episodes)
    }

    /// This split's part of a list.
    pub(crate) fn part<T>(self, list: impl IntoIterator<Item = T>) -> Vec<T> {
        list.into_iter()
            .zip(TURNS.iter().cycle())
            .filter(|(_, split)| **split == self)
            .map(|(item, _)| item)
            .collect()
    }
}
