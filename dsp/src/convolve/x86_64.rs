//! Kernels for x86-64: AVX2, and the AVX-512 instructions for neural networks.
#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::{
    OUTPUTS, PLACES,
    line::{Line, Sums},
};

/// Places in a vector of AVX2, widened to 16 bits.
const NARROW: usize = 4;
/// Vectors of it at once, for half the outputs: all sixteen registers.
const ABREAST: usize = 3;
/// Places in a vector of AVX-512.
const WIDE: usize = 16;

/// Signed bytes, widened to 16 bits, since the instruction for bytes saturates.
#[target_feature(enable = "avx2")]
pub(crate) fn avx2(line: &Line<'_>, codes: &mut [u8]) {
    line.each(|line, place| sums_avx2(line, place), codes);
}

#[inline]
#[target_feature(enable = "avx2")]
fn sums_avx2(line: &Line<'_>, place: usize) -> Sums {
    let mut sums = [[0; PLACES]; OUTPUTS];
    for half in 0..2 {
        for run in (0..PLACES).step_by(NARROW * ABREAST) {
            let lanes = run_avx2(line, half, place + run);
            for (sums, lanes) in sums[half * OUTPUTS / 2..].iter_mut().zip(lanes) {
                for (four, lanes) in sums[run..].chunks_exact_mut(NARROW).zip(lanes) {
                    four.copy_from_slice(&pairs_added(lanes));
                }
            }
        }
    }
    sums
}

/// For half the outputs, sums of twelve places, of two channels each.
#[inline]
#[target_feature(enable = "avx2")]
fn run_avx2(line: &Line<'_>, half: usize, place: usize) -> [[__m256i; ABREAST]; OUTPUTS / 2] {
    let mut sums = [[_mm256_setzero_si256(); ABREAST]; OUTPUTS / 2];
    for (weights, codes) in line.steps::<{ NARROW * ABREAST }>(place) {
        let mut vectors = [_mm256_setzero_si256(); ABREAST];
        for (vector, codes) in vectors.iter_mut().zip(codes.as_chunks::<NARROW>().0) {
            // SAFETY: sixteen bytes are read from four quads.
            *vector = _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(codes.as_ptr().cast()) });
        }
        for output in 0..OUTPUTS / 2 {
            let quad = i32::from_ne_bytes(weights[half * OUTPUTS / 2 + output].map(|w| w as u8));
            let weight = _mm256_cvtepi8_epi16(_mm_set1_epi32(quad));
            for i in 0..ABREAST {
                let products = _mm256_madd_epi16(vectors[i], weight);
                sums[output][i] = _mm256_add_epi32(sums[output][i], products);
            }
        }
    }
    sums
}

#[inline]
#[target_feature(enable = "avx2")]
fn pairs_added(lanes: __m256i) -> [i32; NARROW] {
    let mut pairs = [0; 2 * NARROW];
    // SAFETY: eight lanes are written to an array of eight.
    unsafe { _mm256_storeu_si256(pairs.as_mut_ptr().cast(), lanes) };
    core::array::from_fn(|i| pairs[2 * i] + pairs[2 * i + 1])
}

/// 64 products an instruction, of unsigned codes with signed weights.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(crate) fn avx512_vnni(line: &Line<'_>, codes: &mut [u8]) {
    line.each(|line, place| sums_vnni(line, place), codes);
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn sums_vnni(line: &Line<'_>, place: usize) -> Sums {
    let mut lanes = [[_mm512_setzero_si512(); PLACES / WIDE]; OUTPUTS];
    for (weights, codes) in line.steps::<PLACES>(place) {
        let mut vectors = [_mm512_setzero_si512(); PLACES / WIDE];
        for (vector, codes) in vectors.iter_mut().zip(codes.as_chunks::<WIDE>().0) {
            // SAFETY: 64 bytes are read from sixteen quads.
            *vector = unsafe { _mm512_loadu_si512(codes.as_ptr().cast()) };
        }
        for output in 0..OUTPUTS {
            let weight = _mm512_set1_epi32(i32::from_ne_bytes(weights[output].map(|w| w as u8)));
            for i in 0..PLACES / WIDE {
                lanes[output][i] = _mm512_dpbusd_epi32(lanes[output][i], vectors[i], weight);
            }
        }
    }
    let mut sums = [[0; PLACES]; OUTPUTS];
    for (sums, lanes) in sums.iter_mut().zip(lanes) {
        for (sums, lanes) in sums.as_chunks_mut::<WIDE>().0.iter_mut().zip(lanes) {
            // SAFETY: sixteen lanes are written to a slice of sixteen.
            unsafe { _mm512_storeu_si512(sums.as_mut_ptr().cast(), lanes) };
        }
    }
    sums
}

/// Does `work` with vectors of 256 bits.
#[target_feature(enable = "avx2")]
pub(crate) fn with_avx2<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Does `work` with vectors of 512 bits.
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn with_avx512<R>(work: impl FnOnce() -> R) -> R {
    work()
}
