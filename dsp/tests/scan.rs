//! Key scanning: every kernel of this processor against scores and ranks worked
//! out one by one.
#![allow(clippy::unwrap_used)]

mod scan_case;

use std::ops::Range;

use earwitness_dsp::scan::{Hit, Kernel, Page, Query, Scanner, TopK};
use proptest::{prelude::*, sample::select};

const BLOCKS: usize = 3;

/// Keys and queries of one shape.
#[derive(Debug)]
struct Case {
    sizes: [usize; BLOCKS],
    scales: Vec<[f32; BLOCKS]>,
    /// With `offset` values before the first key, so that keys lie anywhere.
    values: Vec<i8>,
    offset: usize,
    factors: Vec<[f32; BLOCKS]>,
    queries: Vec<i8>,
    /// For each key by each query, or nothing at all.
    added: Vec<f32>,
    k: usize,
}

impl Case {
    fn stride(&self) -> usize {
        self.sizes.iter().sum()
    }

    fn key(&self, row: usize) -> &[i8] {
        &self.values[self.offset + row * self.stride()..][..self.stride()]
    }

    /// A query for keys `rows`.
    fn query(&self, query: usize, rows: Range<usize>) -> Query<'_, BLOCKS> {
        let keys = self.scales.len();
        let added = self.added.chunks(keys.max(1)).nth(query);
        Query {
            factors: self.factors[query],
            values: &self.queries[query * self.stride()..][..self.stride()],
            added: added.map_or(&[], |added| &added[rows]),
        }
    }

    /// The best keys as pages of `page` keys give them.
    fn scanned(&self, kernel: Kernel, page: usize) -> Vec<Vec<Hit<BLOCKS>>> {
        let scanner = Scanner::with_kernel(self.sizes, kernel);
        let mut slots = vec![vec![Hit::NONE; self.k]; self.factors.len()];
        let mut best: Vec<_> = slots.iter_mut().map(|slots| TopK::new(slots)).collect();
        for (number, scales) in self.scales.chunks(page).enumerate() {
            let first_row = number * page;
            let start = self.offset + first_row * self.stride();
            let values = &self.values[start..][..scales.len() * self.stride()];
            let rows = first_row..first_row + scales.len();
            let queries: Vec<_> = (0..self.factors.len())
                .map(|query| self.query(query, rows.clone()))
                .collect();
            let page = Page {
                first_row,
                scales,
                values,
            };
            scanner.scan(&page, &queries, &mut best);
        }
        best.iter().map(|best| best.hits().to_vec()).collect()
    }

    /// The same by sorting all.
    fn sorted(&self) -> Vec<Vec<Hit<BLOCKS>>> {
        let best = |query| {
            let mut hits: Vec<_> = (0..self.scales.len())
                .map(|row| self.hit(row, query))
                .collect();
            hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.row.cmp(&b.row)));
            hits.truncate(self.k);
            hits
        };
        (0..self.factors.len()).map(best).collect()
    }

    fn hit(&self, row: usize, query: usize) -> Hit<BLOCKS> {
        let query = self.query(query, row..row + 1);
        let mut start = 0;
        let mut parts = [0.0; BLOCKS];
        for (block, size) in self.sizes.into_iter().enumerate() {
            let products = self.key(row)[start..][..size]
                .iter()
                .zip(&query.values[start..]);
            let dot: i64 = products.map(|(&a, &b)| i64::from(a) * i64::from(b)).sum();
            parts[block] = query.factors[block] * self.scales[row][block] * dot as f32 + 0.0;
            start += size;
        }
        let added = query.added.first().copied().unwrap_or(0.0);
        let score = parts[0] + parts[1] + parts[2] + added;
        Hit { row, score, parts }
    }
}

/// Values of every kind, and more extreme ones than chance would give.
fn value() -> impl Strategy<Value = i8> + Clone {
    prop_oneof![any::<i8>(), select(&[i8::MIN, i8::MAX, 0, -1][..])]
}

/// Few different scales, so that scores tie.
fn factor() -> impl Strategy<Value = f32> + Clone {
    prop_oneof![select(&[0.0_f32, 0.5, 1.0][..]), 0.0_f32..10.0]
}

/// Sizes around those of registers, and any other.
fn size() -> impl Strategy<Value = usize> + Clone {
    prop_oneof![select(&[0_usize, 6, 16, 64, 128][..]), 0_usize..200]
}

fn cases() -> impl Strategy<Value = Case> {
    let shape = (
        [size(), size(), size()],
        0_usize..12,
        0_usize..8,
        0_usize..64,
    );
    shape.prop_flat_map(|(sizes, keys, queries, offset)| {
        let stride: usize = sizes.iter().sum();
        let vectors = |count: usize| prop::collection::vec(value(), count);
        let factors = |count: usize| prop::collection::vec([factor(), factor(), factor()], count);
        let added = prop_oneof![Just(0), Just(keys * queries)]
            .prop_flat_map(|count| prop::collection::vec(factor(), count));
        let numbers = (factors(keys), factors(queries), added, 0_usize..15);
        let values = (vectors(offset + keys * stride), vectors(queries * stride));
        (numbers, values).prop_map(
            move |((scales, factors, added, k), (values, queries))| Case {
                sizes,
                scales,
                values,
                offset,
                factors,
                queries,
                added,
                k,
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn every_kernel_finds_the_best_keys_with_the_same_scores(case in cases(), page in 1_usize..12) {
        for kernel in Kernel::available() {
            prop_assert_eq!(case.scanned(kernel, page), case.sorted(), "{}", kernel.name());
        }
    }
}

#[test]
fn every_kernel_gives_the_scores_of_all_targets() {
    for kernel in Kernel::available() {
        println!("{}", kernel.name());
        assert_eq!(
            scan_case::checksum(kernel),
            scan_case::CHECKSUM,
            "{}",
            kernel.name()
        );
    }
}

#[test]
fn the_longest_blocks_of_extremes_are_exact() {
    let values = vec![i8::MIN; 2 * 131_071];
    let query = Query {
        factors: [1.0],
        values: &values[..131_071],
        added: &[],
    };
    let page = Page {
        first_row: 7,
        scales: &[[1.0], [2.0]],
        values: &values,
    };
    for kernel in Kernel::available() {
        let mut slots = [Hit::NONE; 2];
        let mut best = [TopK::new(&mut slots)];
        Scanner::with_kernel([131_071], kernel).scan(&page, &[query], &mut best);
        let scores: Vec<_> = best[0]
            .hits()
            .iter()
            .map(|hit| (hit.row, hit.score))
            .collect();
        let score = (131_071 * 16_384) as f32;
        assert_eq!(scores, [(8, 2.0 * score), (7, score)], "{}", kernel.name());
    }
}

#[test]
fn a_score_that_is_no_number_never_ranks() {
    let page = Page {
        first_row: 0,
        scales: &[[f32::NAN], [1.0], [f32::NAN]],
        values: &[1, -1, 1],
    };
    let query = Query {
        factors: [1.0],
        values: &[1],
        added: &[],
    };
    let mut slots = [Hit::NONE; 2];
    let mut best = [TopK::new(&mut slots)];
    Scanner::new([1]).scan(&page, &[query], &mut best);
    assert_eq!(
        best[0].hits(),
        [Hit {
            row: 1,
            score: -1.0,
            parts: [-1.0]
        }]
    );
}

#[test]
fn slots_may_be_used_again() {
    let mut slots = [Hit {
        row: 3,
        score: 9.0,
        parts: [9.0],
    }];
    assert_eq!(TopK::new(&mut slots).hits(), []);
}

/// Scans a page that holds two values and one scale with a query of one value, and
/// so many numbers to add.
fn scan_mismatched(size: usize, added: usize) {
    let page = Page {
        first_row: 0,
        scales: &[[1.0]],
        values: &[1, 2],
    };
    let query = Query {
        factors: [1.0],
        values: &[1],
        added: &[0.0; 2][..added],
    };
    Scanner::new([size]).scan(&page, &[query], &mut [TopK::new(&mut [])]);
}

#[test]
#[should_panic(expected = "a query as long as a row")]
fn a_query_of_another_shape_is_a_bug() {
    scan_mismatched(2, 0);
}

#[test]
#[should_panic(expected = "values of all rows")]
fn a_page_with_fewer_scales_than_keys_is_a_bug() {
    scan_mismatched(1, 0);
}

#[test]
#[should_panic(expected = "something for each key")]
fn numbers_to_add_for_other_keys_are_a_bug() {
    scan_mismatched(1, 2);
}

#[test]
#[should_panic(expected = "at most 131071 values")]
fn a_block_whose_sum_could_overflow_is_refused() {
    Scanner::new([131_072]);
}
