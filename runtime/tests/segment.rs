//! Cutting a stream into segments, with a detector that hears loudness.
#![allow(clippy::unwrap_used)]

use std::convert::Infallible;

use earwitness::segment::{Event, Segment, SegmentOptions, Segmenter, SpeechScorer};
use proptest::prelude::*;

const WINDOW: usize = earwitness_models::vad::SpeechDetector::WINDOW;

/// Takes loud windows for speech.
struct Loudness;

impl SpeechScorer for Loudness {
    type Error = Infallible;

    fn score(&mut self, window: &[f32]) -> Result<f32, Infallible> {
        assert_eq!(window.len(), WINDOW);
        Ok(window.iter().map(|sample| sample.abs()).sum::<f32>() / window.len() as f32)
    }
}

fn segments(sound: &[f32], chunks: impl Iterator<Item = usize>) -> Vec<Segment> {
    let mut segmenter = Segmenter::new(Loudness, SegmentOptions::default());
    let mut found = Vec::new();
    let mut push = |mut chunk: &[f32]| {
        while let Some(event) = segmenter.advance(&mut chunk).unwrap() {
            if let Event::Over(segment) = event {
                found.push(segment);
            }
        }
    };
    let mut rest = sound;
    for length in chunks {
        let (head, tail) = rest.split_at(length.min(rest.len()));
        push(head);
        rest = tail;
    }
    push(rest);
    found.extend(segmenter.finish().unwrap());
    found
}

fn whole(sound: &[f32]) -> Vec<Segment> {
    segments(sound, std::iter::empty())
}

/// Stretches of (loudness, windows) one after the other; sample values tell
/// positions apart without changing the loudness much.
fn sound(stretches: &[(f32, usize)]) -> Vec<f32> {
    let mut samples = Vec::new();
    for &(level, windows) in stretches {
        for _ in 0..windows * WINDOW {
            samples.push(level + (samples.len() % 1000) as f32 * 1e-6);
        }
    }
    samples
}

#[test]
fn speech_between_silences_is_one_segment_with_margins() {
    let sound = sound(&[(0.0, 50), (0.9, 40), (0.0, 50)]);
    let found = whole(&sound);
    assert_eq!(found.len(), 1);
    let segment = &found[0];
    let margin = 5 * WINDOW as u64;
    assert_eq!(segment.start, 50 * WINDOW as u64 - margin);
    assert_eq!(
        segment.samples.len() as u64,
        40 * WINDOW as u64 + 2 * margin
    );
    assert_eq!(
        segment.samples,
        sound[segment.start as usize..][..segment.samples.len()]
    );
    assert_eq!(segment.speech_ms, 40 * 32);
}

#[test]
fn silence_and_clicks_make_no_segment() {
    assert!(whole(&[]).is_empty());
    assert!(whole(&[0.9]).is_empty());
    assert!(whole(&sound(&[(0.0, 400)])).is_empty());
    assert!(whole(&sound(&[(0.0, 20), (0.9, 2), (0.0, 40)])).is_empty());
}

#[test]
fn speech_at_the_end_of_the_stream_is_kept_to_its_last_sample() {
    let mut sound = sound(&[(0.0, 20), (0.9, 30)]);
    sound.truncate(sound.len() - 100);
    let found = whole(&sound);
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].start + found[0].samples.len() as u64,
        sound.len() as u64
    );
}

#[test]
fn a_short_pause_does_not_end_a_segment_and_a_long_one_does() {
    assert_eq!(
        whole(&sound(&[(0.9, 30), (0.0, 8), (0.9, 30), (0.0, 30)])).len(),
        1
    );
    assert_eq!(
        whole(&sound(&[(0.9, 30), (0.0, 14), (0.9, 30), (0.0, 30)])).len(),
        2
    );
}

#[test]
fn in_noise_a_pause_may_be_longer_and_margins_are_wider() {
    let turns = [(0.3, 30), (0.9, 30), (0.3, 14), (0.9, 30), (0.3, 40)];
    let found = whole(&sound(&turns));
    assert_eq!(found.len(), 1);
    let margin = 7 * WINDOW as u64;
    assert_eq!(found[0].start, 30 * WINDOW as u64 - margin);
    assert_eq!(found[0].samples.len(), 74 * WINDOW + 2 * margin as usize);
}

#[test]
fn endless_speech_is_cut_at_its_quietest_window_and_nothing_is_lost() {
    let max = SegmentOptions::default().max_ms as usize / 32;
    let quiet_at = max - 50;
    let sound = sound(&[(0.9, quiet_at), (0.45, 1), (0.9, 2 * max)]);
    let found = whole(&sound);
    assert_eq!(found[0].samples.len(), quiet_at * WINDOW);
    let joined: Vec<f32> = found
        .iter()
        .flat_map(|segment| segment.samples.clone())
        .collect();
    assert!(
        joined == sound,
        "cut speech does not add up to what was said"
    );
    assert!(
        found
            .iter()
            .all(|segment| segment.samples.len() <= (max + 5) * WINDOW)
    );
}

#[test]
fn a_segment_can_be_seen_while_it_grows() {
    let sound = sound(&[(0.0, 20), (0.9, 30), (0.0, 30)]);
    let mut segmenter = Segmenter::new(Loudness, SegmentOptions::default());
    let (mut rest, mut seen) = (&sound[..], 0);
    while let Some(event) = segmenter.advance(&mut rest).unwrap() {
        let Event::Grown = event else { continue };
        let open = segmenter.open().unwrap();
        assert_eq!(open.start, 15 * WINDOW as u64);
        assert!(open.samples.len() > seen);
        seen = open.samples.len();
        assert_eq!(open.samples, &sound[15 * WINDOW..][..seen]);
    }
    assert!(seen >= 35 * WINDOW);
    assert!(segmenter.open().is_none());
}

proptest! {
    #[test]
    fn segments_do_not_depend_on_how_the_stream_is_cut(
        stretches in prop::collection::vec((0usize..4, 1usize..60), 1..12),
        chunks in prop::collection::vec(1usize..5000, 0..200),
        tail in 0usize..600,
    ) {
        let levels = [0.0, 0.3, 0.45, 0.9];
        let stretches: Vec<_> = stretches.iter().map(|&(l, w)| (levels[l], w)).collect();
        let mut sound = sound(&stretches);
        sound.truncate(sound.len().saturating_sub(tail));
        let batch = whole(&sound);
        prop_assert!(batch == segments(&sound, chunks.into_iter()));
        // Segments keep their order, never overlap, and are what was said there.
        let mut end = 0;
        for segment in &batch {
            prop_assert!(segment.start >= end);
            end = segment.start + segment.samples.len() as u64;
            prop_assert!(end <= sound.len() as u64);
            prop_assert!(segment.samples == sound[segment.start as usize..end as usize]);
        }
    }
}
