//! What is nobody opens no identity, and one voice opens one. A small part of
//! `cargo xtask eval ghosts`, through the whole pipeline and the real models.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use earwitness::{
    answer::extractive::Extractive,
    hub::{Hub, HubOptions},
};
use earwitness_tests::{
    episodes::load_set,
    ghosts::{Amount, listen},
};
use jiff::tz::TimeZone;

#[test]
fn noises_are_nobody_and_every_voice_is_one_identity() {
    let packs = std::env::var_os("EARWITNESS_PACKS")
        .map(PathBuf::from)
        .expect("EARWITNESS_PACKS must name the model packs; `cargo xtask test` sets it");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/household");
    let set = load_set(&data).unwrap();
    let memory = tempfile::tempdir().unwrap();
    let hub = Hub::open(
        &packs,
        &memory.path().join("memory.redb"),
        Box::new(Extractive::new(TimeZone::UTC)),
        HubOptions::default(),
    )
    .unwrap();
    let amount = Amount {
        ghosts: 60,
        voices: 3,
        turns: 20,
        seed: 7,
    };
    let outcome = listen(&hub, &set.episodes[0], amount).unwrap();
    assert_eq!(outcome.ghost_identities, 0, "{outcome:?}");
    assert_eq!(outcome.identities, 3, "{outcome:?}");
    assert!(outcome.records >= 50, "{outcome:?}");
    assert!(outcome.accuracy >= 0.95, "{outcome:?}");
}
