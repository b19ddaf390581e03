//! The front end's promises beyond its numbers: chunks do not matter, bad
//! samples do not spread, bad options are refused. Numbers: `kaldi_parity.rs`.
#![cfg(feature = "std")]

mod common;

use common::noise;
use earwitness_dsp::fbank::{Fbank, FbankError, FbankOptions, Normalization, Window, compute};
use earwitness_dsp::fft::HubFft;
use proptest::prelude::*;

const KALDI: FbankOptions = FbankOptions::kaldi();

fn stream(options: FbankOptions) -> Fbank<HubFft> {
    let size = options.fft_size().expect("valid options");
    let fft = HubFft::new(size).expect("a size that options name");
    Fbank::new(options, fft).expect("valid options")
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn streaming_equals_batch(
        seed: u64,
        cuts in prop::collection::vec(0_usize..1_200, 1..30),
        shift_ms in prop::sample::select(vec![5.0, 10.0, 25.0]),
    ) {
        let options = FbankOptions { frame_shift_ms: shift_ms, ..KALDI };
        let samples = noise(seed, cuts.iter().sum(), 0.3);
        let mut fbank = stream(options);
        let (mut rest, mut streamed) = (samples.as_slice(), Vec::new());
        for cut in cuts {
            let (chunk, later) = rest.split_at(cut);
            fbank.push(chunk, |frame| streamed.extend_from_slice(frame));
            rest = later;
        }
        let batch = compute(options, &samples).unwrap();
        prop_assert_eq!(bits(&streamed), bits(&batch.data));
    }
}

#[test]
fn only_whole_frames_count() {
    for (samples, frames) in [(0, 0), (399, 0), (400, 1), (559, 1), (560, 2), (16_000, 98)] {
        let features = compute(KALDI, &noise(1, samples, 0.1)).unwrap();
        assert_eq!(features.frames(), frames, "{samples} samples");
    }
}

#[test]
fn reset_begins_a_new_stream() {
    let samples = noise(2, 1_000, 0.1);
    let mut fbank = stream(KALDI);
    fbank.push(&noise(3, 777, 0.5), |_| {});
    fbank.reset();
    let mut again = Vec::new();
    fbank.push(&samples, |frame| again.extend_from_slice(frame));
    assert_eq!(again, compute(KALDI, &samples).unwrap().data);
}

#[test]
fn silence_is_at_the_floor() {
    let features = compute(KALDI, &[0.0; 800]).unwrap();
    assert!(features.data.iter().all(|&v| v == f32::EPSILON.ln()));
}

#[test]
fn bad_samples_stay_in_their_frames() {
    let clean = noise(4, 4_000, 0.1);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
        let mut samples = clean.clone();
        samples[1_000] = bad;
        let features = compute(KALDI, &samples).unwrap();
        assert!(features.data.iter().all(|v| v.is_finite()), "{bad}");
        let expected = compute(KALDI, &clean).unwrap();
        for i in (0..features.frames()).filter(|i| !(i * 160..i * 160 + 400).contains(&1_000)) {
            assert_eq!(features.frame(i), expected.frame(i), "{bad}, frame {i}");
        }
    }
}

#[test]
fn the_mean_over_an_utterance_goes() {
    let options = FbankOptions {
        normalization: Normalization::UtteranceMean,
        ..KALDI
    };
    let features = compute(options, &noise(5, 16_000, 0.1)).unwrap();
    let plain = compute(KALDI, &noise(5, 16_000, 0.1)).unwrap();
    for bin in 0..features.bins {
        let values = |i| features.frame(i)[bin];
        let mean = (0..features.frames()).map(values).sum::<f32>() / features.frames() as f32;
        assert!(mean.abs() < 1e-5, "band {bin}: {mean}");
        let offset = plain.frame(0)[bin] - features.frame(0)[bin];
        let last = features.frames() - 1;
        assert!((plain.frame(last)[bin] - features.frame(last)[bin] - offset).abs() < 1e-5);
    }
    assert_eq!(compute(options, &[]).unwrap().frames(), 0);
}

#[test]
fn the_state_fits_a_microcontroller() {
    assert!(size_of::<Fbank<()>>() <= 7 * 1024);
}

#[test]
fn options_that_cannot_be_computed_are_refused() {
    let refused = |options| compute(options, &[]).unwrap_err();
    for frame_length_ms in [0.0, -25.0, 2.0, 32.1, f32::NAN, f32::INFINITY] {
        let error = refused(FbankOptions {
            frame_length_ms,
            ..KALDI
        });
        assert!(matches!(error, FbankError::FrameLength { .. }), "{error}");
    }
    for frame_shift_ms in [0.0, -1.0, 26.0, f32::NAN] {
        let error = refused(FbankOptions {
            frame_shift_ms,
            ..KALDI
        });
        assert!(matches!(error, FbankError::FrameShift { .. }), "{error}");
    }
    for mel_bins in [0, 2, 129] {
        let error = refused(FbankOptions { mel_bins, ..KALDI });
        assert_eq!(error, FbankError::MelBins(mel_bins));
    }
    for (low_hz, high_hz) in [
        (-1.0, 0.0),
        (4e3, 3e3),
        (20.0, 8_001.0),
        (20.0, -8e3),
        (f32::NAN, 0.0),
    ] {
        let error = refused(FbankOptions {
            low_hz,
            high_hz,
            ..KALDI
        });
        assert!(matches!(error, FbankError::BandEdges { .. }), "{error}");
    }
    for preemphasis in [-0.1, 1.1, f32::NAN] {
        let error = refused(FbankOptions {
            preemphasis,
            ..KALDI
        });
        assert!(matches!(error, FbankError::Preemphasis(_)), "{error}");
    }
    for scale in [0.0, -1.0, f32::INFINITY, f32::NAN] {
        let error = refused(FbankOptions { scale, ..KALDI });
        assert!(matches!(error, FbankError::Scale(_)), "{error}");
    }
    let narrow = FbankOptions {
        mel_bins: 128,
        high_hz: 4_000.0,
        ..KALDI
    };
    assert!(matches!(refused(narrow), FbankError::EmptyBand { .. }));
}

#[test]
fn an_fft_of_another_size_is_refused() {
    let error = Fbank::new(KALDI, HubFft::new(256).unwrap()).err();
    assert_eq!(
        error,
        Some(FbankError::FftSize {
            needed: 512,
            given: 256
        })
    );
}

#[test]
fn errors_say_what_to_do() {
    let options = FbankOptions {
        window: Window::Hamming,
        mel_bins: 500,
        ..KALDI
    };
    let text = compute(options, &[]).unwrap_err().to_string();
    assert_eq!(text, "mel_bins is 500: choose 3 to 128");
}
