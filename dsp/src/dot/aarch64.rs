//! Kernels for 64-bit Arm: NEON, its dot product instruction, and its small
//! matrix product.
//!
//! The latter two have no stable intrinsics in our Rust, hence the assembler.
#![allow(unsafe_code)]

use core::arch::{aarch64::*, asm};

use super::{
    plain,
    rows::{Cut, Operands, RowDots, vectors},
};

/// Sixteen products at a time, widened to 16 bits and added in pairs.
#[target_feature(enable = "neon")]
pub(super) fn neon<const B: usize, const Q: usize>(
    operands: &Operands<'_, B, Q>,
    emit: impl FnMut(usize, RowDots<B, Q>),
) {
    operands.each(
        |_, [row], queries| [dot_by(row, queries, |sums, a, b| add_pairs(sums, a, b))],
        emit,
    );
}

/// Sixteen products at a time, added in fours.
#[target_feature(enable = "neon,dotprod")]
pub(super) fn sdot<const B: usize, const Q: usize>(
    operands: &Operands<'_, B, Q>,
    emit: impl FnMut(usize, RowDots<B, Q>),
) {
    operands.each(
        |_, [row], queries| [dot_by(row, queries, |sums, a, b| add_fours(sums, a, b))],
        emit,
    );
}

/// Two rows with two queries at a time; a query that has no neighbour goes the
/// way of [`sdot`].
#[target_feature(enable = "neon,dotprod,i8mm")]
pub(super) fn i8mm<const B: usize, const Q: usize>(
    operands: &Operands<'_, B, Q>,
    emit: impl FnMut(usize, RowDots<B, Q>),
) {
    if Q.is_multiple_of(2) {
        operands.each(|_, rows, queries| dot_two_rows(rows, queries), emit);
    } else {
        sdot(operands, emit);
    }
}

/// One row with each query; `multiply` adds the products of sixteen values to
/// four sums.
#[inline]
#[target_feature(enable = "neon")]
fn dot_by<const Q: usize>(
    row: &Cut<'_, 16>,
    queries: &[Cut<'_, 16>; Q],
    multiply: impl Fn(int32x4_t, int8x16_t, int8x16_t) -> int32x4_t,
) -> [i32; Q] {
    let vectors = vectors(row, queries);
    let mut sums = [vdupq_n_s32(0); Q];
    for (i, vector) in row.vectors.iter().enumerate() {
        let row = load(vector);
        for q in 0..Q {
            sums[q] = multiply(sums[q], row, load(&vectors[q][i]));
        }
    }
    let mut dots = [0; Q];
    for q in 0..Q {
        dots[q] = vaddvq_s32(sums[q]) + plain::dot_i8(row.rest, queries[q].rest);
    }
    dots
}

#[inline]
#[target_feature(enable = "neon,dotprod,i8mm")]
fn dot_two_rows<const Q: usize>(
    [a, b]: &[Cut<'_, 16>; 2],
    queries: &[Cut<'_, 16>; Q],
) -> [[i32; Q]; 2] {
    let vectors = vectors(a, queries);
    // By pair of queries: row 0 with query 0 and 1, row 1 with query 0 and 1.
    let mut sums = [vdupq_n_s32(0); Q];
    for (i, (a, b)) in a.vectors.iter().zip(b.vectors).enumerate() {
        let [low, high] = halves(a, b);
        for pair in 0..Q / 2 {
            let [query_low, query_high] = halves(&vectors[2 * pair][i], &vectors[2 * pair + 1][i]);
            sums[pair] = add_eights(sums[pair], low, query_low);
            sums[pair] = add_eights(sums[pair], high, query_high);
        }
    }
    let mut dots = [[0; Q]; 2];
    for q in 0..Q {
        let mut products = [0; 4];
        // SAFETY: four sums are written to an array of four.
        unsafe { vst1q_s32(products.as_mut_ptr(), sums[q / 2]) };
        for (r, row) in [a, b].into_iter().enumerate() {
            dots[r][q] = products[2 * r + q % 2] + plain::dot_i8(row.rest, queries[q].rest);
        }
    }
    dots
}

/// The lower halves of two vectors in one, and the upper ones.
#[inline]
#[target_feature(enable = "neon")]
fn halves(a: &[i8; 16], b: &[i8; 16]) -> [int8x16_t; 2] {
    let (a, b) = (load(a), load(b));
    [
        vcombine_s8(vget_low_s8(a), vget_low_s8(b)),
        vcombine_s8(vget_high_s8(a), vget_high_s8(b)),
    ]
}

#[inline]
#[target_feature(enable = "neon")]
fn load(values: &[i8; 16]) -> int8x16_t {
    // SAFETY: sixteen bytes are read from an array of sixteen.
    unsafe { vld1q_s8(values.as_ptr()) }
}

/// To each of four sums, two products of the lower half and two of the upper.
#[inline]
#[target_feature(enable = "neon")]
fn add_pairs(sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    let low = vmull_s8(vget_low_s8(a), vget_low_s8(b));
    vpadalq_s16(vpadalq_s16(sums, low), vmull_high_s8(a, b))
}

/// To each of four sums, four products.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn add_fours(mut sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: it works on the named registers alone, and the processor has it.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {a:v}.16b, {b:v}.16b",
            sums = inout(vreg) sums, a = in(vreg) a, b = in(vreg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}

/// To each of four sums, eight products: the halves of `a` with the halves of `b`.
#[inline]
#[target_feature(enable = "neon,i8mm")]
fn add_eights(mut sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: it works on the named registers alone, and the processor has it.
    unsafe {
        asm!(
            "smmla {sums:v}.4s, {a:v}.16b, {b:v}.16b",
            sums = inout(vreg) sums, a = in(vreg) a, b = in(vreg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}
