//! The text embedder on real sentences.

use crate::support;
use earwitness_models::embed::TextEmbedder;
use earwitness_models::manifest::Kind;

fn embedder() -> TextEmbedder {
    TextEmbedder::load(&support::pack(Kind::Embed)).unwrap()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn sentences_of_like_meaning_lie_close() {
    let mut embedder = embedder();
    let mut embed = |text| embedder.embed(text).unwrap();
    let question = embed("When is the meeting?");
    let answer = embed("We meet on Thursday at nine.");
    let other = embed("The cat sleeps on the red sofa.");
    assert!(dot(&question, &answer) > dot(&question, &other) + 0.3);
}

#[test]
fn every_text_has_a_vector_of_length_one() {
    let mut embedder = embedder();
    let long = "word ".repeat(100_000);
    for text in ["", " \n", "a", "会议", "👍🏽", "\u{0}\u{fffd}", &long] {
        let vector = embedder.embed(text).unwrap();
        assert_eq!(vector.len(), embedder.dim());
        assert!((dot(&vector, &vector) - 1.0).abs() < 1e-4);
    }
}

#[test]
fn case_and_accents_do_not_matter() {
    let mut embedder = embedder();
    let plain = embedder.embed("Zoe likes cafe au lait").unwrap();
    assert_eq!(embedder.embed("ZOË likes Café au lait").unwrap(), plain);
}

#[test]
fn a_text_leaves_nothing_for_the_next() {
    let mut embedder = embedder();
    let first = embedder.embed("Turn left here.").unwrap();
    embedder
        .embed("Something else altogether, and longer.")
        .unwrap();
    assert_eq!(embedder.embed("Turn left here.").unwrap(), first);
}
