//! When to stop a decoder, and when not to believe it.
//!
//! A sequence model that hears no speech, or loses its place, repeats itself or
//! makes up a plausible phrase. Five limits hold it: there must be something to
//! hear, the length of the audio sets a budget of tokens, loops are cut, and a
//! transcript is dropped that the model itself held improbable, or whose tokens
//! it heard nowhere in particular. The last tells even a phrase that the model is
//! sure of, such as the `You` that it hears in a steady tone.

use serde::Deserialize;

use super::Token;

/// Shorter audio holds no word.
const MIN_SAMPLES: usize = 1600;
/// Root mean square below which there is nothing to hear: -66 dBFS, about what
/// remains of the noise of a 16-bit microphone at rest.
const MIN_RMS: f32 = 5e-4;
/// Tokens beyond the rate that an utterance may have.
const EXTRA_TOKENS: usize = 4;
/// A loop is at least so many copies of one sequence of tokens ...
const LOOP_COPIES: usize = 4;
/// ... and at least so many tokens in all; `no, no, no, no` is none.
const LOOP_TOKENS: usize = 12;
/// Longest sequence of tokens that is looked for.
const LOOP_PERIOD: usize = 24;

/// Whether there is enough sound for a word.
pub(super) fn is_audible(samples: &[f32]) -> bool {
    let energy: f32 = samples.iter().map(|sample| sample * sample).sum();
    samples.len() >= MIN_SAMPLES && energy >= MIN_RMS * MIN_RMS * samples.len() as f32
}

/// Most tokens that an utterance of `seconds` may have at `per_second`.
pub(super) fn token_budget(seconds: f32, per_second: f32, capacity: usize) -> usize {
    ((seconds * per_second).ceil() as usize + EXTRA_TOKENS).min(capacity)
}

/// If `tokens` end in a loop, the length up to and with its first copy.
pub(super) fn loop_start(tokens: &[Token]) -> Option<usize> {
    (1..=LOOP_PERIOD).find_map(|period| {
        let copies = LOOP_COPIES.max(LOOP_TOKENS.div_ceil(period));
        let start = tokens.len().checked_sub(copies * period)?;
        let ids = || tokens[start..].iter().map(|token| token.id);
        ids()
            .skip(period)
            .zip(ids())
            .all(|(a, b)| a == b)
            .then_some(start + period)
    })
}

/// When a transcript is believed.
///
/// What a model makes up for noise is mostly a word or two, so such transcripts
/// must be surer than long ones, in which spelled names and the like pull the
/// mean down.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Belief {
    /// Up to so many tokens a transcript is brief.
    brief_tokens: usize,
    /// Least mean probability of the tokens of a brief transcript.
    brief: f32,
    /// The same for any other.
    long: f32,
    /// Least part of the attention that falls in one place for each token.
    focus: f32,
}

impl Belief {
    /// Whether to believe a transcript that was heard with such a focus.
    pub(super) fn holds(&self, tokens: &[Token], focus: f32) -> bool {
        let is_brief = tokens.len() <= self.brief_tokens;
        let least = if is_brief { self.brief } else { self.long };
        let total: f32 = tokens.iter().map(|token| token.probability).sum();
        tokens.is_empty() || total >= least * tokens.len() as f32 && focus >= self.focus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(ids: impl IntoIterator<Item = u32>) -> Vec<Token> {
        let token = |id| Token {
            id,
            probability: 0.5,
        };
        ids.into_iter().map(token).collect()
    }

    #[test]
    fn silence_and_a_click_are_not_audible() {
        assert!(!is_audible(&[]));
        assert!(!is_audible(&[0.0; 16_000]));
        assert!(!is_audible(&[0.9; MIN_SAMPLES - 1]));
        assert!(is_audible(&[0.01; MIN_SAMPLES]));
    }

    #[test]
    fn the_budget_follows_the_audio_up_to_the_cache() {
        assert_eq!(token_budget(10.0, 6.5, 256), 69);
        assert_eq!(token_budget(0.0, 6.5, 256), 4);
        assert_eq!(token_budget(100.0, 6.5, 256), 256);
    }

    #[test]
    fn a_loop_ends_after_its_first_copy() {
        let looping = [9, 8].into_iter().chain([1, 2, 3].repeat(4));
        assert_eq!(loop_start(&tokens(looping)), Some(5));
        assert_eq!(
            loop_start(&tokens([9].into_iter().chain([7].repeat(12)))),
            Some(2)
        );
    }

    #[test]
    fn emphasis_and_counting_are_no_loops() {
        assert_eq!(loop_start(&tokens([7; 11])), None);
        assert_eq!(loop_start(&tokens([1, 2].repeat(5))), None);
        assert_eq!(loop_start(&tokens(0..200)), None);
    }

    #[test]
    fn a_brief_transcript_must_be_surer_than_a_long_one() {
        let belief = Belief {
            brief_tokens: 2,
            brief: 0.6,
            long: 0.4,
            focus: 0.3,
        };
        assert!(!belief.holds(&tokens([1, 2]), 0.9));
        assert!(belief.holds(&tokens([1, 2, 3]), 0.9));
        assert!(!belief.holds(&tokens([1, 2, 3]), 0.2));
        assert!(belief.holds(&[], 0.0));
    }
}
