//! The FFT behind one trait: realfft (rustfft) on a hub, microfft on a
//! microcontroller.
//!
//! Features only need power spectra, so that is all the trait gives. Sizes are
//! powers of two from [`MIN_FFT`] to [`MAX_FFT`]: frames of 25 ms at 8 kHz
//! take 256 points, at 16 kHz 512. The two implementations agree within 1e-6
//! of the largest bin of a spectrum; they do not agree bit for bit.

/// Smallest supported transform, in samples.
pub const MIN_FFT: usize = 64;
/// Largest supported transform, in samples.
pub const MAX_FFT: usize = 512;

/// A transform of this size is not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an FFT of {size} points is not supported: choose a power of two from {MIN_FFT} to {MAX_FFT}"
)]
pub struct FftSizeError {
    /// The size that was asked for.
    pub size: usize,
}

/// A discrete Fourier transform of real frames of one size.
pub trait RealFft {
    /// Samples a frame.
    fn size(&self) -> usize;

    /// Writes |X_k|^2 for k = 0 ..= size / 2 (unnormalised) into `power`.
    /// `frame` is used as scratch and holds nothing of use afterwards.
    ///
    /// # Panics
    /// If `frame` does not hold `size` or `power` not `size / 2 + 1` values.
    fn power_spectrum(&mut self, frame: &mut [f32], power: &mut [f32]);
}

#[cfg(any(feature = "std", feature = "microfft"))]
fn check_size(size: usize) -> Result<(), FftSizeError> {
    if size.is_power_of_two() && (MIN_FFT..=MAX_FFT).contains(&size) {
        Ok(())
    } else {
        Err(FftSizeError { size })
    }
}

#[cfg(feature = "std")]
pub use hub::HubFft;

#[cfg(feature = "std")]
mod hub {
    use super::{FftSizeError, RealFft, check_size};
    use realfft::num_complex::Complex32;
    use realfft::{RealFftPlanner, RealToComplex};
    use std::sync::Arc;

    /// The hub's transform: realfft, with the SIMD that the processor has.
    pub struct HubFft {
        plan: Arc<dyn RealToComplex<f32>>,
        spectrum: Vec<Complex32>,
        scratch: Vec<Complex32>,
    }

    impl HubFft {
        /// Plans transforms of `size` samples; allocates here and never again.
        ///
        /// # Errors
        /// If `size` is not a supported power of two.
        pub fn new(size: usize) -> Result<Self, FftSizeError> {
            check_size(size)?;
            let plan = RealFftPlanner::new().plan_fft_forward(size);
            Ok(Self {
                spectrum: plan.make_output_vec(),
                scratch: plan.make_scratch_vec(),
                plan,
            })
        }
    }

    impl RealFft for HubFft {
        fn size(&self) -> usize {
            self.plan.len()
        }

        fn power_spectrum(&mut self, frame: &mut [f32], power: &mut [f32]) {
            assert_eq!(power.len(), self.spectrum.len(), "size / 2 + 1 bins");
            self.plan
                .process_with_scratch(frame, &mut self.spectrum, &mut self.scratch)
                .expect("a frame of the planned size");
            for (power, bin) in power.iter_mut().zip(&self.spectrum) {
                *power = bin.norm_sqr();
            }
        }
    }
}

#[cfg(feature = "microfft")]
pub use node::NodeFft;

#[cfg(feature = "microfft")]
mod node {
    use super::{FftSizeError, RealFft, check_size};
    use microfft::{Complex32, real};

    /// The microphone node's transform: microfft, in place and without heap.
    pub struct NodeFft {
        size: usize,
    }

    impl NodeFft {
        /// A transform of `size` samples.
        ///
        /// # Errors
        /// If `size` is not a supported power of two.
        pub fn new(size: usize) -> Result<Self, FftSizeError> {
            check_size(size)?;
            Ok(Self { size })
        }
    }

    impl RealFft for NodeFft {
        fn size(&self) -> usize {
            self.size
        }

        fn power_spectrum(&mut self, frame: &mut [f32], power: &mut [f32]) {
            assert_eq!(frame.len(), self.size, "a frame of the planned size");
            assert_eq!(power.len(), self.size / 2 + 1, "size / 2 + 1 bins");
            let spectrum = transform(frame);
            // The Nyquist bin is real and comes packed into the DC bin.
            let packed = spectrum[0];
            power[0] = packed.re * packed.re;
            power[spectrum.len()] = packed.im * packed.im;
            for (power, bin) in power[1..].iter_mut().zip(&spectrum[1..]) {
                *power = bin.norm_sqr();
            }
        }
    }

    /// The transform whose size is the frame's. microfft has one function a size.
    fn transform(frame: &mut [f32]) -> &[Complex32] {
        match frame.len() {
            64 => real::rfft_64(array(frame)),
            128 => real::rfft_128(array(frame)),
            256 => real::rfft_256(array(frame)),
            _ => real::rfft_512(array(frame)),
        }
    }

    fn array<const N: usize>(frame: &mut [f32]) -> &mut [f32; N] {
        frame
            .as_mut_array()
            .expect("a frame of one of the supported sizes")
    }
}
