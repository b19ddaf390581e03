//! Speech recognition: samples become text.
//!
//! [`Recognizer`] is what the runtime knows; [`load`] picks the model that the
//! pack holds: Moonshine, or a streaming transducer or CTC model as sherpa-onnx
//! takes them. Recognizers take one utterance at a time, start no threads and
//! keep nothing of an utterance for the next.

mod align;
mod chunked;
mod decoder;
mod encoder;
mod guard;
mod lexicon;
mod moonshine;
mod search;
mod streaming;
mod vocabulary;
mod words;

use std::ops::Range;

pub use lexicon::Lexicon;
pub use moonshine::Moonshine;

use crate::graph::{GraphError, LoadError};
use crate::pack::Pack;
use streaming::{Ctc, Streaming, Transducer};

/// Turns speech into text.
pub trait Recognizer {
    /// The words in one utterance: mono samples at 16 kHz, from -1 to 1.
    ///
    /// Audio without speech gives an empty transcript. Samples that are not
    /// finite and audio of more than [`Recognizer::max_samples`] are errors.
    fn transcribe(&mut self, samples: &[f32]) -> Result<Transcript, AsrError> {
        self.transcribe_after(&[], samples)
    }

    /// The same for an utterance that is known to begin with some tokens, which
    /// are whole words: the transcript begins with them, whatever the sound holds.
    fn transcribe_after(&mut self, known: &[u32], samples: &[f32]) -> Result<Transcript, AsrError>;

    /// Prefers the words of a lexicon from now on.
    fn prefer(&mut self, lexicon: Lexicon);

    /// Longest utterance that it takes, in samples.
    fn max_samples(&self) -> usize;
}

/// What was said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// The words, with the model's own case and punctuation.
    pub text: String,
    /// The same word by word: `text` is these with a space between them.
    pub words: Vec<Word>,
    /// The tokens that the words are made of.
    pub tokens: Vec<Token>,
}

/// One word of a transcript, with the punctuation that follows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// Its letters.
    pub text: String,
    /// Where it was spoken, in samples from the start of the utterance.
    pub samples: Range<usize>,
    /// How probable the model held it, from 0 to 1: the mean of its tokens'.
    pub probability: f32,
    /// Which of the transcript's tokens it is made of.
    pub tokens: Range<usize>,
}

/// One token of a transcript.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Token {
    /// Its id in the pack's vocabulary.
    pub id: u32,
    /// How probable the model held it, from 0 to 1, given all before it.
    pub probability: f32,
}

/// Why an utterance is not transcribed.
#[derive(Debug, thiserror::Error)]
pub enum AsrError {
    /// A sample is NaN or infinite.
    #[error("sample {at} is not a finite number; check the audio source")]
    NotFinite {
        /// Index of the first such sample.
        at: usize,
    },
    /// The utterance is longer than the model can take.
    #[error(
        "the utterance has {seconds:.1} s, the recognizer takes {limit_seconds:.1} s at most; cut it at a pause"
    )]
    TooLong {
        /// How long it is.
        seconds: f32,
        /// How long it may be.
        limit_seconds: f32,
    },
    /// The model failed.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

impl AsrError {
    /// An error unless the samples are finite and not too many.
    fn check(samples: &[f32], sample_rate_hz: f32, limit_seconds: f32) -> Result<(), Self> {
        if let Some(at) = samples.iter().position(|sample| !sample.is_finite()) {
            return Err(Self::NotFinite { at });
        }
        let seconds = samples.len() as f32 / sample_rate_hz;
        if seconds > limit_seconds {
            return Err(Self::TooLong {
                seconds,
                limit_seconds,
            });
        }
        Ok(())
    }
}

/// Loads the recognizer that the pack holds: which one, its setting `architecture`
/// says.
pub fn load(pack: &Pack) -> Result<Box<dyn Recognizer + Send>, LoadError> {
    let architecture = pack.manifest.settings.get("architecture");
    match architecture.map(|name| name.as_str().unwrap_or_default()) {
        None => Ok(Box::new(Moonshine::load(pack)?)),
        Some("transducer") => Ok(Box::new(Streaming::<Transducer>::load(pack)?)),
        Some("ctc") => Ok(Box::new(Streaming::<Ctc>::load(pack)?)),
        Some(_) => {
            let known = "`architecture` must be `transducer` or `ctc`, or absent for Moonshine";
            Err(pack.malformed(known).into())
        }
    }
}
