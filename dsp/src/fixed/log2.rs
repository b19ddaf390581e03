//! Binary logarithm of whole numbers: a table of 64 steps an octave, and straight
//! lines between them.

use crate::const_math;
use core::f64::consts::LN_2;

/// Fractional bits of the result.
pub(super) const LOG2_BITS: u32 = 16;

const STEPS: usize = 64;
const STEP_BITS: u32 = STEPS.ilog2();

/// log2(1 + i / 64).
static TABLE: [u32; STEPS + 1] = table();

const fn table() -> [u32; STEPS + 1] {
    let mut table = [0; STEPS + 1];
    let mut i = 0;
    while i < table.len() {
        let exact = const_math::ln(1.0 + i as f64 / STEPS as f64) / LN_2;
        table[i] = const_math::round(exact * (1 << LOG2_BITS) as f64) as u32;
        i += 1;
    }
    table
}

/// log2 of a number above zero, with [`LOG2_BITS`] fractional bits; at most 5 of
/// 65,536 off.
pub(super) fn log2(x: u64) -> i32 {
    let exponent = x.ilog2();
    // The mantissa's fraction, as 32 bits below the leading one.
    let fraction = ((x << (63 - exponent)) >> 31) as u32;
    let step = (fraction >> (32 - STEP_BITS)) as usize;
    let within = (fraction << STEP_BITS) >> 16;
    let (low, high) = (TABLE[step], TABLE[step + 1]);
    let mantissa = low + (((high - low) * within) >> 16);
    ((exponent << LOG2_BITS) + mantissa) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_within_its_bound_everywhere() {
        let mut x = 1_u64;
        while x < u64::MAX / 10 * 9 {
            let exact = libm::log2(x as f64) * f64::from(1 << LOG2_BITS);
            assert!((f64::from(log2(x)) - exact).abs() <= 5.0, "{x}");
            x += x / 1_000 + 1;
        }
        assert_eq!(log2(u64::MAX) >> LOG2_BITS, 63);
    }
}
