//! Kernels for x86-64: AVX2, and the AVX-512 instructions for neural networks.
#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::{
    plain,
    rows::{Cut, Operands, RowDots, vectors},
};

/// Sixteen products at a time, widened to 16 bits: exact for -128 too, where
/// the instruction for bytes would saturate.
#[target_feature(enable = "avx2")]
pub(super) fn avx2<const B: usize, const Q: usize>(
    operands: &Operands<'_, B, Q>,
    emit: impl FnMut(usize, RowDots<B, Q>),
) {
    operands.each(|_, [row], queries| [dot_avx2(row, queries)], emit);
}

#[inline]
#[target_feature(enable = "avx2")]
fn dot_avx2<const Q: usize>(row: &Cut<'_, 16>, queries: &[Cut<'_, 16>; Q]) -> [i32; Q] {
    let load = |values: &[i8; 16]| {
        // SAFETY: sixteen bytes are read from an array of sixteen.
        _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(values.as_ptr().cast()) })
    };
    let vectors = vectors(row, queries);
    let mut sums = [_mm256_setzero_si256(); Q];
    for (i, vector) in row.vectors.iter().enumerate() {
        let row = load(vector);
        for q in 0..Q {
            let products = _mm256_madd_epi16(row, load(&vectors[q][i]));
            sums[q] = _mm256_add_epi32(sums[q], products);
        }
    }
    let mut dots = [0; Q];
    for q in 0..Q {
        dots[q] = add_lanes(sums[q]) + plain::dot_i8(row.rest, queries[q].rest);
    }
    dots
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_lanes(sum: __m256i) -> i32 {
    let four = _mm_add_epi32(
        _mm256_castsi256_si128(sum),
        _mm256_extracti128_si256::<1>(sum),
    );
    let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b_11_10_11_10>(four));
    let one = _mm_add_epi32(two, _mm_shuffle_epi32::<0b_01_01_01_01>(two));
    _mm_cvtsi128_si32(one)
}

/// What makes a signed byte an unsigned one by flipping its sign bit.
const OFFSET: i32 = 128;

/// How far ahead memory is asked for. The processor does not guess the pattern of
/// rows and blocks by itself: without, keys that come from memory take a quarter
/// longer, and three quarters where they begin within a cache line (Zen 5).
const PREFETCH_BYTES: usize = 4_608;

/// 64 products at a time. The instruction takes the bytes of one side as
/// unsigned: rows are shifted by [`OFFSET`], and its product with the query,
/// the same for every row, is taken off again.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn avx512_vnni<const B: usize, const Q: usize>(
    operands: &Operands<'_, B, Q>,
    emit: impl FnMut(usize, RowDots<B, Q>),
) {
    let sum = |query: &[i8]| query.iter().map(|&value| i32::from(value)).sum::<i32>();
    let surplus = operands
        .queries()
        .map(|block| block.map(|query| OFFSET * sum(query)));
    operands.each(
        |block, [row], queries| [dot_vnni(row, queries, &surplus[block])],
        emit,
    );
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn dot_vnni<const Q: usize>(
    row: &Cut<'_, 64>,
    queries: &[Cut<'_, 64>; Q],
    surplus: &[i32; Q],
) -> [i32; Q] {
    // SAFETY: 64 bytes are read from an array of 64.
    let load = |values: &[i8; 64]| unsafe { _mm512_loadu_si512(values.as_ptr().cast()) };
    let flip = _mm512_set1_epi8(i8::MIN);
    let vectors = vectors(row, queries);
    let mut sums = [_mm512_setzero_si512(); Q];
    for (i, vector) in row.vectors.iter().enumerate() {
        let ahead = vector.as_ptr().wrapping_add(PREFETCH_BYTES);
        _mm_prefetch::<_MM_HINT_T0>(ahead);
        let row = _mm512_xor_si512(load(vector), flip);
        for q in 0..Q {
            sums[q] = _mm512_dpbusd_epi32(sums[q], row, load(&vectors[q][i]));
        }
    }
    if !row.rest.is_empty() {
        let row = _mm512_xor_si512(load_some(row.rest), flip);
        for q in 0..Q {
            // The lanes beyond the rest hold a zero of the query.
            sums[q] = _mm512_dpbusd_epi32(sums[q], row, load_some(queries[q].rest));
        }
    }
    let mut dots = [0; Q];
    for q in 0..Q {
        // Sums may have left `i32` on the way; their difference is right again.
        dots[q] = _mm512_reduce_add_epi32(sums[q]).wrapping_sub(surplus[q]);
    }
    dots
}

/// Fewer than 64 values, with zeros behind them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_some(values: &[i8]) -> __m512i {
    debug_assert!(values.len() < 64);
    let mask = (1_u64 << values.len()) - 1;
    // SAFETY: the mask lets no byte beyond the slice be read.
    unsafe { _mm512_maskz_loadu_epi8(mask, values.as_ptr()) }
}
