//! Determinism, proportions, and splits that share nothing.

use std::collections::{BTreeMap, HashSet};

use crate::{
    Generator, Split,
    library::{Library, Slot},
};

fn episodes(split: Split, seed: u64, count: usize) -> Vec<crate::Episode> {
    let generator = Generator::new(split, seed, count).unwrap();
    (0..count)
        .map(|index| generator.episode(index).unwrap())
        .collect()
}

#[test]
fn the_same_seed_gives_the_same_episodes_and_another_gives_others() {
    let first = episodes(Split::Train, 7, 30);
    assert_eq!(first, episodes(Split::Train, 7, 30));
    assert_ne!(first, episodes(Split::Train, 8, 30));
}

#[test]
fn every_split_can_be_made_of_every_subscenario() {
    for split in Split::ALL {
        let made = episodes(split, 1, 96);
        let mut domains: BTreeMap<&str, HashSet<&str>> = BTreeMap::new();
        for episode in &made {
            let (domain, subscenario) = episode.scenario.split_once('/').unwrap();
            domains.entry(domain).or_default().insert(subscenario);
            assert_eq!(episode.sessions.len(), 3);
            assert!(episode.sessions[2].turns.len() < episode.sessions[0].turns.len());
        }
        assert_eq!(domains.len(), 3);
        assert!(domains.values().all(|subscenarios| subscenarios.len() == 8));
        let questions: usize = made.iter().map(|episode| episode.questions.len()).sum();
        assert_eq!(questions, split.questions(96));
    }
}

#[test]
fn questions_without_history_have_no_evidence_and_the_others_do() {
    for question in episodes(Split::Evaluation, 1, 96)
        .iter()
        .flat_map(|episode| &episode.questions)
    {
        let expected = match question.task {
            "current_only" | "missing_evidence" => 0,
            "change_comparison" | "multi_hop" => 2,
            _ => 1,
        };
        assert_eq!(question.evidence.len(), expected, "{question:?}");
    }
}

/// Everything of a library that no other split may have.
fn everything(library: &Library) -> HashSet<String> {
    let speech = library.speech.values().flatten().cloned();
    let questions = library
        .questions
        .values()
        .flat_map(BTreeMap::values)
        .flatten();
    let phrases = library.subscenarios.iter().flat_map(|subscenario| {
        let relations = subscenario.relations.iter().enumerate();
        relations.flat_map(move |(place, relation)| {
            let phrases = relation.phrases.iter();
            phrases
                .map(move |phrase| format!("{}/{place}: {}", subscenario.name, phrase.with("...")))
        })
    });
    let values = library.slots.values().flat_map(Slot::values);
    let names = library.names.iter().flat_map(|(name, short)| [name, short]);
    speech
        .chain(questions.cloned())
        .chain(phrases)
        .chain(values)
        .chain(names.cloned())
        .chain(library.voices.iter().cloned())
        .collect()
}

#[test]
fn splits_share_no_template_no_value_no_name_and_no_voice() {
    let parts = Split::ALL.map(|split| everything(&Library::read(split).unwrap()));
    for (place, part) in parts.iter().enumerate() {
        assert!(part.len() > 1000);
        for other in &parts[place + 1..] {
            assert_eq!(part.intersection(other).collect::<Vec<_>>(), [""; 0]);
        }
    }
}

#[test]
fn no_list_of_a_split_is_empty() {
    for split in Split::ALL {
        let library = Library::read(split).unwrap();
        let questions = library.questions.values().flat_map(BTreeMap::values);
        assert!(
            library
                .speech
                .values()
                .chain(questions)
                .all(|list| !list.is_empty())
        );
        let slots = library.slots.iter();
        for (name, slot) in slots {
            assert!(slot.values().len() >= 20, "{split:?} has too few of {name}");
        }
    }
}
