//! One block of outputs along the whole line of places: what every kernel does.

use super::{OUTPUTS, PLACES};

/// Sums of a block of outputs at a run of places.
pub(crate) type Sums = [[i32; PLACES]; OUTPUTS];

/// Weights of a block of outputs, and the image that they meet.
pub(crate) struct Line<'a> {
    /// One for each step.
    pub(super) weights: &'a [[[i8; 4]; OUTPUTS]],
    /// Where in the image each step finds the codes of the first place.
    pub(super) steps: &'a [usize],
    /// Quads of channels, [`PLACES`] more than the last place needs.
    pub(super) image: &'a [[u8; 4]],
    pub(super) finish: Finish,
}

/// How sums become codes.
pub(crate) struct Finish {
    pub(super) start: [i32; OUTPUTS],
    pub(super) scale: [f32; OUTPUTS],
    /// The output's code of nothing.
    pub(super) zero: f32,
}

/// From here on an `f32` has no fraction: what is added to it is rounded, to even.
const NO_FRACTION: f32 = 8_388_608.0;

impl<'a> Line<'a> {
    /// Writes codes `[OUTPUTS, places]`, for a whole number of [`PLACES`].
    ///
    /// `sum` gives the sums of the run that begins at a place.
    // Inlined into every kernel, so that `sum` can be inlined here and what follows
    // it uses the same instructions.
    #[inline(always)]
    pub(super) fn each(&self, sum: impl Fn(&Self, usize) -> Sums, codes: &mut [u8]) {
        let places = codes.len() / OUTPUTS;
        for first in (0..places).step_by(PLACES) {
            let sums = sum(self, first);
            for output in 0..OUTPUTS {
                let codes = &mut codes[output * places + first..][..PLACES];
                for (code, &sum) in codes.iter_mut().zip(&sums[output]) {
                    *code = self.finish.code(output, sum);
                }
            }
        }
    }

    /// Weights and codes of every step, for the run that begins at a place.
    #[inline(always)]
    pub(super) fn steps<const N: usize>(
        &self,
        place: usize,
    ) -> impl Iterator<Item = (&'a [[i8; 4]; OUTPUTS], &'a [[u8; 4]; N])> {
        let image = self.image;
        self.weights
            .iter()
            .zip(self.steps)
            .map(move |(weights, step)| {
                let codes = image[step + place..].first_chunk();
                (weights, codes.expect("places beyond the last one"))
            })
    }
}

impl Finish {
    #[inline(always)]
    fn code(&self, output: usize, sum: i32) -> u8 {
        let sum = sum.wrapping_add(self.start[output]) as f32;
        round(sum * self.scale[output] + self.zero)
    }
}

/// Rounds to even and keeps within the codes.
#[inline(always)]
pub(super) fn round(value: f32) -> u8 {
    (value.clamp(0.0, 255.0) + NO_FRACTION).to_bits() as u8
}
