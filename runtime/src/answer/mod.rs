//! From evidence to words.
//!
//! An [`Answerer`] gets the question, who asked, and the supporting records; it
//! may be a language model or, as built in, the [`extractive`] one, which quotes
//! the record that fits best and says so when none does.

pub mod cues;
pub mod extractive;

use earwitness_api::types::{Evidence, SpeakerId};

/// What an answerer gets.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The question in words.
    pub text: &'a str,
    /// Who asks, where known.
    pub asker: Option<SpeakerId>,
    /// Candidate records, best first.
    pub evidence: &'a [Evidence],
}

/// What an answerer gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The answer in words.
    pub text: String,
    /// Indices into the evidence that the answer rests on; empty when there is
    /// no answer.
    pub support: Vec<usize>,
}

/// Words an answer.
pub trait Answerer: Send {
    /// Answers from the evidence and nothing else.
    fn answer(&mut self, question: Question<'_>) -> Reply;
}
