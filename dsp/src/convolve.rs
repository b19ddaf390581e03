//! Convolutions of 8-bit images with 8-bit weights, in whole numbers.
//!
//! An image is `[channels, height, width]` of unsigned codes; a sequence is an image
//! of height 1. Four channels of one place lie side by side in the packed image
//! (`image`), as the instructions for neural networks want them, and the output is
//! worked on as one long line of places: a tap of the kernel is then an offset into
//! the packed image, and nothing is copied out of it for every window. What lies
//! between the end of a row and the start of the next is computed too and left out.
//!
//! Sums are exact, and to make codes of them takes one multiplication, one addition and
//! one rounding of `f32`: every kernel gives the same codes.
//!
//! Limits: no groups; a sum of `channels * taps` products must fit `i32`, which holds
//! for up to 65,536 of them.

use crate::dot::Kernel;

#[cfg(target_arch = "aarch64")]
pub(crate) mod aarch64;
mod image;
mod line;
pub(crate) mod plain;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;

use image::Packing;
use line::Finish;
pub(crate) use line::Line;

/// Outputs that are worked on at once.
const OUTPUTS: usize = 8;
/// Places that are worked on at once: a whole number of every kernel's vectors.
const PLACES: usize = 48;

/// How a kernel moves over an image: sizes by rows, then by columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Channels of the image.
    pub channels: usize,
    /// Channels of the output.
    pub outputs: usize,
    /// Size of the kernel.
    pub kernel: [usize; 2],
    /// From one window to the next.
    pub stride: [usize; 2],
    /// From one tap to the next.
    pub dilation: [usize; 2],
    /// Border before the first row and column.
    pub before: [usize; 2],
    /// Border after the last row and column.
    pub after: [usize; 2],
}

impl Geometry {
    /// Height and width of the output for those of an image; `None` if the kernel is
    /// larger than the image with its border, or a size is zero.
    pub fn output(&self, image: [usize; 2]) -> Option<[usize; 2]> {
        let mut sizes = [0; 2];
        for axis in 0..2 {
            let window = self.dilation[axis] * self.kernel[axis].checked_sub(1)? + 1;
            let bordered = self.before[axis] + image[axis] + self.after[axis];
            sizes[axis] = bordered
                .checked_sub(window)?
                .checked_div(self.stride[axis])?
                + 1;
        }
        Some(sizes)
    }

    fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }
}

/// The numbers of a convolution.
#[derive(Clone, Copy, Debug)]
pub struct Coefficients<'a> {
    /// `[outputs, channels, kernel rows, kernel columns]`.
    pub weights: &'a [i8],
    /// For each output, added to the sum of products.
    pub bias: &'a [i32],
    /// For each output, what its sum is multiplied with.
    pub scale: &'a [f32],
    /// The image's code of nothing, which fills the border too.
    pub image_zero: u8,
    /// The output's code of nothing, added to the scaled sum.
    pub output_zero: u8,
}

/// A convolution whose weights are packed for one kernel.
#[derive(Clone, Debug)]
pub struct Convolution {
    kernel: Kernel,
    geometry: Geometry,
    /// By block of [`OUTPUTS`], step, output and channel of four.
    weights: Vec<[[i8; 4]; OUTPUTS]>,
    /// Added to each output's sum: its bias, less what the codes of nothing add.
    start: Vec<i32>,
    scale: Vec<f32>,
    image_zero: u8,
    output_zero: u8,
}

/// What a convolution works in: kept between calls, it need not be allocated again.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    packed: Vec<[u8; 4]>,
    line: Vec<u8>,
}

impl Convolution {
    /// Packs the coefficients for a kernel.
    ///
    /// # Panics
    /// If there are more or fewer of them than the geometry says.
    pub fn new(kernel: Kernel, geometry: Geometry, coefficients: &Coefficients<'_>) -> Self {
        let Coefficients {
            weights,
            bias,
            scale,
            image_zero,
            output_zero,
        } = *coefficients;
        let window = geometry.channels * geometry.taps();
        assert_eq!(
            weights.len(),
            geometry.outputs * window,
            "a weight for each product"
        );
        assert_eq!(
            [bias.len(), scale.len()],
            [geometry.outputs; 2],
            "a bias and a scale for each output"
        );
        let windows = || weights.chunks_exact(window.max(1));
        let quads = geometry.channels.div_ceil(4);
        let blocks = geometry.outputs.div_ceil(OUTPUTS);
        let mut packed = vec![[[0; 4]; OUTPUTS]; blocks * geometry.taps() * quads];
        for (output, weights) in windows().enumerate() {
            for (at, &weight) in weights.iter().enumerate() {
                let (channel, tap) = (at / geometry.taps(), at % geometry.taps());
                let step = (output / OUTPUTS * geometry.taps() + tap) * quads + channel / 4;
                packed[step][output % OUTPUTS][channel % 4] = weight;
            }
        }
        // A kernel for signed bytes sees every code less 128.
        let nothing = i32::from(Packing::of(kernel).flip) - i32::from(image_zero);
        let sum = |weights: &[i8]| weights.iter().map(|&w| i32::from(w)).sum::<i32>();
        Self {
            kernel,
            geometry,
            weights: packed,
            start: windows()
                .zip(bias)
                .map(|(weights, bias)| bias.wrapping_add(nothing * sum(weights)))
                .collect(),
            scale: scale.to_vec(),
            image_zero,
            output_zero,
        }
    }

    /// How it moves over an image.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Convolves codes `[channels, height, width]` into `output`, `[outputs, rows, columns]`.
    ///
    /// # Panics
    /// If a length does not fit the geometry.
    pub fn apply(&self, image: &[u8], size: [usize; 2], scratch: &mut Scratch, output: &mut [u8]) {
        let [rows, columns] = self
            .geometry
            .output(size)
            .expect("the kernel fits the image");
        assert_eq!(image.len(), self.geometry.channels * size[0] * size[1]);
        assert_eq!(output.len(), self.geometry.outputs * rows * columns);
        let packing = Packing::of(self.kernel);
        let pitch = packing.pack(
            &self.geometry,
            image,
            size,
            self.image_zero,
            &mut scratch.packed,
        );
        let steps = pitch.steps(&self.geometry);
        let places = ((rows - 1) * pitch.width + columns).next_multiple_of(PLACES);
        scratch.line.resize(OUTPUTS * places, 0);
        for (block, weights) in self.weights.chunks_exact(steps.len()).enumerate() {
            let line = Line {
                weights,
                steps: &steps,
                image: &scratch.packed,
                finish: self.finish(block),
            };
            self.kernel.convolve(&line, &mut scratch.line);
            let planes = output
                .chunks_exact_mut(rows * columns)
                .skip(block * OUTPUTS);
            for (line, plane) in scratch.line.chunks_exact(places).zip(planes) {
                for (row, codes) in plane.chunks_exact_mut(columns).enumerate() {
                    codes.copy_from_slice(&line[row * pitch.width..][..columns]);
                }
            }
        }
    }

    /// What becomes of the sums of a block; beyond the last output, nothing.
    fn finish(&self, block: usize) -> Finish {
        fn lanes<T: Copy + Default>(values: &[T], block: usize) -> [T; OUTPUTS] {
            core::array::from_fn(|i| values.get(block * OUTPUTS + i).copied().unwrap_or_default())
        }
        Finish {
            start: lanes(&self.start, block),
            scale: lanes(&self.scale, block),
            zero: f32::from(self.output_zero),
        }
    }
}

/// How two tensors of codes become one: `factors[0] * a + factors[1] * b + nothing`.
#[derive(Clone, Copy, Debug)]
pub struct Addition {
    /// Step of each over the step of the sum.
    pub factors: [f32; 2],
    /// What the sum of two codes of 0 is.
    pub nothing: f32,
}

/// Adds codes, rounded to even and kept within the codes.
pub fn add(kernel: Kernel, addition: Addition, a: &[u8], b: &[u8], sums: &mut [u8]) {
    let Addition { factors, nothing } = addition;
    kernel.vectorised(|| {
        for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
            *sum = line::round(factors[0] * f32::from(a) + factors[1] * f32::from(b) + nothing);
        }
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition: one product after the other.
    fn slow(
        geometry: &Geometry,
        weights: &[i8],
        image: &[u8],
        size: [usize; 2],
        zero: u8,
    ) -> Vec<i32> {
        let [rows, columns] = geometry.output(size).unwrap();
        let mut sums = Vec::new();
        for weights in weights.chunks_exact(geometry.channels * geometry.taps()) {
            for (y, x) in (0..rows).flat_map(|y| (0..columns).map(move |x| (y, x))) {
                let mut sum = 0;
                for (at, &weight) in weights.iter().enumerate() {
                    let (channel, tap) = (at / geometry.taps(), at % geometry.taps());
                    let tap = [tap / geometry.kernel[1], tap % geometry.kernel[1]];
                    let place = |axis: usize, window: usize| {
                        (window * geometry.stride[axis] + tap[axis] * geometry.dilation[axis])
                            .checked_sub(geometry.before[axis])
                            .filter(|&place| place < size[axis])
                    };
                    if let (Some(y), Some(x)) = (place(0, y), place(1, x)) {
                        let code = image[(channel * size[0] + y) * size[1] + x];
                        sum += (i32::from(code) - i32::from(zero)) * i32::from(weight);
                    }
                }
                sums.push(sum);
            }
        }
        sums
    }

    fn pair(of: impl Strategy<Value = usize> + Clone) -> impl Strategy<Value = [usize; 2]> {
        [of.clone(), of]
    }

    prop_compose! {
        fn geometries()(
            channels in 1..10_usize,
            outputs in 1..20_usize,
            kernel in pair(1..4_usize),
            stride in pair(1..4_usize),
            dilation in pair(1..4_usize),
            before in pair(0..5_usize),
            after in pair(0..5_usize),
        ) -> Geometry {
            Geometry { channels, outputs, kernel, stride, dilation, before, after }
        }
    }

    proptest! {
        #[test]
        fn every_kernel_equals_the_definition(
            geometry in geometries(),
            size in [1..6_usize, 1..120_usize],
            seed: u64,
            zero: u8,
        ) {
            prop_assume!(geometry.output(size).is_some());
            let mut state = seed;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            };
            let image: Vec<u8> = (0..geometry.channels * size[0] * size[1]).map(|_| next()).collect();
            let weights: Vec<i8> = (0..geometry.outputs * geometry.channels * geometry.taps()).map(|_| next() as i8).collect();
            let scale: Vec<f32> = (0..geometry.outputs).map(|o| 1e-3 * (1 + o) as f32).collect();
            let bias: Vec<i32> = (0..geometry.outputs).map(|o| 50 - 10 * o as i32).collect();
            let sums = slow(&geometry, &weights, &image, size, zero);
            let places = sums.len() / geometry.outputs;
            let code = |(i, &sum): (usize, &i32)| {
                let value = (sum + bias[i / places]) as f32 * scale[i / places] + f32::from(!zero);
                value.clamp(0.0, 255.0).round_ties_even() as u8
            };
            let wanted: Vec<u8> = sums.iter().enumerate().map(code).collect();
            let coefficients = Coefficients {
                weights: &weights,
                bias: &bias,
                scale: &scale,
                image_zero: zero,
                output_zero: !zero,
            };
            for kernel in Kernel::available() {
                let convolution = Convolution::new(kernel, geometry, &coefficients);
                let mut codes = vec![0; sums.len()];
                convolution.apply(&image, size, &mut Scratch::default(), &mut codes);
                prop_assert!(codes == wanted, "{}", kernel.name());
            }
        }
    }

    #[test]
    fn sums_are_rounded_to_even_and_kept_within_the_codes() {
        // a counts by halves from 2, b by ones from 0; the sum by ones from 10.
        let addition = Addition {
            factors: [0.5, 1.0],
            nothing: 10.0 - 0.5 * 2.0,
        };
        for kernel in Kernel::available() {
            let mut sums = [0; 5];
            add(
                kernel,
                addition,
                &[2, 3, 5, 255, 0],
                &[0, 0, 0, 255, 1],
                &mut sums,
            );
            assert_eq!(sums, [10, 10, 12, 255, 10], "{}", kernel.name());
        }
    }

    #[test]
    fn a_kernel_larger_than_the_image_has_no_output() {
        let geometry = Geometry {
            channels: 1,
            outputs: 1,
            kernel: [1, 3],
            stride: [1, 1],
            dilation: [1, 2],
            before: [0, 1],
            after: [0, 1],
        };
        assert_eq!(geometry.output([1, 3]), Some([1, 1]));
        assert_eq!(geometry.output([1, 2]), None);
        assert_eq!(
            Geometry {
                stride: [1, 0],
                ..geometry
            }
            .output([1, 9]),
            None
        );
    }
}
