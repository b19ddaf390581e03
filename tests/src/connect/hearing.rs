//! From a turn's recording to its voiceprint or its words.

use std::time::Instant;

use anyhow::{Context, Result};
use earwitness::{
    attribute::Quality,
    capture::{SAMPLE_RATE_HZ, decode},
    segment::{Segment, SegmentOptions, Segmenter, SpeechScorer},
    transcribe::{Live, LiveOptions, Shown},
};
use earwitness_models::{
    asr::{AsrError, Recognizer},
    vad::{SpeechDetector, VadError},
    voiceprint::{VoiceprintEncoder, VoiceprintError},
};

use crate::{
    asr,
    episodes::{Episode, Turn},
    noisy::Surroundings,
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
        let segmenter = Segmenter::new(Lent(&mut self.detector), WHOLE_TURN);
        Ok(segmenter.all(samples)?.pop())
    }
}

/// How words are recognised.
#[derive(Default)]
pub struct Hearing {
    /// How they are shown while they are spoken; at the end only, if it is not
    /// said.
    pub partials: Option<LiveOptions>,
    /// Where they are spoken; where they were recorded, if it is not said.
    pub place: Option<Surroundings>,
}

/// The words of a turn as the hub hears them. `None` for a turn without a
/// recording.
pub fn recognize(
    recognizer: &mut dyn Recognizer,
    hearing: &Hearing,
    episode: &Episode,
    turn: &Turn,
) -> Result<Option<asr::Heard>> {
    let Some(mut samples) = samples(episode, turn)? else {
        return Ok(None);
    };
    if let Some(place) = &hearing.place {
        let turns = episode.sessions.iter().flat_map(|session| &session.turns);
        let index = turns.take_while(|other| other.id != turn.id).count();
        samples = place.around(index, &samples);
    }
    listen(recognizer, hearing.partials, &samples)
        .map(Some)
        .with_context(|| format!("turn {}", turn.id))
}

fn listen(
    recognizer: &mut dyn Recognizer,
    partials: Option<LiveOptions>,
    samples: &[f32],
) -> Result<asr::Heard, AsrError> {
    let mut heard = asr::Heard {
        audio_ms: milliseconds(samples),
        ..asr::Heard::default()
    };
    let mut live = partials.map(Live::new);
    for end in (0..samples.len()).step_by(SpeechDetector::WINDOW) {
        let Some(live) = &mut live else { break };
        let start = Instant::now();
        let shown = live.look(&samples[..end], |known, sound| {
            recognizer.transcribe_after(known, sound)
        })?;
        let wall_ms = elapsed_ms(start);
        heard.wall_ms += wall_ms;
        if shown.is_some_and(|shown| *shown != Shown::default()) {
            let first = milliseconds(&samples[..end]) + wall_ms;
            heard.first_partial_ms.get_or_insert(first);
        }
    }
    let known = live.map_or(Vec::new(), |mut live| live.end(samples.len()));
    let start = Instant::now();
    heard.text = recognizer.transcribe_after(&known, samples)?.text;
    heard.final_ms = elapsed_ms(start);
    heard.wall_ms += heard.final_ms;
    Ok(heard)
}

fn elapsed_ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// The recordings of all turns.
pub fn recordings(episodes: &[Episode]) -> Result<Vec<Vec<f32>>> {
    let mut recordings = Vec::new();
    for episode in episodes {
        for turn in episode.sessions.iter().flat_map(|session| &session.turns) {
            recordings.extend(samples(episode, turn)?);
        }
    }
    Ok(recordings)
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
