//! Moonshine: an encoder over raw samples and a decoder that is greedy.
//!
//! Jeffries et al., "Moonshine: Speech Recognition for Live Transcription and
//! Voice Commands", 2024. The graphs are built by `models/recipes/asr.py`; what
//! differs between models of the family comes from the manifest's settings.

use serde::Deserialize;

use super::decoder::{CacheShape, Decoder, Step};
use super::encoder::{Encoder, HOP};
use super::vocabulary::Vocabulary;
use super::{AsrError, Lexicon, Recognizer, Token, Transcript};
use super::{align, guard, words};
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
    /// Heads of the cross-attention that say where a token was heard.
    alignment_heads: usize,
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
    lexicon: Lexicon,
}

/// The tokens of an utterance, and the attention that each paid to the frames.
#[derive(Default)]
struct Decoded {
    tokens: Vec<Token>,
    attention: Vec<Vec<f32>>,
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
            alignment_heads: settings.alignment_heads,
        };
        let vocabulary = Vocabulary::parse(&pack.read_text("vocabulary.txt")?)
            .map_err(|error| pack.malformed(error))?;
        Ok(Self {
            encoder: Encoder::load(pack, shape.heads, shape.width)?,
            decoder: Decoder::load(pack, shape, vocabulary.len())?,
            vocabulary,
            settings,
            sample_rate_hz: sample_rate_hz as f32,
            lexicon: Lexicon::default(),
        })
    }

    /// Decodes greedily what comes after the `known` tokens.
    fn decode(&mut self, known: &[u32], samples: &[f32]) -> Result<Decoded, GraphError> {
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
        let capacity = self.decoder.capacity();
        let budget = guard::token_budget(seconds, tokens_per_second, capacity)
            .max(known.len().min(capacity));
        let mut utterance = self.decoder.begin(&heard);
        let mut decoded = Decoded::default();
        let mut word = String::new();
        while decoded.tokens.len() < budget {
            let last = decoded.tokens.last().map_or(start_token, |token| token.id);
            let Step { logits, attention } = utterance.step(last)?;
            let logits = floats(&logits)?;
            let position = decoded.tokens.len();
            // Known tokens are whole words: nothing may be added to the last.
            let only_whole = position > 0 && position == known.len();
            let allowed = |id: usize| {
                !only_whole || id == end_token as usize || self.vocabulary.begins_word(id as u32)
            };
            let text = |id| self.vocabulary.token(id);
            let id = known
                .get(position)
                .copied()
                .unwrap_or_else(|| self.lexicon.choose(logits, allowed, &word, text) as u32);
            if id == end_token {
                break;
            }
            self.vocabulary.extend_word(&mut word, id);
            decoded.tokens.push(Token {
                id,
                probability: probability(logits, id),
            });
            decoded.attention.push(attention);
            if let Some(length) = guard::loop_start(&decoded.tokens) {
                decoded.truncate(length.max(known.len()));
                break;
            }
        }
        Ok(decoded)
    }
}

impl Decoded {
    fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
        self.attention.truncate(length);
    }
}

impl Recognizer for Moonshine {
    fn transcribe_after(&mut self, known: &[u32], samples: &[f32]) -> Result<Transcript, AsrError> {
        AsrError::check(samples, self.sample_rate_hz, self.settings.max_seconds)?;
        if known.is_empty() && !guard::is_audible(samples) {
            return Ok(Transcript::default());
        }
        let mut decoded = self.decode(known, samples)?;
        let focus = align::focus(&decoded.attention);
        if !self.settings.belief.holds(&decoded.tokens, focus) {
            decoded.truncate(known.len());
        }
        let levels: Vec<f32> = samples.chunks(HOP).map(level).collect();
        let spoken = align::frames(&decoded.attention, &levels)
            .into_iter()
            .map(|frames| {
                let sample = |frame: usize| (frame * HOP).min(samples.len());
                sample(frames.start)..sample(frames.end)
            });
        let words = words::join(&self.vocabulary, &decoded.tokens, spoken);
        Ok(Transcript {
            text: words::text(&words),
            words,
            tokens: decoded.tokens,
        })
    }

    fn prefer(&mut self, lexicon: Lexicon) {
        self.lexicon = lexicon;
    }

    fn max_samples(&self) -> usize {
        (self.settings.max_seconds * self.sample_rate_hz) as usize
    }
}

/// Root mean square.
fn level(samples: &[f32]) -> f32 {
    let energy: f32 = samples.iter().map(|sample| sample * sample).sum();
    (energy / samples.len() as f32).sqrt()
}

/// The probability of a token by softmax over all.
fn probability(logits: &[f32], id: u32) -> f32 {
    let Some(own) = logits.get(id as usize) else {
        return 0.0;
    };
    1.0 / logits.iter().map(|logit| (logit - own).exp()).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_its_share_of_the_probability() {
        let logits = [0.0, 2_f32.ln(), 0.0];
        assert!((probability(&logits, 1) - 0.5).abs() < 1e-6);
        assert!((probability(&logits, 0) - 0.25).abs() < 1e-6);
        assert_eq!(probability(&logits, 3), 0.0);
    }
}
