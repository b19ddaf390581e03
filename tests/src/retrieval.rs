//! Evidence retrieval: does the memory find the turns that support an answer?
//!
//! The protocol is PERSIST's (section 3.2): [`pools`] puts the turns of one or
//! several episodes into one memory, a [`Retriever`] ranks that memory for each
//! question, and [`evaluate()`] scores the ranking against the annotated evidence.
//! Texts are the transcripts of the data set, so that this measures retrieval
//! alone. Questions without evidence are left out and counted.

mod bm25;
mod counterfactual;
mod dense;
mod evaluate;
mod fuse;
mod pool;
#[cfg(test)]
mod tests;

pub use bm25::Bm25;
pub use counterfactual::{Counterfactual, counterfactual};
pub use dense::{Dense, Embed, SharedEmbedder};
pub use evaluate::{Latency, RetrieverReport, evaluate};
pub use fuse::{MinMax, Rrf};
pub use pool::{Asked, Pool, PoolRecord, PoolSize, pools};

/// A record's place in its pool, and how well it fits; higher is better.
pub type Ranked = (usize, f32);

/// Something that finds records for a question.
pub trait Retriever {
    /// Takes in the records of a pool, in place of the last pool's.
    fn index(&mut self, records: &[PoolRecord<'_>]) -> anyhow::Result<()>;

    /// Ranks the indexed records for a question, best first, each at most once.
    /// Records that do not fit at all may be left out.
    fn rank(&mut self, question: &Asked<'_>) -> anyhow::Result<Vec<Ranked>>;
}

/// Best first; of equals the earlier record, so that a ranking never depends on
/// the order in which a hash map was read.
pub(crate) fn best_first(ranked: &mut [Ranked]) {
    ranked.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
}
