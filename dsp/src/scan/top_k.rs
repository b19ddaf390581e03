//! The best few keys seen so far.

/// A key that is among the best, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit<const B: usize> {
    /// The number of the key.
    pub row: usize,
    /// The score: the sum of its parts, and what the query added.
    pub score: f32,
    /// What each block contributes.
    pub parts: [f32; B],
}

impl<const B: usize> Hit<B> {
    /// No key: what a slot holds until there is one. Any key ranks before it.
    pub const NONE: Self = Self {
        row: usize::MAX,
        score: f32::NEG_INFINITY,
        parts: [0.0; B],
    };

    /// Whether it is better: by score, and of equal ones by the lower number. What
    /// scores no number is never better.
    fn ranks_before(&self, other: &Self) -> bool {
        self.score > other.score || (self.score == other.score && self.row < other.row)
    }
}

/// Keeps the best keys in as many slots as the caller gives it.
#[derive(Debug)]
pub struct TopK<'a, const B: usize> {
    /// The best first.
    slots: &'a mut [Hit<B>],
    len: usize,
}

impl<'a, const B: usize> TopK<'a, B> {
    /// Nothing seen yet, and a place for as many of the best as there are slots.
    /// What they hold does not matter.
    pub fn new(slots: &'a mut [Hit<B>]) -> Self {
        slots.fill(Hit::NONE);
        Self { slots, len: 0 }
    }

    /// The best keys by score descending, then by number ascending: fewer than
    /// there are slots if fewer were seen. A key whose score is not a number is
    /// never among them.
    pub fn hits(&self) -> &[Hit<B>] {
        &self.slots[..self.len]
    }

    /// Keeps a key if it is among the best.
    #[inline(always)]
    pub(super) fn offer(&mut self, row: usize, parts: [f32; B], added: f32) {
        let score = parts.iter().fold(0.0, |sum, part| sum + part) + added;
        let hit = Hit { row, score, parts };
        if self
            .slots
            .last()
            .is_some_and(|worst| hit.ranks_before(worst))
        {
            self.insert(hit);
        }
    }

    /// Rare, the more so the more keys were seen.
    #[cold]
    fn insert(&mut self, hit: Hit<B>) {
        let place = self.slots.partition_point(|kept| kept.ranks_before(&hit));
        self.slots[place..].rotate_right(1);
        self.slots[place] = Hit {
            // Without the sign of a zero.
            parts: hit.parts.map(|part| part + 0.0),
            ..hit
        };
        self.len = (self.len + 1).min(self.slots.len());
    }
}
