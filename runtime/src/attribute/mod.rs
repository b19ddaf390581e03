//! Who spoke: incremental speaker identification without a roster
//! (VoxPolyMem section 4.1).
//!
//! A turn's voiceprint is compared with every stored centroid. The best match
//! above the match threshold names the speaker (equation 1); above the update
//! threshold it also teaches the centroid (equation 2); below both the turn
//! opens a new identity.
//!
//! Around these equations stand three guards. Sound that fails the
//! [`QualityGate`] never opens or teaches an identity; since it cannot do such
//! harm, it is recognised from a lower threshold on. A turn that is nearly as
//! close to somebody else is ambiguous: it goes to whoever spoke just before, if
//! they are among the candidates, or else stays unknown, and teaches nothing. A
//! voiceprint that is no direction at all matches nobody.
//!
//! The decision is a pure function of the voices and the turn; the store keeps
//! the voices, so there is no second state to go out of step.

mod quality;
pub mod reconcile;
#[cfg(test)]
mod tests;

pub use quality::{Flaw, Quality, QualityGate};

use earwitness_api::types::SpeakerId;
use earwitness_dsp::dot::dot_f32;
use earwitness_models::manifest::Thresholds;
use earwitness_store::{Learned, Speaking, Voice};

/// How turns are matched to voices. Similarities are cosines.
#[derive(Clone, Copy, Debug)]
pub struct AttributeOptions {
    /// At or above it a turn belongs to the best voice.
    pub match_at: f32,
    /// At or above it the turn also teaches that voice.
    pub update_at: f32,
    /// The match threshold of turns that could teach nothing anyway.
    pub doubtful_at: f32,
    /// How far the best voice must be ahead of anybody else's.
    pub margin: f32,
    /// How a centroid learns.
    pub update: Update,
    /// What a turn must be like to open or teach an identity.
    pub gate: QualityGate,
}

/// How a centroid learns from a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Update {
    /// Never: it stays as it was first heard.
    Never,
    /// Exponential moving average (VoxPolyMem equation 2) with this weight of
    /// the turn.
    MovingAverage(f32),
    /// Mean weighted by seconds of speech (PERSIST appendix C.2), so that a young
    /// voice learns fast. The weight of a turn never falls below this one, so
    /// that an old voice still follows how somebody's voice changes.
    DurationWeighted(f32),
}

impl AttributeOptions {
    /// The weight of the moving average in VoxPolyMem appendix B.1.
    pub const EMA_ALPHA: f32 = 0.05;

    /// What the device does with the calibrated thresholds of a voiceprint pack.
    pub fn new(thresholds: Thresholds) -> Self {
        Self {
            match_at: thresholds.match_,
            update_at: thresholds.update,
            doubtful_at: 0.6 * thresholds.match_,
            margin: 0.02,
            update: Update::DurationWeighted(Self::EMA_ALPHA),
            gate: QualityGate::default(),
        }
    }
}

/// A turn to be attributed.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// Its voiceprint, of unit length.
    pub voiceprint: &'a [f32],
    /// What its sound was like.
    pub quality: Quality,
    /// Who spoke just before, with hardly a pause.
    pub neighbour: Option<SpeakerId>,
}

/// Who spoke last, and until when.
#[derive(Clone, Copy, Debug, Default)]
pub struct Floor(Option<(SpeakerId, u64)>);

impl Floor {
    /// The longest pause, in milliseconds, after which somebody may be taken to go
    /// on speaking.
    const LONGEST_PAUSE_MS: u64 = 1000;

    /// Notes a turn; of an unknown speaker it leaves the floor to nobody.
    pub fn pass(&mut self, speaker: Option<SpeakerId>, end_ms: u64) {
        self.0 = speaker.map(|speaker| (speaker, end_ms));
    }

    /// Who spoke just before a turn that starts now.
    pub fn neighbour(&self, start_ms: u64) -> Option<SpeakerId> {
        let (speaker, end_ms) = self.0?;
        (start_ms.saturating_sub(end_ms) <= Self::LONGEST_PAUSE_MS).then_some(speaker)
    }
}

/// Decides who spoke a turn. Equally close voices go to the lower id.
pub fn attribute(voices: &[Voice], turn: &Turn<'_>, options: &AttributeOptions) -> Speaking {
    if !is_direction(turn.voiceprint) {
        return Speaking::Unknown { score: 0.0 };
    }
    let learns = options.gate.flaw(&turn.quality).is_none();
    let threshold = if learns {
        options.match_at
    } else {
        options.doubtful_at
    };
    let found = Comparison::new(voices, turn.voiceprint);
    let score = found.best_score();
    match found.pick(threshold, options.margin) {
        Pick::Voice(voice) => Speaking::Known {
            id: voice.speaker,
            score,
            learned: (learns && score >= options.update_at)
                .then(|| learn(voice, turn, options.update)),
        },
        Pick::Ambiguous(candidates) => candidates
            .iter()
            .find(|(_, voice)| turn.neighbour == Some(voice.identity))
            .map_or(Speaking::Unknown { score }, |&(score, voice)| {
                Speaking::Known {
                    id: voice.speaker,
                    score,
                    learned: None,
                }
            }),
        Pick::Nobody if learns => Speaking::New {
            score,
            learned: Learned {
                centroid: turn.voiceprint.to_vec(),
                speech_ms: turn.quality.speech_ms,
            },
        },
        Pick::Nobody => Speaking::Unknown { score },
    }
}

/// Recognises somebody without learning anything, as the asker of a question;
/// gives the identity, where one is clear, and the score of the best voice.
pub fn recognise(
    voices: &[Voice],
    voiceprint: &[f32],
    options: &AttributeOptions,
) -> (Option<SpeakerId>, f32) {
    if !is_direction(voiceprint) {
        return (None, 0.0);
    }
    let found = Comparison::new(voices, voiceprint);
    let identity = match found.pick(options.match_at, options.margin) {
        Pick::Voice(voice) => Some(voice.identity),
        Pick::Ambiguous(_) | Pick::Nobody => None,
    };
    (identity, found.best_score())
}

/// Whether a vector is finite and has about unit length.
fn is_direction(vector: &[f32]) -> bool {
    (dot_f32(vector, vector) - 1.0).abs() < 1e-2
}

/// All voices by their similarity to one voiceprint, best first (equation 1).
struct Comparison<'v>(Vec<(f32, &'v Voice)>);

/// What a comparison comes to.
enum Pick<'c, 'v> {
    Voice(&'v Voice),
    /// Two identities or more are about equally close.
    Ambiguous(&'c [(f32, &'v Voice)]),
    Nobody,
}

impl<'v> Comparison<'v> {
    fn new(voices: &'v [Voice], voiceprint: &[f32]) -> Self {
        let mut scored: Vec<_> = voices
            .iter()
            .map(|voice| (dot_f32(&voice.centroid, voiceprint), voice))
            .filter(|(score, _)| score.is_finite())
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        Self(scored)
    }

    fn best_score(&self) -> f32 {
        self.0.first().map_or(0.0, |(score, _)| *score)
    }

    fn pick(&self, threshold: f32, margin: f32) -> Pick<'_, 'v> {
        let Some(&(best, voice)) = self.0.first() else {
            return Pick::Nobody;
        };
        if best < threshold {
            return Pick::Nobody;
        }
        let close = self.0.partition_point(|(score, _)| best - score < margin);
        let candidates = &self.0[..close];
        if candidates
            .iter()
            .all(|(_, other)| other.identity == voice.identity)
        {
            Pick::Voice(voice)
        } else {
            Pick::Ambiguous(candidates)
        }
    }
}

/// What a turn teaches the voice it belongs to: the mean of the two directions,
/// normalised again.
fn learn(voice: &Voice, turn: &Turn<'_>, update: Update) -> Learned {
    let speech_ms = turn.quality.speech_ms;
    let weight = match update {
        Update::Never => 0.0,
        Update::MovingAverage(alpha) => alpha,
        Update::DurationWeighted(least) => {
            let (heard, new) = (voice.speech_ms as f32, speech_ms as f32);
            (new / (heard + new)).max(least)
        }
    };
    let mut mean: Vec<f32> = voice
        .centroid
        .iter()
        .zip(turn.voiceprint)
        .map(|(old, new)| (1.0 - weight) * old + weight * new)
        .collect();
    let norm = dot_f32(&mean, &mean).sqrt();
    mean.iter_mut().for_each(|value| *value /= norm);
    Learned {
        centroid: mean,
        speech_ms,
    }
}
