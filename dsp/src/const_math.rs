//! Elementary functions that the compiler can evaluate, so that a node's tables
//! lie in flash and no float is needed to build them.
//!
//! In double precision with a relative error below 1e-14 over the arguments that
//! tables need; nobody should call them in a loop over samples.

use core::f64::consts::{FRAC_PI_2, LN_2, PI, SQRT_2};

/// Cosine of an angle in [-2 pi, 2 pi].
pub(crate) const fn cos(x: f64) -> f64 {
    // cos x = 2 sin^2((x - pi) / 2) - 1 brings the angle to where the series of
    // the sine is short.
    let half = sin_series(wrap((x.abs() - PI) / 2.0));
    2.0 * half * half - 1.0
}

/// Sine of an angle in [0, 2 pi].
pub(crate) const fn sin(x: f64) -> f64 {
    cos(x - FRAC_PI_2)
}

/// Natural logarithm of a positive normal number.
pub(crate) const fn ln(x: f64) -> f64 {
    let (mut mantissa, mut exponent) = split(x);
    if mantissa > SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)).
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let mut power = ratio;
    let mut sum = 0.0;
    let mut n = 1;
    while n < 27 {
        sum += power / n as f64;
        power *= ratio * ratio;
        n += 2;
    }
    2.0 * sum + exponent as f64 * LN_2
}

/// `x` to the power of `exponent`, for `x` from 0 to 1 and an exponent from 0 to 1.
pub(crate) const fn pow(x: f64, exponent: f64) -> f64 {
    if x < f64::MIN_POSITIVE {
        return 0.0;
    }
    // The series of the exponential is short for less than ln 2.
    let y = exponent * ln(x);
    let halvings = (-y / LN_2) as i32;
    let rest = y + halvings as f64 * LN_2;
    let (mut term, mut sum) = (1.0, 1.0);
    let mut n = 1;
    while n < 22 {
        term *= rest / n as f64;
        sum += term;
        n += 1;
    }
    let mut i = 0;
    while i < halvings {
        sum /= 2.0;
        i += 1;
    }
    sum
}

/// The nearest whole number, away from zero in the middle.
pub(crate) const fn round(x: f64) -> i64 {
    (if x < 0.0 { x - 0.5 } else { x + 0.5 }) as i64
}

/// An angle in [-pi / 2, pi / 2] with the same squared sine.
const fn wrap(x: f64) -> f64 {
    if x > FRAC_PI_2 { PI - x } else { x }
}

/// Taylor series of the sine for |x| up to pi / 2.
const fn sin_series(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    let mut n = 2;
    while n < 26 {
        term *= -x * x / (n * (n + 1)) as f64;
        sum += term;
        n += 2;
    }
    sum
}

/// Mantissa in [1, 2) and exponent.
const fn split(x: f64) -> (f64, i32) {
    const FRACTION: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let mantissa = f64::from_bits((bits & FRACTION) | 1.0_f64.to_bits());
    (mantissa, (bits >> 52) as i32 - 1023)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::f64::consts::TAU;

    fn close(ours: f64, other: f64) {
        assert!(
            (ours - other).abs() <= 1e-14 * other.abs().max(1.0),
            "{ours} {other}"
        );
    }

    #[test]
    fn agrees_with_the_library() {
        for i in 0..=1_000 {
            let part = f64::from(i) / 1_000.0;
            close(cos(part * TAU), libm::cos(part * TAU));
            close(sin(part * TAU), libm::sin(part * TAU));
            close(ln(0.001 + 99.0 * part), libm::log(0.001 + 99.0 * part));
            close(pow(part, 0.85), libm::pow(part, 0.85));
        }
        close(pow(1e-20, 0.85), libm::pow(1e-20, 0.85));
        assert_eq!([-1.5, -0.4, 0.5, 2.4].map(round), [-2, 0, 1, 2]);
    }
}
