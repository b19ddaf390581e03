//! From a turn's recording to its voiceprint or its words.

use std::time::Instant;

use anyhow::{Context, Result};
use earwitness::{
    capture::{SAMPLE_RATE_HZ, decode},
    transcribe::{Live, LiveOptions, Shown},
};
use earwitness_models::{
    asr::{AsrError, Recognizer},
    vad::SpeechDetector,
    voiceprint::{VoiceprintEncoder, VoiceprintError},
};

use crate::{
    asr::Heard,
    episodes::{Episode, Turn},
    noisy::Surroundings,
};

/// The voiceprint of a turn and the length of its recording in milliseconds;
/// `None` for a turn without one. A recording too short for a voiceprint gets
/// the zero vector, which is like nobody.
pub fn hear(
    encoder: &mut VoiceprintEncoder,
    episode: &Episode,
    turn: &Turn,
) -> Result<Option<(Vec<f32>, u32)>> {
    let Some(samples) = samples(episode, turn)? else {
        return Ok(None);
    };
    let voiceprint = match encoder.embed(&samples) {
        Ok(voiceprint) => voiceprint,
        Err(VoiceprintError::TooShort { .. }) => vec![0.0; encoder.dim()],
        Err(error) => return Err(error).with_context(|| format!("turn {}", turn.id)),
    };
    Ok(Some((voiceprint, milliseconds(&samples).round() as u32)))
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
) -> Result<Option<Heard>> {
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
) -> Result<Heard, AsrError> {
    let mut heard = Heard {
        audio_ms: milliseconds(samples),
        ..Heard::default()
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
