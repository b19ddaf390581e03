//! What is said comes to be written down: a book's opening, read aloud, and the
//! names of a household.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use earwitness::{
    answer::extractive::Extractive,
    capture::decode,
    hub::{Hub, HubOptions},
    transcribe::LiveOptions,
};
use earwitness_models::{manifest::Kind, pack::Pack, parity};
use earwitness_tests::{
    metrics::{normalize, word_errors},
    soak::play,
};
use jiff::tz::TimeZone;
use tempfile::TempDir;

/// A Tale of Two Cities.
const OPENING: &str = "It was the best of times, it was the worst of times, it was the age of \
    wisdom, it was the age of foolishness, it was the epoch of belief, it was the epoch of \
    incredulity, it was the season of Light, it was the season of Darkness, it was the spring of \
    hope, it was the winter of despair, we had everything before us, we had nothing before us, we \
    were all going direct to Heaven, we were all going direct the other way - in short, the period \
    was so far like the present period, that some of its noisiest authorities insisted on its \
    being received, for good or for evil, in the superlative degree of comparison only.";
/// Where it is among the references of the recognizer, in four pieces.
const PIECES: std::ops::Range<usize> = 2..6;

fn packs() -> PathBuf {
    let packs = std::env::var_os("EARWITNESS_PACKS").expect(
        "EARWITNESS_PACKS must name the model packs; `cargo xtask test` sets it, \
         `cargo xtask models` builds them and prints their folder",
    );
    packs.into()
}

fn hub(folder: &TempDir, household: &[&str]) -> Hub {
    let options = HubOptions {
        partials: Some(LiveOptions::default()),
        household: household.iter().copied().map(str::to_owned).collect(),
        ..HubOptions::default()
    };
    let answerer = Box::new(Extractive::new(TimeZone::UTC));
    let store = folder.path().join("memory.redb");
    Hub::open(&packs(), &store, answerer, options).unwrap()
}

#[test]
fn long_speech_is_split_without_losing_a_word() {
    let recognizer = Pack::open(&packs(), Kind::Asr).unwrap();
    let read = parity::recordings(&recognizer).unwrap()[PIECES].concat();
    let folder = tempfile::tempdir().unwrap();
    let heard = play(&hub(&folder, &[]), "book", &read).unwrap();
    assert!(heard.len() > 2, "{heard:?}");
    let errors = word_errors(&normalize(OPENING), &normalize(&heard.join(" ")));
    println!("word error rate {:.3}, heard {heard:?}", errors.rate());
    assert!(errors.rate() <= 0.08, "{errors:?}: {heard:?}");
}

#[test]
fn the_names_of_a_household_are_written_as_it_writes_them() {
    let names = ["Carol", "Thaxted"];
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let (stranger, household) = (hub(&folders[0], &[]), hub(&folders[1], &names));
    for name in names {
        let file = format!("data/names/{}.flac", name.to_lowercase());
        let sound = decode(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let [without, with] =
            [&stranger, &household].map(|hub| play(hub, name, &sound).unwrap().join(" "));
        let has_name = |text: &str| {
            text.split(|c: char| !c.is_alphabetic())
                .any(|word| word == name)
        };
        assert!(!has_name(&without), "{without}");
        assert!(has_name(&with), "{with}");
    }
}
