//! Symmetric int8 quantisation: one scale a vector, zero stays zero.

/// Largest magnitude of a quantised value. -128 is left out, so that the range
/// is symmetric and a negated vector has negated values.
const Q_MAX: f32 = 127.0;

/// Quantises `values` into `quantized` and returns the scale, so that
/// `values[i]` is about `scale * quantized[i]`, off by half a scale at most.
///
/// Rounds half away from zero. A value that is not finite counts as zero, so
/// that one bad element cannot erase the others. A vector of zeros, or of
/// values too small for an `f32` scale, gives scale 0 and zeros.
///
/// # Panics
/// If the lengths differ.
pub fn quantize_i8(values: &[f32], quantized: &mut [i8]) -> f32 {
    assert_eq!(values.len(), quantized.len(), "vectors of one length");
    let largest = values.iter().map(|&v| finite(v).abs()).fold(0.0, f32::max);
    let scale = largest / Q_MAX;
    if !scale.is_normal() {
        quantized.fill(0);
        return 0.0;
    }
    for (q, &value) in quantized.iter_mut().zip(values) {
        // Within [-127, 127]: a rounding error of the division is far below
        // the half step that would reach 128.
        *q = libm::roundf(finite(value) / scale) as i8;
    }
    scale
}

fn finite(value: f32) -> f32 {
    if value.is_finite() { value } else { 0.0 }
}
