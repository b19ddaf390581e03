//! Draws plans: first what the questions need, then what opposes it, then the rest.

use std::collections::HashSet;

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};

use crate::{
    library::{Library, Subscenario, choose},
    plan::{CURRENT, Fact, Form, Goal, Matter, NO_RECORD, Owner, Person, Plan, State},
    schedule::{Kind, SpeakerQuery, Task},
};

/// Plans an episode that asks `kinds`; `None` where the draw leaves no room for one.
pub(crate) fn plan<'a>(
    library: &'a Library,
    subscenario: &'a Subscenario,
    kinds: &[Kind],
    rng: &mut Rng,
) -> Option<Plan<'a>> {
    let mut planner = Planner::new(library, subscenario, rng);
    for &kind in kinds {
        planner.add_goal(kind)?;
    }
    for goal in 0..planner.plan.goals.len() {
        planner.oppose(goal);
    }
    planner.distract();
    Some(planner.plan)
}

struct Planner<'a, 'r> {
    plan: Plan<'a>,
    /// Owners and relations of which nothing is known yet.
    free: Vec<(Owner, usize)>,
    rng: &'r mut Rng,
}

impl<'a, 'r> Planner<'a, 'r> {
    fn new(library: &'a Library, subscenario: &'a Subscenario, rng: &'r mut Rng) -> Self {
        let people = people(library, rng);
        let relations = 0..subscenario.relations.len();
        let owners = (0..people.len())
            .map(Owner::One)
            .chain([Owner::All])
            .flat_map(|owner| relations.clone().map(move |relation| (owner, relation)));
        let code_name = library.slots["codename"].value(rng);
        Self {
            free: owners.collect(),
            plan: Plan {
                library,
                subscenario,
                theme: subscenario.theme.replace("{}", &code_name),
                people,
                starts: starts(rng),
                facts: Vec::new(),
                goals: Vec::new(),
                values: HashSet::from([code_name]),
            },
            rng,
        }
    }

    fn add_goal(&mut self, (task, speaker_query): Kind) -> Option<()> {
        let asker = self.rng.usize(..self.plan.people.len());
        let goal = if speaker_query == SpeakerQuery::FactToPerson {
            self.goal_who(task, asker)
        } else {
            let wanted = move |owner| match speaker_query {
                SpeakerQuery::SelfToFact => owner == Owner::One(asker),
                SpeakerQuery::PersonToFact => {
                    !matches!(owner, Owner::All) && owner != Owner::One(asker)
                }
                _ => owner == Owner::All,
            };
            self.goal_plain(task, speaker_query, asker, wanted)
        }?;
        self.plan.goals.push(goal);
        Some(())
    }

    /// A question about what somebody, or everybody, intends.
    fn goal_plain(
        &mut self,
        task: Task,
        speaker_query: SpeakerQuery,
        asker: usize,
        wanted: impl Fn(Owner) -> bool,
    ) -> Option<Goal> {
        let (subject, relation) = self.take(|owner, _| wanted(owner))?;
        let mut goal = Goal {
            task,
            speaker_query,
            asker,
            form: Form::Plain,
            subject,
            matters: Vec::new(),
            evidence: Vec::new(),
            answer: String::new(),
        };
        let facts = self.tell(subject, relation, task);
        let value = |plan: &Plan<'_>, fact: usize| plan.facts[facts[fact]].value.clone();
        let plan = &self.plan;
        (goal.evidence, goal.answer) = match task {
            Task::DirectRecall => (facts.clone(), value(plan, 0)),
            Task::TemporalLocalization => (facts.clone(), plan.date_of(facts[0])),
            Task::LatestState => (vec![facts[1]], value(plan, 1)),
            Task::HistoricalState => (vec![facts[0]], value(plan, 0)),
            Task::ChangeComparison => (
                facts.clone(),
                format!("First {}, then {}.", value(plan, 0), value(plan, 1)),
            ),
            Task::CurrentOnly => (Vec::new(), value(plan, 1)),
            Task::MissingEvidence => (Vec::new(), NO_RECORD.to_owned()),
            Task::MultiHop => {
                let first = value(plan, 0);
                let second = self.second_hop(&mut goal, relation)?;
                let answer = format!("{first} and {}.", self.plan.facts[second].value);
                (vec![facts[0], second], answer)
            }
        };
        let named = facts
            .first()
            .map(|&fact| self.plan.facts[fact].value.clone());
        goal.matters.insert(
            0,
            Matter {
                relation,
                value: named.unwrap_or_default(),
            },
        );
        Some(goal)
    }

    /// The other fact of a question of two hops: another relation of the subject,
    /// or the same relation of another person.
    fn second_hop(&mut self, goal: &mut Goal, relation: usize) -> Option<usize> {
        let subject = goal.subject;
        let compare = goal.speaker_query == SpeakerQuery::PersonToFact && self.rng.bool();
        let (owner, second) = if compare {
            self.take(|owner, other| owner != Owner::All && other == relation)?
        } else {
            self.take(|owner, _| owner == subject)?
        };
        if let (true, Owner::One(other)) = (compare, owner) {
            goal.form = Form::Both { other };
        }
        let fact = self.tell(owner, second, Task::DirectRecall)[0];
        let value = self.plan.facts[fact].value.clone();
        goal.matters.push(Matter {
            relation: second,
            value,
        });
        Some(fact)
    }

    /// A question that asks who intends something.
    fn goal_who(&mut self, task: Task, asker: usize) -> Option<Goal> {
        let is_one = |owner: Owner, _| owner != Owner::All;
        let mut goal = Goal {
            task,
            speaker_query: SpeakerQuery::FactToPerson,
            asker,
            form: Form::Who,
            subject: Owner::All,
            matters: Vec::new(),
            evidence: Vec::new(),
            answer: String::new(),
        };
        let relation = if task == Task::MissingEvidence {
            let relation = self.rng.usize(..self.plan.subscenario.relations.len());
            let value = self.fresh_value(relation);
            goal.matters.push(Matter { relation, value });
            goal.answer = NO_RECORD.to_owned();
            return Some(goal);
        } else {
            self.take(is_one)?
        };
        let (Owner::One(person), relation) = relation else {
            return None;
        };
        let first_session = self.rng.usize(..CURRENT);
        let first = match task {
            Task::LatestState | Task::HistoricalState | Task::ChangeComparison => 0,
            _ => first_session,
        };
        let value = self.fresh_value(relation);
        let fact = self.add(
            Owner::One(person),
            relation,
            value.clone(),
            first,
            State::First,
        );
        goal.matters.push(Matter { relation, value });
        let name = self.plan.people[person].name.clone();
        (goal.evidence, goal.answer) = match task {
            Task::DirectRecall => (vec![fact], name),
            Task::TemporalLocalization => {
                (vec![fact], format!("{name}, {}", self.plan.date_of(fact)))
            }
            Task::MultiHop => self.second_who(&mut goal, fact)?,
            _ => {
                let session = if task == Task::CurrentOnly {
                    CURRENT
                } else {
                    1
                };
                let (successor, taken_over) = self.hand_over(fact, session)?;
                match task {
                    Task::HistoricalState => (vec![fact], name),
                    Task::LatestState => (vec![taken_over], successor),
                    Task::ChangeComparison => (
                        vec![fact, taken_over],
                        format!("First {name}, then {successor}."),
                    ),
                    _ => (Vec::new(), successor),
                }
            }
        };
        Some(goal)
    }

    /// Another person takes over what a fact says: their name and the new fact.
    fn hand_over(&mut self, fact: usize, session: usize) -> Option<(String, usize)> {
        let Fact {
            owner,
            relation,
            value,
            ..
        } = self.plan.facts[fact].clone();
        let Owner::One(from) = owner else { return None };
        let (successor, _) =
            self.take(|other, of| matches!(other, Owner::One(_)) && of == relation)?;
        let Owner::One(person) = successor else {
            return None;
        };
        let taken_over = self.add(
            successor,
            relation,
            value,
            session,
            State::TakenOver { from },
        );
        Some((self.plan.people[person].name.clone(), taken_over))
    }

    /// The second half of a question that asks who does two things, or what else
    /// somebody does who does one.
    fn second_who(&mut self, goal: &mut Goal, first: usize) -> Option<(Vec<usize>, String)> {
        let Fact {
            owner, relation, ..
        } = self.plan.facts[first].clone();
        let Owner::One(person) = owner else {
            return None;
        };
        let bridge = self.rng.bool();
        let (other, second_relation) = self.take(|other, second| {
            other != Owner::All && second != relation && (other == owner) == bridge
        })?;
        let second = self.tell(other, second_relation, Task::DirectRecall)[0];
        let value = self.plan.facts[second].value.clone();
        let name = &self.plan.people[person].name;
        let answer = match other {
            Owner::One(other) if !bridge => format!("{name} and {}.", self.plan.people[other].name),
            _ => value.clone(),
        };
        goal.matters.push(Matter {
            relation: second_relation,
            value,
        });
        if bridge {
            goal.form = Form::Bridge;
        }
        Some((vec![first, second], answer))
    }

    /// The facts that a task needs about one relation of one owner.
    fn tell(&mut self, owner: Owner, relation: usize, task: Task) -> Vec<usize> {
        let history = self.rng.usize(..CURRENT);
        let sessions: &[usize] = match task {
            Task::LatestState | Task::HistoricalState | Task::ChangeComparison => &[0, 1],
            Task::CurrentOnly => &[history, CURRENT],
            Task::MissingEvidence => &[],
            _ => &[history],
        };
        let states = [State::First, State::Revised];
        let facts = sessions.iter().zip(states).map(|(&session, state)| {
            let value = self.fresh_value(relation);
            self.add(owner, relation, value, session, state)
        });
        facts.collect()
    }

    /// Hard negatives: others say the like of what a goal asks about, some of them
    /// the very same, and change it just so.
    fn oppose(&mut self, goal: usize) {
        let Goal {
            task,
            speaker_query,
            evidence,
            matters,
            ..
        } = self.plan.goals[goal].clone();
        let changes = evidence.len() == 2 && matters.len() == 1
            || matches!(task, Task::LatestState | Task::HistoricalState);
        let personal = matches!(
            speaker_query,
            SpeakerQuery::SelfToFact | SpeakerQuery::PersonToFact
        );
        let mut same = (personal && task.needs_history() && self.rng.u8(..4) == 0)
            .then(|| matters[0].value.clone());
        for person in 0..self.plan.people.len() {
            let cell = (Owner::One(person), matters[0].relation);
            let certain = self.opponents(cell.1, person) == 0;
            if !(self.free.contains(&cell) && (certain || self.rng.u8(..4) > 0)) {
                continue;
            }
            self.free.retain(|free| *free != cell);
            let also_changes = if changes {
                self.rng.u8(..10) < 7
            } else {
                self.rng.u8(..10) < 3
            };
            let told = if also_changes {
                Task::ChangeComparison
            } else {
                Task::DirectRecall
            };
            let facts = self.tell(cell.0, cell.1, told);
            if let Some(value) = same.take() {
                self.plan.facts[facts[0]].value = value;
            }
        }
    }

    /// How many others have said something of a relation in the history.
    fn opponents(&self, relation: usize, person: usize) -> usize {
        let facts = self.plan.facts.iter();
        facts
            .filter(|fact| fact.relation == relation && fact.session < CURRENT)
            .filter(|fact| matches!(fact.owner, Owner::One(other) if other != person))
            .count()
    }

    /// Facts that nobody asks about.
    fn distract(&mut self) {
        for (owner, relation) in std::mem::take(&mut self.free) {
            let told = match self.rng.u8(..20) {
                0..9 => Task::DirectRecall,
                9..13 => Task::ChangeComparison,
                _ => continue,
            };
            self.tell(owner, relation, told);
        }
    }

    /// Takes one of the free owners and relations that will do.
    fn take(&mut self, wanted: impl Fn(Owner, usize) -> bool) -> Option<(Owner, usize)> {
        let places = self.free.iter().enumerate();
        let fitting: Vec<usize> = places
            .filter(|(_, (owner, relation))| wanted(*owner, *relation))
            .map(|(place, _)| place)
            .collect();
        (!fitting.is_empty()).then(|| self.free.swap_remove(*choose(&fitting, self.rng)))
    }

    fn add(
        &mut self,
        owner: Owner,
        relation: usize,
        value: String,
        session: usize,
        state: State,
    ) -> usize {
        self.plan.facts.push(Fact {
            owner,
            relation,
            value,
            session,
            state,
        });
        self.plan.facts.len() - 1
    }

    fn fresh_value(&mut self, relation: usize) -> String {
        let slot = &self.plan.subscenario.relations[relation].slot;
        self.plan
            .library
            .fresh_value(slot, &mut self.plan.values, self.rng)
    }
}

impl Library {
    /// A value of a slot that is not in `taken`, and is from now on.
    pub fn fresh_value(&self, slot: &str, taken: &mut HashSet<String>, rng: &mut Rng) -> String {
        loop {
            let value = self.slots[slot].value(rng);
            if taken.insert(value.clone()) {
                return value;
            }
        }
    }
}

/// Three to five people with names and voices of their own.
fn people(library: &Library, rng: &mut Rng) -> Vec<Person> {
    let count = *choose(&[3, 3, 4, 4, 4, 5], rng);
    let names = rng.choose_multiple(library.names.iter(), count);
    let voices = rng.choose_multiple(library.voices.iter(), count);
    names
        .into_iter()
        .zip(voices)
        .map(|((name, short), voice)| Person {
            name: name.clone(),
            short: short.clone(),
            voice: voice.clone(),
        })
        .collect()
}

/// The sessions of an episode lie days to weeks apart.
fn starts(rng: &mut Rng) -> [Timestamp; 3] {
    /// 1 January 2026, 7:00 UTC.
    const EARLIEST_S: i64 = 1_767_250_800;
    let hour = |rng: &mut Rng| SignedDuration::from_secs(rng.i64(0..14 * 4) * 900);
    let days = |rng: &mut Rng, most| SignedDuration::from_hours(24 * rng.i64(1..=most));
    let earliest = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(EARLIEST_S);
    let first = earliest + days(rng, 300);
    let second = first + days(rng, 21);
    let third = second + days(rng, 14);
    [first, second, third].map(|day| day + hour(rng))
}
