//! Recall@k and all-support EM@k (PERSIST, appendix E.2).

use std::collections::HashSet;

use serde::Serialize;

/// Sums over questions; serialises as the means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(into = "RetrievalMeans")]
pub struct RetrievalScore {
    questions: usize,
    recall: [f64; RECALL_AT.len()],
    exact: [usize; EXACT_AT.len()],
}

const RECALL_AT: [usize; 4] = [1, 3, 5, 15];
const EXACT_AT: [usize; 3] = [3, 5, 15];

impl RetrievalScore {
    /// How many of the best ranks are looked at.
    pub const DEPTH: usize = 15;

    /// Adds one question: `ranked` holds records, best first, each at most once;
    /// `support` the records that the answer rests on, at least one.
    pub fn add(&mut self, ranked: &[usize], support: &HashSet<usize>) {
        let found = |k: usize| {
            ranked
                .iter()
                .take(k)
                .filter(|record| support.contains(record))
                .count()
        };
        self.questions += 1;
        for (sum, k) in self.recall.iter_mut().zip(RECALL_AT) {
            *sum += found(k) as f64 / support.len() as f64;
        }
        for (sum, k) in self.exact.iter_mut().zip(EXACT_AT) {
            *sum += usize::from(found(k) == support.len());
        }
    }

    /// The means over all questions.
    pub fn means(&self) -> RetrievalMeans {
        let n = self.questions;
        let mean = |sum: f64| if n == 0 { 0.0 } else { sum / n as f64 };
        let [r1, r3, r5, r15] = self.recall.map(mean);
        let [em3, em5, em15] = self.exact.map(|sum| mean(sum as f64));
        RetrievalMeans {
            n,
            r1,
            r3,
            r5,
            r15,
            em3,
            em5,
            em15,
        }
    }
}

/// Means over `n` questions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RetrievalMeans {
    /// Questions.
    pub n: usize,
    /// Recall@1: the mean share of a question's support that ranks first.
    pub r1: f64,
    /// Recall@3.
    pub r3: f64,
    /// Recall@5.
    pub r5: f64,
    /// Recall@15.
    pub r15: f64,
    /// EM@3: the share of questions with all support among the best 3.
    pub em3: f64,
    /// EM@5.
    pub em5: f64,
    /// EM@15.
    pub em15: f64,
}

impl From<RetrievalScore> for RetrievalMeans {
    fn from(score: RetrievalScore) -> Self {
        score.means()
    }
}
