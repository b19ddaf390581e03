//! How an image lies in memory while it is convolved.
//!
//! Four channels of a place lie together, then the places of a row, rows with their
//! border, quads of channels. With a stride of `s` an image is dealt out into `s`
//! planes in each direction, so that the places that one tap sees are neighbours again.

use super::{Geometry, PLACES};
use crate::dot::Kernel;

/// How codes are laid out for a kernel: as they are, or with the sign bit flipped.
pub(super) struct Packing {
    kernel: Kernel,
    /// 128 for kernels that want signed bytes, else 0.
    pub(super) flip: u8,
}

/// Sizes of one plane.
pub(super) struct Pitch {
    pub(super) width: usize,
    height: usize,
}

impl Packing {
    pub(super) fn of(kernel: Kernel) -> Self {
        Self {
            kernel,
            flip: if kernel.takes_unsigned() { 0 } else { 128 },
        }
    }

    /// Packs codes `[channels, height, width]` into `packed`; `zero` fills the border.
    pub(super) fn pack(
        &self,
        geometry: &Geometry,
        image: &[u8],
        [height, width]: [usize; 2],
        zero: u8,
        packed: &mut Vec<[u8; 4]>,
    ) -> Pitch {
        let pitch = Pitch::of(geometry, [height, width]);
        let quads = geometry.channels.div_ceil(4);
        let plane = pitch.width * pitch.height;
        let [rows_apart, columns_apart] = geometry.stride;
        let border = [zero ^ self.flip; 4];
        packed.clear();
        packed.resize(rows_apart * columns_apart * quads * plane + PLACES, border);
        for (quad, channels) in image.chunks(4 * height * width).enumerate() {
            for row in 0..height {
                let y = row + geometry.before[0];
                let rows = [0, 1, 2, 3].map(|channel| {
                    let start = (channel * height + row) * width;
                    channels.get(start..start + width).unwrap_or(&[])
                });
                for phase in 0..columns_apart {
                    // The first column of the image that falls into this plane.
                    let first = (phase + columns_apart - geometry.before[1] % columns_apart)
                        % columns_apart;
                    let at = pitch.plane([y % rows_apart, phase], geometry, quad)
                        + y / rows_apart * pitch.width
                        + (geometry.before[1] + first) / columns_apart;
                    self.interleave(rows, first, columns_apart, &mut packed[at..]);
                }
            }
        }
        pitch
    }

    /// Every `step`th code of four rows from `first` on, side by side; a row may be missing.
    fn interleave(&self, rows: [&[u8]; 4], first: usize, step: usize, into: &mut [[u8; 4]]) {
        let rows = rows.map(|row| row.get(first..).unwrap_or(&[]));
        let whole = rows.iter().all(|row| row.len() == rows[0].len());
        match step {
            1 if whole => self.kernel.vectorised(|| {
                side_by_side(rows.map(|row| row.iter()), self.flip, into);
            }),
            2 if whole => self.kernel.vectorised(|| {
                side_by_side(rows.map(|row| row.iter().step_by(2)), self.flip, into);
            }),
            _ => {
                for (channel, row) in rows.into_iter().enumerate() {
                    for (quad, &code) in into.iter_mut().zip(row.iter().step_by(step)) {
                        quad[channel] = code ^ self.flip;
                    }
                }
            }
        }
    }
}

/// As words, which the compiler makes vectors of.
#[inline(always)]
fn side_by_side<'a>(rows: [impl Iterator<Item = &'a u8>; 4], flip: u8, into: &mut [[u8; 4]]) {
    let flip = u32::from_le_bytes([flip; 4]);
    let [a, b, c, d] = rows;
    for (quad, ((&a, &b), (&c, &d))) in into.iter_mut().zip(a.zip(b).zip(c.zip(d))) {
        let [a, b, c, d] = [a, b, c, d].map(u32::from);
        *quad = ((a | b << 8 | c << 16 | d << 24) ^ flip).to_le_bytes();
    }
}

impl Pitch {
    fn of(geometry: &Geometry, image: [usize; 2]) -> Self {
        let size = |axis: usize| {
            let bordered = geometry.before[axis] + image[axis] + geometry.after[axis];
            bordered.div_ceil(geometry.stride[axis])
        };
        Self {
            height: size(0),
            width: size(1),
        }
    }

    /// Where the plane of a phase and a quad of channels begins.
    fn plane(&self, [row, column]: [usize; 2], geometry: &Geometry, quad: usize) -> usize {
        let quads = geometry.channels.div_ceil(4);
        let phase = row * geometry.stride[1] + column;
        (phase * quads + quad) * self.height * self.width
    }

    /// For each tap and quad of channels, where the first window finds its codes.
    pub(super) fn steps(&self, geometry: &Geometry) -> Vec<usize> {
        let mut steps = Vec::new();
        for row in (0..geometry.kernel[0]).map(|row| row * geometry.dilation[0]) {
            for column in (0..geometry.kernel[1]).map(|column| column * geometry.dilation[1]) {
                let phase = [row % geometry.stride[0], column % geometry.stride[1]];
                let within = row / geometry.stride[0] * self.width + column / geometry.stride[1];
                let quads = 0..geometry.channels.div_ceil(4);
                steps.extend(quads.map(|quad| self.plane(phase, geometry, quad) + within));
            }
        }
        steps
    }
}
