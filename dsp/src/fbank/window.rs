//! Window functions as Kaldi defines them (`feature-window.cc`): symmetric,
//! worked out in double precision once.

use core::f64::consts::TAU;

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
        let step = TAU / (weights.len() - 1) as f64;
        for (i, weight) in weights.iter_mut().enumerate() {
            let cosine = libm::cos(step * i as f64);
            *weight = match self {
                Self::Povey => libm::pow(0.5 - 0.5 * cosine, 0.85),
                Self::Hamming => 0.54 - 0.46 * cosine,
                Self::Hann => 0.5 - 0.5 * cosine,
                Self::Rectangular => 1.0,
            } as f32;
        }
    }
}
