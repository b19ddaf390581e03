//! Window functions as Kaldi defines them (`feature-window.cc`): symmetric,
//! worked out in double precision once.

use core::f64::consts::TAU;

use crate::const_math;

/// A window function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Window {
    /// Hann to the power of 0.85: zero at the edges, between Hamming and Hann.
    Povey,
    /// 0.54 - 0.46 cos.
    Hamming,
    /// 0.5 - 0.5 cos.
    Hann,
    /// All ones.
    Rectangular,
}

impl Window {
    /// Fills `weights` with the window of that length, two samples or more.
    pub(super) fn fill(self, weights: &mut [f32]) {
        let length = weights.len();
        for (i, weight) in weights.iter_mut().enumerate() {
            *weight = self.weight(i, length) as f32;
        }
    }

    /// Weight of sample `i` in a window of `length` samples.
    pub(crate) const fn weight(self, i: usize, length: usize) -> f64 {
        let cosine = const_math::cos(TAU / (length - 1) as f64 * i as f64);
        match self {
            Self::Povey => const_math::pow(0.5 - 0.5 * cosine, 0.85),
            Self::Hamming => 0.54 - 0.46 * cosine,
            Self::Hann => 0.5 - 0.5 * cosine,
            Self::Rectangular => 1.0,
        }
    }
}
