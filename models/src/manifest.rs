//! The manifest of a model pack: what `manifest.toml` may say.
//!
//! A manifest is data from outside. Unknown keys are refused, so a misspelt
//! threshold can never be mistaken for an absent one. The recipes in
//! `models/recipes` write what this module reads.

use std::collections::BTreeMap;
use std::fmt;

use earwitness_dsp::fbank::FbankOptions;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The one format of packs that this program reads and writes.
pub const FORMAT: u32 = 1;

/// What a pack is for; also the name of its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Speech or not, for every 32 ms.
    Vad,
    /// A fixed-length vector for a voice.
    Voiceprint,
    /// Speech to text.
    Asr,
    /// A fixed-length vector for a sentence.
    Embed,
    /// How who, what and when weigh in retrieval.
    Threew,
}

impl Kind {
    /// Every kind, in the order in which they are built and checked.
    pub const ALL: [Self; 5] = [
        Self::Vad,
        Self::Voiceprint,
        Self::Asr,
        Self::Embed,
        Self::Threew,
    ];

    /// The name in manifests, folders and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vad => "vad",
            Self::Voiceprint => "voiceprint",
            Self::Asr => "asr",
            Self::Embed => "embed",
            Self::Threew => "threew",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Everything that `manifest.toml` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the pack format, [`FORMAT`].
    pub format: u32,
    /// What the pack is for.
    pub kind: Kind,
    /// Name of the model.
    pub name: String,
    /// Version of the pack.
    pub version: String,
    /// SPDX expression of the model's license.
    pub license: String,
    /// Whom the license asks to name, and what was changed.
    pub attribution: String,
    /// Arithmetic and weight types, in words.
    pub precision: String,
    /// What the model is fed with.
    pub front_end: FrontEnd,
    /// What it gives.
    pub output: Output,
    /// Cosine thresholds; for voiceprints, and for them always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thresholds: Option<Thresholds>,
    /// How sure a cosine is; for voiceprints, and for them always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// How far the runtime may stray from the original graph.
    pub parity: Parity,
    /// What only this kind of model needs to know.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    pub settings: toml::Table,
    /// SHA-256 of each file, by its path inside the pack, in lower-case hexadecimal.
    pub files: BTreeMap<String, String>,
    /// The published packages the models were taken from.
    pub source: Vec<Source>,
}

impl Manifest {
    /// The settings as the type that a kind of model expects.
    pub fn settings<T: DeserializeOwned>(&self) -> Result<T, toml::de::Error> {
        self.settings.clone().try_into()
    }
}

/// What a model is fed with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum FrontEnd {
    /// Samples of any number, mono, from -1 to 1.
    Waveform {
        /// Sample rate in Hz.
        sample_rate_hz: u32,
    },
    /// Windows of a fixed number of samples, each preceded by the end of the last one.
    Windows {
        /// Sample rate in Hz.
        sample_rate_hz: u32,
        /// New samples in a window.
        window_samples: usize,
        /// Samples of the window before that the model sees again.
        context_samples: usize,
    },
    /// Log mel filter bank features of a whole utterance.
    Fbank(FbankOptions),
    /// Text cut into WordPiece tokens.
    WordPiece {
        /// Whether the vocabulary is lower case without accents.
        lower_case: bool,
        /// Longest input in tokens, with the two that mark its ends.
        max_tokens: usize,
    },
    /// Embeddings of sentences.
    Sentence {
        /// Name of the `embed` pack that they come from.
        pack: String,
        /// Their length.
        width: usize,
    },
}

/// What a model gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Shape for one input; 0 stands for a length that depends on the input.
    pub shape: Vec<usize>,
    /// What the numbers mean, in words.
    pub meaning: String,
}

/// Cosine similarities at which a tracker of voices decides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// At or above it a turn belongs to the best stored voice.
    #[serde(rename = "match")]
    pub match_: f32,
    /// At or above it the turn also moves that voice's centroid.
    pub update: f32,
    /// At or above it two voices may be one, by the median over their turns. Single
    /// turns are less alike than a turn and a centroid, so it may lie below `match`.
    pub merge: f32,
}

/// How likely two turns are of one voice, by their cosine similarity: Platt
/// scaling, fitted on speakers that nothing is measured on. Both outcomes are taken
/// for equally likely beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Change of the log odds for a change of the cosine by 1.
    pub slope: f32,
    /// Log odds at a cosine of 0.
    pub offset: f32,
}

impl Calibration {
    /// The probability, from 0 to 1, that two turns of this similarity are of one
    /// voice.
    pub fn probability(self, cosine: f32) -> f32 {
        1.0 / (1.0 + (-(self.slope * cosine + self.offset)).exp())
    }
}

/// How the runtime's results compare with the original graph's, over the pack's
/// own `parity.safetensors`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parity {
    /// What is measured.
    pub metric: Metric,
    /// The worst value allowed.
    pub bound: f32,
    /// The worst value found when the pack was sealed; absent before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<f32>,
}

/// What a parity check measures, always over its worst case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Smallest cosine similarity between two vectors.
    MinCosine,
    /// Largest absolute difference between two numbers.
    MaxAbsDifference,
    /// Smallest share of equal tokens in an utterance, from 0 to 1.
    MinTokenAgreement,
}

impl Metric {
    /// The name in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::MinCosine => "min_cosine",
            Self::MaxAbsDifference => "max_abs_difference",
            Self::MinTokenAgreement => "min_token_agreement",
        }
    }

    /// The worst of several values; NaN if one of them is, or if there are none.
    pub fn worst(self, values: &[f32]) -> f32 {
        let worse = |a: f32, b: f32| if b.is_nan() || self.holds(a, b) { b } else { a };
        values.iter().copied().reduce(worse).unwrap_or(f32::NAN)
    }

    /// Whether `value` is as good as `bound` or better; never true of NaN.
    pub fn holds(self, value: f32, bound: f32) -> bool {
        match self {
            Self::MinCosine | Self::MinTokenAgreement => value >= bound,
            Self::MaxAbsDifference => value <= bound,
        }
    }
}

/// A published package.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its name on PyPI.
    pub package: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of the wheel.
    pub sha256: String,
}
