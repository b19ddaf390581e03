//! The fuzzers' bodies over their corpus, and over seeded mutations of it.
//! `EARWITNESS_FUZZ_ROUNDS` makes it longer.
#![allow(clippy::unwrap_used)]

#[path = "../fuzz/bodies.rs"]
mod bodies;
mod common;

use common::Random;
use std::fs;
use std::path::Path;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut paths: Vec<_> = fs::read_dir(folder.join(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Some bytes changed, cut out, or doubled.
fn mutate(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len() + 1);
        let end = bytes.len().min(at + random.below(16));
        match random.below(4) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => bytes.extend_from_within(at..end),
            _ if at < bytes.len() => {
                let interesting = [0, 1, 0x7f, 0x80, 0xff, b'"', b'9', b'-'];
                bytes[at] = interesting[random.below(interesting.len())];
            }
            _ => {}
        }
    }
    bytes
}

fn fuzz(name: &str, rounds: usize, body: impl Fn(&[u8])) {
    let corpus = corpus(name);
    corpus.iter().for_each(|bytes| body(bytes));
    let factor = std::env::var("EARWITNESS_FUZZ_ROUNDS");
    let factor: usize = factor.map_or(1, |value| value.parse().unwrap());
    let mut random = Random(1);
    for _ in 0..rounds * factor {
        let seed = corpus[random.below(corpus.len())].clone();
        body(&mutate(seed, &mut random));
    }
}

#[test]
fn no_archive_makes_a_panic() {
    fuzz("import", 800, bodies::import);
}

#[test]
fn no_file_makes_a_panic() {
    fuzz("open", 100, bodies::open);
}

#[test]
fn no_sealed_row_makes_a_panic() {
    fuzz("sealed", 400, bodies::sealed);
}

#[test]
fn no_row_makes_a_panic() {
    fuzz("row", 400, bodies::row);
}
