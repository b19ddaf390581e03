//! Triangular filters, evenly spaced on the mel scale, as Kaldi defines them
//! (`mel-computations.cc`): in single precision, without the Nyquist bin.

use super::options::{FbankError, FbankOptions, MAX_MEL_BINS};
use crate::const_math;
use crate::dot::dot_f32;
use crate::fft::MAX_FFT;

/// Filters overlap by one half, so that a bin has a weight in two bands at most.
pub(crate) const MAX_WEIGHTS: usize = 2 * (MAX_FFT / 2);

/// The filter bank: only the weights that are not zero, band after band.
pub(crate) struct MelFilters {
    pub weights: [f32; MAX_WEIGHTS],
    pub bands: [Band; MAX_MEL_BINS],
    pub count: usize,
}

/// Where a band's weights are, and which bins they belong to.
#[derive(Clone, Copy)]
pub(crate) struct Band {
    pub first_weight: u16,
    pub first_bin: u16,
    pub len: u16,
}

impl MelFilters {
    pub const fn new(options: &FbankOptions, fft_size: usize) -> Result<Self, FbankError> {
        let (low_hz, high_hz) = match options.band_edges() {
            Ok(edges) => edges,
            Err(error) => return Err(error),
        };
        let low = mel(low_hz);
        let step = (mel(high_hz) - low) / (options.mel_bins + 1) as f32;
        let bin_mels = bin_mels(options.sample_rate_hz as f32 / fft_size as f32);
        let bins = fft_size / 2;

        let mut filters = Self {
            weights: [0.0; MAX_WEIGHTS],
            bands: [Band::EMPTY; MAX_MEL_BINS],
            count: options.mel_bins,
        };
        let (mut band, mut first_bin, mut used) = (0, 0, 0);
        while band < options.mel_bins {
            let triangle = Triangle {
                left: low + band as f32 * step,
                center: low + (band + 1) as f32 * step,
                right: low + (band + 2) as f32 * step,
            };
            while first_bin < bins && bin_mels[first_bin] <= triangle.left {
                first_bin += 1;
            }
            let first_weight = used;
            let mut bin = first_bin;
            while bin < bins && bin_mels[bin] < triangle.right {
                filters.weights[used] = triangle.weight(bin_mels[bin]);
                used += 1;
                bin += 1;
            }
            if used == first_weight {
                return Err(FbankError::EmptyBand { band });
            }
            filters.bands[band] = Band {
                first_weight: first_weight as u16,
                first_bin: first_bin as u16,
                len: (used - first_weight) as u16,
            };
            band += 1;
        }
        Ok(filters)
    }

    /// Energy of each band, from a power spectrum.
    pub fn energies<'a>(&'a self, power: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
        self.bands[..self.count].iter().map(|band| {
            let len = usize::from(band.len);
            let weights = &self.weights[usize::from(band.first_weight)..][..len];
            dot_f32(weights, &power[usize::from(band.first_bin)..][..len])
        })
    }
}

impl Band {
    pub const EMPTY: Self = Self {
        first_weight: 0,
        first_bin: 0,
        len: 0,
    };
}

/// One filter, by its edges in mel.
struct Triangle {
    left: f32,
    center: f32,
    right: f32,
}

impl Triangle {
    /// The weight at a `mel` between the edges.
    const fn weight(&self, mel: f32) -> f32 {
        if mel <= self.center {
            (mel - self.left) / (self.center - self.left)
        } else {
            (self.right - mel) / (self.right - self.center)
        }
    }
}

/// Where the bins of a spectrum lie on the mel scale.
const fn bin_mels(bin_hz: f32) -> [f32; MAX_FFT / 2] {
    let mut mels = [0.0; MAX_FFT / 2];
    let mut bin = 0;
    while bin < mels.len() {
        mels[bin] = mel(bin_hz * bin as f32);
        bin += 1;
    }
    mels
}

const fn mel(hz: f32) -> f32 {
    1127.0 * const_math::ln((1.0 + hz / 700.0) as f64) as f32
}
