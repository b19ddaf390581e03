//! Signals that tests share; the same for the same seed everywhere.

/// White noise, evenly distributed over [-amplitude, amplitude], from a linear
/// congruential generator.
pub fn noise(seed: u64, len: usize, amplitude: f32) -> Vec<f32> {
    let mut state = seed;
    (0..len)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f32 / (1_u32 << 23) as f32 - 1.0) * amplitude
        })
        .collect()
}
