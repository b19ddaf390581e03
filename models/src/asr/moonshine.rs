//! Moonshine: an encoder over raw samples and a decoder that is greedy.
//!
//! Jeffries et al., "Moonshine: Speech Recognition for Live Transcription and
//! Voice Commands", 2024. The graphs are built by `models/recipes/asr.py`; what
//! differs between models of the family comes from the manifest's settings.

use serde::Deserialize;

use super::decoder::{CacheShape, Decoder};
use super::encoder::Encoder;
use super::guard;
use super::vocabulary::Vocabulary;
use super::{AsrError, Recognizer, Token, Transcript};
use crate::graph::{GraphError, LoadError, floats};
use crate::manifest::FrontEnd;
use crate::pack::Pack;

/// What the manifest says about one model of the family.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Token that a transcript starts after.
    start_token: u32,
    /// Token that ends a transcript.
    end_token: u32,
    /// Heads of all the decoder's layers.
    heads: usize,
    /// Numbers in a head's key or value.
    head_width: usize,
    /// Longest transcript in tokens.
    max_tokens: usize,
    /// Shorter audio is padded with silence.
    min_seconds: f32,
    /// Longer audio is refused.
    max_seconds: f32,
    /// Fastest speech, in tokens.
    tokens_per_second: f32,
    /// When a transcript is dropped as made up.
    belief: guard::Belief,
}

/// The recognizer.
pub struct Moonshine {
    encoder: Encoder,
    decoder: Decoder,
    vocabulary: Vocabulary,
    settings: Settings,
    sample_rate_hz: f32,
}

impl Moonshine {
    /// Loads the pack's vocabulary and graphs.
    pub fn load(pack: &Pack) -> Result<Self, LoadError> {
        let FrontEnd::Waveform { sample_rate_hz } = pack.manifest.front_end else {
            return Err(pack.malformed("the front end is not a waveform").into());
        };
        let settings: Settings = pack
            .manifest
            .settings()
            .map_err(|error| pack.malformed(error))?;
        let shape = CacheShape {
            heads: settings.heads,
            width: settings.head_width,
            capacity: settings.max_tokens,
        };
        let vocabulary = Vocabulary::parse(&pack.read_text("vocabulary.txt")?)
            .map_err(|error| pack.malformed(error))?;
        Ok(Self {
            encoder: Encoder::load(pack, shape.heads, shape.width)?,
            decoder: Decoder::load(pack, shape, vocabulary.len())?,
            vocabulary,
            settings,
            sample_rate_hz: sample_rate_hz as f32,
        })
    }

    /// Greedy decoding of what may be speech or not.
    fn decode(&mut self, samples: &[f32]) -> Result<Vec<Token>, GraphError> {
        let Settings {
            start_token,
            end_token,
            min_seconds,
            tokens_per_second,
            ..
        } = self.settings;
        let heard = self
            .encoder
            .run(samples, (min_seconds * self.sample_rate_hz) as usize)?;
        let seconds = samples.len() as f32 / self.sample_rate_hz;
        let budget = guard::token_budget(seconds, tokens_per_second, self.decoder.capacity());
        let mut utterance = self.decoder.begin(&heard);
        let mut tokens: Vec<Token> = Vec::with_capacity(budget);
        while tokens.len() < budget {
            let last = tokens.last().map_or(start_token, |token| token.id);
            let token = most_probable(floats(&*utterance.step(last)?)?);
            if token.id == end_token {
                break;
            }
            tokens.push(token);
            if let Some(length) = guard::loop_start(&tokens) {
                tokens.truncate(length);
                break;
            }
        }
        Ok(tokens)
    }
}

impl Recognizer for Moonshine {
    fn transcribe(&mut self, samples: &[f32]) -> Result<Transcript, AsrError> {
        if let Some(at) = samples.iter().position(|sample| !sample.is_finite()) {
            return Err(AsrError::NotFinite { at });
        }
        if samples.len() > self.max_samples() {
            return Err(AsrError::TooLong {
                seconds: samples.len() as f32 / self.sample_rate_hz,
                limit_seconds: self.settings.max_seconds,
            });
        }
        if !guard::is_audible(samples) {
            return Ok(Transcript::default());
        }
        let tokens = self.decode(samples)?;
        if !self.settings.belief.holds(&tokens) {
            return Ok(Transcript::default());
        }
        let text = self.vocabulary.text(tokens.iter().map(|token| token.id));
        Ok(Transcript {
            text: unquoted(&text).to_owned(),
            tokens,
        })
    }

    fn max_samples(&self) -> usize {
        (self.settings.max_seconds * self.sample_rate_hz) as usize
    }
}

/// The token with the greatest logit, and its probability by softmax over all.
fn most_probable(logits: &[f32]) -> Token {
    let best = logits.iter().copied().enumerate();
    let best = best.max_by(|(_, a), (_, b)| a.total_cmp(b));
    let (id, greatest) = best.unwrap_or((0, f32::NEG_INFINITY));
    let total: f32 = logits.iter().map(|logit| (logit - greatest).exp()).sum();
    Token {
        id: id as u32,
        probability: 1.0 / total,
    }
}

/// The text without quotation marks around it. The model has read many books, and
/// puts some utterances in the marks of a dialogue that nobody speaks.
fn unquoted(text: &str) -> &str {
    const MARKS: [char; 4] = ['"', '\'', '\u{201c}', '\u{201d}'];
    let inner = text.trim_start_matches(MARKS);
    if inner.len() == text.len() {
        text
    } else {
        inner.trim_end_matches(MARKS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_logit_wins_with_its_share() {
        let token = most_probable(&[0.0, 2_f32.ln(), 0.0]);
        assert_eq!(token.id, 1);
        assert!((token.probability - 0.5).abs() < 1e-6);
    }

    #[test]
    fn an_utterance_loses_the_marks_of_a_dialogue() {
        assert_eq!(unquoted("\"'Where is it?'"), "Where is it?");
        assert_eq!(unquoted("\u{201c}Here.\u{201d}"), "Here.");
        assert_eq!(unquoted("It is the boys'"), "It is the boys'");
        assert_eq!(unquoted("\"'"), "");
    }
}
