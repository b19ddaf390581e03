//! What a front end computes, and which of it this crate can.

use super::window::Window;
use crate::fft::{MAX_FFT, MIN_FFT};

/// Most mel bands a front end may ask for.
pub const MAX_MEL_BINS: usize = 128;
/// Fewest mel bands, as in Kaldi.
const MIN_MEL_BINS: usize = 3;
/// Shortest frame, in samples: the shortest that fills the smallest FFT.
const MIN_FRAME: usize = MIN_FFT / 2 + 1;

/// What is done to the features of a whole utterance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Normalization {
    /// Nothing.
    #[default]
    None,
    /// Each band's mean over the utterance is subtracted (CMN).
    UtteranceMean,
}

/// The parameters of a front end, named as in Kaldi.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct FbankOptions {
    /// Sample rate of the input, in Hz.
    pub sample_rate_hz: u32,
    /// Frame length, in ms; 33 to 512 samples.
    pub frame_length_ms: f32,
    /// Distance of frame starts, in ms; at most the frame length.
    pub frame_shift_ms: f32,
    /// Mel bands, 3 to 128.
    pub mel_bins: usize,
    /// Lower edge of the first band, in Hz.
    pub low_hz: f32,
    /// Upper edge of the last band, in Hz; 0 or less is relative to Nyquist.
    pub high_hz: f32,
    /// Window function.
    pub window: Window,
    /// Pre-emphasis coefficient, 0 to 1; 0 is none.
    pub preemphasis: f32,
    /// Whether each frame's mean is subtracted first.
    pub remove_dc_offset: bool,
    /// What samples are multiplied by before all else; 32768 where a model was
    /// trained on the values of 16-bit samples, as Kaldi's are.
    pub scale: f32,
    /// What is done to the features of a whole utterance.
    pub normalization: Normalization,
}

impl FbankOptions {
    /// Kaldi's defaults for 16 kHz with 80 bands, without dither.
    pub const fn kaldi() -> Self {
        Self {
            sample_rate_hz: 16_000,
            frame_length_ms: 25.0,
            frame_shift_ms: 10.0,
            mel_bins: 80,
            low_hz: 20.0,
            high_hz: 0.0,
            window: Window::Povey,
            preemphasis: 0.97,
            remove_dc_offset: true,
            scale: 32_768.0,
            normalization: Normalization::None,
        }
    }

    /// Samples of the FFT that these options need: the frame length rounded up
    /// to a power of two.
    ///
    /// # Errors
    /// If the options ask for what cannot be computed.
    pub fn fft_size(&self) -> Result<usize, FbankError> {
        Ok(self.framing()?.fft_size)
    }

    /// Frame length and shift in samples, cut off as in Kaldi.
    pub(crate) const fn framing(&self) -> Result<Framing, FbankError> {
        let length = self.samples(self.frame_length_ms);
        if length < MIN_FRAME || length > MAX_FFT {
            return Err(FbankError::FrameLength { length });
        }
        let shift = self.samples(self.frame_shift_ms);
        if shift < 1 || shift > length {
            return Err(FbankError::FrameShift { shift, length });
        }
        Ok(Framing {
            length,
            shift,
            fft_size: length.next_power_of_two(),
        })
    }

    const fn samples(&self, ms: f32) -> usize {
        (self.sample_rate_hz as f64 * 0.001 * ms as f64) as usize
    }

    /// Lower and upper edge of the filter bank, in Hz.
    pub(super) const fn band_edges(&self) -> Result<(f32, f32), FbankError> {
        let nyquist_hz = self.sample_rate_hz as f32 / 2.0;
        let low_hz = self.low_hz;
        let high_hz = match self.high_hz {
            high if high > 0.0 => high,
            below_nyquist => nyquist_hz + below_nyquist,
        };
        if 0.0 <= low_hz && low_hz < high_hz && high_hz <= nyquist_hz {
            Ok((low_hz, high_hz))
        } else {
            Err(FbankError::BandEdges {
                low_hz,
                high_hz,
                nyquist_hz,
            })
        }
    }

    /// Checks what stands for itself.
    pub(crate) const fn check(&self) -> Result<(), FbankError> {
        if self.mel_bins < MIN_MEL_BINS || self.mel_bins > MAX_MEL_BINS {
            return Err(FbankError::MelBins(self.mel_bins));
        }
        if !(0.0 <= self.preemphasis && self.preemphasis <= 1.0) {
            return Err(FbankError::Preemphasis(self.preemphasis));
        }
        if !(self.scale.is_normal() && self.scale > 0.0) {
            return Err(FbankError::Scale(self.scale));
        }
        Ok(())
    }
}

/// Framing in samples.
#[derive(Clone, Copy)]
pub(crate) struct Framing {
    pub length: usize,
    pub shift: usize,
    pub fft_size: usize,
}

/// Why a front end cannot be built as asked.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum FbankError {
    /// The frame does not fit the FFT.
    #[error(
        "a frame has {length} samples: choose frame_length_ms and sample_rate_hz \
         so that it has {MIN_FRAME} to {MAX_FFT}"
    )]
    FrameLength {
        /// Samples a frame.
        length: usize,
    },
    /// Frames would stand still or leave samples out.
    #[error(
        "frames are {shift} samples apart: choose frame_shift_ms so that they are 1 to {length}"
    )]
    FrameShift {
        /// Samples from frame to frame.
        shift: usize,
        /// Samples a frame.
        length: usize,
    },
    /// Too few or too many mel bands.
    #[error("mel_bins is {0}: choose {MIN_MEL_BINS} to {MAX_MEL_BINS}")]
    MelBins(usize),
    /// The filter bank does not lie between 0 and Nyquist.
    #[error(
        "the filter bank reaches from {low_hz} to {high_hz} Hz: \
         choose low_hz and high_hz so that 0 <= low < high <= {nyquist_hz}"
    )]
    BandEdges {
        /// Lower edge, in Hz.
        low_hz: f32,
        /// Upper edge, in Hz.
        high_hz: f32,
        /// Half the sample rate, in Hz.
        nyquist_hz: f32,
    },
    /// A band is narrower than the distance of FFT bins.
    #[error(
        "mel band {band} holds no FFT bin: choose fewer mel_bins, a wider range or a longer frame"
    )]
    EmptyBand {
        /// The first such band, from 0.
        band: usize,
    },
    /// The pre-emphasis coefficient is out of range.
    #[error("preemphasis is {0}: choose 0 to 1")]
    Preemphasis(f32),
    /// The scale is no usable factor.
    #[error("scale is {0}: choose a positive number, 1 for none or 32768 for 16-bit values")]
    Scale(f32),
    /// The FFT that was passed has another size than the frames need.
    #[error("the FFT has {given} points and the frames need {needed}: build it with fft_size()")]
    FftSize {
        /// Points needed.
        needed: usize,
        /// Points of the FFT that was passed.
        given: usize,
    },
}
