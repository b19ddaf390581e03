//! All retrieval keys in memory, and the one pass that scores them.
//!
//! Rows are contiguous within pages of [`PAGE_ROWS`], and pages are shared:
//! appending to a table of which a reader holds a snapshot copies the list of
//! pages and the last page, never the whole table.

use crate::key::{Key, KeyError, KeyLayout};
use crate::turn::KeyBytes;
use earwitness_api::types::{PartialScores, RecordId};
use earwitness_dsp::scan::{self, Hit, Scanner, TopK};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Keys a page holds; with 582 values a key a page has about 75 KB.
pub(crate) const PAGE_ROWS: usize = 128;

/// The largest weight of a block. With it every score is a finite number.
pub const MAX_WEIGHT: f32 = 1e6;

/// How much each block counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Speaker block.
    pub who: f32,
    /// Semantic block.
    pub what: f32,
    /// Temporal block.
    pub when: f32,
}

/// Why a query was refused.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum QueryError {
    /// The query's key does not fit.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A weight is not a number from 0 to [`MAX_WEIGHT`].
    #[error("a weight is {0}: it has to be a number from 0 to {MAX_WEIGHT}")]
    Weight(f32),
}

/// What to look for: the key of the question, and how much each block counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    key: Key,
    /// The values of the key's blocks, one after another.
    values: Vec<i8>,
    /// Weight times scale of the semantic, speaker and temporal block.
    factors: [f32; 3],
}

impl Query {
    /// Checks and combines the two.
    pub fn new(key: Key, weights: Weights) -> Result<Self, QueryError> {
        key.check(None)?;
        let weights = [weights.what, weights.who, weights.when];
        if let Some(weight) = weights.iter().find(|w| !(0.0..=MAX_WEIGHT).contains(*w)) {
            return Err(QueryError::Weight(*weight));
        }
        let scales = key.scales();
        Ok(Self {
            factors: [0, 1, 2].map(|block| weights[block] * scales[block]),
            values: key.blocks().map(|block| block.values.as_slice()).concat(),
            key,
        })
    }
}

/// One record and how well its key fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// The record.
    pub id: RecordId,
    /// The weighted parts of its score.
    pub scores: PartialScores,
}

#[derive(Clone, Debug, Default)]
struct Page {
    ids: Vec<RecordId>,
    scales: Vec<[f32; 3]>,
    values: Vec<i8>,
}

/// The keys of all records, in the order of their ids; a snapshot that does not
/// change.
#[derive(Clone, Debug, Default)]
pub struct KeyTable {
    layout: Option<KeyLayout>,
    pages: Vec<Arc<Page>>,
    len: usize,
}

impl KeyTable {
    pub(crate) fn new(layout: Option<KeyLayout>) -> Self {
        Self {
            layout,
            ..Self::default()
        }
    }

    /// The layout of every key; `None` until the first record is appended.
    pub fn layout(&self) -> Option<KeyLayout> {
        self.layout
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The records that have a key, oldest first.
    pub fn ids(&self) -> impl Iterator<Item = RecordId> {
        self.pages.iter().flat_map(|page| page.ids.iter().copied())
    }

    /// Adds the key of a record newer than all others. The key was checked
    /// against the layout.
    pub(crate) fn push(&mut self, id: RecordId, key: &Key, layout: KeyLayout) {
        debug_assert!(self.layout.is_none_or(|own| own == layout));
        self.layout = Some(layout);
        let values = key.blocks().into_iter().flat_map(|block| &block.values);
        self.push_values(id, key.scales(), values.copied(), layout.values());
    }

    /// The same, for a key as it lies in its row.
    pub(crate) fn push_row(&mut self, id: RecordId, key: KeyBytes<'_>) {
        let values = key.values.iter().map(|value| i8::from_le_bytes([*value]));
        self.push_values(id, key.scales, values, key.values.len());
    }

    fn push_values(
        &mut self,
        id: RecordId,
        scales: [f32; 3],
        values: impl Iterator<Item = i8>,
        stride: usize,
    ) {
        let page = self.open_page(stride);
        page.ids.push(id);
        page.scales.push(scales);
        page.values.extend(values);
        self.len += 1;
    }

    /// Lets go of the keys of some records. Pages that hold none of them stay
    /// shared.
    pub(crate) fn remove(&mut self, gone: &BTreeSet<u64>) {
        let stride = self.layout.map_or(0, |layout| layout.values());
        for page in &mut self.pages {
            if let (Some(first), Some(last)) = (page.ids.first(), page.ids.last())
                && gone.range(first.0..=last.0).next().is_some()
            {
                *page = Arc::new(page.without(gone, stride));
            }
        }
        self.pages.retain(|page| !page.ids.is_empty());
        self.len = self.pages.iter().map(|page| page.ids.len()).sum();
    }

    fn open_page(&mut self, stride: usize) -> &mut Page {
        let is_full = |page: &Arc<Page>| page.ids.len() >= PAGE_ROWS;
        if self.pages.last().is_none_or(is_full) {
            self.pages.push(Arc::new(Page {
                ids: Vec::with_capacity(PAGE_ROWS),
                scales: Vec::with_capacity(PAGE_ROWS),
                values: Vec::with_capacity(PAGE_ROWS * stride),
            }));
        }
        let last = self.pages.len() - 1;
        Arc::make_mut(&mut self.pages[last])
    }

    fn rows(&self) -> impl Iterator<Item = (RecordId, [f32; 3], &[i8])> {
        let stride = self.layout.map_or(0, |layout| layout.values());
        let rows = |page: &'_ Page| page.ids.len();
        self.pages
            .iter()
            .flat_map(move |page| (0..rows(page)).map(move |row| page.row(row, stride)))
    }

    /// The `k` best keys, by total score descending, then by id ascending.
    ///
    /// A part is `weight * query scale * key scale * dot product`. Scales,
    /// weights and dot products are bounded, so no score is infinite or NaN.
    ///
    /// `words` says how well the words of each record fit, in the order of
    /// [`ids`](Self::ids), and counts towards what was said; empty for nothing.
    ///
    /// # Panics
    /// If `words` has another length.
    pub fn score_top_k(
        &self,
        query: &Query,
        words: &[f32],
        k: usize,
    ) -> Result<Vec<Scored>, QueryError> {
        let Some(layout) = self.layout else {
            return Ok(Vec::new());
        };
        query.key.check(Some(layout))?;
        let given = words.len();
        assert!(given == 0 || given == self.len, "words of each record");
        let scanner = Scanner::new(layout.sizes());
        let mut slots = vec![Hit::NONE; k.min(self.len)];
        let mut best = [TopK::new(&mut slots)];
        let mut words_left = words;
        for (number, page) in self.pages.iter().enumerate() {
            let of_page;
            (of_page, words_left) = words_left.split_at(page.ids.len().min(words_left.len()));
            let asked = [scan::Query {
                factors: query.factors,
                values: &query.values,
                added: of_page,
            }];
            scanner.scan(&page.to_scan(number), &asked, &mut best);
        }
        Ok(best[0].hits().iter().map(|hit| self.scored(hit)).collect())
    }

    fn scored(&self, hit: &Hit<3>) -> Scored {
        let [_, who, when] = hit.parts;
        // What was said counts by meaning and by words.
        let what = hit.score - who - when;
        Scored {
            id: self.pages[hit.row / PAGE_ROWS].ids[hit.row % PAGE_ROWS],
            scores: PartialScores { who, what, when },
        }
    }
}

/// Two tables are the same when their keys are, however these lie in pages.
impl PartialEq for KeyTable {
    fn eq(&self, other: &Self) -> bool {
        self.layout == other.layout && self.rows().eq(other.rows())
    }
}

impl Page {
    fn row(&self, row: usize, stride: usize) -> (RecordId, [f32; 3], &[i8]) {
        let values = &self.values[row * stride..(row + 1) * stride];
        (self.ids[row], self.scales[row], values)
    }

    fn without(&self, gone: &BTreeSet<u64>, stride: usize) -> Self {
        let mut kept = Self::default();
        for row in 0..self.ids.len() {
            let (id, scales, values) = self.row(row, stride);
            if !gone.contains(&id.0) {
                kept.ids.push(id);
                kept.scales.push(scales);
                kept.values.extend_from_slice(values);
            }
        }
        kept
    }

    /// The page as the kernels see it. Rows are numbered as if every page before
    /// were full.
    fn to_scan(&self, number: usize) -> scan::Page<'_, 3> {
        scan::Page {
            first_row: number * PAGE_ROWS,
            scales: &self.scales,
            values: &self.values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyTable, PAGE_ROWS};
    use crate::key::{Block, Key};
    use crate::limits::RECORD_OVERHEAD_BYTES;
    use earwitness_api::types::RecordId;

    /// A record takes its key and the stated overhead, and nothing else grows.
    #[test]
    fn a_record_takes_the_bytes_that_are_stated() {
        let key = Key {
            semantic: Block::unknown(384),
            speaker: Block::unknown(192),
            temporal: Block::unknown(6),
        };
        let layout = key.layout().unwrap();
        let each = layout.values() + RECORD_OVERHEAD_BYTES;
        for records in [PAGE_ROWS, 64 * PAGE_ROWS, 256 * PAGE_ROWS] {
            let mut table = KeyTable::new(Some(layout));
            let measured = allocation_counter::measure(|| {
                for id in 0..records as u64 {
                    table.push(RecordId(id), &key, layout);
                }
            });
            let stated = (records * each) as i64;
            assert!(measured.bytes_current <= stated, "{measured:?}");
            assert!(measured.bytes_current > stated - 2 * records as i64);
            assert_eq!(table.len(), records);
        }
    }
}
