//! A session's clips, laid on its timeline: what a microphone would have heard.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use earwitness::capture::{SAMPLE_RATE_HZ, decode};

use crate::episodes::{Episode, Session};

/// Silence after the last turn, in milliseconds.
const TAIL_MS: u64 = 600;

/// Writes the recording of a session as WAV into `folder`.
pub fn write(episode: &Episode, session: &Session, folder: &Path) -> Result<PathBuf> {
    let end_ms = session
        .turns
        .iter()
        .map(|turn| turn.end_ms)
        .max()
        .unwrap_or(0);
    let mut sound = vec![0.0; samples(end_ms + TAIL_MS)];
    for turn in &session.turns {
        let audio = turn
            .audio
            .as_deref()
            .with_context(|| format!("turn {} has no sound", turn.id))?;
        let clip = decode(&episode.audio_path(audio))?;
        // A clip may be a few samples longer than its whole milliseconds.
        for (out, sample) in sound[samples(turn.start_ms)..].iter_mut().zip(clip) {
            *out += sample;
        }
    }
    let path = folder.join(format!("{}.wav", session.id));
    save(&path, &sound).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn save(path: &Path, sound: &[f32]) -> hound::Result<()> {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: SAMPLE_RATE_HZ,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut writer = hound::WavWriter::create(path, spec)?;
    for sample in sound {
        writer.write_sample((sample.clamp(-1.0, 1.0) * 32767.0) as i16)?;
    }
    writer.finalize()
}

fn samples(ms: u64) -> usize {
    (ms * u64::from(SAMPLE_RATE_HZ) / 1000) as usize
}
