//! One scan that every target runs, with the result that it has to have: the test
//! program of the hub's targets and the firmware of a microcontroller share it.

use earwitness_dsp::scan::{Hit, Kernel, Page, Query, Scanner, TopK};

/// What [`checksum`] gives for every kernel on every target.
pub const CHECKSUM: u64 = 0x4E1C_016D_9EA5_B9CF;

/// Blocks that fill registers, that do not, and that are smaller than one.
const SIZES: [usize; 3] = [96, 45, 6];
const STRIDE: usize = 96 + 45 + 6;
const KEYS: usize = 40;
const QUERIES: usize = 7;
const BEST: usize = 5;

/// Scans seeded keys for seeded queries, and sums up the bits of all hits.
pub fn checksum(kernel: Kernel) -> u64 {
    let mut seed = 0x5EED;
    let mut values = [[0_i8; STRIDE]; KEYS];
    let mut scales = [[0.0; 3]; KEYS];
    for (key, scales) in values.iter_mut().zip(&mut scales) {
        *scales = fill(key, &mut seed);
    }
    let mut asked = [[0_i8; STRIDE]; QUERIES];
    let queries = asked.each_mut().map(|values| {
        let factors = fill(values, &mut seed);
        Query {
            factors,
            values,
            added: &[],
        }
    });
    let mut slots = [[Hit::NONE; BEST]; QUERIES];
    let mut best = slots.each_mut().map(|slots| TopK::new(slots));
    let page = Page {
        first_row: 1_000,
        scales: &scales,
        values: values.as_flattened(),
    };
    Scanner::with_kernel(SIZES, kernel).scan(&page, &queries, &mut best);

    let hits = best.iter().flat_map(|best| best.hits());
    let words = hits.flat_map(|hit| {
        let [who, what, when] = hit.parts.map(f32::to_bits);
        [hit.row as u32, hit.score.to_bits(), who, what, when]
    });
    // FNV-1a over words.
    words.fold(0xCBF2_9CE4_8422_2325, |sum, word| {
        (sum ^ u64::from(word)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// Random values, extremes among them; returns random scales.
fn fill(values: &mut [i8], seed: &mut u64) -> [f32; 3] {
    values.fill_with(|| match next(seed) % 16 {
        0 => i8::MIN,
        1 => i8::MAX,
        other => (other * 37 + next(seed)) as i8,
    });
    [(); 3].map(|()| next(seed) as f32 / 1e9)
}

/// The next 31 random bits (a linear congruential generator).
fn next(seed: &mut u64) -> u32 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as u32
}
