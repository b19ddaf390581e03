//! From a planned question to its words.

use fastrand::Rng;

use crate::{
    library::{choose, fill, sentences},
    phrase::Phrase,
    plan::{Form, Goal, Owner, Plan},
    schedule::{SpeakerQuery, Task},
};

/// A subject with the verbs and pronouns that agree with it.
struct Subject {
    s: String,
    my: String,
    p: &'static str,
    am: &'static str,
    was: &'static str,
    do_: &'static str,
    have: &'static str,
    pam: &'static str,
    pwas: &'static str,
}

/// Puts a goal into words; half the time in those that the evidence was said with.
pub(crate) fn question_text(
    plan: &Plan<'_>,
    goal: &Goal,
    phrase_of_fact: &[Option<&Phrase>],
    rng: &mut Rng,
) -> String {
    let form = match goal.form {
        Form::Plain => "plain",
        Form::Who => "who",
        Form::Both { .. } => "both",
        Form::Bridge => "bridge",
    };
    let asked_like = match goal.task {
        // The words of a control question do not show that it is one.
        Task::CurrentOnly => Task::LatestState,
        Task::MissingEvidence => Task::DirectRecall,
        task => task,
    };
    let template = plan.library.ask(asked_like.name(), form, rng);
    let template = with_people(plan, goal, template, rng);
    let mut text = with_matters(plan, goal, phrase_of_fact, &template, rng);
    if goal.speaker_query == SpeakerQuery::SpeakerIndependent {
        let about = plan.library.ask("about", "plain", rng);
        if let Some(letter) = text.get_mut(..1) {
            letter.make_ascii_lowercase();
        }
        text = fill(about, &[("theme", &plan.theme), ("question", &text)]);
    }
    sentences(&text)
}

fn with_people(plan: &Plan<'_>, goal: &Goal, template: &str, rng: &mut Rng) -> String {
    let called = |person: usize, rng: &mut Rng| {
        let person = &plan.people[person];
        if rng.u8(..10) < 3 {
            person.short.clone()
        } else {
            person.name.clone()
        }
    };
    let subject = match goal.subject {
        Owner::One(person) if person == goal.asker && goal.form == Form::Plain => Subject::me(),
        Owner::One(person) => Subject::named(called(person, rng)),
        Owner::All => Subject::us(),
    };
    let other = match goal.form {
        Form::Both { other } => called(other, rng),
        _ => String::new(),
    };
    let words = [
        ("s", subject.s.as_str()),
        ("my", &subject.my),
        ("p", subject.p),
        ("am", subject.am),
        ("was", subject.was),
        ("do", subject.do_),
        ("have", subject.have),
        ("pam", subject.pam),
        ("pwas", subject.pwas),
        ("name", &subject.s),
        ("other", &other),
    ];
    fill(template, &words)
}

fn with_matters(
    plan: &Plan<'_>,
    goal: &Goal,
    phrase_of_fact: &[Option<&Phrase>],
    template: &str,
    rng: &mut Rng,
) -> String {
    let mut text = template.to_owned();
    for (place, (matter, number)) in goal.matters.iter().zip(["", "2"]).enumerate() {
        let relation = &plan.subscenario.relations[matter.relation];
        let said = goal
            .evidence
            .get(place)
            .and_then(|&fact| phrase_of_fact[fact]);
        let phrase = said
            .filter(|_| rng.bool())
            .unwrap_or_else(|| choose(&relation.phrases, rng));
        let words = [
            ("wh", choose(&relation.wh, rng).clone()),
            ("q", phrase.bare().to_owned()),
            ("qing", phrase.gerund_bare()),
            ("vp", phrase.with(&matter.value)),
            ("ving", phrase.gerund_with(&matter.value)),
        ];
        for (name, word) in words {
            text = fill(&text, &[(&format!("{name}{number}"), &word)]);
        }
    }
    text
}

impl Subject {
    fn me() -> Self {
        Self {
            s: "I".to_owned(),
            my: "my".to_owned(),
            p: "I",
            am: "am",
            was: "was",
            do_: "do",
            have: "have",
            pam: "am",
            pwas: "was",
        }
    }

    fn us() -> Self {
        Self {
            s: "we".to_owned(),
            my: "our".to_owned(),
            p: "we",
            am: "are",
            was: "were",
            do_: "do",
            have: "have",
            pam: "are",
            pwas: "were",
        }
    }

    fn named(name: String) -> Self {
        Self {
            my: format!("{name}'s"),
            s: name,
            p: "they",
            am: "is",
            was: "was",
            do_: "does",
            have: "has",
            pam: "are",
            pwas: "were",
        }
    }
}
