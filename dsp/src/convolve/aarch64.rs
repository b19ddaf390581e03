//! Kernels for 64-bit Arm: NEON, and its dot product instruction.
//!
//! The latter has no stable intrinsic in our Rust, hence the assembler.
#![allow(unsafe_code)]

use core::arch::{aarch64::*, asm};

use super::{
    OUTPUTS, PLACES,
    line::{Line, Sums},
};

/// Places in a vector.
const WIDE: usize = 4;
/// Vectors at once: with sums for every output they fill the registers.
const ABREAST: usize = 3;

/// Signed bytes, widened to 16 bits and added in pairs.
#[target_feature(enable = "neon")]
pub(crate) fn neon(line: &Line<'_>, codes: &mut [u8]) {
    line.each(|line, place| sums_neon(line, place), codes);
}

#[inline]
#[target_feature(enable = "neon")]
fn sums_neon(line: &Line<'_>, place: usize) -> Sums {
    let mut sums = [[0; PLACES]; OUTPUTS];
    for run in (0..PLACES).step_by(WIDE) {
        // The sums of two channels each: of the first two places, and of the other two.
        let mut pairs = [[vdupq_n_s32(0); 2]; OUTPUTS];
        for (weights, codes) in line.steps::<WIDE>(place + run) {
            let codes = load(codes);
            for output in 0..OUTPUTS {
                let weight = vreinterpretq_s8_s32(vdupq_n_s32(quad(weights[output])));
                let [low, high] = pairs[output];
                let products = vmull_s8(vget_low_s8(codes), vget_low_s8(weight));
                pairs[output] = [
                    vpadalq_s16(low, products),
                    vpadalq_s16(high, vmull_high_s8(codes, weight)),
                ];
            }
        }
        for (sums, [low, high]) in sums.iter_mut().zip(pairs) {
            store(vpaddq_s32(low, high), &mut sums[run..]);
        }
    }
    sums
}

/// Signed bytes, four products added by one instruction.
#[target_feature(enable = "neon,dotprod")]
pub(crate) fn sdot(line: &Line<'_>, codes: &mut [u8]) {
    line.each(|line, place| sums_sdot(line, place), codes);
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sums_sdot(line: &Line<'_>, place: usize) -> Sums {
    let mut sums = [[0; PLACES]; OUTPUTS];
    for run in (0..PLACES).step_by(WIDE * ABREAST) {
        let mut lanes = [[vdupq_n_s32(0); ABREAST]; OUTPUTS];
        for (weights, codes) in line.steps::<{ WIDE * ABREAST }>(place + run) {
            let mut vectors = [vdupq_n_s8(0); ABREAST];
            for (vector, codes) in vectors.iter_mut().zip(codes.as_chunks::<WIDE>().0) {
                *vector = load(codes);
            }
            let [front, back] = weights.as_chunks::<4>().0 else {
                unreachable!("eight outputs are two times four")
            };
            let [front, back] = [signed(front), signed(back)];
            for (i, &vector) in vectors.iter().enumerate() {
                lanes[0][i] = add_fours::<0>(lanes[0][i], vector, front);
                lanes[1][i] = add_fours::<1>(lanes[1][i], vector, front);
                lanes[2][i] = add_fours::<2>(lanes[2][i], vector, front);
                lanes[3][i] = add_fours::<3>(lanes[3][i], vector, front);
                lanes[4][i] = add_fours::<0>(lanes[4][i], vector, back);
                lanes[5][i] = add_fours::<1>(lanes[5][i], vector, back);
                lanes[6][i] = add_fours::<2>(lanes[6][i], vector, back);
                lanes[7][i] = add_fours::<3>(lanes[7][i], vector, back);
            }
        }
        for (sums, lanes) in sums.iter_mut().zip(lanes) {
            for (i, lanes) in lanes.into_iter().enumerate() {
                store(lanes, &mut sums[run + i * WIDE..]);
            }
        }
    }
    sums
}

/// To each of four sums, the products of its place's codes with the weights of one output.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn add_fours<const OUTPUT: i32>(
    mut sums: int32x4_t,
    codes: int8x16_t,
    weights: int8x16_t,
) -> int32x4_t {
    // SAFETY: it works on the named registers alone, and the processor has it.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {codes:v}.16b, {weights:v}.4b[{output}]",
            sums = inout(vreg) sums, codes = in(vreg) codes, weights = in(vreg) weights,
            output = const OUTPUT,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}

fn quad(weights: [i8; 4]) -> i32 {
    i32::from_ne_bytes(weights.map(|weight| weight as u8))
}

#[inline]
#[target_feature(enable = "neon")]
fn load(codes: &[[u8; 4]; WIDE]) -> int8x16_t {
    // SAFETY: sixteen bytes are read from four quads.
    vreinterpretq_s8_u8(unsafe { vld1q_u8(codes.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "neon")]
fn signed(weights: &[[i8; 4]; 4]) -> int8x16_t {
    // SAFETY: sixteen bytes are read from four quads.
    unsafe { vld1q_s8(weights.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store(sums: int32x4_t, into: &mut [i32]) {
    let into = &mut into[..WIDE];
    // SAFETY: four sums are written to a slice of four.
    unsafe { vst1q_s32(into.as_mut_ptr(), sums) };
}
