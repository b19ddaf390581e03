//! Triangular filters, evenly spaced on the mel scale, as Kaldi defines them
//! (`mel-computations.cc`): in single precision, without the Nyquist bin.

use super::options::{FbankError, FbankOptions, MAX_MEL_BINS};
use crate::dot::dot_f32;
use crate::fft::MAX_FFT;

/// Filters overlap by one half, so that a bin has a weight in two bands at most.
const MAX_WEIGHTS: usize = 2 * (MAX_FFT / 2);

/// The filter bank: only the weights that are not zero, band after band.
pub(super) struct MelFilters {
    weights: [f32; MAX_WEIGHTS],
    bands: [Band; MAX_MEL_BINS],
    count: usize,
}

/// Where a band's weights are, and which bins they belong to.
#[derive(Clone, Copy, Default)]
struct Band {
    first_weight: u16,
    first_bin: u16,
    len: u16,
}

impl MelFilters {
    pub fn new(options: &FbankOptions, fft_size: usize) -> Result<Self, FbankError> {
        let (low_hz, high_hz) = options.band_edges()?;
        let low = mel(low_hz);
        let step = (mel(high_hz) - low) / (options.mel_bins + 1) as f32;
        let edge = |i: usize| low + i as f32 * step;
        let bin_hz = options.sample_rate_hz as f32 / fft_size as f32;
        let bins = fft_size / 2;

        let mut filters = Self {
            weights: [0.0; MAX_WEIGHTS],
            bands: [Band::default(); MAX_MEL_BINS],
            count: options.mel_bins,
        };
        let mut used = 0;
        for band in 0..options.mel_bins {
            let triangle = Triangle {
                left: edge(band),
                center: edge(band + 1),
                right: edge(band + 2),
            };
            let weight = |bin: usize| triangle.weight(mel(bin_hz * bin as f32));
            let first_bin = (0..bins)
                .find(|&bin| weight(bin).is_some())
                .ok_or(FbankError::EmptyBand { band })?;
            let first_weight = used;
            let weights = (first_bin..bins).map_while(weight);
            for (slot, weight) in filters.weights[first_weight..].iter_mut().zip(weights) {
                *slot = weight;
                used += 1;
            }
            filters.bands[band] = Band {
                first_weight: first_weight as u16,
                first_bin: first_bin as u16,
                len: (used - first_weight) as u16,
            };
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

/// One filter, by its edges in mel.
struct Triangle {
    left: f32,
    center: f32,
    right: f32,
}

impl Triangle {
    /// The weight at `mel`; `None` outside and on the edges.
    fn weight(&self, mel: f32) -> Option<f32> {
        if mel <= self.left || mel >= self.right {
            None
        } else if mel <= self.center {
            Some((mel - self.left) / (self.center - self.left))
        } else {
            Some((self.right - mel) / (self.right - self.center))
        }
    }
}

fn mel(hz: f32) -> f32 {
    1127.0 * libm::logf(1.0 + hz / 700.0)
}
