//! The kernel in portable Rust, on signed bytes; the oracle of the others.

use super::{
    OUTPUTS, PLACES,
    line::{Line, Sums},
};

pub(crate) fn line(line: &Line<'_>, codes: &mut [u8]) {
    line.each(sums, codes);
}

fn sums(line: &Line<'_>, place: usize) -> Sums {
    let mut sums = [[0; PLACES]; OUTPUTS];
    for (weights, codes) in line.steps::<PLACES>(place) {
        for (sums, weights) in sums.iter_mut().zip(weights) {
            for (sum, codes) in sums.iter_mut().zip(codes) {
                let products = codes.iter().zip(weights);
                *sum += products
                    .map(|(&code, &weight)| i32::from(code as i8) * i32::from(weight))
                    .sum::<i32>();
            }
        }
    }
    sums
}
