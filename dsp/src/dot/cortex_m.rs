//! The kernel for a Cortex-M with the DSP extension: two products an instruction.
//!
//! Its instructions have no stable intrinsics, hence the assembler.
#![allow(unsafe_code)]

use core::arch::asm;

use super::{
    plain,
    rows::{Cut, Operands, RowDots, vectors},
};

/// Four products at a time, widened to 16 bits and added in pairs.
pub(super) fn smlad<const B: usize, const Q: usize>(
    operands: &Operands<'_, B, Q>,
    emit: impl FnMut(usize, RowDots<B, Q>),
) {
    operands.each(|_, [row], queries| [dot_smlad(row, queries)], emit);
}

#[inline]
fn dot_smlad<const Q: usize>(row: &Cut<'_, 4>, queries: &[Cut<'_, 4>; Q]) -> [i32; Q] {
    let vectors = vectors(row, queries);
    let mut dots = [0; Q];
    for (i, vector) in row.vectors.iter().enumerate() {
        let row = widen(vector);
        for q in 0..Q {
            let query = widen(&vectors[q][i]);
            dots[q] = add_two(add_two(dots[q], row[0], query[0]), row[1], query[1]);
        }
    }
    for q in 0..Q {
        dots[q] += plain::dot_i8(row.rest, queries[q].rest);
    }
    dots
}

/// Four bytes as two pairs of 16 bits: the even ones and the odd ones.
#[inline(always)]
fn widen(values: &[i8; 4]) -> [u32; 2] {
    let packed = u32::from_le_bytes(values.map(|value| value as u8));
    let (even, odd);
    // SAFETY: these instructions work on the named registers alone, and every
    // processor of this target has them.
    unsafe {
        asm!(
            "sxtb16 {even}, {packed}",
            "sxtb16 {odd}, {packed}, ror #8",
            packed = in(reg) packed, even = out(reg) even, odd = lateout(reg) odd,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    [even, odd]
}

/// Adds the products of two pairs of 16 bits.
#[inline(always)]
fn add_two(sum: i32, a: u32, b: u32) -> i32 {
    let added;
    // SAFETY: as above. It may set the flag for overflow, hence no promise to
    // preserve the flags.
    unsafe {
        asm!(
            "smlad {added}, {a}, {b}, {sum}",
            added = lateout(reg) added, a = in(reg) a, b = in(reg) b, sum = in(reg) sum,
            options(pure, nomem, nostack),
        );
    }
    added
}
