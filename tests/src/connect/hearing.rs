//! From a turn's recording to its voiceprint or its words.

use std::time::Instant;

use anyhow::{Context, Result};
use earwitness::capture::{SAMPLE_RATE_HZ, decode};
use earwitness_models::{
    asr::Recognizer,
    voiceprint::{VoiceprintEncoder, VoiceprintError},
};

use crate::{
    asr::Heard,
    episodes::{Episode, Turn},
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

/// The words of a turn; `None` for a turn without a recording.
pub fn recognize(
    recognizer: &mut dyn Recognizer,
    episode: &Episode,
    turn: &Turn,
) -> Result<Option<Heard>> {
    let Some(samples) = samples(episode, turn)? else {
        return Ok(None);
    };
    let start = Instant::now();
    let transcript = recognizer
        .transcribe(&samples)
        .with_context(|| format!("turn {}", turn.id))?;
    let wall_ms = start.elapsed().as_secs_f64() * 1e3;
    Ok(Some(Heard {
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
