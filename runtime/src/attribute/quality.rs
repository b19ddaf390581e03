//! Is a stretch of sound good enough to learn a voice from?
//!
//! Recognising somebody is worth a try on any sound. Learning is not: a cough, a
//! word of a tenth of a second or an overdriven microphone gives a voiceprint of
//! nobody, and what is learned stays. Several people talking at once are not
//! detected here; between two voices such a turn is ambiguous, and teaches
//! nothing either.

use std::fmt;

/// What can be measured about the sound of a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Speech in it, after voice activity detection, in milliseconds.
    pub speech_ms: u32,
    /// Root mean square, in dB relative to full scale.
    pub level_dbfs: f32,
    /// Share of samples at the limits of the scale, from 0 to 1.
    pub clipped: f32,
}

/// What keeps a voice from being learned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Flaw {
    /// Too little speech.
    Short(u32),
    /// Too quiet, or no number at all.
    Quiet(f32),
    /// Overdriven.
    Clipped(f32),
}

/// Least quality of a turn that may open or teach an identity.
#[derive(Clone, Copy, Debug)]
pub struct QualityGate {
    /// Speech, in milliseconds.
    pub speech_ms: u32,
    /// Level, in dB relative to full scale.
    pub level_dbfs: f32,
    /// The largest share of samples at the limits of the scale.
    pub clipped: f32,
}

impl Default for QualityGate {
    fn default() -> Self {
        Self {
            speech_ms: 1000,
            level_dbfs: -60.0,
            clipped: 0.02,
        }
    }
}

/// A sample this close to full scale has been cut off.
const FULL_SCALE: f32 = 0.999;

impl Quality {
    /// Measures samples from -1 to 1, of which `speech_ms` are speech.
    pub fn of(samples: &[f32], speech_ms: u32) -> Self {
        let count = samples.len().max(1) as f32;
        let power = samples.iter().map(|sample| sample * sample).sum::<f32>() / count;
        let cut = samples.iter().filter(|sample| sample.abs() >= FULL_SCALE);
        Self {
            speech_ms,
            level_dbfs: 10.0 * power.log10(),
            clipped: cut.count() as f32 / count,
        }
    }
}

impl QualityGate {
    /// The first thing that keeps the sound from teaching a voice.
    pub fn flaw(&self, quality: &Quality) -> Option<Flaw> {
        if quality.speech_ms < self.speech_ms {
            return Some(Flaw::Short(quality.speech_ms));
        }
        // Written so that no comparison with NaN lets it pass.
        let loud = quality.level_dbfs >= self.level_dbfs;
        if !loud {
            return Some(Flaw::Quiet(quality.level_dbfs));
        }
        (quality.clipped > self.clipped).then_some(Flaw::Clipped(quality.clipped))
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(ms) => write!(
                f,
                "only {:.1} s of speech; say a whole sentence",
                *ms as f32 / 1000.0
            ),
            Self::Quiet(level) => write!(
                f,
                "too quiet ({level:.0} dBFS); come closer, or turn the microphone up"
            ),
            Self::Clipped(share) => write!(
                f,
                "overdriven ({:.0} % of the samples are cut off); turn the microphone down",
                100.0 * share
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flaw(samples: &[f32], speech_ms: u32) -> Option<Flaw> {
        QualityGate::default().flaw(&Quality::of(samples, speech_ms))
    }

    #[test]
    fn a_clear_sentence_passes() {
        let samples: Vec<f32> = (0..32_000).map(|i| 0.1 * (i as f32 * 0.1).sin()).collect();
        let quality = Quality::of(&samples, 1800);
        assert!((quality.level_dbfs + 23.0).abs() < 0.1, "{quality:?}");
        assert_eq!(quality.clipped, 0.0);
        assert_eq!(flaw(&samples, 1800), None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let loud = [1.0; 16_000];
        let soft = [1e-5; 16_000];
        assert_eq!(flaw(&loud, 999), Some(Flaw::Short(999)));
        assert!(matches!(flaw(&soft, 1000), Some(Flaw::Quiet(_))));
        assert_eq!(flaw(&loud, 1000), Some(Flaw::Clipped(1.0)));
    }

    #[test]
    fn broken_or_missing_samples_never_pass() {
        for samples in [
            &[f32::NAN; 16_000][..],
            &[f32::INFINITY; 16_000],
            &[0.0],
            &[],
        ] {
            assert!(flaw(samples, 5000).is_some());
        }
    }
}
