//! The field's measures, each defined once.
//!
//! Rates are fractions. A rate over nothing is 0, so that a report never holds
//! a NaN; the count beside it tells the two zeros apart.

mod attribution;
mod normalize;
mod percentile;
mod rand_index;
mod retrieval;
mod verification;
mod word_errors;

#[cfg(test)]
mod tests;

pub use attribution::{Attribution, best_mapping};
pub use normalize::normalize;
pub use percentile::percentile;
pub use rand_index::adjusted_rand_index;
pub use retrieval::{RetrievalMeans, RetrievalScore};
pub use verification::VerificationErrors;
pub use word_errors::{WordErrors, concatenated_errors, word_errors};

/// `part / whole`, and 0 where there is nothing.
pub(crate) fn rate(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}
