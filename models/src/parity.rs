//! Does the runtime compute what the original model did?
//!
//! Each pack carries `parity.safetensors`: real sound or text, and what the
//! original graph gave for it in onnxruntime when the pack was built. [`check`]
//! runs the path that the product runs, front end included, over the same
//! inputs; on the device it tells whether that processor computes the same too.
//!
//! Tensors of case `i` are named `i.NAME`: `audio` is int16 at 16 kHz, `text` is
//! UTF-8, results are f32, token ids u32.

mod cases;

use std::fs;
use std::path::Path;

use crate::asr::{self, AsrError};
use crate::embed::TextEmbedder;
use crate::manifest::{Kind, Metric};
use crate::pack::{MANIFEST, Pack, PackError};
use crate::threew::Head;
use crate::vad::{SpeechDetector, VadError};
use crate::voiceprint::{VoiceprintEncoder, VoiceprintError};
use crate::{GraphError, LoadError};
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
    /// Speech recognition failed on a reference.
    #[error(transparent)]
    Asr(#[from] AsrError),
    /// Text embedding failed on a reference.
    #[error(transparent)]
    Embed(#[from] GraphError),
    /// The model strays from the original.
    #[error(
        "{pack}: {} is {measured} against a bound of {bound}; the pack must not be used here",
        metric.name()
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

/// Runs a pack's references through the runtime's own path; an error if the
/// worst of them is beyond the manifest's bound.
pub fn check(pack: &Pack) -> Result<Report, ParityError> {
    let references = pack.read("parity.safetensors")?;
    let references = Cases::parse(pack, &references)?;
    let cases = match pack.manifest.kind {
        Kind::Vad => vad(pack, &references)?,
        Kind::Voiceprint => voiceprint(pack, &references)?,
        Kind::Asr => asr(pack, &references)?,
        Kind::Embed => embed(pack, &references)?,
        Kind::Threew => threew(pack, &references)?,
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

/// The recordings among a pack's references: mono samples at 16 kHz, from -1 to 1.
pub fn recordings(pack: &Pack) -> Result<Vec<Vec<f32>>, ParityError> {
    let references = pack.read("parity.safetensors")?;
    Cases::parse(pack, &references)?.map(|case| Ok(case.audio()?))
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
        for (window, expected) in audio
            .chunks_exact(SpeechDetector::WINDOW)
            .zip(case.floats("probability")?)
        {
            largest = largest.max((detector.push(window)? - expected).abs());
        }
        Ok(largest)
    })
}

/// The voiceprint of each recording that a voiceprint pack brings along, to be compared
/// with what another processor makes of it.
pub fn voiceprints(pack: &Pack) -> Result<Vec<Vec<f32>>, ParityError> {
    let references = pack.read("parity.safetensors")?;
    let mut encoder = VoiceprintEncoder::load(pack)?;
    let mut made = Vec::new();
    Cases::parse(pack, &references)?.map(|case| {
        made.push(encoder.embed(&case.audio()?)?);
        Ok(0.0)
    })?;
    Ok(made)
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

/// Share of the tokens of each recording that both transcripts have.
fn asr(pack: &Pack, references: &Cases) -> Result<Vec<f32>, ParityError> {
    let mut recognizer = asr::load(pack)?;
    references.map(|case| {
        let transcript = recognizer.transcribe(&case.audio()?)?;
        let found: Vec<u32> = transcript.tokens.iter().map(|token| token.id).collect();
        Ok(agreement(&found, &case.ids("tokens")?))
    })
}

/// Cosine similarity of the two embeddings of each text; 0 where the tokens differ.
fn embed(pack: &Pack, references: &Cases) -> Result<Vec<f32>, ParityError> {
    let mut embedder = TextEmbedder::load(pack)?;
    references.map(|case| {
        let text = case.text()?;
        if embedder.tokens(&text) != case.ids("tokens")? {
            return Ok(0.0);
        }
        Ok(cosine(&embedder.embed(&text)?, &case.floats("embedding")?))
    })
}

/// Largest difference between two numbers of a key or a query, for each question
/// and record.
fn threew(pack: &Pack, references: &Cases) -> Result<Vec<f32>, ParityError> {
    let head = Head::load(pack)?;
    references.map(|case| {
        let number = |name| Ok::<_, PackError>(case.ids(name)?[0]);
        let session = u64::from(number("session")?);
        let only_asks = case.floats("asks")?[0] > 0.0;
        let before = case.floats("previous")?;
        let people = number("people")? as usize;
        let asked = head.asked(
            &case.text()?,
            &case.floats("question")?,
            people,
            session + 1,
        );
        let own = case.floats("embedding")?;
        let start_ms = u64::from(number("start_ms")?);
        let computed: [(&str, Vec<f32>); 5] = [
            ("what", asked.what),
            ("when", asked.when),
            ("voices", vec![asked.asker, asked.named]),
            (
                "semantic_key",
                head.semantic_key(&own, Some(&before), only_asks),
            ),
            ("temporal_key", head.temporal_key(session, start_ms)),
        ];
        let mut largest = 0.0_f32;
        for (name, values) in computed {
            largest = largest.max(difference(&values, &case.floats(name)?));
        }
        Ok(largest)
    })
}

/// Largest difference between two vectors; NaN if their lengths differ.
fn difference(a: &[f32], b: &[f32]) -> f32 {
    if a.len() != b.len() {
        return f32::NAN;
    }
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max)
}

/// 1 less the edit distance of two sequences over the length of the longer.
fn agreement(a: &[u32], b: &[u32]) -> f32 {
    let mut distances: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        distances[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = distances[j + 1];
            distances[j + 1] = changed.min(diagonal + 1).min(distances[j] + 1);
        }
    }
    1.0 - distances[b.len()] as f32 / a.len().max(b.len()).max(1) as f32
}

/// Cosine of the angle between two vectors.
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_counts_edits() {
        assert_eq!(agreement(&[1, 2, 3], &[1, 2, 3]), 1.0);
        assert_eq!(agreement(&[1, 2, 3, 4], &[1, 3, 4]), 0.75);
        assert_eq!(agreement(&[1, 2], &[3, 4]), 0.0);
        assert_eq!(agreement(&[], &[]), 1.0);
        assert_eq!(agreement(&[], &[1]), 0.0);
    }
}
