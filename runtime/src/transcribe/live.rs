//! Words while they are spoken, from a segment that is still growing.
//!
//! At every look the recognizer hears the end of the segment anew. What two
//! looks in a row agree on is *stable*: it is shown as such, never changes, and
//! the final text begins with it (local agreement: Liu et al., "Low-Latency
//! Sequence-to-Sequence Speech Recognition and Translation by Partial Hypothesis
//! Selection", 2020). The last word that they agree on waits for the next look,
//! since it may not be over yet. The rest is *tentative*.
//!
//! A look costs as much as the sound it hears, so sound whose words are stable
//! is left behind: a look begins a few stable words before the first that is
//! not, and the recognizer is told these. Where nothing becomes stable, looks
//! become rarer as the sound grows, so that their cost stays in proportion.
//!
//! Looks happen at fixed lengths of the segment: what is shown depends on the
//! sound, not on how it arrived. A final text differs from one made without
//! looks only where the recognizer would now take back what it held stable.

use std::ops::Range;

use earwitness_models::asr::Transcript;

use crate::capture::SAMPLE_RATE_HZ;

/// When and at how much sound it looks, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct LiveOptions {
    /// Sound from one look to the next.
    pub every_ms: u32,
    /// Sound that must follow a word before it can be stable.
    pub settle_ms: u32,
    /// Longer sound than this is left behind as far as it is stable ...
    pub window_ms: u32,
    /// ... up to the stable words in this much of it.
    pub overlap_ms: u32,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self {
            every_ms: 384,
            settle_ms: 1_000,
            window_ms: 2_000,
            overlap_ms: 600,
        }
    }
}

/// A look's cost, with that of the sound between two looks, may grow to this part
/// of the sound it hears: beyond, looks become rarer.
const RARER: usize = 6;
/// Sound kept before the first word of a look: words begin softly.
const LEAD: usize = SAMPLE_RATE_HZ as usize / 10;

/// What is shown of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Words that will not change.
    pub stable: String,
    /// Words that may.
    pub tentative: String,
}

/// The words of one growing segment after another.
pub struct Live {
    every: usize,
    settle: usize,
    window: usize,
    overlap: usize,
    stable: Vec<Heard>,
    tentative: Vec<Heard>,
    shown: Shown,
    /// Where in the segment the next look begins to listen.
    from: usize,
    /// Length of the segment at which it happens.
    due: usize,
}

/// A word with its place in the segment.
#[derive(Clone, Debug, PartialEq)]
struct Heard {
    text: String,
    tokens: Vec<u32>,
    samples: Range<usize>,
}

impl Live {
    /// Before the first segment.
    pub fn new(options: LiveOptions) -> Self {
        let samples = |ms: u32| ms as usize * SAMPLE_RATE_HZ as usize / 1000;
        let every = samples(options.every_ms);
        Self {
            every,
            settle: samples(options.settle_ms),
            window: samples(options.window_ms),
            overlap: samples(options.overlap_ms),
            stable: Vec::new(),
            tentative: Vec::new(),
            shown: Shown::default(),
            from: 0,
            due: every,
        }
    }

    /// Looks at the segment so far if it is time to. `transcribe` gets the tokens
    /// known to come first, and the sound. Hands over what is to be shown, if
    /// that has changed.
    pub fn look<E>(
        &mut self,
        samples: &[f32],
        transcribe: impl FnOnce(&[u32], &[f32]) -> Result<Transcript, E>,
    ) -> Result<Option<&Shown>, E> {
        if samples.len() < self.due {
            return Ok(None);
        }
        let before = |word: &Heard| word.samples.start < self.from;
        let first = self.stable.iter().rposition(before).map_or(0, |at| at + 1);
        let tokens = tokens(&self.stable[first..]);
        let transcript = transcribe(&tokens, &samples[self.from..])?;
        self.settle(self.heard(&transcript, tokens.len()), samples.len());
        self.leave_behind(samples.len());
        self.due = samples.len() + self.every.max((samples.len() - self.from) / RARER);
        let shown = Shown {
            stable: text(&self.stable),
            tentative: text(&self.tentative),
        };
        let changed = shown != self.shown;
        self.shown = shown;
        Ok(changed.then_some(&self.shown))
    }

    /// The segment is over after `length` samples; gives the tokens that its
    /// final text begins with. Stable words beyond are the first of the segment
    /// that follows without a gap.
    pub fn end(&mut self, length: usize) -> Vec<u32> {
        let beyond = |word: &Heard| word.samples.start.midpoint(word.samples.end) >= length;
        let within = self.stable.iter().position(beyond);
        let mut next = self.stable.split_off(within.unwrap_or(self.stable.len()));
        for word in &mut next {
            let moved = |at: usize| at.saturating_sub(length);
            word.samples = moved(word.samples.start)..moved(word.samples.end);
        }
        let known = tokens(&self.stable);
        self.stable = next;
        self.tentative.clear();
        self.shown = Shown::default();
        self.from = 0;
        self.due = self.every;
        known
    }

    /// The words after the known tokens, at their place in the segment.
    fn heard(&self, transcript: &Transcript, known: usize) -> Vec<Heard> {
        let new = transcript
            .words
            .iter()
            .filter(|word| word.tokens.start >= known);
        new.map(|word| Heard {
            text: word.text.clone(),
            tokens: transcript.tokens[word.tokens.clone()]
                .iter()
                .map(|token| token.id)
                .collect(),
            samples: word.samples.start + self.from..word.samples.end + self.from,
        })
        .collect()
    }

    /// Words that this look and the one before agree on become stable, once
    /// enough of the `length` samples follows them.
    fn settle(&mut self, mut heard: Vec<Heard>, length: usize) {
        let latest = length.saturating_sub(self.settle);
        let pairs = heard.iter().zip(&self.tentative);
        let agreed = pairs
            .take_while(|(new, old)| new.tokens == old.tokens && new.samples.end <= latest)
            .count();
        self.tentative = heard.split_off(agreed);
        self.stable.extend(heard);
    }

    fn leave_behind(&mut self, length: usize) {
        let Some(last) = self.stable.last() else {
            return;
        };
        if length - self.from <= self.window {
            return;
        }
        let earliest = last.samples.end.saturating_sub(self.overlap);
        let first = self
            .stable
            .iter()
            .find(|word| word.samples.start >= earliest);
        let start = first.unwrap_or(last).samples.start;
        self.from = self.from.max(start.saturating_sub(LEAD));
    }
}

fn tokens(words: &[Heard]) -> Vec<u32> {
    words
        .iter()
        .flat_map(|word| &word.tokens)
        .copied()
        .collect()
}

fn text(words: &[Heard]) -> String {
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use earwitness_models::asr::{Token, Word};

    use super::*;

    /// Every word of the made-up speech lasts so many samples.
    const WORD: usize = 4_000;

    /// Hears word `n` as token `n` in samples `n * WORD..`, and what it has heard
    /// less than half of as something else at every look.
    fn transcript(from: usize, known: &[u32], samples: &[f32]) -> Transcript {
        let first = known.first().map_or(0, |&token| token as usize);
        let end = from + samples.len();
        let mut heard = Transcript::default();
        for n in first..=end / WORD {
            let unsure = end < n * WORD + WORD / 2;
            let id = if unsure { 1000 + end } else { n };
            let at = heard.tokens.len();
            heard.tokens.push(Token {
                id: id as u32,
                probability: 0.9,
            });
            heard.words.push(Word {
                text: format!("w{id}"),
                samples: (n * WORD).saturating_sub(from)..(n * WORD + WORD).min(end) - from,
                probability: 0.9,
                tokens: at..at + 1,
            });
        }
        assert!(known.iter().zip(&heard.tokens).all(|(a, b)| *a == b.id));
        heard
    }

    /// What is shown of so many samples that come in such chunks, and how much
    /// sound each look heard.
    fn shown(length: usize, chunk: usize) -> (Vec<Shown>, Vec<usize>) {
        let sound: Vec<f32> = (0..length).map(|at| at as f32).collect();
        let mut live = Live::new(LiveOptions::default());
        let (mut all, mut heard) = (Vec::new(), Vec::new());
        for end in (chunk..=length).step_by(chunk) {
            let look = |known: &[u32], samples: &[f32]| {
                heard.push(samples.len());
                Ok::<_, Infallible>(transcript(samples[0] as usize, known, samples))
            };
            all.extend(live.look(&sound[..end], look).unwrap().cloned());
        }
        (all, heard)
    }

    #[test]
    fn a_word_once_stable_never_changes() {
        let (shown, _) = shown(40 * WORD, 512);
        let mut stable = String::new();
        for look in &shown {
            assert!(look.stable.starts_with(&stable), "{stable} became {look:?}");
            stable.clone_from(&look.stable);
        }
        let words: Vec<String> = (0..34).map(|n| format!("w{n}")).collect();
        assert!(stable.starts_with(&words.join(" ")), "{stable}");
    }

    #[test]
    fn the_first_words_are_shown_at_once_and_looks_stay_short() {
        let options = LiveOptions::default();
        let (shown, heard) = shown(60 * WORD, 512);
        assert!(!shown[0].tentative.is_empty());
        let longest = (options.window_ms + 2 * options.every_ms) as usize * 16;
        assert!(heard.iter().all(|&samples| samples <= longest), "{heard:?}");
        let looks = 60 * WORD / (options.every_ms as usize * 16);
        assert!(heard.len() + 1 >= looks, "{} looks of {looks}", heard.len());
    }

    #[test]
    fn where_nothing_becomes_stable_looks_become_rare() {
        let mut live = Live::new(LiveOptions::default());
        let sound = vec![0.0; 14 * 16_000];
        let mut heard = 0;
        for end in (0..sound.len()).step_by(512) {
            live.look(&sound[..end], |_, samples| {
                heard += samples.len();
                Ok::<_, Infallible>(Transcript::default())
            })
            .unwrap();
        }
        assert!(heard < 10 * sound.len(), "{heard}");
    }

    #[test]
    fn what_lies_beyond_a_cut_begins_the_next_segment() {
        let sound: Vec<f32> = (0..20 * WORD).map(|at| at as f32).collect();
        let mut live = Live::new(LiveOptions::default());
        let look = |known: &[u32], samples: &[f32]| {
            Ok::<_, Infallible>(transcript(samples[0] as usize, known, samples))
        };
        for end in (0..sound.len()).step_by(512) {
            live.look(&sound[..end], look).unwrap();
        }
        let known = live.end(6 * WORD);
        assert_eq!(known, [0, 1, 2, 3, 4, 5]);
        let rest = &sound[6 * WORD..];
        let shown = live.look(rest, look).unwrap().unwrap();
        assert!(shown.stable.starts_with("w6 w7"), "{shown:?}");
        assert!(live.end(rest.len()).starts_with(&[6, 7]));
        assert!(live.end(WORD).is_empty());
    }
}
