//! Resampling: quality, alignment, length, and indifference to chunks.
//!
//! As measured: 108 dB or more for tones of up to 0.9 of the lower Nyquist
//! frequency at the usual rates, and aliases of -139 dB or less; at odd rates,
//! whose blocks are long, 77 dB or more up to 0.8.
#![cfg(feature = "std")]

mod common;

use common::noise;
use earwitness_dsp::resample::{ResampleError, Resampler};
use proptest::prelude::*;
use std::f64::consts::TAU;

const USUAL_RATES: [u32; 7] = [8_000, 11_025, 22_050, 32_000, 44_100, 48_000, 96_000];

fn resampled(input_hz: u32, channels: usize, input: &[f32]) -> Vec<f32> {
    let mut out = Vec::new();
    let mut resampler = Resampler::new(input_hz, channels).expect("a sane input");
    resampler.push(input, &mut out);
    resampler.finish(&mut out);
    out
}

fn tone(hz: f64, rate_hz: u32, len: usize) -> Vec<f32> {
    let at = |i: usize| (0.5 * (TAU * hz * i as f64 / f64::from(rate_hz)).sin()) as f32;
    (0..len).map(at).collect()
}

/// Power of the ideal tone over the power of the difference, in dB, away from
/// the edges of the recording. Alignment and gain count as errors too.
fn snr_db(hz: f64, input_hz: u32) -> f64 {
    let out = resampled(input_hz, 1, &tone(hz, input_hz, input_hz as usize));
    let ideal = tone(hz, 16_000, out.len());
    let (mut signal, mut error) = (0.0, 0.0);
    for (ideal, out) in ideal.iter().zip(&out).skip(1_600).take(12_800) {
        signal += f64::from(*ideal).powi(2);
        error += f64::from(ideal - out).powi(2);
    }
    10.0 * (signal / error).log10()
}

/// Power that a tone above 8 kHz leaves behind, in dB relative to the tone.
fn alias_db(hz: f64, input_hz: u32) -> f64 {
    let out = resampled(input_hz, 1, &tone(hz, input_hz, input_hz as usize));
    let power: f64 = out[1_600..14_400]
        .iter()
        .map(|&x| f64::from(x).powi(2))
        .sum();
    10.0 * (power / 12_800.0 / 0.125).log10()
}

#[test]
fn tones_come_out_clean_and_in_phase() {
    for input_hz in USUAL_RATES {
        let lower_nyquist = f64::from(input_hz.min(16_000)) / 2.0;
        for part in [0.01, 0.1, 0.333, 0.5, 0.8, 0.9] {
            let snr = snr_db(part * lower_nyquist, input_hz);
            assert!(
                snr > 100.0,
                "{snr:.0} dB at {part} of Nyquist from {input_hz} Hz"
            );
        }
    }
    for input_hz in [4_000, 5_512, 16_001, 44_056, 47_999, 192_000] {
        let lower_nyquist = f64::from(input_hz.min(16_000)) / 2.0;
        for part in [0.01, 0.333, 0.8] {
            let snr = snr_db(part * lower_nyquist, input_hz);
            assert!(
                snr > 70.0,
                "{snr:.0} dB at {part} of Nyquist from {input_hz} Hz"
            );
        }
    }
}

#[test]
fn tones_above_the_output_band_vanish() {
    for input_hz in [22_050, 32_000, 44_100, 48_000, 96_000, 192_000] {
        for hz in [8_100.0, 9_000.0, 10_900.0] {
            let alias = alias_db(hz, input_hz);
            assert!(
                alias < -130.0,
                "{alias:.0} dB of {hz} Hz from {input_hz} Hz"
            );
        }
    }
}

#[test]
fn a_click_stays_where_it_was() {
    for input_hz in USUAL_RATES
        .into_iter()
        .chain([4_000, 12_000, 88_200, 192_000])
    {
        let mut input = vec![0.0; input_hz as usize / 2];
        input[input_hz as usize / 4] = 1.0;
        let out = resampled(input_hz, 1, &input);
        let peak = out
            .iter()
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(b.1))
            .unwrap()
            .0;
        let expected = f64::from(input_hz / 4) * 16_000.0 / f64::from(input_hz);
        assert_eq!(peak, expected.round() as usize, "from {input_hz} Hz");
    }
}

#[test]
fn what_is_at_16_khz_already_passes_unchanged() {
    let input = noise(1, 12_345, 0.5);
    assert_eq!(resampled(16_000, 1, &input), input);
}

#[test]
fn channels_are_averaged() {
    let (left, right) = (noise(2, 9_000, 0.5), noise(3, 9_000, 0.5));
    let pairs = || left.iter().zip(&right);
    let interleaved: Vec<f32> = pairs().flat_map(|(&l, &r)| [l, r]).collect();
    let mean: Vec<f32> = pairs().map(|(l, r)| (l + r) / 2.0).collect();
    for input_hz in [16_000, 44_100] {
        assert_eq!(
            resampled(input_hz, 2, &interleaved),
            resampled(input_hz, 1, &mean)
        );
    }
}

#[test]
fn an_incomplete_last_frame_is_dropped() {
    let input = noise(4, 2 * 4_410 + 1, 0.5);
    let out = resampled(44_100, 2, &input);
    assert_eq!(out.len(), 1_600);
    assert_eq!(out, resampled(44_100, 2, &input[..2 * 4_410]));
}

#[test]
fn a_frame_that_is_not_finite_counts_as_silence() {
    let mut silenced = noise(5, 20_000, 0.5);
    silenced[7_000] = 0.0;
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut input = silenced.clone();
        input[7_000] = bad;
        for input_hz in [16_000, 44_100] {
            assert_eq!(
                resampled(input_hz, 1, &input),
                resampled(input_hz, 1, &silenced)
            );
        }
    }
}

#[test]
fn finish_begins_a_new_stream() {
    let input = noise(6, 10_001, 0.5);
    let mut resampler = Resampler::new(44_100, 2).unwrap();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for out in [&mut first, &mut second] {
        resampler.push(&input, out);
        resampler.finish(out);
    }
    assert_eq!(first, second);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn cuts_do_not_matter_and_the_length_is_exact(
        seed: u64,
        input_hz in prop_oneof![prop::sample::select(&USUAL_RATES), 4_000_u32..=192_000],
        channels in 1_usize..=3,
        cuts in prop::collection::vec(0_usize..3_000, 0..20),
    ) {
        let input = noise(seed, cuts.iter().sum(), 0.5);
        let mut resampler = Resampler::new(input_hz, channels).unwrap();
        let (mut rest, mut streamed) = (input.as_slice(), Vec::new());
        for cut in cuts {
            let (chunk, later) = rest.split_at(cut);
            resampler.push(chunk, &mut streamed);
            rest = later;
        }
        resampler.finish(&mut streamed);
        let frames = (input.len() / channels) as f64;
        let expected = (frames * 16_000.0 / f64::from(input_hz)).round() as usize;
        prop_assert_eq!(streamed.len(), expected);
        prop_assert_eq!(streamed, resampled(input_hz, channels, &input));
    }
}

#[test]
fn absurd_inputs_are_refused() {
    let refused = |hz, channels| Resampler::new(hz, channels).err();
    for hz in [0, 1, 3_999, 192_001, u32::MAX] {
        assert_eq!(refused(hz, 1), Some(ResampleError::SampleRate(hz)));
    }
    for channels in [0, 9, usize::MAX] {
        assert_eq!(
            refused(48_000, channels),
            Some(ResampleError::Channels(channels))
        );
    }
    assert_eq!(
        ResampleError::SampleRate(0).to_string(),
        "a sample rate of 0 Hz is not supported: \
         convert the sound to one from 4000 to 192000 Hz, best 16000 Hz"
    );
}
