//! What kernels have in common: the walk over rows, blocks and queries.

use core::array;

/// Dot products of one row, by query and block.
pub(crate) type RowDots<const B: usize, const Q: usize> = [[i32; B]; Q];

/// Int8 rows and the queries that they are multiplied with. Rows and queries
/// consist of `B` blocks each, whose products are kept apart.
#[derive(Clone, Copy)]
pub(crate) struct Operands<'a, const B: usize, const Q: usize> {
    rows: &'a [i8],
    count: usize,
    sizes: [usize; B],
    /// By block, so that they need not be cut again for each row.
    queries: [[&'a [i8]; Q]; B],
}

impl<'a, const B: usize, const Q: usize> Operands<'a, B, Q> {
    /// `count` rows one after another, and queries, all with blocks of the given
    /// sizes.
    ///
    /// # Panics
    /// If a length does not fit the sizes.
    pub(crate) fn new(
        rows: &'a [i8],
        count: usize,
        sizes: [usize; B],
        mut queries: [&'a [i8]; Q],
    ) -> Self {
        let stride: usize = sizes.iter().sum();
        assert_eq!(rows.len(), count * stride, "values of all rows");
        for query in queries {
            assert_eq!(query.len(), stride, "a query as long as a row");
        }
        Self {
            rows,
            count,
            sizes,
            queries: sizes.map(|size| split_off(&mut queries, size)),
        }
    }

    /// The queries' parts of each block.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn queries(&self) -> &[[&'a [i8]; Q]; B] {
        &self.queries
    }

    /// Calls `emit` with each row's number and dot products.
    ///
    /// `dot` multiplies one block, given its number, of `R` rows with that of each
    /// query. Where fewer rows are left, the last one stands in for the others.
    // Inlined into every kernel, so that `dot` can be inlined here: a function
    // with special instructions cannot be inlined into one without.
    #[inline(always)]
    pub(super) fn each<const R: usize>(
        &self,
        dot: impl Fn(usize, [&[i8]; R], [&[i8]; Q]) -> [[i32; Q]; R],
        mut emit: impl FnMut(usize, RowDots<B, Q>),
    ) {
        let stride: usize = self.sizes.iter().sum();
        for first in (0..self.count).step_by(R) {
            let mut rows: [&[i8]; R] = array::from_fn(|r| {
                let row = (first + r).min(self.count - 1);
                &self.rows[row * stride..][..stride]
            });
            let mut dots = [[[0; B]; Q]; R];
            for block in 0..B {
                let values = split_off(&mut rows, self.sizes[block]);
                let products = dot(block, values, self.queries[block]);
                for (r, q) in (0..R).flat_map(|r| (0..Q).map(move |q| (r, q))) {
                    dots[r][q][block] = products[r][q];
                }
            }
            for (row, dots) in (first..self.count).zip(dots) {
                emit(row, dots);
            }
        }
    }
}

/// Cuts the first `size` values off each vector.
#[inline(always)]
fn split_off<'a, const N: usize>(vectors: &mut [&'a [i8]; N], size: usize) -> [&'a [i8]; N] {
    vectors.each_mut().map(|vector| {
        let (front, rest) = vector.split_at(size);
        *vector = rest;
        front
    })
}
