//! Streaming models in the layout of sherpa-onnx: an encoder over chunks, and
//! either a transducer's decoder and joiner or, with CTC, nothing more.
//!
//! A transducer's decoder sees the last few tokens only (Ghodsi et al.,
//! "RNN-transducer with stateless prediction network", 2020). Packs are made by
//! `models/recipes/sherpa`. Tokens come in the order of the sound, a frame or two
//! after they are spoken.

use std::collections::HashMap;

use serde::Deserialize;
use tract_onnx::prelude::*;

use super::chunked::ChunkedEncoder;
use super::search::{Emitted, Scorer, Search};
use super::vocabulary::Vocabulary;
use super::{AsrError, Lexicon, Recognizer, Token, Transcript, guard, words};
use crate::graph::{Graph, GraphError, LoadError, floats};
use crate::pack::Pack;

/// What the manifest says about one model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// `transducer` or `ctc`.
    #[serde(rename = "architecture")]
    _architecture: String,
    /// Token that adds nothing.
    blank: u32,
    /// Hypotheses that are followed; 1 is greedy decoding.
    beam: usize,
    /// Frames of features from one chunk to the next.
    chunk_shift: usize,
    /// Silence that an utterance needs after it for its end to be heard.
    tail_seconds: f32,
    /// Longer audio is refused.
    max_seconds: f32,
}

/// What scores the frames of an encoder.
pub(super) trait Model: Scorer + Sized {
    /// Loads it, for frames of `size` numbers and so many tokens.
    fn load(pack: &Pack, size: usize, tokens: usize) -> Result<Self, LoadError>;

    /// Begins another utterance.
    fn reset(&mut self);
}

/// The recognizer.
pub(super) struct Streaming<M> {
    encoder: ChunkedEncoder,
    model: M,
    vocabulary: Vocabulary,
    settings: Settings,
    lexicon: Lexicon,
}

impl<M: Model> Streaming<M> {
    /// Loads the pack's tokens and graphs.
    pub(super) fn load(pack: &Pack) -> Result<Self, LoadError> {
        let settings: Settings = pack
            .manifest
            .settings()
            .map_err(|error| pack.malformed(error))?;
        let vocabulary = Vocabulary::parse_numbered(&pack.read_text("tokens.txt")?)
            .map_err(|error| pack.malformed(error))?;
        if settings.blank as usize >= vocabulary.len() || settings.beam == 0 {
            let reason = "`blank` must be one of the tokens, and `beam` at least 1";
            return Err(pack.malformed(reason).into());
        }
        let encoder = ChunkedEncoder::load(pack, settings.chunk_shift)?;
        Ok(Self {
            model: M::load(pack, encoder.size(), vocabulary.len())?,
            encoder,
            vocabulary,
            settings,
            lexicon: Lexicon::default(),
        })
    }

    fn samples(&self, seconds: f32) -> usize {
        (seconds * self.encoder.sample_rate_hz()) as usize
    }
}

impl<M: Model> Recognizer for Streaming<M> {
    fn transcribe_after(&mut self, known: &[u32], samples: &[f32]) -> Result<Transcript, AsrError> {
        let Settings {
            tail_seconds,
            max_seconds,
            beam,
            blank,
            ..
        } = self.settings;
        AsrError::check(samples, self.encoder.sample_rate_hz(), max_seconds)?;
        if known.is_empty() && !guard::is_audible(samples) {
            return Ok(Transcript::default());
        }
        let encoded = self.encoder.run(samples, self.samples(tail_seconds))?;
        let search = Search {
            width: beam,
            blank,
            vocabulary: &self.vocabulary,
            lexicon: &self.lexicon,
        };
        self.model.reset();
        let found = search.run(&encoded.values, self.encoder.size(), &mut self.model)?;
        let found = beginning_with(known, &found, &self.vocabulary);
        let spoken = found.iter().map(|token| {
            let sample = |frame: usize| (frame * encoded.hop).min(samples.len());
            sample(token.frame)..sample(token.frame + 1)
        });
        let token = |&Emitted {
                         id, probability, ..
                     }: &_| Token { id, probability };
        let tokens: Vec<Token> = found.iter().map(token).collect();
        let words = words::join(&self.vocabulary, &tokens, spoken);
        Ok(Transcript {
            text: words::text(&words),
            words,
            tokens,
        })
    }

    fn prefer(&mut self, lexicon: Lexicon) {
        self.lexicon = lexicon;
    }

    fn max_samples(&self) -> usize {
        self.samples(self.settings.max_seconds)
    }
}

/// What was found, with the known tokens in place of those that are likest them.
fn beginning_with(known: &[u32], found: &[Emitted], vocabulary: &Vocabulary) -> Vec<Emitted> {
    let (replaced, rest) = found.split_at(likest_beginning(known, found));
    let mut tokens: Vec<Emitted> = known
        .iter()
        .enumerate()
        .map(|(at, &id)| {
            let there = replaced.get(at).or(replaced.last());
            Emitted {
                id,
                frame: there.map_or(0, |token| token.frame),
                probability: there
                    .filter(|token| token.id == id)
                    .map_or(0.0, |token| token.probability),
            }
        })
        .collect();
    // Known tokens are whole words: nothing may be added to the last.
    let goes_on = |token: &&Emitted| !known.is_empty() && !vocabulary.begins_word(token.id);
    tokens.extend(rest.iter().skip_while(goes_on));
    tokens
}

/// How many of the first tokens found are likest the known ones, by edit distance;
/// of equals the most.
fn likest_beginning(known: &[u32], found: &[Emitted]) -> usize {
    let mut distances: Vec<usize> = (0..=found.len()).collect();
    for (i, known) in known.iter().enumerate() {
        let mut diagonal = i;
        distances[0] = i + 1;
        for (j, found) in found.iter().enumerate() {
            let changed = diagonal + usize::from(*known != found.id);
            diagonal = distances[j + 1];
            distances[j + 1] = changed.min(diagonal + 1).min(distances[j] + 1);
        }
    }
    let lengths = (0..=found.len()).rev();
    lengths.min_by_key(|&length| distances[length]).unwrap_or(0)
}

/// Connectionist temporal classification: the encoder's frames are the scores.
pub(super) struct Ctc;

impl Model for Ctc {
    fn load(pack: &Pack, size: usize, tokens: usize) -> Result<Self, LoadError> {
        if size == tokens {
            Ok(Self)
        } else {
            let reason = format!("encoder.onnx scores {size} tokens, tokens.txt has {tokens}");
            Err(pack.malformed(reason).into())
        }
    }

    fn reset(&mut self) {}
}

impl Scorer for Ctc {
    const REPEATS_ARE_ONE: bool = true;

    fn scores(&mut self, frame: &[f32], _: &[Emitted]) -> Result<Vec<f32>, GraphError> {
        Ok(log_softmax(frame))
    }
}

/// The decoder and the joiner of a transducer.
pub(super) struct Transducer {
    decoder: Graph,
    joiner: Graph,
    /// Tokens that the decoder sees.
    context: usize,
    /// What the decoder made of the tokens that it has seen in this utterance.
    decoded: HashMap<Vec<i64>, TValue>,
}

impl Model for Transducer {
    fn load(pack: &Pack, size: usize, tokens: usize) -> Result<Self, LoadError> {
        let decoder = Graph::load(pack, "decoder.onnx")?;
        let [inputs, outputs] = decoder.shapes();
        let (&[1, context], &[1, width]) = (&inputs.concat()[..], &outputs.concat()[..]) else {
            let reason =
                format!("decoder.onnx maps {inputs:?} to {outputs:?}, not tokens to a vector");
            return Err(pack.malformed(reason).into());
        };
        let inputs: [&[usize]; 2] = [&[1, size], &[1, width]];
        Ok(Self {
            joiner: Graph::load_shaped(pack, "joiner.onnx", &inputs, &[&[1, tokens]])?,
            decoder,
            context,
            decoded: HashMap::new(),
        })
    }

    fn reset(&mut self) {
        self.decoded.clear();
    }
}

impl Scorer for Transducer {
    const REPEATS_ARE_ONE: bool = false;

    fn scores(&mut self, frame: &[f32], after: &[Emitted]) -> Result<Vec<f32>, GraphError> {
        let frame = Tensor::from_shape(&[1, frame.len()], frame)?;
        let inputs = tvec!(frame.into_tvalue(), self.decode(after)?);
        let logits = self.joiner.run(inputs)?;
        Ok(log_softmax(floats(&logits[0])?))
    }
}

impl Transducer {
    /// What the decoder makes of the last tokens. Before the first stands a blank,
    /// which is 0, and before that nothing, which is -1.
    fn decode(&mut self, after: &[Emitted]) -> Result<TValue, GraphError> {
        let mut seen = vec![-1; self.context];
        seen.push(0);
        seen.extend(after.iter().map(|token| i64::from(token.id)));
        let seen = seen.split_off(seen.len() - self.context);
        if let Some(decoded) = self.decoded.get(&seen) {
            return Ok(decoded.clone());
        }
        let tokens = Tensor::from_shape(&[1, self.context], &seen)?;
        let decoded = self.decoder.run(tvec!(tokens.into_tvalue()))?.remove(0);
        self.decoded.insert(seen, decoded.clone());
        Ok(decoded)
    }
}

/// Natural logarithms of the softmax.
fn log_softmax(logits: &[f32]) -> Vec<f32> {
    let greatest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = logits.iter().map(|logit| (logit - greatest).exp()).sum();
    let total = greatest + sum.ln();
    logits.iter().map(|logit| logit - total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emitted(ids: &[u32]) -> Vec<Emitted> {
        let token = |(frame, &id)| Emitted {
            id,
            probability: 0.5,
            frame,
        };
        ids.iter().enumerate().map(token).collect()
    }

    /// Token 3 goes on with a word, all others begin one.
    fn begun(known: &[u32], found: &[u32]) -> Vec<u32> {
        let vocabulary = Vocabulary::parse(" a\n b\n c\nd\n e\n").unwrap();
        let all = beginning_with(known, &emitted(found), &vocabulary);
        all.iter().map(|token| token.id).collect()
    }

    #[test]
    fn known_tokens_take_the_place_of_what_is_likest_them() {
        assert_eq!(begun(&[], &[3, 0, 1]), [3, 0, 1]);
        assert_eq!(begun(&[0, 1], &[0, 1, 2]), [0, 1, 2]);
        assert_eq!(begun(&[0, 1], &[0, 4, 2]), [0, 1, 2]);
        assert_eq!(begun(&[0, 1, 2], &[1, 2, 4]), [0, 1, 2, 4]);
        assert_eq!(begun(&[0, 1], &[0, 1, 3, 2]), [0, 1, 2]);
        assert_eq!(begun(&[0, 1], &[]), [0, 1]);
    }

    #[test]
    fn tokens_that_are_known_and_heard_keep_their_place() {
        let vocabulary = Vocabulary::parse(" a\n b\n").unwrap();
        let found = emitted(&[0, 1, 0]);
        assert_eq!(beginning_with(&[0, 1], &found, &vocabulary), found);
    }

    #[test]
    fn scores_are_the_logarithms_of_probabilities() {
        let scores = log_softmax(&[1000.0, 1000.0 + 3_f32.ln(), -1e9]);
        assert!((scores[0].exp() - 0.25).abs() < 1e-4);
        assert!((scores[1].exp() - 0.75).abs() < 1e-4);
        assert_eq!(scores[2].exp(), 0.0);
    }
}
