//! Does the runtime compute what the original model did?
//!
//! Each pack carries `parity.safetensors`: real sound or text, and what the
//! original graph gave for it in onnxruntime when the pack was built. [`check`]
//! runs the path that the product runs, front end included, over the same
//! inputs; on the device it tells whether that processor computes the same too.
//!
//! Tensors of case `i` are named `i.NAME`: `audio` is int16 at 16 kHz, `text` is
//! UTF-8, results are f32 or i64.

mod cases;

use std::fmt;
use std::fs;
use std::path::Path;

use crate::LoadError;
use crate::manifest::{Kind, Metric};
use crate::pack::{MANIFEST, Pack, PackError};
use crate::vad::{SpeechDetector, VadError, WINDOW};
use crate::voiceprint::{VoiceprintEncoder, VoiceprintError};
use cases::Cases;

/// Why parity cannot be told, or a pack not be sealed.
#[derive(Debug, thiserror::Error)]
pub enum ParityError {
    /// The pack is not what it should be.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The model does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Voice activity failed on a reference.
    #[error(transparent)]
    Vad(#[from] VadError),
    /// A voiceprint failed on a reference.
    #[error(transparent)]
    Voiceprint(#[from] VoiceprintError),
    /// The model strays from the original.
    #[error(
        "{pack}: {} is {measured} against a bound of {bound}; the pack must not be used here", metric.name()
    )]
    Strays {
        /// Folder of the pack.
        pack: String,
        /// What was measured.
        metric: Metric,
        /// The worst case.
        measured: f32,
        /// What the manifest allows.
        bound: f32,
    },
    /// The figure cannot be written into the manifest.
    #[error("{pack}: cannot write {MANIFEST}: {reason}")]
    Write {
        /// Folder of the pack.
        pack: String,
        /// What the system said.
        reason: String,
    },
}

/// How a pack fared.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What was measured.
    pub metric: Metric,
    /// The figure of each case, in the pack's order.
    pub cases: Vec<f32>,
    /// The worst of them.
    pub worst: f32,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} over {} references",
            self.metric.name(),
            self.worst,
            self.cases.len()
        )
    }
}

/// Runs a pack's references through the runtime's own path; an error if the
/// worst of them is beyond the manifest's bound.
pub fn check(pack: &Pack) -> Result<Report, ParityError> {
    let references = pack.read("parity.safetensors")?;
    let references = Cases::parse(pack, &references)?;
    let cases = match pack.manifest.kind {
        Kind::Vad => vad(pack, &references)?,
        Kind::Voiceprint => voiceprint(pack, &references)?,
        Kind::Asr | Kind::Embed => Vec::new(),
    };
    let parity = pack.manifest.parity;
    let worst = parity.metric.worst(&cases);
    if !parity.metric.holds(worst, parity.bound) {
        return Err(ParityError::Strays {
            pack: pack.dir.display().to_string(),
            metric: parity.metric,
            measured: worst,
            bound: parity.bound,
        });
    }
    Ok(Report {
        metric: parity.metric,
        cases,
        worst,
    })
}

/// Checks a freshly built pack and writes its figure into the manifest, which
/// makes it one that [`Pack::open`] accepts.
pub fn seal(dir: &Path) -> Result<Report, ParityError> {
    let mut pack = Pack::open_unsealed(dir)?;
    let report = check(&pack)?;
    pack.manifest.parity.measured = Some(report.worst);
    let write_error = |reason: String| ParityError::Write {
        pack: dir.display().to_string(),
        reason,
    };
    let text = toml::to_string(&pack.manifest).map_err(|error| write_error(error.to_string()))?;
    let unfinished = dir.join(format!("{MANIFEST}.new"));
    fs::write(&unfinished, text)
        .and_then(|()| fs::rename(&unfinished, dir.join(MANIFEST)))
        .map_err(|error| write_error(error.to_string()))?;
    Ok(report)
}

/// Largest difference between two probabilities, for each recording.
fn vad(pack: &Pack, references: &Cases) -> Result<Vec<f32>, ParityError> {
    let mut detector = SpeechDetector::load(pack)?;
    references.map(|case| {
        detector.reset();
        let mut largest = 0.0_f32;
        let audio = case.audio()?;
        for (window, expected) in audio.chunks_exact(WINDOW).zip(case.floats("probability")?) {
            largest = largest.max((detector.push(window)? - expected).abs());
        }
        Ok(largest)
    })
}

/// Cosine similarity of the two voiceprints of each recording.
fn voiceprint(pack: &Pack, references: &Cases) -> Result<Vec<f32>, ParityError> {
    let mut encoder = VoiceprintEncoder::load(pack)?;
    references.map(|case| {
        Ok(cosine(
            &encoder.embed(&case.audio()?)?,
            &case.floats("embedding")?,
        ))
    })
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}
