//! Signal processing shared by the hub and the microphone node.
//!
//! Samples are `f32` in [-1, 1], mono, at 16 kHz unless an item says otherwise; those
//! of [`fixed`] are 16-bit integers.
//!
//! | module | what it does | needs |
//! |---|---|---|
//! | [`fbank`] | log mel filter bank features, as Kaldi computes them | an FFT |
//! | [`fft`] | the FFT behind one trait, for hub and for node | `std`, `microfft` |
//! | [`fixed`] | the same features in whole numbers, for microcontrollers | |
//! | [`vad`] | cheap energy gate in front of a neural detector | |
//! | [`quantize`] | `f32` vectors to int8 with one scale | |
//! | [`dot`] | dot products of int8 and of `f32` vectors | |
//! | `convolve` | convolutions of 8-bit images, exact and the same everywhere | `std` |
//! | [`scan`] | the best of many int8 keys for a few queries | |
//! | `resample` | any usual rate and channel count to 16 kHz mono | `std` |
//!
//! Without the `std` feature the crate is `no_std` and never allocates. With
//! it, constructors allocate and the paths that samples take do not, except
//! where a caller's `Vec` has to grow.
#![cfg_attr(not(feature = "std"), no_std)]

mod const_math;
#[cfg(feature = "std")]
pub mod convolve;
pub mod dot;
pub mod fbank;
pub mod fft;
pub mod fixed;
pub mod quantize;
#[cfg(feature = "std")]
pub mod resample;
pub mod scan;
pub mod vad;
