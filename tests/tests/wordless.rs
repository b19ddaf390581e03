//! No word is heard where nobody speaks, and speech among it is heard all the same.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use earwitness::{
    answer::extractive::Extractive,
    capture::decode,
    hub::{Hub, HubOptions},
    transcribe::LiveOptions,
};
use earwitness_tests::soak::soak;
use jiff::tz::TimeZone;

#[test]
fn a_round_of_speech_noise_and_silence_makes_up_nothing() {
    let packs = std::env::var_os("EARWITNESS_PACKS").expect(
        "EARWITNESS_PACKS must name the model packs; `cargo xtask test` sets it, \
         `cargo xtask models` builds them and prints their folder",
    );
    let folder = tempfile::tempdir().unwrap();
    let options = HubOptions {
        partials: Some(LiveOptions::default()),
        ..HubOptions::default()
    };
    let answerer = Box::new(Extractive::new(TimeZone::UTC));
    let store = folder.path().join("memory.redb");
    let hub = Hub::open(Path::new(&packs), &store, answerer, options).unwrap();
    let turn = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/household/audio/s1t01.flac");
    let speech = decode(&turn).unwrap();
    let report = soak(&hub, &speech, 1.0, 7, |_| ()).unwrap();
    assert_eq!(report.records, 1);
    assert!(report.made_up.is_empty(), "{:?}", report.made_up);
}
