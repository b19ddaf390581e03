//! The fixed-point front end against the float one, and against golden frames
//! that every target must give bit for bit.
//!
//! Bounds, in neper: the resolution of a feature is 1/512. A band is compared
//! where it lies within 80 dB of the loudest band of its frame; below that, 32-bit
//! integers and single precision both hold rounding errors more than sound.
#![cfg(feature = "std")]

mod common;

use common::noise;
use earwitness_dsp::fbank::{FbankError, FbankOptions, Window, compute};
use earwitness_dsp::fixed::{DcBlocker, FixedFbank, FixedTables, LogEnergy, NODE_FBANK};
use proptest::prelude::*;
use std::f32::consts::TAU;

const fn tables(options: FbankOptions) -> FixedTables {
    match FixedTables::new(&options) {
        Ok(tables) => tables,
        Err(_) => panic!("valid options"),
    }
}

static NODE: FixedTables = tables(NODE_FBANK);
static KALDI: FixedTables = tables(FbankOptions::kaldi());
static UNIT_SCALE: FixedTables = tables(UNIT_SCALE_OPTIONS);
const UNIT_SCALE_OPTIONS: FbankOptions = FbankOptions {
    scale: 1.0,
    remove_dc_offset: false,
    mel_bins: 40,
    window: Window::Hann,
    preemphasis: 0.0,
    ..FbankOptions::kaldi()
};

/// The largest difference of a band that counts.
const BOUND: f32 = 1.0 / 128.0;
/// How far below the loudest band of its frame a band still counts: 80 dB.
const RANGE: f32 = 18.4;

/// Speech-like: a vowel, a fricative, a pause, a tone; see `golden/make.py`.
fn recording() -> Vec<i16> {
    let bytes = include_bytes!("golden/signal.i16");
    let (samples, _) = bytes.as_chunks();
    samples.iter().copied().map(i16::from_le_bytes).collect()
}

fn fixed(tables: &'static FixedTables, samples: &[i16]) -> Vec<LogEnergy> {
    let mut features = Vec::new();
    FixedFbank::new(tables).push(samples, |frame| features.extend_from_slice(frame));
    features
}

fn pcm(samples: &[f32]) -> Vec<i16> {
    samples
        .iter()
        .map(|x| (x * 32_767.0).round() as i16)
        .collect()
}

fn tone(hz: f32, amplitude: f32) -> Vec<f32> {
    let phase = |i: u16| TAU * hz * f32::from(i) / 16_000.0;
    (0..4_000).map(|i| amplitude * phase(i).sin()).collect()
}

/// The largest difference to the float features, over the bands that count.
fn difference(tables: &'static FixedTables, options: FbankOptions, samples: &[i16]) -> f32 {
    let unit: Vec<f32> = samples.iter().map(|&x| f32::from(x) / 32_768.0).collect();
    let float = compute(options, &unit).expect("valid options");
    let fixed = fixed(tables, samples);
    assert_eq!(fixed.len(), float.data.len());
    let frames = float.data.chunks(float.bins).zip(fixed.chunks(float.bins));
    frames
        .flat_map(|(float, fixed)| {
            let loudest = float.iter().copied().fold(f32::MIN, f32::max);
            let bands = float.iter().zip(fixed);
            bands.filter(move |(float, _)| **float > loudest - RANGE)
        })
        .map(|(float, fixed)| (float - fixed.to_num::<f32>()).abs())
        .fold(0.0, f32::max)
}

#[test]
fn agrees_with_the_float_front_end_on_the_recording() {
    for (tables, options) in [
        (&NODE, NODE_FBANK),
        (&KALDI, FbankOptions::kaldi()),
        (&UNIT_SCALE, UNIT_SCALE_OPTIONS),
    ] {
        let difference = difference(tables, options, &recording());
        assert!(difference <= BOUND, "{difference} for {options:?}");
    }
}

#[test]
fn agrees_from_one_bit_to_full_scale() {
    for level in [1.0 / 32_767.0, 1e-4, 1e-3, 0.01, 0.1, 1.0] {
        let hiss = pcm(&noise(7, 8_000, level));
        let difference = difference(&NODE, NODE_FBANK, &hiss);
        assert!(difference <= BOUND, "{difference} at {level}");
    }
}

#[test]
fn agrees_where_sums_are_largest() {
    let square = |period: usize| -> Vec<i16> {
        let high = |i: usize| i % period < period / 2;
        (0..4_000)
            .map(|i| if high(i) { i16::MAX } else { i16::MIN })
            .collect()
    };
    for period in [2, 3, 16, 399, 800, 100_000] {
        let difference = difference(&NODE, NODE_FBANK, &square(period));
        assert!(difference <= BOUND, "{difference} for a period of {period}");
    }
}

#[test]
fn agrees_on_pure_tones() {
    for hz in [60.0, 440.0, 1_000.0, 3_999.0, 7_900.0] {
        let difference = difference(&NODE, NODE_FBANK, &pcm(&tone(hz, 0.5)));
        assert!(difference <= BOUND, "{difference} at {hz} Hz");
    }
}

#[test]
fn silence_is_at_the_floor_of_the_float_front_end() {
    let floor = f32::EPSILON.ln();
    for silence in [0, 1_234, i16::MIN] {
        let features = fixed(&NODE, &[silence; 800]);
        assert!(
            features
                .iter()
                .all(|value| (value.to_num::<f32>() - floor).abs() < 1.0 / 512.0)
        );
    }
}

/// Do not update the golden frames: nodes that are out there give these.
#[test]
fn golden_frames_come_out_bit_for_bit() {
    let features = fixed(&NODE, &recording());
    let bytes: Vec<u8> = features
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    assert!(bytes == include_bytes!("golden/fixed.i7f9"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn any_samples_agree(samples in prop::collection::vec(any::<i16>(), 400..2_000)) {
        prop_assert!(difference(&NODE, NODE_FBANK, &samples) <= BOUND);
    }

    #[test]
    fn streaming_equals_batch(seed: u64, cuts in prop::collection::vec(0_usize..900, 1..20)) {
        let samples = pcm(&noise(seed, cuts.iter().sum(), 0.3));
        let mut fbank = FixedFbank::new(&NODE);
        let (mut rest, mut streamed) = (samples.as_slice(), Vec::new());
        for cut in cuts {
            let (chunk, later) = rest.split_at(cut);
            fbank.push(chunk, |frame| streamed.extend_from_slice(frame));
            rest = later;
        }
        prop_assert_eq!(streamed, fixed(&NODE, &samples));
    }
}

#[test]
fn reset_begins_a_new_stream() {
    let mut fbank = FixedFbank::new(&NODE);
    fbank.push(&[99; 777], |_| {});
    fbank.reset();
    let mut again = Vec::new();
    fbank.push(&recording(), |frame| again.extend_from_slice(frame));
    assert_eq!(again, fixed(&NODE, &recording()));
}

#[test]
fn options_that_cannot_be_computed_are_refused() {
    let telephone = FbankOptions {
        sample_rate_hz: 8_000,
        ..NODE_FBANK
    };
    let refused = FixedTables::new(&telephone).err();
    assert_eq!(
        refused,
        Some(FbankError::FftSize {
            needed: 256,
            given: 512
        })
    );
    let crowded = FbankOptions {
        mel_bins: 128,
        ..NODE_FBANK
    };
    assert!(matches!(
        FixedTables::new(&crowded),
        Err(FbankError::EmptyBand { .. })
    ));
}

#[test]
fn the_dc_blocker_takes_the_offset_and_leaves_speech() {
    let tone = pcm(&tone(440.0, 0.5));
    let mut samples: Vec<i16> = tone.iter().map(|x| x + 9_000).collect();
    let mut blocker = DcBlocker::default();
    // Half a second to settle, as after power-on.
    blocker.apply(&mut [9_000; 8_000]);
    blocker.apply(&mut samples);
    let power = |samples: &mut dyn Iterator<Item = f32>| samples.map(|x| x * x).sum::<f32>();
    let error = samples
        .iter()
        .zip(&tone)
        .map(|(&y, &x)| f32::from(y) - f32::from(x));
    let error = power(&mut { error }) / power(&mut tone.iter().map(|&x| f32::from(x)));
    assert!(error < 0.005, "{error}");
}

#[test]
fn the_dc_blocker_saturates() {
    let mut samples = [i16::MIN; 400];
    samples[200..].fill(i16::MAX);
    DcBlocker::default().apply(&mut samples);
    assert_eq!((samples[0], samples[200]), (i16::MIN, i16::MAX));
}
