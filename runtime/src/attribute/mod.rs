//! Who spoke: incremental speaker identification without a roster
//! (VoxPolyMem section 4.1).
//!
//! A turn's voiceprint is compared with every stored centroid. The best match
//! above the match threshold names the speaker (equation 1); above the update
//! threshold it also teaches the centroid (equation 2); below both the turn
//! opens a new identity. A turn with too little speech for a trustworthy
//! voiceprint may be recognised but never opens or teaches an identity: it stays
//! unknown where nobody matches.
//!
//! The decision is a pure function of the voices and the turn; the store keeps
//! the voices, so there is no second state to go out of step.

pub mod reconcile;

use earwitness_dsp::dot::dot_f32;
use earwitness_models::manifest::Thresholds;
use earwitness_store::{Learned, Speaking, Voice};

/// How turns are matched to voices.
#[derive(Clone, Copy, Debug)]
pub struct AttributeOptions {
    /// Cosine at or above which a turn belongs to the best voice.
    pub match_at: f32,
    /// Cosine at or above which it also teaches that voice.
    pub update_at: f32,
    /// Weight of the new voiceprint in the moving average; 0 keeps the centroid
    /// as it was first heard.
    pub alpha: f32,
    /// Milliseconds of speech below which a turn opens and teaches no identity.
    pub min_learn_ms: u32,
}

impl AttributeOptions {
    /// The moving average of VoxPolyMem appendix B.1.
    pub const EMA_ALPHA: f32 = 0.05;

    /// The calibrated thresholds of a voiceprint pack.
    pub fn new(thresholds: Thresholds) -> Self {
        Self {
            match_at: thresholds.match_,
            update_at: thresholds.update,
            alpha: Self::EMA_ALPHA,
            min_learn_ms: 800,
        }
    }
}

/// Decides who spoke a turn.
///
/// `embedding` has unit length, as has every centroid. Equally close voices go
/// to the lower id.
pub fn attribute(
    voices: &[Voice],
    embedding: &[f32],
    speech_ms: u32,
    options: &AttributeOptions,
) -> Speaking {
    let learns = speech_ms >= options.min_learn_ms;
    let learned = |centroid| Learned {
        centroid,
        embedding: embedding.to_vec(),
    };
    let best = best_match(voices, embedding);
    match best {
        Some((voice, score)) if score >= options.match_at => Speaking::Known {
            id: voice.speaker,
            score,
            learned: (learns && score >= options.update_at)
                .then(|| learned(moving_average(&voice.centroid, embedding, options.alpha))),
        },
        _ => {
            let score = best.map_or(0.0, |(_, score)| score);
            if learns {
                Speaking::New {
                    score,
                    learned: learned(embedding.to_vec()),
                }
            } else {
                Speaking::Unknown { score }
            }
        }
    }
}

/// The closest voice and its cosine similarity (equation 1).
pub fn best_match<'a>(voices: &'a [Voice], embedding: &[f32]) -> Option<(&'a Voice, f32)> {
    let mut best: Option<(&Voice, f32)> = None;
    for voice in voices {
        let score = dot_f32(&voice.centroid, embedding);
        if best.is_none_or(|(_, highest)| score > highest) {
            best = Some((voice, score));
        }
    }
    best
}

/// Equation 2, normalised to unit length.
fn moving_average(centroid: &[f32], embedding: &[f32], alpha: f32) -> Vec<f32> {
    let mut mean: Vec<f32> = centroid
        .iter()
        .zip(embedding)
        .map(|(old, new)| (1.0 - alpha) * old + alpha * new)
        .collect();
    let norm = dot_f32(&mean, &mean).sqrt();
    mean.iter_mut().for_each(|value| *value /= norm);
    mean
}
