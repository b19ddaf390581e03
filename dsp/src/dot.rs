//! Dot products: the inner loop of key scoring and of the mel filters.
//!
//! The functions here are what callers use; they check the lengths once and
//! hand over to a kernel. [`plain`] is the kernel of every target, and the
//! oracle of any faster one: an integer kernel must agree with it bit for bit,
//! and so must an `f32` kernel that adds in the same eight lanes.

pub mod plain;

/// Sum of `a[i] * b[i]`, exact for up to 131,071 elements (the sum of more
/// could leave `i32`).
///
/// # Panics
/// If the lengths differ.
pub fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    plain::dot_i8(a, b)
}

/// Sum of `a[i] * b[i]`, added in eight interleaved lanes so that every kernel
/// rounds alike.
///
/// # Panics
/// If the lengths differ.
pub fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    plain::dot_f32(a, b)
}
