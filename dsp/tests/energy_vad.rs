//! The energy gate over noise floors from digital silence to a loud car.
//!
//! The "speech" here has the shape that the gate looks at: syllables of 200 ms
//! of a harmonic tone, with short gaps, in phrases with pauses between them.

mod common;

use common::noise;
use earwitness_dsp::vad::{EnergyVad, EnergyVadOptions, VAD_FRAME};
use proptest::prelude::*;
use std::f32::consts::TAU;

const SECOND: usize = 16_000;

fn decisions(samples: &[f32]) -> Vec<bool> {
    let mut decisions = Vec::new();
    EnergyVad::new(EnergyVadOptions::default()).push(samples, |open| decisions.push(open));
    decisions
}

fn open_rate(decisions: &[bool]) -> f64 {
    decisions.iter().filter(|&&open| open).count() as f64 / decisions.len() as f64
}

/// Mean power to amplitude of evenly distributed noise.
fn amplitude(dbfs: f32) -> f32 {
    (3.0 * 10_f32.powf(dbfs / 10.0)).sqrt()
}

/// Engine and road: noise that falls by 12 dB an octave from 80 Hz on, with
/// some wind over it.
fn car_noise(seed: u64, len: usize, dbfs: f32) -> Vec<f32> {
    let mut low = [0.0; 2];
    let rumble: Vec<f32> = noise(seed, len, 1.0)
        .into_iter()
        .map(|x| {
            low[0] += 0.03 * (x - low[0]);
            low[1] += 0.03 * (low[0] - low[1]);
            low[1] + 0.01 * x
        })
        .collect();
    let power = rumble.iter().map(|x| x * x).sum::<f32>() / len as f32;
    let gain = (10_f32.powf(dbfs / 10.0) / power).sqrt();
    rumble.into_iter().map(|x| x * gain).collect()
}

/// Three seconds of pause and two of phrase, again and again.
fn in_phrase(i: usize) -> bool {
    i % (5 * SECOND) >= 3 * SECOND
}

/// Speech-like sound whose syllables have that power.
fn speech(len: usize, dbfs: f32) -> Vec<f32> {
    let gain = (10_f32.powf(dbfs / 10.0) * 2.0 / 3.0).sqrt();
    let sample = |i: usize| {
        if !in_phrase(i) || i % 4_000 >= 3_200 {
            return 0.0;
        }
        let harmonic =
            |k: u16| (TAU * 150.0 * f32::from(k) * (i % SECOND) as f32 / SECOND as f32).sin();
        gain * (harmonic(2) + harmonic(4) + harmonic(7))
    };
    (0..len).map(sample).collect()
}

fn sum(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// Share of open frames in phrases and in pauses, after the first two seconds
/// and the hangover of a phrase.
fn rates(decisions: &[bool]) -> (f64, f64) {
    let (mut phrases, mut pauses) = (Vec::new(), Vec::new());
    for (i, &open) in decisions.iter().enumerate().skip(250) {
        let start = i * VAD_FRAME;
        if in_phrase(start) {
            phrases.push(open);
        } else if start % (5 * SECOND) >= SECOND {
            pauses.push(open);
        }
    }
    (open_rate(&phrases), open_rate(&pauses))
}

#[test]
fn speech_opens_the_gate_over_every_floor() {
    let len = 20 * SECOND;
    let scenes = [
        ("silence", vec![0.0; len], -50.0),
        ("last bit", noise(1, len, amplitude(-96.0)), -55.0),
        ("quiet room", noise(2, len, amplitude(-65.0)), -45.0),
        ("fan", noise(3, len, amplitude(-45.0)), -33.0),
        ("car", car_noise(4, len, -30.0), -35.0),
        ("loud car", car_noise(5, len, -15.0), -22.0),
        ("offset", vec![0.4; len], -50.0),
    ];
    for (name, floor, dbfs) in scenes {
        let (phrases, pauses) = rates(&decisions(&sum(&floor, &speech(len, dbfs))));
        println!("{name}: {phrases:.3} of speech, {pauses:.3} of pauses");
        assert!(phrases > 0.97, "{name}: open in {phrases:.3} of speech");
        assert!(pauses < 0.02, "{name}: open in {pauses:.3} of pauses");
    }
}

#[test]
fn silence_keeps_it_shut() {
    assert_eq!(open_rate(&decisions(&vec![0.0; 5 * SECOND])), 0.0);
}

#[test]
fn steady_noise_of_any_level_shuts_it_after_two_seconds() {
    for dbfs in [-90.0, -70.0, -50.0, -30.0, -10.0] {
        for floor in [
            noise(6, 10 * SECOND, amplitude(dbfs)),
            car_noise(7, 10 * SECOND, dbfs),
        ] {
            let decisions = decisions(&floor);
            assert_eq!(open_rate(&decisions[250..]), 0.0, "{dbfs} dBFS");
        }
    }
}

#[test]
fn louder_noise_becomes_the_floor_within_two_and_a_half_seconds() {
    let mut samples = noise(8, 5 * SECOND, amplitude(-60.0));
    samples.extend(noise(9, 5 * SECOND, amplitude(-25.0)));
    let decisions = decisions(&samples);
    assert!(decisions[501..690].iter().all(|&open| open));
    assert_eq!(open_rate(&decisions[750..]), 0.0);
}

#[test]
fn the_gate_stays_open_for_the_hangover() {
    let mut samples = vec![0.0; SECOND];
    samples.extend(noise(10, VAD_FRAME, 0.5));
    samples.extend(vec![0.0; SECOND]);
    let open_for = |hangover_frames| {
        let options = EnergyVadOptions {
            hangover_frames,
            ..EnergyVadOptions::default()
        };
        let mut open = 0;
        EnergyVad::new(options).push(&samples, |o| open += u32::from(o));
        open
    };
    let loud = open_for(0);
    assert!(loud >= 1);
    assert_eq!(open_for(30), loud + 30);
}

#[test]
fn no_sample_spoils_the_ones_after_it() {
    let clean = sum(
        &noise(11, 20 * SECOND, amplitude(-60.0)),
        &speech(20 * SECOND, -30.0),
    );
    let expected = decisions(&clean);
    for bad in [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        -f32::NAN,
    ] {
        let mut samples = clean.clone();
        samples[SECOND..SECOND + 500].fill(bad);
        let decisions = decisions(&samples);
        assert_eq!(decisions[350..], expected[350..], "{bad}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn cuts_do_not_matter(seed: u64, cuts in prop::collection::vec(0_usize..2_000, 1..30)) {
        let len = cuts.iter().sum();
        let samples = sum(&noise(seed, len, 0.01), &speech(len, -30.0));
        let mut vad = EnergyVad::new(EnergyVadOptions::default());
        let (mut rest, mut streamed) = (samples.as_slice(), Vec::new());
        for cut in cuts {
            let (chunk, later) = rest.split_at(cut);
            vad.push(chunk, |open| streamed.push(open));
            rest = later;
        }
        prop_assert_eq!(streamed, decisions(&samples));
    }
}
