//! Voice activity: how likely it is that a window of 32 ms holds speech.
//!
//! The model (Silero VAD) is recurrent. It sees each window after the last 64
//! samples of the window before, and its LSTM's state is kept here, so a detector
//! serves one stream of sound; [`SpeechDetector::reset`] begins another.

use tract_onnx::prelude::*;

use crate::graph::{Graph, GraphError, LoadError, floats};
use crate::manifest::FrontEnd;
use crate::pack::Pack;

/// Samples that the model sees of the window before.
const CONTEXT: usize = 64;
/// Shape of the state: hidden and cell values of one LSTM layer.
const STATE: [usize; 3] = [2, 1, 128];

/// Why a window has no probability.
#[derive(Debug, thiserror::Error)]
pub enum VadError {
    /// The window has the wrong length.
    #[error("a window of {0} samples was given, the detector takes {WINDOW}", WINDOW = SpeechDetector::WINDOW)]
    Length(usize),
    /// The window holds NaN or an infinity.
    #[error("the window holds samples that are not finite numbers; check the source of the sound")]
    NotFinite,
    /// The model itself failed.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// Detects speech in one stream of sound.
pub struct SpeechDetector {
    graph: Graph,
    state: Vec<f32>,
    /// The end of the last window, then the window at hand.
    input: [f32; CONTEXT + Self::WINDOW],
}

impl SpeechDetector {
    /// Samples in a window: 32 ms at 16 kHz.
    pub const WINDOW: usize = 512;
    /// Sample rate in Hz.
    const SAMPLE_RATE_HZ: u32 = 16_000;

    /// Loads the pack's model.
    pub fn load(pack: &Pack) -> Result<Self, LoadError> {
        let expected = FrontEnd::Windows {
            sample_rate_hz: Self::SAMPLE_RATE_HZ,
            window_samples: Self::WINDOW,
            context_samples: CONTEXT,
        };
        if pack.manifest.front_end != expected {
            let reason = format!("the front end of a detector must be {expected:?}");
            return Err(pack.malformed(reason).into());
        }
        let inputs: [&[usize]; 2] = [&[1, CONTEXT + Self::WINDOW], &STATE];
        let graph = Graph::load_shaped(pack, "model.onnx", &inputs, &[&[1, 1], &STATE])?;
        Ok(Self {
            graph,
            state: vec![0.0; STATE.iter().product()],
            input: [0.0; CONTEXT + Self::WINDOW],
        })
    }

    /// Probability of speech, from 0 to 1, in the stream's next window of
    /// [`Self::WINDOW`] samples. After an error the stream is as it was before.
    pub fn push(&mut self, window: &[f32]) -> Result<f32, VadError> {
        if window.len() != Self::WINDOW {
            return Err(VadError::Length(window.len()));
        }
        if !window.iter().all(|sample| sample.is_finite()) {
            return Err(VadError::NotFinite);
        }
        let mut input = self.input;
        input.copy_within(Self::WINDOW.., 0);
        input[CONTEXT..].copy_from_slice(window);
        let probability = self.run(&input)?;
        self.input = input;
        Ok(probability)
    }

    /// Forgets the stream: the next window is the first of a new one.
    pub fn reset(&mut self) {
        self.state.fill(0.0);
        self.input.fill(0.0);
    }

    fn run(&mut self, input: &[f32]) -> Result<f32, GraphError> {
        let input = Tensor::from_shape(&[1, input.len()], input)?;
        let state = Tensor::from_shape(&STATE, &self.state)?;
        let outputs = self
            .graph
            .run(tvec!(input.into_tvalue(), state.into_tvalue()))?;
        self.state.copy_from_slice(floats(&outputs[1])?);
        Ok(floats(&outputs[0])?[0])
    }
}
