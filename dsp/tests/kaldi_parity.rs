//! Features against those of kaldi-native-fbank 1.23.0, for every window and
//! with each option away from its default. `golden/make.py` made the numbers.
//!
//! Largest difference of a log energy as measured: 3.3e-4, on hub and node
//! alike. It is in bands 80 dB and more below the loudest of their frame, where
//! single precision ends: Kaldi is as far from a computation in double.
#![cfg(feature = "std")]

use earwitness_dsp::fbank::{FbankOptions, Normalization, Window, compute};

const TOLERANCE: f32 = 1e-3;

fn cases() -> [(&'static str, FbankOptions); 6] {
    let kaldi = FbankOptions::kaldi();
    [
        ("kaldi", kaldi),
        (
            "hamming_mean",
            FbankOptions {
                window: Window::Hamming,
                normalization: Normalization::UtteranceMean,
                ..kaldi
            },
        ),
        (
            "unit_scale",
            FbankOptions {
                window: Window::Hamming,
                low_hz: 0.0,
                high_hz: 7_600.0,
                scale: 1.0,
                ..kaldi
            },
        ),
        (
            "plain_hann",
            FbankOptions {
                window: Window::Hann,
                mel_bins: 40,
                high_hz: -400.0,
                preemphasis: 0.0,
                remove_dc_offset: false,
                scale: 1.0,
                ..kaldi
            },
        ),
        (
            "telephone",
            FbankOptions {
                sample_rate_hz: 8_000,
                window: Window::Rectangular,
                mel_bins: 23,
                ..kaldi
            },
        ),
        (
            "full_fft",
            FbankOptions {
                frame_length_ms: 32.0,
                frame_shift_ms: 16.0,
                mel_bins: 64,
                scale: 1.0,
                ..kaldi
            },
        ),
    ]
}

fn golden(file: &str) -> Vec<u8> {
    std::fs::read(format!(
        "{}/tests/golden/{file}",
        env!("CARGO_MANIFEST_DIR")
    ))
    .expect("run golden/make.py")
}

fn signal() -> Vec<f32> {
    let bytes = golden("signal.i16");
    let (samples, _) = bytes.as_chunks();
    samples
        .iter()
        .map(|&sample| f32::from(i16::from_le_bytes(sample)) / 32_768.0)
        .collect()
}

fn golden_features(name: &str) -> Vec<f32> {
    let bytes = golden(&format!("{name}.f32"));
    let (values, _) = bytes.as_chunks();
    values
        .iter()
        .map(|&value| f32::from_le_bytes(value))
        .collect()
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max)
}

#[test]
fn the_hub_agrees_with_kaldi() {
    let signal = signal();
    for (name, options) in cases() {
        let features = compute(options, &signal).unwrap();
        assert_eq!(features.bins, options.mel_bins);
        let difference = largest_difference(&features.data, &golden_features(name));
        println!("{name}: {difference:.1e}");
        assert!(difference <= TOLERANCE, "{name}: {difference}");
    }
}

#[cfg(feature = "microfft")]
#[test]
fn the_node_agrees_with_kaldi() {
    use earwitness_dsp::fbank::{Fbank, Features};
    use earwitness_dsp::fft::NodeFft;

    let signal = signal();
    for (name, options) in cases() {
        let fft = NodeFft::new(options.fft_size().unwrap()).unwrap();
        let mut features = Features {
            data: Vec::new(),
            bins: options.mel_bins,
        };
        Fbank::new(options, fft)
            .unwrap()
            .push(&signal, |frame| features.data.extend_from_slice(frame));
        features.normalize(options.normalization);
        let difference = largest_difference(&features.data, &golden_features(name));
        println!("{name}: {difference:.1e}");
        assert!(difference <= TOLERANCE, "{name}: {difference}");
    }
}
