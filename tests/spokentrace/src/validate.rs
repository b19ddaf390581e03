//! Reads a finished episode against its plan: are its words what was planned, and
//! do they give nothing away?
//!
//! Deterministic checks in the sense of PERSIST, appendix B.5. Values are compared
//! as they are spelled, without regard to case.

use crate::{
    episode::Turn,
    plan::{CURRENT, Form, Goal, Owner, Plan, State},
    realize::Realized,
    schedule::{SpeakerQuery, Task},
};

/// Why an episode is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("fact {0} is said in no turn, or not by its owner, or in the wrong session")]
    Unsaid(usize),
    #[error("the value of fact {0} is said before its time")]
    SaidTooEarly(usize),
    #[error("the current session gives away the answer of question {0}")]
    GivenAway(String),
    #[error("question {0} holds its own answer")]
    AnswersItself(String),
    #[error("the evidence of question {0} is not what was planned")]
    WrongEvidence(String),
    #[error("question {0} needs no voice: nobody else said the like")]
    Unambiguous(String),
    #[error("question {0} can be answered from history")]
    Answerable(String),
    #[error("a brace is left in {0:?}")]
    Unfilled(String),
}

/// Refuses an episode at the first fault.
pub(crate) fn validate(plan: &Plan<'_>, realized: &Realized) -> Result<(), Fault> {
    let check = Check { plan, realized };
    check.words()?;
    (0..plan.facts.len()).try_for_each(|fact| check.fact(fact))?;
    plan.goals
        .iter()
        .enumerate()
        .try_for_each(|(place, goal)| check.goal(place, goal))
}

struct Check<'a> {
    plan: &'a Plan<'a>,
    realized: &'a Realized,
}

impl Check<'_> {
    fn words(&self) -> Result<(), Fault> {
        let turns = self.turns(0..CURRENT + 1).map(|turn| &turn.text);
        let questions = self.realized.episode.questions.iter();
        match turns
            .chain(questions.map(|question| &question.text))
            .find(|text| text.contains(['{', '}']))
        {
            Some(text) => Err(Fault::Unfilled(text.clone())),
            None => Ok(()),
        }
    }

    /// A fact is said where and by whom it should be; a later state not before it.
    fn fact(&self, place: usize) -> Result<(), Fault> {
        let fact = &self.plan.facts[place];
        let turn = self
            .turns(fact.session..fact.session + 1)
            .find(|turn| turn.id == self.realized.turn_of_fact[place]);
        let said = turn.is_some_and(|turn| says(&turn.text, &fact.value) && owns(fact.owner, turn));
        if !said {
            return Err(Fault::Unsaid(place));
        }
        let early = fact.state == State::Revised
            && self
                .turns(0..fact.session)
                .any(|turn| says(&turn.text, &fact.value));
        if early {
            return Err(Fault::SaidTooEarly(place));
        }
        Ok(())
    }

    fn goal(&self, place: usize, goal: &Goal) -> Result<(), Fault> {
        let question = &self.realized.episode.questions[place];
        let id = || question.id.clone();
        let planned = goal.evidence.iter();
        if !planned
            .map(|&fact| &self.realized.turn_of_fact[fact])
            .eq(&question.evidence)
        {
            return Err(Fault::WrongEvidence(id()));
        }
        let hidden = self.hidden(goal);
        if hidden.iter().any(|word| says(&question.text, word)) {
            return Err(Fault::AnswersItself(id()));
        }
        let given_away = |word: &&str| {
            self.turns(CURRENT..CURRENT + 1)
                .any(|turn| says(&turn.text, word))
        };
        if goal.task.needs_history() && self.values(goal).iter().any(given_away) {
            return Err(Fault::GivenAway(id()));
        }
        if !goal.task.needs_history() && self.answerable(goal) {
            return Err(Fault::Answerable(id()));
        }
        if goal.speaker_query == SpeakerQuery::SelfToFact && !self.needs_a_voice(goal) {
            return Err(Fault::Unambiguous(id()));
        }
        Ok(())
    }

    /// The values that the evidence holds.
    fn values(&self, goal: &Goal) -> Vec<&str> {
        let facts = goal.evidence.iter();
        facts
            .map(|&fact| self.plan.facts[fact].value.as_str())
            .collect()
    }

    /// What must not stand in the question itself.
    fn hidden(&self, goal: &Goal) -> Vec<&str> {
        let values = self.values(goal);
        match (goal.form, goal.task) {
            (_, Task::TemporalLocalization) => Vec::new(),
            (Form::Plain | Form::Both { .. }, _) => values,
            (Form::Bridge, _) => values[1..].to_vec(),
            (Form::Who, _) => self
                .plan
                .people
                .iter()
                .map(|person| person.name.as_str())
                .collect(),
        }
    }

    /// Whether history bears on a question that should find nothing there.
    fn answerable(&self, goal: &Goal) -> bool {
        let matter = &goal.matters[0];
        match (goal.task, goal.form) {
            (Task::MissingEvidence, Form::Who) => self
                .turns(0..CURRENT + 1)
                .any(|turn| says(&turn.text, &matter.value)),
            (Task::MissingEvidence, _) => self
                .plan
                .facts
                .iter()
                .any(|fact| fact.owner == goal.subject && fact.relation == matter.relation),
            (_, Form::Who) => false,
            _ => self
                .turns(0..CURRENT)
                .any(|turn| says(&turn.text, &goal.answer)),
        }
    }

    /// Whether somebody else has said the like, so that "I" alone tells it apart.
    fn needs_a_voice(&self, goal: &Goal) -> bool {
        let others = self.plan.facts.iter().filter(|fact| {
            matches!(fact.owner, Owner::One(person) if person != goal.asker)
                && fact.session < CURRENT
        });
        others
            .into_iter()
            .any(|fact| fact.relation == goal.matters[0].relation)
    }

    fn turns(&self, sessions: std::ops::Range<usize>) -> impl Iterator<Item = &Turn> {
        self.realized.episode.sessions[sessions]
            .iter()
            .flat_map(|session| &session.turns)
    }
}

fn says(text: &str, value: &str) -> bool {
    text.to_lowercase().contains(&value.to_lowercase())
}

fn owns(owner: Owner, turn: &Turn) -> bool {
    match owner {
        Owner::One(person) => turn.speaker == format!("p{}", person + 1),
        Owner::All => true,
    }
}
