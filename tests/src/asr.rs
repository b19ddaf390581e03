//! Speech recognition: what was said, how fast, and how soon.
//!
//! Each turn that has both audio and a transcript is recognised by itself.
//! Texts are compared as [`crate::metrics::normalize`] leaves them.

use anyhow::Result;
use serde::Serialize;

use crate::{
    episodes::{Episode, Turn},
    metrics::{WordErrors, normalize, percentile, word_errors},
};

/// What a recogniser made of one turn. Latencies count from the moment when the
/// sound they depend on was complete.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// The words.
    pub text: String,
    /// Length of the sound, in milliseconds.
    pub audio_ms: f64,
    /// Time spent on it, in milliseconds.
    pub wall_ms: f64,
    /// From the start of the turn to the first words shown, in milliseconds;
    /// `None` where nothing was shown before the end.
    pub first_partial_ms: Option<f64>,
    /// From the end of the turn to its final words, in milliseconds.
    pub final_ms: f64,
}

/// From a turn's audio to what was heard; `None` for a turn without audio.
pub type Recognize<'r> = dyn FnMut(&Episode, &Turn) -> Result<Option<Heard>> + 'r;

/// Everything heard so far; [`Tally::report`] sums it up.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    errors: WordErrors,
    turns: usize,
    audio_ms: f64,
    wall_ms: f64,
    first_partials: Vec<f64>,
    finals: Vec<f64>,
}

/// What a recogniser achieved.
#[derive(Debug, Serialize)]
pub struct AsrReport {
    /// Word error rate.
    pub wer: f64,
    /// Words of the transcripts, normalised.
    pub words: usize,
    /// Words heard as others.
    pub substitutions: usize,
    /// Words missed.
    pub deletions: usize,
    /// Words invented.
    pub insertions: usize,
    /// Turns recognised.
    pub turns: usize,
    /// Time spent as a share of the sound.
    pub rtf: f64,
    /// From the start of a turn to the first words shown; `None` where none
    /// were shown before the end of a turn.
    pub first_partial_ms: Option<Latency>,
    /// From the end of a turn to its final words.
    pub final_ms: Latency,
}

/// Percentiles of a latency, in milliseconds.
#[derive(Debug, Serialize)]
pub struct Latency {
    /// The median.
    pub p50: f64,
    /// Exceeded by one in twenty.
    pub p95: f64,
}

impl Tally {
    /// Recognises an episode and adds its turns; adds nothing if one fails.
    pub fn add(&mut self, episode: &Episode, recognize: &mut Recognize<'_>) -> Result<()> {
        let mut with_episode = self.clone();
        for turn in episode.sessions.iter().flat_map(|session| &session.turns) {
            let Some(text) = &turn.text else { continue };
            if let Some(heard) = recognize(episode, turn)? {
                with_episode.add_turn(text, heard);
            }
        }
        *self = with_episode;
        Ok(())
    }

    fn add_turn(&mut self, said: &str, heard: Heard) {
        self.errors += word_errors(&normalize(said), &normalize(&heard.text));
        self.turns += 1;
        self.audio_ms += heard.audio_ms;
        self.wall_ms += heard.wall_ms;
        self.first_partials.extend(heard.first_partial_ms);
        self.finals.push(heard.final_ms);
    }

    /// The sum of everything heard.
    pub fn report(&self) -> AsrReport {
        AsrReport {
            wer: self.errors.rate(),
            words: self.errors.words,
            substitutions: self.errors.substitutions,
            deletions: self.errors.deletions,
            insertions: self.errors.insertions,
            turns: self.turns,
            rtf: if self.audio_ms > 0.0 {
                self.wall_ms / self.audio_ms
            } else {
                0.0
            },
            first_partial_ms: (!self.first_partials.is_empty())
                .then(|| Latency::of(&self.first_partials)),
            final_ms: Latency::of(&self.finals),
        }
    }
}

impl Latency {
    fn of(values: &[f64]) -> Self {
        Self {
            p50: percentile(values, 50.0),
            p95: percentile(values, 95.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;
    use serde_json::json;

    use super::*;

    fn episode() -> Episode {
        let turns = json!([
            {"id": "t1", "speaker": "p", "text": "Seven thirty.", "start_ms": 0, "end_ms": 1},
            {"id": "t2", "speaker": "p", "text": null, "start_ms": 1, "end_ms": 2},
            {"id": "t3", "speaker": "p", "text": "good night", "start_ms": 2, "end_ms": 3}
        ]);
        serde_json::from_value(json!({
            "id": "e", "participants": [{"id": "p", "name": "P"}],
            "sessions": [{"id": "s", "start": "2026-03-02T18:00:00Z", "turns": turns}]
        }))
        .unwrap()
    }

    fn heard(text: &str, wall_ms: f64) -> Heard {
        let first_partial_ms = (wall_ms > 1.5).then_some(wall_ms);
        Heard {
            text: text.into(),
            audio_ms: 10.0,
            wall_ms,
            first_partial_ms,
            final_ms: wall_ms,
        }
    }

    #[test]
    fn turns_with_a_transcript_are_compared_as_normalised() {
        let mut tally = Tally::default();
        let mut recognize = |_: &Episode, turn: &Turn| match turn.id.as_str() {
            "t1" => Ok(Some(heard("7:30", 1.0))),
            _ => Ok(Some(heard("Good light!", 3.0))),
        };
        tally.add(&episode(), &mut recognize).unwrap();
        let report = tally.report();
        assert_eq!(
            (report.turns, report.words, report.substitutions),
            (2, 5, 1)
        );
        assert!((report.wer - 0.2).abs() < 1e-12);
        assert!((report.rtf - 0.2).abs() < 1e-12);
        assert_eq!(
            (
                report.first_partial_ms.map(|latency| latency.p50),
                report.final_ms.p95
            ),
            (Some(3.0), 3.0)
        );
    }

    #[test]
    fn an_episode_that_fails_adds_nothing() {
        let mut tally = Tally::default();
        let mut recognize = |_: &Episode, turn: &Turn| match turn.id.as_str() {
            "t1" => Ok(Some(heard("7:30", 1.0))),
            _ => bail!("cannot be decoded"),
        };
        assert!(tally.add(&episode(), &mut recognize).is_err());
        let report = tally.report();
        assert_eq!((report.turns, report.wer), (0, 0.0));
        assert!(report.first_partial_ms.is_none());
    }
}
