//! From a turn's recording to its voiceprint or its words.

use std::time::Instant;

use anyhow::{Context, Result};
use earwitness::{
    attribute::Quality,
    capture::{SAMPLE_RATE_HZ, decode},
    segment::{Segment, SegmentOptions, Segmenter, SpeechScorer},
};
use earwitness_models::{
    asr::Recognizer,
    vad::{SpeechDetector, VadError},
    voiceprint::{VoiceprintEncoder, VoiceprintError},
};

use crate::{
    asr,
    episodes::{Episode, Turn},
    speakers::Heard,
};

/// The ears of the tracker: finds the speech in a turn's recording, and its
/// voiceprint.
pub struct Ear {
    detector: SpeechDetector,
    encoder: VoiceprintEncoder,
}

/// One segment from the first speech of a turn to the last, margins included: the
/// data set says where turns begin and end.
const WHOLE_TURN: SegmentOptions = SegmentOptions {
    hangover_ms: LONGEST_TURN_MS,
    max_ms: LONGEST_TURN_MS,
    min_speech_ms: 1,
    open_above: 0.5,
    close_below: 0.35,
    margin_ms: 160,
    cut_search_ms: 5_000,
};

/// Longer than any turn.
const LONGEST_TURN_MS: u32 = 600_000;

/// A detector that serves one turn after the other.
struct Lent<'d>(&'d mut SpeechDetector);

impl SpeechScorer for Lent<'_> {
    type Error = VadError;

    fn score(&mut self, window: &[f32]) -> Result<f32, VadError> {
        self.0.push(window)
    }
}

impl Ear {
    /// An ear with these models.
    pub fn new(detector: SpeechDetector, encoder: VoiceprintEncoder) -> Self {
        Self { detector, encoder }
    }

    /// What the device would hear of a turn; `None` for a turn without a recording.
    /// A recording too short for a voiceprint gets the zero vector, which is like
    /// nobody.
    pub fn hear(&mut self, episode: &Episode, turn: &Turn) -> Result<Option<Heard>> {
        let Some(samples) = samples(episode, turn)? else {
            return Ok(None);
        };
        let audio_ms = milliseconds(&samples).round() as u32;
        let (speech, speech_ms) = match self.speech(&samples)? {
            Some(segment) => (segment.samples, segment.speech_ms),
            None => (samples, 0),
        };
        let voiceprint = match self.encoder.embed(&speech) {
            Ok(voiceprint) => voiceprint,
            Err(VoiceprintError::TooShort { .. }) => vec![0.0; self.encoder.dim()],
            Err(error) => return Err(error).with_context(|| format!("turn {}", turn.id)),
        };
        Ok(Some(Heard {
            voiceprint,
            audio_ms,
            quality: Quality::of(&speech, speech_ms),
        }))
    }

    fn speech(&mut self, samples: &[f32]) -> Result<Option<Segment>> {
        self.detector.reset();
        let mut segmenter = Segmenter::new(Lent(&mut self.detector), WHOLE_TURN);
        let mut speech = None;
        let mut keep = |segment| -> Result<(), VadError> {
            speech = Some(segment);
            Ok(())
        };
        segmenter.push(samples, &mut keep)?;
        segmenter.finish(&mut keep)?;
        Ok(speech)
    }
}

/// The words of a turn; `None` for a turn without a recording.
pub fn recognize(
    recognizer: &mut dyn Recognizer,
    episode: &Episode,
    turn: &Turn,
) -> Result<Option<asr::Heard>> {
    let Some(samples) = samples(episode, turn)? else {
        return Ok(None);
    };
    let start = Instant::now();
    let transcript = recognizer
        .transcribe(&samples)
        .with_context(|| format!("turn {}", turn.id))?;
    let wall_ms = start.elapsed().as_secs_f64() * 1e3;
    Ok(Some(asr::Heard {
        text: transcript.text,
        audio_ms: milliseconds(&samples),
        wall_ms,
        first_partial_ms: None,
        final_ms: wall_ms,
    }))
}

fn samples(episode: &Episode, turn: &Turn) -> Result<Option<Vec<f32>>> {
    let Some(audio) = &turn.audio else {
        return Ok(None);
    };
    let samples =
        decode(&episode.audio_path(audio)).with_context(|| format!("turn {}", turn.id))?;
    Ok(Some(samples))
}

fn milliseconds(samples: &[f32]) -> f64 {
    samples.len() as f64 * 1e3 / f64::from(SAMPLE_RATE_HZ)
}
