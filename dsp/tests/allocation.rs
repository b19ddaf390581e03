//! The paths that samples take do not touch the heap.
#![cfg(feature = "std")]

mod common;

use common::noise;
use earwitness_dsp::fbank::{Fbank, FbankOptions};
use earwitness_dsp::fft::{HubFft, RealFft};
use earwitness_dsp::resample::Resampler;
use earwitness_dsp::vad::{EnergyVad, EnergyVadOptions};

fn allocations(work: impl FnOnce()) -> u64 {
    allocation_counter::measure(work).count_total
}

fn fbank_allocations(fft: impl RealFft) -> u64 {
    let samples = noise(1, 16_000, 0.1);
    let mut fbank = Fbank::new(FbankOptions::kaldi(), fft).expect("valid options");
    let mut frames = 0;
    let count = allocations(|| {
        for chunk in samples.chunks(123) {
            fbank.push(chunk, |_| frames += 1);
        }
    });
    assert_eq!(frames, 98);
    count
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1_u8]))), 1);
}

#[test]
fn features_do_not_allocate() {
    assert_eq!(fbank_allocations(HubFft::new(512).unwrap()), 0);
}

#[cfg(feature = "microfft")]
#[test]
fn features_of_the_node_do_not_allocate() {
    use earwitness_dsp::fft::NodeFft;
    assert_eq!(fbank_allocations(NodeFft::new(512).unwrap()), 0);
}

#[test]
fn the_gate_does_not_allocate() {
    let samples = noise(2, 16_000, 0.1);
    let mut vad = EnergyVad::new(EnergyVadOptions::default());
    let mut frames = 0;
    let count = allocations(|| vad.push(&samples, |_| frames += 1));
    assert_eq!((count, frames), (0, 100));
}

#[test]
fn resampling_allocates_nothing_but_the_callers_output() {
    let samples = noise(3, 88_200, 0.1);
    let mut resampler = Resampler::new(44_100, 2).unwrap();
    let mut out = Vec::with_capacity(17_000);
    let count = allocations(|| {
        for chunk in samples.chunks(441) {
            resampler.push(chunk, &mut out);
        }
        resampler.finish(&mut out);
    });
    assert_eq!((count, out.len()), (0, 16_000));
}
