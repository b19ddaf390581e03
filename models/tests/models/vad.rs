//! The speech detector on real sound.

use crate::support;
use earwitness_models::manifest::Kind;
use earwitness_models::vad::{SpeechDetector, VadError};

const WINDOW: usize = SpeechDetector::WINDOW;

fn detector() -> (SpeechDetector, Vec<f32>) {
    let pack = support::pack(Kind::Vad);
    (
        SpeechDetector::load(&pack).unwrap(),
        support::recording(&pack, 1),
    )
}

fn probabilities(detector: &mut SpeechDetector, sound: &[f32]) -> Vec<f32> {
    sound
        .chunks_exact(WINDOW)
        .map(|window| detector.push(window).unwrap())
        .collect()
}

#[test]
fn speech_is_told_from_silence() {
    let (mut detector, sound) = detector();
    let heard = probabilities(&mut detector, &sound);
    // Two seconds of digital silence stand before and after the speech.
    let silent = 2 * 16_000 / WINDOW - 1;
    assert!(
        heard[..silent].iter().all(|&p| p < 0.2),
        "{:?}",
        &heard[..silent]
    );
    assert!(heard[heard.len() - silent / 2..].iter().all(|&p| p < 0.2));
    let speech = &heard[silent + 1..heard.len() - silent - 1];
    let sure = speech.iter().filter(|&&p| p > 0.5).count();
    assert!(
        sure * 10 > speech.len() * 7,
        "{sure} of {} windows",
        speech.len()
    );
}

#[test]
fn a_reset_detector_gives_what_a_new_one_gives() {
    let (mut used, sound) = detector();
    let (mut new, _) = detector();
    let first = probabilities(&mut used, &sound);
    used.reset();
    assert_eq!(probabilities(&mut used, &sound), first);
    assert_eq!(probabilities(&mut new, &sound), first);
}

#[test]
fn what_was_heard_before_matters_until_reset() {
    let (mut detector, sound) = detector();
    let (before, window) = sound[3 * 16_000..][..4 * WINDOW].split_at(3 * WINDOW);
    probabilities(&mut detector, before);
    let in_context = detector.push(window).unwrap();
    detector.reset();
    assert_ne!(detector.push(window).unwrap(), in_context);
}

#[test]
fn a_refused_window_leaves_the_stream_alone() {
    let (mut detector, sound) = detector();
    let expected = probabilities(&mut detector, &sound);
    detector.reset();
    for (window, expected) in sound.chunks_exact(WINDOW).zip(expected) {
        let mut broken = window.to_vec();
        broken[7] = f32::NAN;
        assert!(matches!(detector.push(&broken), Err(VadError::NotFinite)));
        assert!(matches!(
            detector.push(&window[1..]),
            Err(VadError::Length(511))
        ));
        assert_eq!(detector.push(window).unwrap(), expected);
    }
}
