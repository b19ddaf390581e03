//! What happens in an episode, before anyone says it: who intends what, when that
//! changes, what is asked, and which facts the answers rest on.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::{
    library::{Library, Subscenario},
    schedule::{SpeakerQuery, Task},
};

/// The session that questions are asked in; those before it are history.
pub(crate) const CURRENT: usize = 2;

/// A planned episode.
pub(crate) struct Plan<'a> {
    pub library: &'a Library,
    pub subscenario: &'a Subscenario,
    pub theme: String,
    pub people: Vec<Person>,
    /// When each of the three sessions begins.
    pub starts: [Timestamp; 3],
    pub facts: Vec<Fact>,
    pub goals: Vec<Goal>,
    /// Every value that means something here.
    pub values: HashSet<String>,
}

/// Someone who takes part.
pub(crate) struct Person {
    pub name: String,
    pub short: String,
    pub voice: String,
}

/// Whose intention something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// One person's, by place in [`Plan::people`].
    One(usize),
    /// Everybody's.
    All,
}

/// One state of one intention, said once.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    pub owner: Owner,
    /// The place of the relation in the subscenario.
    pub relation: usize,
    pub value: String,
    pub session: usize,
    pub state: State,
}

/// How a fact relates to what was said before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing of the kind was said before.
    First,
    /// The owner had said something else.
    Revised,
    /// Somebody else had intended it.
    TakenOver { from: usize },
}

/// A question to come.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    pub task: Task,
    pub speaker_query: SpeakerQuery,
    pub asker: usize,
    pub form: Form,
    /// Whom it is about, unless it asks who.
    pub subject: Owner,
    /// What it is about: one or two relations and values.
    pub matters: Vec<Matter>,
    /// Places in [`Plan::facts`].
    pub evidence: Vec<usize>,
    pub answer: String,
}

/// A relation and, where the question says it, its value.
#[derive(Clone, Debug)]
pub(crate) struct Matter {
    pub relation: usize,
    pub value: String,
}

/// The forms of a question; each has templates of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// About a subject.
    Plain,
    /// Asks who.
    Who,
    /// About the subject and another person, side by side.
    Both { other: usize },
    /// Asks something about whoever intends something.
    Bridge,
}

/// The answer where there is none.
pub(crate) const NO_RECORD: &str = "There is no record of that.";

impl Plan<'_> {
    /// The answer to when a fact was said.
    pub fn date_of(&self, fact: usize) -> String {
        let session = self.facts[fact].session;
        let ordinal = ["first", "second", "current"][session];
        format!(
            "{} ({ordinal} session)",
            self.starts[session].strftime("%-d %B %Y")
        )
    }
}
