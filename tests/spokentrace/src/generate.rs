//! Episode after episode: schedule, plan, realize, validate.

use fastrand::Rng;

use crate::{
    episode::Episode,
    library::{Library, LibraryError},
    planner::plan,
    realize::realize,
    schedule::{Kind, schedule},
    split::Split,
    validate::validate,
};

/// Draws before an episode is given up; far more than any has needed.
const ATTEMPTS: u64 = 200;

/// Generates the episodes of one split.
pub struct Generator {
    library: Library,
    split: Split,
    seed: u64,
    /// What each episode asks.
    kinds: Vec<Vec<Kind>>,
}

/// Why an episode could not be made.
#[derive(Debug, thiserror::Error)]
#[error("no draw of episode {id} passed validation, the last because {reason}; mend the grammar")]
pub struct GenerateError {
    id: String,
    reason: String,
}

impl Generator {
    /// A generator of `episodes` episodes.
    pub fn new(split: Split, seed: u64, episodes: usize) -> Result<Self, LibraryError> {
        let mut rng = rng(seed, split, 0, 0);
        Ok(Self {
            library: Library::read(split)?,
            split,
            seed,
            kinds: schedule(episodes, split.questions(episodes), &mut rng),
        })
    }

    /// How many episodes there are.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Episode `index`, from 0.
    pub fn episode(&self, index: usize) -> Result<Episode, GenerateError> {
        let id = format!("{}-{:05}", self.split.name(), index + 1);
        let subscenarios = &self.library.subscenarios;
        let subscenario = &subscenarios[index % subscenarios.len()];
        let mut reason = "its questions leave no room for each other".to_owned();
        for attempt in 1..=ATTEMPTS {
            let mut rng = rng(self.seed, self.split, index as u64 + 1, attempt);
            let Some(plan) = plan(&self.library, subscenario, &self.kinds[index], &mut rng) else {
                continue;
            };
            let realized = realize(&plan, id.clone(), &mut rng);
            match validate(&plan, &realized) {
                Ok(()) => return Ok(realized.episode),
                Err(fault) => reason = fault.to_string(),
            }
        }
        Err(GenerateError { id, reason })
    }
}

/// A generator of random numbers for one purpose: neighbouring seeds must not
/// give related draws, so each number is mixed in by a splitmix64 step.
fn rng(seed: u64, split: Split, episode: u64, attempt: u64) -> Rng {
    let mixed = [split as u64, episode, attempt]
        .into_iter()
        .fold(seed, |state, number| {
            let mut z = state
                .wrapping_add(number)
                .wrapping_add(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
    Rng::with_seed(mixed)
}
