//! Dot products: the inner loop of key scoring and of the mel filters.
//!
//! The functions here are for a pair of vectors; they check the lengths once and
//! hand over to [`plain`]. Many int8 vectors at once are the business of a
//! [`Kernel`]: the fastest way of this processor, with [`plain`] as its oracle,
//! with which it agrees bit for bit.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(cortex_m_dsp)]
mod cortex_m;
mod kernel;
pub mod plain;
mod rows;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub use kernel::Kernel;
pub(crate) use rows::Operands;

/// The most elements of an int8 dot product: the sum of more could leave `i32`.
pub const MAX_I8_LEN: usize = 131_071;

/// Sum of `a[i] * b[i]`, exact for up to [`MAX_I8_LEN`] elements.
///
/// # Panics
/// If the lengths differ.
pub fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    plain::dot_i8(a, b)
}

/// Sum of `a[i] * b[i]`, added in eight interleaved lanes so that every target
/// rounds alike.
///
/// # Panics
/// If the lengths differ.
pub fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    plain::dot_f32(a, b)
}
