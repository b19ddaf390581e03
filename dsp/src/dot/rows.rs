//! What kernels have in common: the walk over rows, blocks and queries.

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
    /// query, all of one length and cut into vectors of `W` values. Where fewer rows
    /// are left, the last one stands in for the others.
    // Inlined into every kernel, so that `dot` can be inlined here: a function
    // with special instructions cannot be inlined into one without. Loops instead
    // of `map`, which the compiler does not always see through.
    #[inline(always)]
    pub(super) fn each<const R: usize, const W: usize>(
        &self,
        dot: impl Fn(usize, &[Cut<'_, W>; R], &[Cut<'_, W>; Q]) -> [[i32; Q]; R],
        mut emit: impl FnMut(usize, RowDots<B, Q>),
    ) {
        let stride: usize = self.sizes.iter().sum();
        let queries = self.queries.map(|block| block.map(Cut::new));
        for first in (0..self.count).step_by(R) {
            let mut start = 0;
            let mut dots = [[[0; B]; Q]; R];
            for block in 0..B {
                let size = self.sizes[block];
                let mut rows = [Cut::EMPTY; R];
                for (r, row) in rows.iter_mut().enumerate() {
                    let row_start = (first + r).min(self.count - 1) * stride;
                    *row = Cut::new(&self.rows[row_start + start..][..size]);
                }
                let products = dot(block, &rows, &queries[block]);
                for r in 0..R {
                    for q in 0..Q {
                        dots[r][q][block] = products[r][q];
                    }
                }
                start += size;
            }
            for (row, dots) in (first..self.count).zip(dots) {
                emit(row, dots);
            }
        }
    }
}

/// Values cut into vectors of `W`, and fewer than `W` that are left.
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64", cortex_m_dsp)),
    allow(dead_code, reason = "the plain kernel takes one value at a time")
)]
#[derive(Clone, Copy)]
pub(super) struct Cut<'a, const W: usize> {
    pub(super) vectors: &'a [[i8; W]],
    pub(super) rest: &'a [i8],
}

impl<'a, const W: usize> Cut<'a, W> {
    const EMPTY: Self = Self {
        vectors: &[],
        rest: &[],
    };

    #[inline(always)]
    fn new(values: &'a [i8]) -> Self {
        let (vectors, rest) = values.as_chunks();
        Self { vectors, rest }
    }
}

/// The vectors of each query: as many as a row has, known to the compiler.
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64", cortex_m_dsp)),
    allow(dead_code, reason = "the plain kernel takes one value at a time")
)]
#[inline(always)]
pub(super) fn vectors<'a, const W: usize, const Q: usize>(
    row: &Cut<'_, W>,
    queries: &[Cut<'a, W>; Q],
) -> [&'a [[i8; W]]; Q] {
    let mut vectors: [&[[i8; W]]; Q] = [&[]; Q];
    for q in 0..Q {
        vectors[q] = &queries[q].vectors[..row.vectors.len()];
    }
    vectors
}

/// Cuts the first `size` values off each vector.
fn split_off<'a, const N: usize>(vectors: &mut [&'a [i8]; N], size: usize) -> [&'a [i8]; N] {
    vectors.each_mut().map(|vector| {
        let (front, rest) = vector.split_at(size);
        *vector = rest;
        front
    })
}
