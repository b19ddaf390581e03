//! Kernels in portable Rust: what every target can run, written so that the
//! compiler can vectorise them. They assume vectors of one length; a longer
//! one is cut.

use super::rows::{Cut, Operands, RowDots};

/// Lanes that an `f32` sum is spread over: two NEON or one AVX register.
const LANES: usize = 8;

/// Sum of `a[i] * b[i]`; see [`dot_i8`](super::dot_i8).
pub fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    a.iter()
        .zip(b)
        .map(|(&a, &b)| i32::from(a) * i32::from(b))
        .sum()
}

/// Each row with each query; the oracle of every [`Kernel`](super::Kernel).
pub(super) fn each_row<const B: usize, const Q: usize>(
    operands: &Operands<'_, B, Q>,
    emit: impl FnMut(usize, RowDots<B, Q>),
) {
    operands.each::<1, 1>(
        |_, [row], queries| {
            let dot = |query: Cut<'_, 1>| {
                dot_i8(row.vectors.as_flattened(), query.vectors.as_flattened())
            };
            [queries.map(dot)]
        },
        emit,
    );
}

/// Sum of `a[i] * b[i]`; see [`dot_f32`](super::dot_f32).
///
/// Element `i` is added to lane `i % 8`; then lanes are added in pairs
/// (0 with 4, 1 with 5, ...), as a horizontal sum of vector registers does.
pub fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut lanes = [0.0_f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    for ((lane, a), b) in lanes.iter_mut().zip(a_rest).zip(b_rest) {
        *lane += a * b;
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}
