//! The validator finds each fault that is planted in a sound episode.

use fastrand::Rng;

use crate::{
    Split,
    library::Library,
    plan::{Owner, Plan},
    planner::plan,
    realize::{Realized, realize},
    schedule::{SpeakerQuery, Task},
    validate::{Fault, validate},
};

/// Asks one question of an episode, plants a fault, and says what was found.
fn find(
    kind: (Task, SpeakerQuery),
    plant: impl FnOnce(&mut Plan<'_>, &mut Realized),
) -> Result<(), Fault> {
    let library = Library::read(Split::Train).unwrap();
    let subscenario = &library.subscenarios[20];
    let sound = (0..100).find_map(|seed| {
        let mut rng = Rng::with_seed(seed);
        let plan = plan(&library, subscenario, &[kind], &mut rng)?;
        let realized = realize(&plan, "ep".to_owned(), &mut rng);
        validate(&plan, &realized)
            .is_ok()
            .then_some((plan, realized))
    });
    let (mut plan, mut realized) = sound.expect("a hundred draws give a sound episode");
    plant(&mut plan, &mut realized);
    validate(&plan, &realized)
}

const HISTORICAL: (Task, SpeakerQuery) = (Task::HistoricalState, SpeakerQuery::SelfToFact);
const DIRECT: (Task, SpeakerQuery) = (Task::DirectRecall, SpeakerQuery::PersonToFact);

/// What the first evidence of the first question says.
fn answer(plan: &Plan<'_>) -> String {
    plan.facts[plan.goals[0].evidence[0]].value.clone()
}

fn evidence_turn<'a>(plan: &Plan<'_>, realized: &'a mut Realized) -> &'a mut crate::Turn {
    let fact = plan.goals[0].evidence[0];
    let id = realized.turn_of_fact[fact].clone();
    let sessions = realized.episode.sessions.iter_mut();
    let mut turns = sessions.flat_map(|session| &mut session.turns);
    turns.find(|turn| turn.id == id).unwrap()
}

#[test]
fn a_sound_episode_passes() {
    assert_eq!(find(HISTORICAL, |_, _| ()), Ok(()));
}

#[test]
fn evidence_that_nobody_says_is_found() {
    let silenced = find(DIRECT, |plan, realized| {
        evidence_turn(plan, realized).text = "Nothing.".to_owned();
    });
    assert!(matches!(silenced, Err(Fault::Unsaid(_))));
    let misattributed = find(DIRECT, |plan, realized| {
        evidence_turn(plan, realized).speaker = "p9".to_owned();
    });
    assert!(matches!(misattributed, Err(Fault::Unsaid(_))));
}

#[test]
fn a_later_state_that_is_said_before_is_found() {
    let early = find(HISTORICAL, |plan, realized| {
        let later = plan.facts[1].value.clone();
        realized.episode.sessions[0].turns[0].text = later;
    });
    assert_eq!(early, Err(Fault::SaidTooEarly(1)));
}

#[test]
fn an_answer_in_the_current_session_or_in_the_question_is_found() {
    let given = find(DIRECT, |plan, realized| {
        realized.episode.sessions[2].turns[0].text = answer(plan).to_uppercase();
    });
    assert_eq!(given, Err(Fault::GivenAway("q1".to_owned())));
    let itself = find(DIRECT, |plan, realized| {
        realized.episode.questions[0].text = format!("Was it {}?", answer(plan));
    });
    assert_eq!(itself, Err(Fault::AnswersItself("q1".to_owned())));
}

#[test]
fn evidence_that_is_not_the_planned_one_is_found() {
    let wrong = find(DIRECT, |_, realized| {
        realized.episode.questions[0].evidence = vec!["s1t01".to_owned()];
    });
    assert_eq!(wrong, Err(Fault::WrongEvidence("q1".to_owned())));
}

#[test]
fn a_question_in_the_first_person_that_words_alone_answer_is_found() {
    let alone = find(HISTORICAL, |plan, _| {
        let asker = Owner::One(plan.goals[0].asker);
        for fact in plan.facts.iter_mut().filter(|fact| fact.owner != asker) {
            fact.owner = Owner::All;
        }
    });
    assert_eq!(alone, Err(Fault::Unambiguous("q1".to_owned())));
}

#[test]
fn history_that_bears_on_a_control_question_is_found() {
    let missing = (Task::MissingEvidence, SpeakerQuery::PersonToFact);
    let known = find(missing, |plan, _| {
        plan.facts[0].owner = plan.goals[0].subject;
        plan.facts[0].relation = plan.goals[0].matters[0].relation;
    });
    assert!(matches!(
        known,
        Err(Fault::Answerable(_) | Fault::Unsaid(0))
    ));
    let current = (Task::CurrentOnly, SpeakerQuery::SelfToFact);
    let stale = find(current, |plan, realized| {
        realized.episode.sessions[0].turns[0].text = plan.goals[0].answer.clone();
    });
    assert!(matches!(stale, Err(Fault::SaidTooEarly(_))));
}

#[test]
fn a_template_that_was_not_filled_is_found() {
    let unfilled = find(DIRECT, |_, realized| {
        realized.episode.sessions[1].turns[0].text = "See {you}.".to_owned();
    });
    assert_eq!(unfilled, Err(Fault::Unfilled("See {you}.".to_owned())));
}
