//! Voiceprints: a vector for the voice of an utterance, to be compared by cosine.
//!
//! The front end is the one that the pack's manifest describes. Utterances are
//! taken to hold one voice; who cuts them sees to that. Under about a second a
//! voiceprint says little, and [`VoiceprintEncoder::embed`] does not judge that:
//! the tracker knows the length of its turns.

pub use earwitness_dsp::fbank::Features;
use earwitness_dsp::fbank::{self, FbankError, FbankOptions};
use tract_onnx::prelude::*;

use crate::graph::{Graph, GraphError, LoadError, floats};
use crate::manifest::{Calibration, FrontEnd, Thresholds};
use crate::pack::Pack;

/// Why an utterance has no voiceprint.
#[derive(Debug, thiserror::Error)]
pub enum VoiceprintError {
    /// There are fewer samples than one frame has.
    #[error("{given} samples are too few for a voiceprint, it takes at least {needed}")]
    TooShort {
        /// Samples given.
        given: usize,
        /// Samples of one frame.
        needed: usize,
    },
    /// The samples or the result hold NaN or an infinity.
    #[error("the {0} not finite numbers; check the source of the sound")]
    NotFinite(&'static str),
    /// The front end cannot be computed.
    #[error(transparent)]
    FrontEnd(#[from] FbankError),
    /// The model itself failed.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// Makes voiceprints of utterances, one at a time.
pub struct VoiceprintEncoder {
    graph: Graph,
    front_end: FbankOptions,
    dim: usize,
    thresholds: Thresholds,
    calibration: Calibration,
}

impl VoiceprintEncoder {
    /// Loads the pack's model.
    pub fn load(pack: &Pack) -> Result<Self, LoadError> {
        let FrontEnd::Fbank(front_end) = pack.manifest.front_end else {
            return Err(pack
                .malformed("the front end of a voiceprint must be `fbank`")
                .into());
        };
        front_end
            .fft_size()
            .map_err(|error| pack.malformed(error))?;
        let &[dim] = &pack.manifest.output.shape[..] else {
            return Err(pack
                .malformed("the output of a voiceprint must be one vector")
                .into());
        };
        let Some(thresholds) = pack.manifest.thresholds else {
            return Err(pack.malformed("a voiceprint needs `thresholds`").into());
        };
        let Some(calibration) = pack.manifest.calibration else {
            return Err(pack.malformed("a voiceprint needs `calibration`").into());
        };
        let graph = Graph::load_shaped(
            pack,
            "model.onnx",
            &[&[1, 0, front_end.mel_bins]],
            &[&[1, dim]],
        )?;
        Ok(Self {
            graph,
            front_end,
            dim,
            thresholds,
            calibration,
        })
    }

    /// The voiceprint of an utterance, of length 1.
    ///
    /// `samples` are mono at the sample rate of the manifest. Of more than
    /// [`Self::LONGEST_S`] seconds only the middle is heard: more would cost
    /// memory and time and hardly change the result.
    pub fn embed(&mut self, samples: &[f32]) -> Result<Vec<f32>, VoiceprintError> {
        let features = self.features(samples)?;
        self.embed_features(&features)
    }

    /// What the model is fed with: the features of the front end.
    pub fn features(&self, samples: &[f32]) -> Result<Features, VoiceprintError> {
        let samples = self.middle(samples);
        if !samples.iter().all(|sample| sample.is_finite()) {
            return Err(VoiceprintError::NotFinite("samples are"));
        }
        let features = fbank::compute(self.front_end, samples)?;
        if features.frames() < Self::LEAST_FRAMES {
            let (length_ms, shift_ms) = (
                self.front_end.frame_length_ms,
                self.front_end.frame_shift_ms,
            );
            let needed_ms = length_ms + (Self::LEAST_FRAMES - 1) as f32 * shift_ms;
            return Err(VoiceprintError::TooShort {
                given: samples.len(),
                needed: (needed_ms * self.front_end.sample_rate_hz as f32 / 1000.0) as usize,
            });
        }
        Ok(features)
    }

    /// The voiceprint of an utterance whose features are known, of length 1.
    pub fn embed_features(&mut self, features: &Features) -> Result<Vec<f32>, VoiceprintError> {
        let shape = [1, features.frames(), features.bins];
        let input = Tensor::from_shape(&shape, &features.data).map_err(GraphError::from)?;
        let outputs = self.graph.run(tvec!(input.into_tvalue()))?;
        normalised(floats(&outputs[0]).map_err(GraphError::from)?)
    }

    /// Length of a voiceprint.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The cosine similarities at which this model's voiceprints decide.
    pub fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// How sure a cosine similarity of this model's voiceprints is.
    pub fn calibration(&self) -> Calibration {
        self.calibration
    }

    /// Frames without which the time-delay convolutions of a model have nothing to
    /// look at.
    const LEAST_FRAMES: usize = 8;

    /// The longest utterance that is heard whole, in seconds.
    pub const LONGEST_S: usize = 6;

    fn middle<'a>(&self, samples: &'a [f32]) -> &'a [f32] {
        let longest = Self::LONGEST_S * self.front_end.sample_rate_hz as usize;
        let surplus = samples.len().saturating_sub(longest);
        &samples[surplus / 2..samples.len() - (surplus - surplus / 2)]
    }
}

/// The vector divided by its length.
fn normalised(vector: &[f32]) -> Result<Vec<f32>, VoiceprintError> {
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if norm.is_normal() {
        Ok(vector.iter().map(|x| x / norm).collect())
    } else {
        Err(VoiceprintError::NotFinite("voiceprint is"))
    }
}
