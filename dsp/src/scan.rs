//! The best of many int8 keys for a few queries, in one pass over the keys.
//!
//! A key consists of `B` blocks (PERSIST section 2.2 has three: what, who, when),
//! each with a scale of its own; a query likewise, with a factor for each block
//! that says how much it counts. A block's part of the score is
//!
//! ```text
//! (factor * scale) * dot product
//! ```
//!
//! and the score is the sum of the parts in the order of the blocks, and of what
//! the query adds to that key. Products are integers, the rest is `f32` in exactly
//! this order of operations: scores are the same bits on every target, whichever
//! [`Kernel`] computes them.
//!
//! ```
//! use earwitness_dsp::scan::{Hit, Page, Query, Scanner, TopK};
//!
//! // Keys of a block of three values and one of two.
//! let scanner = Scanner::new([3, 2]);
//! let pages = [
//!     Page { first_row: 0, scales: &[[0.5, 1.0], [0.5, 1.0]], values: &[1, 2, 3, 4, 5, 1, 2, 3, 0, 0] },
//!     Page { first_row: 2, scales: &[[0.5, 1.0]], values: &[9, 0, 0, 1, 1] },
//! ];
//! let queries = [
//!     Query { factors: [1.0, 0.0], values: &[1, 0, 0, 0, 0], added: &[] },
//!     Query { factors: [0.0, 1.0], values: &[0, 0, 0, 1, 1], added: &[] },
//! ];
//! let mut slots = [[Hit::NONE; 2]; 2];
//! let mut best = slots.each_mut().map(|slots| TopK::new(slots));
//! for page in &pages {
//!     scanner.scan(page, &queries, &mut best);
//! }
//! let rows = |best: &TopK<2>| best.hits().iter().map(|hit| hit.row).collect::<Vec<_>>();
//! assert_eq!(rows(&best[0]), [2, 0]);
//! assert_eq!(rows(&best[1]), [0, 2]);
//! assert_eq!(best[0].hits()[0].parts, [4.5, 0.0]);
//! ```

mod top_k;

pub use crate::dot::Kernel;
pub use top_k::{Hit, TopK};

use crate::dot::{MAX_I8_LEN, Operands};

/// Keys that lie one after another in memory.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a, const B: usize> {
    /// The number of the first key; the others follow. Hits tell keys by it.
    pub first_row: usize,
    /// Each key's scales.
    pub scales: &'a [[f32; B]],
    /// Each key's values, block after block. Scanning is fastest where keys begin
    /// and blocks end at multiples of 64 bytes.
    pub values: &'a [i8],
}

/// What to look for.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a, const B: usize> {
    /// How much each block counts: its weight times the scale of the values.
    pub factors: [f32; B],
    /// Values of a key's shape.
    pub values: &'a [i8],
    /// What is known of each key of the page from elsewhere, to be added to its
    /// score; empty for nothing.
    pub added: &'a [f32],
}

/// Scores keys of one shape.
#[derive(Clone, Copy, Debug)]
pub struct Scanner<const B: usize> {
    sizes: [usize; B],
    kernel: Kernel,
}

impl<const B: usize> Scanner<B> {
    /// A scanner for keys with blocks of these sizes, with the best kernel of this
    /// processor.
    ///
    /// # Panics
    /// If a block has more than [`MAX_I8_LEN`] values.
    pub fn new(sizes: [usize; B]) -> Self {
        Self::with_kernel(sizes, Kernel::best())
    }

    /// A scanner with a certain kernel, to compare it with others.
    ///
    /// # Panics
    /// If a block has more than [`MAX_I8_LEN`] values.
    pub fn with_kernel(sizes: [usize; B], kernel: Kernel) -> Self {
        for size in sizes {
            assert!(size <= MAX_I8_LEN, "a block of at most {MAX_I8_LEN} values");
        }
        Self { sizes, kernel }
    }

    /// Offers each key of a page to each query's best ones, with its score.
    ///
    /// A key is read once for up to four queries.
    ///
    /// # Panics
    /// If there are not as many `best` as queries, or a length does not fit the
    /// blocks' sizes or the number of keys.
    pub fn scan(&self, page: &Page<'_, B>, queries: &[Query<'_, B>], best: &mut [TopK<'_, B>]) {
        assert_eq!(queries.len(), best.len(), "a place for each query's best");
        let (fours, queries) = queries.as_chunks::<4>();
        let (best_fours, best) = best.as_chunks_mut();
        let (twos, ones) = queries.as_chunks::<2>();
        let (best_twos, best_ones) = best.as_chunks_mut();
        for (queries, best) in fours.iter().zip(best_fours) {
            self.scan_for(page, queries, best);
        }
        for (queries, best) in twos.iter().zip(best_twos) {
            self.scan_for(page, queries, best);
        }
        for (query, best) in ones.iter().zip(best_ones) {
            self.scan_for(page, &[*query], core::array::from_mut(best));
        }
    }

    fn scan_for<const Q: usize>(
        &self,
        page: &Page<'_, B>,
        queries: &[Query<'_, B>; Q],
        best: &mut [TopK<'_, B>; Q],
    ) {
        let Page {
            first_row,
            scales,
            values,
        } = *page;
        for query in queries {
            let rows = query.added.len();
            assert!(rows == 0 || rows == scales.len(), "something for each key");
        }
        let operands = Operands::new(values, scales.len(), self.sizes, queries.map(|q| q.values));
        self.kernel.each_row(&operands, |row, dots| {
            for q in 0..Q {
                let mut parts = [0.0; B];
                for block in 0..B {
                    let factor = queries[q].factors[block] * scales[row][block];
                    parts[block] = factor * dots[q][block] as f32;
                }
                let added = queries[q].added.get(row).copied().unwrap_or(0.0);
                best[q].offer(first_row + row, parts, added);
            }
        });
    }
}
