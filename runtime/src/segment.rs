//! From an endless stream to bounded stretches of speech.
//!
//! A voice-activity model scores windows of fixed length; a segment opens when
//! the score rises above [`SegmentOptions::open_above`] and closes when it has
//! stayed below [`SegmentOptions::close_below`] for the hangover. A segment that
//! reaches the maximum is cut where speech is least likely, and what follows the
//! cut opens the next one, so no sample between first and last speech is lost.
//!
//! In noise the score flickers, and soft beginnings and ends drown: there the
//! hangover and the margins are longer by half.
//!
//! Everything is counted in samples from the start of the stream, so segments
//! do not depend on how the stream was cut into chunks, and neither does what is
//! seen of one while it grows. Memory is bounded by the maximum length and the
//! pre-roll.

use std::collections::VecDeque;

use earwitness_models::vad::{SpeechDetector, VadError};

use crate::capture::{SAMPLE_RATE_HZ, samples_to_ms};

/// Samples scored at a time.
const WINDOW: usize = SpeechDetector::WINDOW;

/// Speech that is less than this many times stronger than the background (15 dB)
/// is speech in noise.
const CLEAR: f32 = 31.6;
/// Weight of the newest window in the mean powers.
const NEWEST: f32 = 0.05;

/// How speech is cut out of the stream; lengths in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct SegmentOptions {
    /// Speech probability that opens a segment.
    pub open_above: f32,
    /// Speech probability below which silence is counted.
    pub close_below: f32,
    /// Silence that ends a segment.
    pub hangover_ms: u32,
    /// Sound kept before the first and after the last speech.
    pub margin_ms: u32,
    /// Less speech than this is a click, not a segment.
    pub min_speech_ms: u32,
    /// A longer segment is cut.
    pub max_ms: u32,
    /// The cut lies within this much of the maximum.
    pub cut_search_ms: u32,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self {
            open_above: 0.5,
            close_below: 0.35,
            hangover_ms: 384,
            margin_ms: 160,
            min_speech_ms: 192,
            max_ms: 14_000,
            cut_search_ms: 5_000,
        }
    }
}

/// One stretch of speech.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Sample index of the first sample within the stream.
    pub start: u64,
    /// The sound, margins included.
    pub samples: Vec<f32>,
    /// Milliseconds of it that the detector took for speech.
    pub speech_ms: u32,
    /// Sample index in the stream at which the segment was known to be over.
    pub decided_at: u64,
}

impl Segment {
    /// Start in milliseconds from the start of the stream.
    pub fn start_ms(&self) -> u64 {
        samples_to_ms(self.start)
    }

    /// End in milliseconds from the start of the stream.
    pub fn end_ms(&self) -> u64 {
        samples_to_ms(self.start + self.samples.len() as u64)
    }
}

/// What one window of sound led to.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The open segment has grown; [`Segmenter::open`] shows it.
    Grown,
    /// A segment is over. If it was cut, what follows the cut is open already.
    Over(Segment),
    /// What was open turned out to be a click.
    Dropped,
}

/// A segment that is still growing.
#[derive(Clone, Copy, Debug)]
pub struct Growing<'s> {
    /// Sample index of the first sample within the stream.
    pub start: u64,
    /// The sound so far, from the pre-roll on.
    pub samples: &'s [f32],
}

/// What scores one window of [`SpeechDetector::WINDOW`] samples.
pub trait SpeechScorer {
    /// The error of the model behind it.
    type Error;

    /// Probability of speech, from 0 to 1, in the window that follows the last.
    fn score(&mut self, window: &[f32]) -> Result<f32, Self::Error>;
}

impl SpeechScorer for SpeechDetector {
    type Error = VadError;

    fn score(&mut self, window: &[f32]) -> Result<f32, Self::Error> {
        self.push(window)
    }
}

/// Cuts a stream into segments.
pub struct Segmenter<S> {
    scorer: S,
    windows: Windows,
    pending: Vec<f32>,
    seen: u64,
    before: VecDeque<f32>,
    open: Option<Open>,
    surroundings: Surroundings,
}

/// How loud it is with and without speech: mean powers of windows; 0 before the
/// first.
#[derive(Default)]
struct Surroundings {
    speech: f32,
    background: f32,
}

/// The options in whole windows.
struct Windows {
    open_above: f32,
    close_below: f32,
    hangover: usize,
    margin: usize,
    min_speech: usize,
    max: usize,
    cut_search: usize,
}

/// A segment that is still growing. `samples` begins with the pre-roll, which
/// has no scores: `scores[i]` belongs to the window that ends at
/// `pre_roll + (i + 1) * WINDOW`.
struct Open {
    start: u64,
    pre_roll: usize,
    samples: Vec<f32>,
    scores: Vec<f32>,
    silence: usize,
}

impl<S: SpeechScorer> Segmenter<S> {
    /// A segmenter at the start of a stream.
    pub fn new(scorer: S, options: SegmentOptions) -> Self {
        Self {
            scorer,
            windows: Windows::new(options),
            pending: Vec::with_capacity(WINDOW),
            seen: 0,
            before: VecDeque::new(),
            open: None,
            surroundings: Surroundings::default(),
        }
    }

    /// Takes from the front of `samples` until something is to be told, or all
    /// of them.
    pub fn advance(&mut self, samples: &mut &[f32]) -> Result<Option<Event>, S::Error> {
        while !samples.is_empty() {
            let (head, tail) = samples.split_at(samples.len().min(WINDOW - self.pending.len()));
            self.pending.extend_from_slice(head);
            *samples = tail;
            if self.pending.len() == WINDOW
                && let Some(event) = self.window()?
            {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Ends the stream: what is still open is over. At most two segments.
    pub fn finish(&mut self) -> Result<Vec<Segment>, S::Error> {
        let mut segments = Vec::new();
        let tail = self.pending.len();
        if tail > 0 {
            // The last window is filled with silence for the detector only.
            self.pending.resize(WINDOW, 0.0);
            if let Some(Event::Over(segment)) = self.window()? {
                segments.push(segment);
            }
            self.seen -= (WINDOW - tail) as u64;
        }
        let end = self.seen;
        let margin = self.margin();
        if let Some(mut open) = self.open.take() {
            open.samples.truncate((end - open.start) as usize);
            segments.extend(open.close(&self.windows, margin, end));
        }
        Ok(segments)
    }

    /// All segments of a whole recording.
    pub fn all(mut self, mut samples: &[f32]) -> Result<Vec<Segment>, S::Error> {
        let mut segments = Vec::new();
        while let Some(event) = self.advance(&mut samples)? {
            if let Event::Over(segment) = event {
                segments.push(segment);
            }
        }
        segments.extend(self.finish()?);
        Ok(segments)
    }

    /// The segment that is growing, if one is.
    pub fn open(&self) -> Option<Growing<'_>> {
        self.open.as_ref().map(|open| Growing {
            start: open.start,
            samples: &open.samples,
        })
    }

    fn window(&mut self) -> Result<Option<Event>, S::Error> {
        let score = self.scorer.score(&self.pending)?;
        self.surroundings.hear(&self.pending, score, &self.windows);
        let start = self.seen;
        self.seen += WINDOW as u64;
        if self.open.is_none() && score >= self.windows.open_above {
            let margin = self.margin();
            self.open = Some(Open::new(start, &mut self.before, margin));
        }
        let event = match &mut self.open {
            Some(open) => {
                open.extend(&self.pending, score, &self.windows);
                Some(self.close_or_cut())
            }
            None => {
                self.remember();
                None
            }
        };
        self.pending.clear();
        Ok(event)
    }

    /// Keeps the newest silence as pre-roll of the next segment.
    fn remember(&mut self) {
        self.before.extend(&self.pending);
        let keep = longer(self.windows.margin) * WINDOW;
        let excess = self.before.len().saturating_sub(keep);
        self.before.drain(..excess);
    }

    /// Samples kept before and after speech.
    fn margin(&self) -> usize {
        self.surroundings.extended(self.windows.margin) * WINDOW
    }

    fn close_or_cut(&mut self) -> Event {
        let margin = self.margin();
        let Some(mut open) = self.open.take() else {
            return Event::Dropped;
        };
        if open.silence >= self.surroundings.extended(self.windows.hangover) {
            // What lies behind the margin may be the pre-roll of the next one.
            let unused = (open.silence * WINDOW).saturating_sub(margin);
            let behind = open.samples.len() - unused;
            self.before.extend(&open.samples[behind..]);
        } else if open.scores.len() >= self.windows.max {
            self.open = Some(open.cut(&self.windows));
        } else {
            self.open = Some(open);
            return Event::Grown;
        }
        open.close(&self.windows, margin, self.seen)
            .map_or(Event::Dropped, Event::Over)
    }
}

impl Surroundings {
    fn hear(&mut self, window: &[f32], score: f32, windows: &Windows) {
        let mean = if score >= windows.open_above {
            &mut self.speech
        } else if score < windows.close_below {
            &mut self.background
        } else {
            return;
        };
        let power = window.iter().map(|sample| sample * sample).sum::<f32>() / WINDOW as f32;
        *mean = if *mean > 0.0 {
            *mean + NEWEST * (power - *mean)
        } else {
            power
        };
    }

    /// A number of windows as it is here: longer in noise.
    fn extended(&self, windows: usize) -> usize {
        if self.speech < CLEAR * self.background {
            longer(windows)
        } else {
            windows
        }
    }
}

/// Longer by half.
fn longer(windows: usize) -> usize {
    windows + windows / 2
}

impl Open {
    fn new(start: u64, before: &mut VecDeque<f32>, margin: usize) -> Self {
        let excess = before.len().saturating_sub(margin);
        let samples: Vec<f32> = before.drain(..).skip(excess).collect();
        Self {
            start: start - samples.len() as u64,
            pre_roll: samples.len(),
            samples,
            scores: Vec::new(),
            silence: 0,
        }
    }

    fn extend(&mut self, window: &[f32], score: f32, windows: &Windows) {
        self.samples.extend_from_slice(window);
        self.scores.push(score);
        self.silence = if score < windows.close_below {
            self.silence + 1
        } else {
            0
        };
    }

    /// Cuts in the middle of the least speech-like window near the end; returns
    /// what follows the cut.
    fn cut(&mut self, windows: &Windows) -> Self {
        let from = self.scores.len().saturating_sub(windows.cut_search).max(1);
        let quietest = (from..self.scores.len())
            .min_by(|&a, &b| self.scores[a].total_cmp(&self.scores[b]))
            .unwrap_or(self.scores.len() - 1);
        let at = self.pre_roll + quietest * WINDOW;
        let samples = self.samples.split_off(at);
        let scores = self.scores.split_off(quietest);
        let silence = scores
            .iter()
            .rev()
            .take_while(|&&score| score < windows.close_below)
            .count();
        self.silence = 0;
        Self {
            start: self.start + at as u64,
            pre_roll: 0,
            samples,
            scores,
            silence,
        }
    }

    /// The segment without the silence behind its margin; `None` for a click.
    fn close(mut self, windows: &Windows, margin: usize, decided_at: u64) -> Option<Segment> {
        let speech = self
            .scores
            .iter()
            .filter(|&&score| score >= windows.close_below)
            .count();
        if speech < windows.min_speech {
            return None;
        }
        let unused = (self.silence * WINDOW).saturating_sub(margin);
        let keep = (self.pre_roll + self.scores.len() * WINDOW).saturating_sub(unused);
        self.samples.truncate(keep);
        Some(Segment {
            start: self.start,
            samples: self.samples,
            speech_ms: samples_to_ms((speech * WINDOW) as u64) as u32,
            decided_at,
        })
    }
}

impl Windows {
    fn new(options: SegmentOptions) -> Self {
        let windows = |ms: u32| (ms as usize * SAMPLE_RATE_HZ as usize / 1000).div_ceil(WINDOW);
        Self {
            open_above: options.open_above,
            close_below: options.close_below,
            hangover: windows(options.hangover_ms).max(1),
            margin: windows(options.margin_ms),
            min_speech: windows(options.min_speech_ms),
            max: windows(options.max_ms).max(2),
            cut_search: windows(options.cut_search_ms),
        }
    }
}
