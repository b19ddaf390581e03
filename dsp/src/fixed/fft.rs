//! Power spectrum of 512 real values in 32-bit integers.
//!
//! The values are taken in pairs as 256 complex numbers, transformed in place by
//! radix-2 decimation in time (Cooley and Tukey), and taken apart by symmetry.
//! Every stage halves its results, so that nothing overflows; the last one too.

use crate::const_math;
use crate::fft::MAX_FFT;
use core::f64::consts::TAU;

const SIZE: usize = MAX_FFT / 2;

/// Cosine and sine of `k / 512` turns, with 30 fractional bits.
pub(super) type Twiddles = [[i32; 2]; SIZE];

pub(super) const fn twiddles() -> Twiddles {
    let mut twiddles = [[0; 2]; SIZE];
    let mut k = 0;
    while k < SIZE {
        let angle = TAU * k as f64 / MAX_FFT as f64;
        twiddles[k] = [q30(const_math::cos(angle)), q30(const_math::sin(angle))];
        k += 1;
    }
    twiddles
}

/// A number in [-1, 1] with 30 fractional bits.
pub(super) const fn q30(x: f64) -> i32 {
    const_math::round(x * (1 << 30) as f64) as i32
}

/// |X_k|^2 for k = 0 .. 255, up to the exponent.
pub(super) struct Spectrum {
    power: [u64; SIZE],
}

impl Spectrum {
    /// Powers are to be multiplied by two to this power: eight stages and the
    /// separation halved the amplitudes.
    pub const EXPONENT: i32 = 2 * 9;

    /// The spectrum of values below 2^29; they are used up as scratch.
    pub fn new(values: &mut [i32; MAX_FFT], twiddles: &Twiddles) -> Self {
        let (pairs, _) = values.as_chunks_mut::<2>();
        transform(pairs, twiddles);
        let mut power = [0; SIZE];
        for (k, power) in power.iter_mut().enumerate() {
            let mirrored = pairs[(SIZE - k) % SIZE];
            *power = separated_power(pairs[k], mirrored, twiddles[k]);
        }
        Self { power }
    }

    /// Powers from bin `first` on.
    pub fn from(&self, first: usize) -> &[u64] {
        &self.power[first..]
    }
}

/// In-place transform of 256 complex numbers of magnitude below 2^30.
fn transform(z: &mut [[i32; 2]], twiddles: &Twiddles) {
    for i in 0..=u8::MAX {
        let reversed = i.reverse_bits();
        if i < reversed {
            z.swap(i.into(), reversed.into());
        }
    }
    let mut half = 1;
    while half < SIZE {
        for group in z.chunks_exact_mut(2 * half) {
            let (low, high) = group.split_at_mut(half);
            let turns = twiddles.iter().step_by(SIZE / half);
            for ((a, b), &twiddle) in low.iter_mut().zip(high).zip(turns) {
                butterfly(a, b, twiddle);
            }
        }
        half *= 2;
    }
}

/// `(a + w b) / 2` and `(a - w b) / 2`.
fn butterfly(a: &mut [i32; 2], b: &mut [i32; 2], twiddle: [i32; 2]) {
    let [re, im] = turned(*b, twiddle).map(|x| (x >> 31) as i32);
    let [a_re, a_im] = a.map(|x| x >> 1);
    *a = [a_re + re, a_im + im];
    *b = [a_re - re, a_im - im];
}

/// `z` turned clockwise, with 30 more fractional bits.
fn turned([re, im]: [i32; 2], [cosine, sine]: [i32; 2]) -> [i64; 2] {
    let [re, im] = [i64::from(re), i64::from(im)];
    let [cosine, sine] = [i64::from(cosine), i64::from(sine)];
    [re * cosine + im * sine, im * cosine - re * sine]
}

/// Half of bin k of the real transform, squared, from bins k and -k of the
/// transform of pairs: the even samples' spectrum plus the odd samples', turned.
fn separated_power(z: [i32; 2], mirrored: [i32; 2], twiddle: [i32; 2]) -> u64 {
    let even = [(z[0] + mirrored[0]) >> 1, (z[1] - mirrored[1]) >> 1];
    let odd = [(z[1] + mirrored[1]) >> 1, (mirrored[0] - z[0]) >> 1];
    let odd = turned(odd, twiddle);
    let half = |even: i32, odd: i64| ((i64::from(even) << 30) + odd) >> 31;
    let [re, im] = [half(even[0], odd[0]), half(even[1], odd[1])];
    (re * re + im * im) as u64
}
