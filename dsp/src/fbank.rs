//! Log mel filter bank features, number for number as Kaldi computes them
//! (`feat/feature-fbank.cc`, dither off, `snip_edges`): the front end of the
//! voiceprint models, described by the manifest of their pack.
//!
//! For each frame: scale, subtract the mean, pre-emphasis, window, power
//! spectrum, triangular mel filters, natural logarithm with the floor
//! `f32::EPSILON`. Differs from Kaldi by less than 1e-3 (see
//! `tests/kaldi_parity.rs`).
//!
//! [`Fbank`] streams: it keeps 7 KiB of state, works on about 4 KiB of stack,
//! allocates nothing, and gives the same bits however its input is cut. Frames
//! have up to 512 samples, 32 ms at 16 kHz, and up to 128 bands.
//! A frame with samples that are not finite comes out as finite numbers
//! without meaning, and leaves later frames alone.

pub(crate) mod mel;
mod options;
mod window;

pub use options::{FbankError, FbankOptions, MAX_MEL_BINS, Normalization};
pub use window::Window;

use crate::fft::{MAX_FFT, RealFft};
use mel::MelFilters;
pub(crate) use options::Framing;

/// Computes features of a stream of samples, frame by frame.
pub struct Fbank<F> {
    fft: F,
    framing: Framing,
    scale: f32,
    remove_dc_offset: bool,
    preemphasis: f32,
    window: [f32; MAX_FFT],
    filters: MelFilters,
    /// The frame being filled; its first `filled` samples are there.
    frame: [f32; MAX_FFT],
    filled: usize,
}

impl<F: RealFft> Fbank<F> {
    /// A front end as `options` describe it; `fft` must have the size that
    /// [`FbankOptions::fft_size`] names.
    ///
    /// A stream has no end to take a mean over: `options.normalization` is
    /// left to who has the whole utterance, such as `Features::normalize`.
    ///
    /// # Errors
    /// If the options ask for what cannot be computed.
    pub fn new(options: FbankOptions, fft: F) -> Result<Self, FbankError> {
        options.check()?;
        let framing = options.framing()?;
        if fft.size() != framing.fft_size {
            return Err(FbankError::FftSize {
                needed: framing.fft_size,
                given: fft.size(),
            });
        }
        let mut window = [0.0; MAX_FFT];
        options.window.fill(&mut window[..framing.length]);
        Ok(Self {
            filters: MelFilters::new(&options, framing.fft_size)?,
            fft,
            framing,
            scale: options.scale,
            remove_dc_offset: options.remove_dc_offset,
            preemphasis: options.preemphasis,
            window,
            frame: [0.0; MAX_FFT],
            filled: 0,
        })
    }

    /// Takes samples and hands `emit` the `mel_bins` log energies of each frame
    /// that they complete.
    pub fn push(&mut self, mut samples: &[f32], mut emit: impl FnMut(&[f32])) {
        let Framing { length, shift, .. } = self.framing;
        while !samples.is_empty() {
            let (head, rest) = samples.split_at(samples.len().min(length - self.filled));
            for (slot, &sample) in self.frame[self.filled..].iter_mut().zip(head) {
                *slot = sample * self.scale;
            }
            self.filled += head.len();
            samples = rest;
            if self.filled == length {
                self.emit_frame(&mut emit);
                self.frame.copy_within(shift..length, 0);
                self.filled = length - shift;
            }
        }
    }

    /// Forgets the samples of the frame being filled; the next sample is the
    /// first of a new stream.
    pub fn reset(&mut self) {
        self.filled = 0;
    }

    fn emit_frame(&mut self, emit: &mut impl FnMut(&[f32])) {
        let Framing {
            length, fft_size, ..
        } = self.framing;
        // Zeros beyond the frame pad it to the size of the FFT.
        let mut work = [0.0; MAX_FFT];
        let frame = &mut work[..length];
        frame.copy_from_slice(&self.frame[..length]);
        if self.remove_dc_offset {
            let mean = frame.iter().sum::<f32>() / length as f32;
            frame.iter_mut().for_each(|x| *x -= mean);
        }
        pre_emphasise(frame, self.preemphasis);
        for (x, weight) in frame.iter_mut().zip(&self.window) {
            *x *= weight;
        }

        let mut power = [0.0; MAX_FFT / 2 + 1];
        let power = &mut power[..=fft_size / 2];
        self.fft.power_spectrum(&mut work[..fft_size], power);

        let mut features = [0.0; MAX_MEL_BINS];
        let mut bins = 0;
        for (feature, energy) in features.iter_mut().zip(self.filters.energies(power)) {
            *feature = floored_log(energy);
            bins += 1;
        }
        emit(&features[..bins]);
    }
}

/// `x[i] -= c x[i-1]`; the first sample stands in for the one before it, as in
/// Kaldi.
fn pre_emphasise(frame: &mut [f32], coefficient: f32) {
    let mut previous = frame[0];
    for x in frame {
        let current = *x;
        *x = current - coefficient * previous;
        previous = current;
    }
}

/// Natural logarithm with Kaldi's floor. Finite whatever samples came in: `max`
/// also takes NaN to the floor, and an overflow counts as the largest number.
fn floored_log(energy: f32) -> f32 {
    let floored = energy.max(f32::EPSILON);
    libm::logf(floored.min(f32::MAX))
}

#[cfg(feature = "std")]
pub use utterance::{Features, compute};

#[cfg(feature = "std")]
mod utterance {
    use super::{Fbank, FbankError, FbankOptions, Normalization};
    use crate::fft::HubFft;

    /// Features of an utterance, frame after frame.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Features {
        /// `frames() * bins` values, row by row.
        pub data: Vec<f32>,
        /// Values a frame.
        pub bins: usize,
    }

    impl Features {
        /// Number of frames.
        pub fn frames(&self) -> usize {
            self.data.len() / self.bins
        }

        /// The `bins` values of frame `i`.
        ///
        /// # Panics
        /// If there is no such frame.
        pub fn frame(&self, i: usize) -> &[f32] {
            &self.data[i * self.bins..][..self.bins]
        }

        /// Normalises the features of a whole utterance.
        pub fn normalize(&mut self, normalization: Normalization) {
            match normalization {
                Normalization::None => {}
                Normalization::UtteranceMean => self.subtract_mean(),
            }
        }

        fn subtract_mean(&mut self) {
            let frames = self.frames() as f64;
            let mut means = vec![0.0_f64; self.bins];
            for frame in self.data.chunks_exact(self.bins) {
                for (mean, &value) in means.iter_mut().zip(frame) {
                    *mean += f64::from(value) / frames;
                }
            }
            for frame in self.data.chunks_exact_mut(self.bins) {
                for (value, &mean) in frame.iter_mut().zip(&means) {
                    *value -= mean as f32;
                }
            }
        }
    }

    /// Features of a whole utterance, normalised as `options` say. Fewer
    /// samples than a frame give no frames.
    ///
    /// # Errors
    /// If the options ask for what cannot be computed.
    pub fn compute(options: FbankOptions, samples: &[f32]) -> Result<Features, FbankError> {
        let size = options.fft_size()?;
        let fft = HubFft::new(size).expect("every size of valid options is supported");
        let mut features = Features {
            data: Vec::new(),
            bins: options.mel_bins,
        };
        Fbank::new(options, fft)?.push(samples, |frame| features.data.extend_from_slice(frame));
        features.normalize(options.normalization);
        Ok(features)
    }
}
