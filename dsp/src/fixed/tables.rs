//! All that the fixed-point front end needs to know of its options, worked out by
//! the compiler: a `static` of this type lies in flash.

use super::LogEnergy;
use super::fft::{Spectrum, Twiddles, q30, twiddles};
use super::log2::{LOG2_BITS, log2};
use crate::const_math;
use crate::fbank::mel::{Band, MAX_WEIGHTS, MelFilters};
use crate::fbank::{FbankError, FbankOptions, Framing, MAX_MEL_BINS};
use crate::fft::MAX_FFT;
use core::f64::consts::LN_2;

/// Fractional bits of a filter's weights.
const WEIGHT_BITS: u32 = 15;
/// Low bits of a power that are left out, so that the sum of a band's weighted
/// powers fits. A frame's powers sum up to less than 2^58.
const SPARE_BITS: u32 = 10;
/// log2 of `f32::EPSILON`, the floor of float features.
const FLOOR_LOG2: i64 = -23;

/// The constants of a fixed-point front end.
pub struct FixedTables {
    pub(super) length: usize,
    pub(super) shift: usize,
    pub(super) remove_dc_offset: bool,
    /// Pre-emphasis coefficient with 30 fractional bits.
    pub(super) preemphasis: i32,
    /// The window with 30 fractional bits; zero beyond the frame.
    pub(super) window: [i32; MAX_FFT],
    pub(super) twiddles: Twiddles,
    weights: [u16; MAX_WEIGHTS],
    bands: [Band; MAX_MEL_BINS],
    band_count: usize,
    /// What the scale of the samples adds to log2 of an energy, beside that of the
    /// centred frame.
    scale_log2: i32,
}

impl FixedTables {
    /// Tables for `options`. Evaluate this in a `static`, where a bad option is an
    /// error of the compiler. As with float streams, `normalization` is left to
    /// who has the whole utterance.
    ///
    /// # Errors
    /// If the options ask for what cannot be computed, or for another FFT than one
    /// of 512 points.
    pub const fn new(options: &FbankOptions) -> Result<Self, FbankError> {
        let (framing, filters) = match checked(options) {
            Ok(checked) => checked,
            Err(error) => return Err(error),
        };
        let mut window = [0; MAX_FFT];
        let mut i = 0;
        while i < framing.length {
            window[i] = q30(options.window.weight(i, framing.length));
            i += 1;
        }
        let mut weights = [0; MAX_WEIGHTS];
        let mut i = 0;
        while i < MAX_WEIGHTS {
            let weight = (filters.weights[i] * (1 << WEIGHT_BITS) as f32) as f64;
            weights[i] = const_math::round(weight) as u16;
            i += 1;
        }
        Ok(Self {
            length: framing.length,
            shift: framing.shift,
            remove_dc_offset: options.remove_dc_offset,
            preemphasis: q30(options.preemphasis as f64),
            window,
            twiddles: twiddles(),
            weights,
            bands: filters.bands,
            band_count: filters.count,
            scale_log2: scale_log2(options.scale, framing.length),
        })
    }

    pub(super) fn bands(&self) -> &[Band] {
        &self.bands[..self.band_count]
    }

    /// Weighted sum of a band's powers, with [`WEIGHT_BITS`] - [`SPARE_BITS`]
    /// fractional bits.
    pub(super) fn energy(&self, band: &Band, spectrum: &Spectrum) -> u64 {
        let weights = &self.weights[band.first_weight.into()..][..band.len.into()];
        let powers = spectrum.from(band.first_bin.into());
        let weighted = powers.iter().zip(weights);
        weighted
            .map(|(power, &weight)| (power >> SPARE_BITS) * u64::from(weight))
            .sum()
    }

    /// Natural logarithm of an [`energy`](Self::energy) times two to the power of
    /// `exponent`, with the floor of float features.
    pub(super) fn log_energy(&self, energy: u64, exponent: i32) -> LogEnergy {
        const LN_2_Q30: i64 = q30(LN_2) as i64;
        const DROPPED_BITS: u32 = 30 + LOG2_BITS - LogEnergy::FRAC_NBITS;
        let exponent = exponent + SPARE_BITS as i32 - WEIGHT_BITS as i32;
        let floor = FLOOR_LOG2 << LOG2_BITS;
        let log2 = if energy == 0 {
            floor
        } else {
            i64::from(log2(energy) + (exponent << LOG2_BITS) + self.scale_log2).max(floor)
        };
        let rounded = (log2 * LN_2_Q30 + (1 << (DROPPED_BITS - 1))) >> DROPPED_BITS;
        LogEnergy::from_bits(rounded.clamp(i16::MIN.into(), i16::MAX.into()) as i16)
    }
}

/// What of the float front end is used as it is.
const fn checked(options: &FbankOptions) -> Result<(Framing, MelFilters), FbankError> {
    if let Err(error) = options.check() {
        return Err(error);
    }
    let framing = match options.framing() {
        Ok(framing) => framing,
        Err(error) => return Err(error),
    };
    if framing.fft_size != MAX_FFT {
        return Err(FbankError::FftSize {
            needed: framing.fft_size,
            given: MAX_FFT,
        });
    }
    match MelFilters::new(options, MAX_FFT) {
        Ok(filters) => Ok((framing, filters)),
        Err(error) => Err(error),
    }
}

/// log2 of the square of the scale that is asked for over that of a centred frame:
/// 16-bit samples times the length of the frame.
const fn scale_log2(scale: f32, length: usize) -> i32 {
    let octaves = const_math::ln(scale as f64 / (32_768.0 * length as f64)) / LN_2;
    const_math::round(2.0 * octaves * (1 << LOG2_BITS) as f64) as i32
}
