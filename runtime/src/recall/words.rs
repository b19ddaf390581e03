//! How well the words of each record fit a question: Okapi BM25 (Robertson and
//! Zaragoza 2009; k1 = 1.2, b = 0.75) over stems.
//!
//! A record counts twice, alone and with the turn before it, for an answer often
//! leaves out what the question before it has said. The index lives in memory and
//! follows the keys of the store: what was forgotten is gone from it before the
//! next question is scored. It takes about 100 bytes a record, so the limit of the
//! store bounds it; stems stay until the program ends.

use std::collections::{HashMap, HashSet};

use earwitness_api::types::{Record, RecordFilter, RecordId, SessionId};
use earwitness_models::threew::words;
use earwitness_store::{KeyTable, StorageError, Store};
use rust_stemmers::{Algorithm, Stemmer};

use super::document::{date, said};

const K1: f32 = 1.2;
const B: f32 = 0.75;

/// Cuts texts into stems.
pub(super) struct Terms {
    stop: HashSet<String>,
    stemmer: Stemmer,
}

impl Terms {
    /// Passes over the given words.
    pub(super) fn new(stop: &[String]) -> Self {
        Self {
            stop: stop.iter().cloned().collect(),
            stemmer: Stemmer::create(Algorithm::English),
        }
    }

    /// The stems of a text, in order.
    pub(super) fn of(&self, text: &str) -> Vec<String> {
        words(text)
            .filter(|word| !self.stop.contains(word))
            .map(|word| self.stemmer.stem(&word).into_owned())
            .collect()
    }
}

/// The records of a store as bags of stems.
#[derive(Default)]
pub(super) struct Words {
    numbers: HashMap<String, u32>,
    /// In the order of their ids.
    rows: Vec<Row>,
    /// How many records have each stem: alone, and with the turn before.
    holders: Vec<[u32; 2]>,
    /// Mean length of a record, likewise.
    mean: [f32; 2],
}

struct Row {
    id: RecordId,
    session: SessionId,
    /// Stems of date and text.
    stems: Box<[u32]>,
    /// Where those of the text begin.
    text: usize,
}

impl Words {
    /// Takes in what the store has written since, and lets go of what it has not
    /// any more.
    pub(super) fn follow(
        &mut self,
        store: &Store,
        keys: &KeyTable,
        terms: &Terms,
    ) -> Result<(), StorageError> {
        if keys.ids().eq(self.rows.iter().map(|row| row.id)) {
            return Ok(());
        }
        let kept: HashSet<RecordId> = keys.ids().collect();
        self.rows.retain(|row| kept.contains(&row.id));
        let after = self.rows.last().map(|row| row.id);
        let filter = RecordFilter {
            after,
            ..RecordFilter::default()
        };
        for record in store.records(filter)? {
            if kept.contains(&record.id) {
                let row = self.row(&record, terms);
                self.rows.push(row);
            }
        }
        self.count();
        Ok(())
    }

    /// For each record, in the order of the keys that were followed last, how well
    /// its words fit: from 0 to 1, the mean over both ways to count it, the best
    /// record of each way having 1.
    pub(super) fn scores(&self, asked: &[String]) -> Vec<f32> {
        let mut places = vec![0_usize; self.holders.len()];
        let mut weights: Vec<[f32; 2]> = Vec::new();
        for stem in asked.iter().filter_map(|stem| self.numbers.get(stem)) {
            let place = &mut places[*stem as usize];
            let rarity = self.rarity(*stem);
            match *place {
                0 => {
                    weights.push(rarity);
                    *place = weights.len();
                }
                again => (0..2).for_each(|way| weights[again - 1][way] += rarity[way]),
            }
        }
        if weights.is_empty() {
            return vec![0.0; self.rows.len()];
        }
        let mut scores = Vec::with_capacity(self.rows.len());
        let mut counts = vec![[0.0_f32; 2]; weights.len()];
        for row in 0..self.rows.len() {
            scores.push(self.score(row, &places, &weights, &mut counts));
        }
        best_is_one(scores)
    }

    fn score(
        &self,
        row: usize,
        places: &[usize],
        weights: &[[f32; 2]],
        counts: &mut [[f32; 2]],
    ) -> [f32; 2] {
        let (own, before) = (&self.rows[row].stems, self.before(row));
        let mut any = false;
        for (stems, ways) in [(&own[..], [1.0, 1.0]), (before, [0.0, 1.0])] {
            for place in stems.iter().map(|stem| places[*stem as usize]) {
                if place > 0 {
                    any = true;
                    (0..2).for_each(|way| counts[place - 1][way] += ways[way]);
                }
            }
        }
        let mut score = [0.0; 2];
        if any {
            let lengths = [own.len(), own.len() + before.len()];
            for way in 0..2 {
                let length = lengths[way] as f32 / self.mean[way].max(1e-9);
                let norm = K1 * (1.0 - B + B * length);
                let terms = counts.iter().zip(weights);
                score[way] = terms
                    .map(|(count, weight)| {
                        weight[way] * count[way] * (K1 + 1.0) / (count[way] + norm)
                    })
                    .sum();
            }
            counts.fill([0.0; 2]);
        }
        score
    }

    /// The text of the turn before a record, where that is of the same session.
    fn before(&self, row: usize) -> &[u32] {
        match row.checked_sub(1).map(|before| &self.rows[before]) {
            Some(before) if before.session == self.rows[row].session => {
                &before.stems[before.text..]
            }
            _ => &[],
        }
    }

    /// Inverse document frequency.
    fn rarity(&self, stem: u32) -> [f32; 2] {
        let all = self.rows.len() as f32;
        self.holders[stem as usize].map(|holders| {
            let holders = holders as f32;
            (1.0 + (all - holders + 0.5) / (holders + 0.5)).ln()
        })
    }

    fn row(&mut self, record: &Record, terms: &Terms) -> Row {
        let mut stems = self.number(terms.of(&date(record.unix_ms)));
        let text = stems.len();
        stems.extend(self.number(terms.of(&said(&record.text, &record.attachments))));
        Row {
            id: record.id,
            session: record.session,
            stems: stems.into(),
            text,
        }
    }

    fn number(&mut self, stems: Vec<String>) -> Vec<u32> {
        let numbers = &mut self.numbers;
        let number = |stem| {
            let next = numbers.len() as u32;
            *numbers.entry(stem).or_insert(next)
        };
        stems.into_iter().map(number).collect()
    }

    /// Counts anew what depends on all records.
    fn count(&mut self) {
        let mut holders = vec![[0; 2]; self.numbers.len()];
        // Which row was the last to be counted for a stem, from 1.
        let mut last = vec![[0; 2]; self.numbers.len()];
        let mut lengths = [0; 2];
        for row in 0..self.rows.len() {
            let (own, before) = (&self.rows[row].stems, self.before(row));
            lengths[0] += own.len();
            lengths[1] += own.len() + before.len();
            for (stems, ways) in [(&own[..], 0..2), (before, 1..2)] {
                for stem in stems {
                    for way in ways.clone() {
                        if last[*stem as usize][way] != row + 1 {
                            last[*stem as usize][way] = row + 1;
                            holders[*stem as usize][way] += 1;
                        }
                    }
                }
            }
        }
        self.mean = lengths.map(|length| length as f32 / self.rows.len().max(1) as f32);
        self.holders = holders;
    }
}

fn best_is_one(scores: Vec<[f32; 2]>) -> Vec<f32> {
    let best = |way: usize| scores.iter().map(|score| score[way]).fold(1e-9, f32::max);
    let best = [best(0), best(1)];
    scores
        .iter()
        .map(|score| (score[0] / best[0] + score[1] / best[1]) / 2.0)
        .collect()
}
