//! Each FFT against a direct DFT in double precision.
//!
//! Largest difference as measured, relative to the largest bin: 4.2e-7 for the
//! hub, 3.0e-7 for the node.
#![cfg(all(feature = "std", feature = "microfft"))]

mod common;

use common::noise;
use earwitness_dsp::fft::{FftSizeError, HubFft, MAX_FFT, MIN_FFT, NodeFft, RealFft};
use std::f64::consts::TAU;

/// The bound that the module states for each against the other.
const AGREEMENT: f32 = 1e-6;

fn direct_dft(frame: &[f32]) -> Vec<f32> {
    let n = frame.len();
    let bin = |k: usize| {
        let (mut re, mut im) = (0.0, 0.0);
        for (i, &x) in frame.iter().enumerate() {
            let angle = TAU * (i * k % n) as f64 / n as f64;
            re += f64::from(x) * angle.cos();
            im -= f64::from(x) * angle.sin();
        }
        (re * re + im * im) as f32
    };
    (0..=n / 2).map(bin).collect()
}

fn power_spectrum(fft: &mut impl RealFft, frame: &[f32]) -> Vec<f32> {
    let mut power = vec![f32::NAN; frame.len() / 2 + 1];
    fft.power_spectrum(&mut frame.to_vec(), &mut power);
    power
}

fn relative_difference(a: &[f32], b: &[f32]) -> f32 {
    let largest = b.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f32::max) / largest
}

/// Noise, a tone, a click, an offset, the highest frequency, and silence.
fn frames(size: usize) -> Vec<Vec<f32>> {
    let tone = |i: usize| (TAU * 7.3 * i as f64 / size as f64).sin() as f32;
    let click = |i: usize| f32::from(u8::from(i == 3));
    let highest = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
    vec![
        noise(size as u64, size, 1.0),
        noise(1, size, 32_768.0),
        (0..size).map(tone).collect(),
        (0..size).map(click).collect(),
        vec![0.5; size],
        (0..size).map(highest).collect(),
        vec![0.0; size],
    ]
}

#[test]
fn both_agree_with_the_direct_dft_and_with_each_other() {
    let (mut worst_hub, mut worst_node) = (0.0_f32, 0.0_f32);
    for size in [64, 128, 256, 512] {
        let mut hub = HubFft::new(size).unwrap();
        let mut node = NodeFft::new(size).unwrap();
        assert_eq!((hub.size(), node.size()), (size, size));
        for frame in frames(size) {
            let direct = direct_dft(&frame);
            let by_hub = power_spectrum(&mut hub, &frame);
            let by_node = power_spectrum(&mut node, &frame);
            worst_hub = worst_hub.max(relative_difference(&by_hub, &direct));
            worst_node = worst_node.max(relative_difference(&by_node, &direct));
            assert!(relative_difference(&by_node, &by_hub) <= AGREEMENT);
        }
    }
    println!("hub {worst_hub:.1e}, node {worst_node:.1e}");
    assert!(worst_hub <= AGREEMENT && worst_node <= AGREEMENT);
}

#[test]
fn other_sizes_are_refused() {
    for size in [0, 1, MIN_FFT / 2, MIN_FFT + 1, 400, MAX_FFT * 2, usize::MAX] {
        assert_eq!(HubFft::new(size).err(), Some(FftSizeError { size }));
        assert_eq!(NodeFft::new(size).err(), Some(FftSizeError { size }));
    }
}
