//! From a plan to what is said.

use std::collections::HashSet;

use fastrand::Rng;

use crate::{
    episode::{Episode, Participant, Question, Session, Turn},
    library::{choose, fill, sentences},
    phrase::Phrase,
    plan::{CURRENT, Fact, Owner, Plan, State},
    question::question_text,
};

/// An episode, and which turn says which fact.
pub(crate) struct Realized {
    pub episode: Episode,
    /// The turn of each fact of the plan.
    pub turn_of_fact: Vec<String>,
}

/// Says everything that is planned.
pub(crate) fn realize(plan: &Plan<'_>, id: String, rng: &mut Rng) -> Realized {
    let sessions: Vec<Vec<Line<'_>>> = (0..=CURRENT)
        .map(|session| Talk::new(plan, session, rng).hold())
        .collect();
    let mut turn_of_fact = vec![String::new(); plan.facts.len()];
    let mut phrase_of_fact = vec![None; plan.facts.len()];
    for (session, lines) in sessions.iter().enumerate() {
        for (place, line) in lines.iter().enumerate() {
            if let Some((fact, phrase)) = line.fact {
                turn_of_fact[fact] = turn_id(session, place);
                phrase_of_fact[fact] = Some(phrase);
            }
        }
    }
    let sessions = sessions.into_iter().enumerate();
    let episode = Episode {
        id,
        scenario: plan.subscenario.name.clone(),
        source: "generated",
        participants: participants(plan),
        sessions: sessions
            .map(|(session, lines)| timed(plan, session, lines, rng))
            .collect(),
        questions: questions(plan, &turn_of_fact, &phrase_of_fact, rng),
    };
    Realized {
        episode,
        turn_of_fact,
    }
}

fn participants(plan: &Plan<'_>) -> Vec<Participant> {
    let people = plan.people.iter().enumerate();
    people
        .map(|(place, person)| Participant {
            id: person_id(place),
            name: person.name.clone(),
            aliases: vec![person.short.clone()],
            voice: person.voice.clone(),
        })
        .collect()
}

fn questions(
    plan: &Plan<'_>,
    turn_of_fact: &[String],
    phrase_of_fact: &[Option<&Phrase>],
    rng: &mut Rng,
) -> Vec<Question> {
    let goals = (1..).zip(&plan.goals);
    goals
        .map(|(number, goal)| Question {
            id: format!("q{number}"),
            session: session_id(CURRENT),
            asker: person_id(goal.asker),
            text: question_text(plan, goal, phrase_of_fact, rng),
            task: goal.task.name(),
            speaker_query: goal.speaker_query.name(),
            answer: goal.answer.clone(),
            evidence: goal
                .evidence
                .iter()
                .map(|&fact| turn_of_fact[fact].clone())
                .collect(),
        })
        .collect()
}

/// Gives each line its time: speech takes about a third of a second a word.
fn timed(plan: &Plan<'_>, session: usize, lines: Vec<Line<'_>>, rng: &mut Rng) -> Session {
    let everyone = 0..plan.people.len();
    let mut clock = 0;
    let turns = lines.into_iter().enumerate().map(|(place, line)| {
        let start_ms = clock + rng.u64(200..1200);
        let words = line.text.split_whitespace().count() as u64;
        clock = start_ms + 400 + words * rng.u64(280..380);
        let others = everyone.clone().filter(|person| *person != line.speaker);
        let addressees = line.to.map_or_else(|| others.collect(), |to| vec![to]);
        Turn {
            id: turn_id(session, place),
            speaker: person_id(line.speaker),
            addressees: addressees.into_iter().map(person_id).collect(),
            text: line.text,
            start_ms,
            end_ms: clock,
        }
    });
    Session {
        id: session_id(session),
        turns: turns.collect(),
        start: plan.starts[session].to_string(),
    }
}

fn person_id(place: usize) -> String {
    format!("p{}", place + 1)
}

fn session_id(session: usize) -> String {
    format!("s{}", session + 1)
}

fn turn_id(session: usize, place: usize) -> String {
    format!("s{}t{:02}", session + 1, place + 1)
}

/// Something said, without its time.
struct Line<'a> {
    speaker: usize,
    /// One person, or all others.
    to: Option<usize>,
    text: String,
    /// The fact that it states, and with which phrase.
    fact: Option<(usize, &'a Phrase)>,
}

/// One session while it is being held.
struct Talk<'a, 'r> {
    plan: &'a Plan<'a>,
    session: usize,
    lines: Vec<Line<'a>>,
    /// Values that small talk must not use up.
    taken: HashSet<String>,
    /// Small talk that was made already.
    remarks: HashSet<&'a str>,
    rng: &'r mut Rng,
}

impl<'a, 'r> Talk<'a, 'r> {
    fn new(plan: &'a Plan<'a>, session: usize, rng: &'r mut Rng) -> Self {
        Self {
            plan,
            session,
            lines: Vec::new(),
            taken: plan.values.clone(),
            remarks: HashSet::new(),
            rng,
        }
    }

    fn hold(mut self) -> Vec<Line<'a>> {
        let mut facts: Vec<usize> = (0..self.plan.facts.len())
            .filter(|&fact| self.plan.facts[fact].session == self.session)
            .collect();
        self.rng.shuffle(&mut facts);
        self.remark("greeting");
        for fact in facts {
            self.small_talk();
            self.state(fact);
            if self.rng.u8(..10) < 4 {
                self.react();
            }
        }
        self.small_talk();
        let ending = if self.session == CURRENT {
            "before_question"
        } else {
            "farewell"
        };
        self.remark(ending);
        self.lines
    }

    fn small_talk(&mut self) {
        for _ in 0..*choose(&[1, 1, 2, 2], self.rng) {
            self.remark("chatter");
        }
    }

    /// Somebody says one of the lines that bear on nothing.
    fn remark(&mut self, kind: &str) {
        let speaker = self.rng.usize(..self.plan.people.len());
        let (other, name) = self.somebody_but(speaker);
        let template = self.plan.library.say(kind, self.rng);
        if !self.remarks.insert(template) {
            return;
        }
        let mut text = fill(template, &[("name", &name), ("theme", &self.plan.theme)]);
        while let Some((before, rest)) = text.split_once('{') {
            let Some((slot, after)) = rest.split_once('}') else {
                break;
            };
            let value = self
                .plan
                .library
                .fresh_value(slot, &mut self.taken, self.rng);
            text = format!("{before}{value}{after}");
        }
        let to = template.contains("{name}").then_some(other);
        self.say(speaker, to, &text);
    }

    /// Somebody answers the last line.
    fn react(&mut self) {
        let Some(last) = self.lines.last().map(|line| line.speaker) else {
            return;
        };
        let (speaker, _) = self.somebody_but(last);
        let name = self.call(last);
        let text = fill(
            self.plan.library.say("reaction", self.rng),
            &[("name", &name)],
        );
        self.say(speaker, Some(last), &text);
    }

    /// The owner says a fact, at times because someone asked.
    fn state(&mut self, place: usize) {
        let fact = &self.plan.facts[place];
        let phrase = match (fact.owner, fact.state) {
            (Owner::One(person), State::First) if self.rng.u8(..4) == 0 => {
                self.answer(person, fact, ["asked", "short"])
            }
            (Owner::One(person), State::Revised) if self.rng.u8(..4) == 0 => {
                self.answer(person, fact, ["asked_again", "short_again"])
            }
            (Owner::One(person), _) => {
                let (text, phrase) = self.sentence(fact);
                self.say(person, None, &text);
                phrase
            }
            (Owner::All, _) => {
                let speaker = self.rng.usize(..self.plan.people.len());
                let (sentence, phrase) = self.sentence(fact);
                let about = self.plan.library.say("about", self.rng);
                let words = [("theme", self.plan.theme.as_str()), ("sentence", &sentence)];
                self.say(speaker, None, &fill(about, &words));
                phrase
            }
        };
        if let Some(line) = self.lines.last_mut() {
            line.fact = Some((place, phrase));
        }
    }

    /// Question and answer; only the answer holds the value.
    fn answer(&mut self, owner: usize, fact: &Fact, [asked, short]: [&str; 2]) -> &'a Phrase {
        let (asker, _) = self.somebody_but(owner);
        let relation = &self.plan.subscenario.relations[fact.relation];
        let phrase = choose(&relation.phrases, self.rng);
        let name = self.call(owner);
        let words = [
            ("name", name.as_str()),
            ("wh", choose(&relation.wh, self.rng).as_str()),
            ("q", phrase.bare()),
            ("qing", &phrase.gerund_bare()),
        ];
        let question = fill(self.plan.library.say(asked, self.rng), &words);
        self.say(asker, Some(owner), &question);
        let answer = fill(
            self.plan.library.say(short, self.rng),
            &[("v", &fact.value)],
        );
        self.say(owner, Some(asker), &answer);
        phrase
    }

    /// A whole sentence that states a fact.
    fn sentence(&mut self, fact: &Fact) -> (String, &'a Phrase) {
        let kind = match (fact.owner, fact.state) {
            (Owner::One(_), State::First) => "intend",
            (Owner::One(_), State::Revised) => "revise",
            (Owner::One(_), State::TakenOver { .. }) => "take_over",
            (Owner::All, State::First) => "intend_all",
            (Owner::All, _) => "revise_all",
        };
        let relation = &self.plan.subscenario.relations[fact.relation];
        let phrase = choose(&relation.phrases, self.rng);
        let name = match fact.state {
            State::TakenOver { from } => self.call(from),
            _ => String::new(),
        };
        let words = [
            ("vp", self.maybe_corrected(fact, &phrase.with(&fact.value))),
            ("ving", phrase.gerund_with(&fact.value)),
            ("name", name),
        ];
        let words = words
            .each_ref()
            .map(|(token, word)| (*token, word.as_str()));
        let text = fill(self.plan.library.say(kind, self.rng), &words);
        (self.dressed(text), phrase)
    }

    /// At times the speaker slips first: "leave on Friday, no, wait, on Monday".
    fn maybe_corrected(&mut self, fact: &Fact, right: &str) -> String {
        if self.rng.u8(..10) > 0 {
            return right.to_owned();
        }
        let slot = &self.plan.subscenario.relations[fact.relation].slot;
        let slip = self
            .plan
            .library
            .fresh_value(slot, &mut self.taken, self.rng);
        let correction = self.plan.library.say("correction", self.rng);
        let wrong = right.replace(&fact.value, &slip);
        format!("{wrong}, {correction} {right}")
    }

    /// At times with a hesitation before and an aside after.
    fn dressed(&mut self, mut text: String) -> String {
        let first = text.split([' ', '\'']).next().unwrap_or_default();
        let keeps_capital = first == "I"
            || self
                .plan
                .people
                .iter()
                .any(|p| [&p.name, &p.short].contains(&&first.to_owned()));
        if self.rng.u8(..10) < 3 {
            let opener = self.plan.library.say("opener", self.rng);
            if !keeps_capital && let Some(letter) = text.get_mut(..1) {
                letter.make_ascii_lowercase();
            }
            text = format!("{opener} {text}");
        }
        if self.rng.u8(..10) < 2 {
            text = format!("{text} {}", self.plan.library.say("closer", self.rng));
        }
        text
    }

    fn say(&mut self, speaker: usize, to: Option<usize>, text: &str) {
        let text = sentences(text);
        self.lines.push(Line {
            speaker,
            to,
            text,
            fact: None,
        });
    }

    /// Another person, and what they are called.
    fn somebody_but(&mut self, person: usize) -> (usize, String) {
        let count = self.plan.people.len();
        let other = (person + self.rng.usize(1..count)) % count;
        (other, self.call(other))
    }

    fn call(&mut self, person: usize) -> String {
        let person = &self.plan.people[person];
        if self.rng.bool() {
            &person.short
        } else {
            &person.name
        }
        .clone()
    }
}
