//! Verification: are two recordings of one speaker? Error rates over all thresholds.

use super::rate;

/// Errors of a score that should be higher for trials of one speaker than for
/// trials of two. Rates are fractions; without trials of both kinds they are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VerificationErrors {
    /// Equal error rate: misses and false alarms where they are equally frequent,
    /// interpolated between the two thresholds around that point.
    pub eer: f64,
    /// Least detection cost over all thresholds at a prior of 0.01 for one speaker
    /// and equal costs of both errors, relative to always saying "two speakers"
    /// (NIST SRE 2008 and later).
    pub min_dcf: f64,
}

/// Prior probability of one speaker in the detection cost.
const TARGET_PRIOR: f64 = 0.01;

impl VerificationErrors {
    /// The errors over the scores of trials of one speaker and of two.
    pub fn new(same: &[f32], different: &[f32]) -> Self {
        if same.is_empty() || different.is_empty() {
            return Self::default();
        }
        let mut trials: Vec<(f32, bool)> = same
            .iter()
            .map(|&score| (score, true))
            .chain(different.iter().map(|&score| (score, false)))
            .collect();
        trials.sort_by(|a, b| a.0.total_cmp(&b.0));
        // The threshold moves up, past the trials of one score at a time.
        let (mut missed, mut alarms) = (0, different.len());
        let rates = |missed, alarms| Point {
            miss: rate(missed, same.len()),
            false_alarm: rate(alarms, different.len()),
        };
        let mut point = rates(missed, alarms);
        let mut min_cost = point.cost();
        let mut eer = None;
        for equal in trials.chunk_by(|a, b| a.0 == b.0) {
            let passed = equal.iter().filter(|(_, same)| *same).count();
            missed += passed;
            alarms -= equal.len() - passed;
            let next = rates(missed, alarms);
            if eer.is_none() && next.miss >= next.false_alarm {
                eer = Some(point.crossing(next));
            }
            min_cost = min_cost.min(next.cost());
            point = next;
        }
        Self {
            eer: eer.unwrap_or(0.0),
            min_dcf: min_cost / TARGET_PRIOR.min(1.0 - TARGET_PRIOR),
        }
    }
}

/// The two error rates at one threshold.
#[derive(Clone, Copy)]
struct Point {
    miss: f64,
    false_alarm: f64,
}

impl Point {
    fn cost(self) -> f64 {
        TARGET_PRIOR * self.miss + (1.0 - TARGET_PRIOR) * self.false_alarm
    }

    /// Where the line to the next point, which lies beyond, has equal rates.
    fn crossing(self, next: Self) -> f64 {
        let before = self.false_alarm - self.miss;
        let after = next.miss - next.false_alarm;
        let share = before / (before + after);
        self.miss + share * (next.miss - self.miss)
    }
}
