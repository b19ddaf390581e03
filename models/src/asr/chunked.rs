//! An encoder that hears a stream chunk by chunk: zipformers, conformers and
//! recurrent encoders as icefall trains them and sherpa-onnx runs them.
//!
//! The graph maps a chunk of features `[1, frames, bands]` and its states to a few
//! frames `[1, frames, size]` and the states for the next chunk, in the order of
//! the inputs; at first they are zero. A chunk may begin before the last one ends.
//!
//! The front end centres its frames on multiples of the hop, as Kaldi does without
//! `snip_edges`: before the first sample the sound is mirrored.

use earwitness_dsp::fbank::{self, FbankOptions, Features};
use tract_onnx::prelude::*;

use crate::graph::{Graph, GraphError, LoadError, floats};
use crate::manifest::FrontEnd;
use crate::pack::Pack;

/// The file that holds the graph.
const FILE: &str = "encoder.onnx";

pub(super) struct ChunkedEncoder {
    graph: Graph,
    front_end: FbankOptions,
    /// States that the graph carries from one chunk to the next.
    states: usize,
    /// Frames of features in a chunk, and from one chunk to the next.
    chunk: usize,
    shift: usize,
    /// Frames that come out for a chunk, and numbers in each.
    frames: usize,
    size: usize,
}

/// What the encoder made of an utterance.
pub(super) struct Encoded {
    /// All frames, one after the other.
    pub(super) values: Vec<f32>,
    /// Samples from one frame to the next.
    pub(super) hop: usize,
}

impl ChunkedEncoder {
    /// Loads the encoder of a pack, in which a chunk begins `shift` frames of
    /// features after the one before.
    pub(super) fn load(pack: &Pack, shift: usize) -> Result<Self, LoadError> {
        let FrontEnd::Fbank(front_end) = pack.manifest.front_end else {
            return Err(pack.malformed("the front end is not `fbank`").into());
        };
        front_end
            .fft_size()
            .map_err(|error| pack.malformed(error))?;
        let graph = Graph::load(pack, FILE)?;
        let [inputs, outputs] = graph.shapes();
        let misfit = || {
            let reason = format!(
                "{FILE} maps {inputs:?} to {outputs:?}; with `chunk_shift` {shift} that is no \
                 chunk [1, frames, {}] and states to frames [1, frames, size] and states",
                front_end.mel_bins
            );
            LoadError::from(pack.malformed(reason))
        };
        let (Some([1, chunk, bands]), Some([1, frames, size])) =
            (shape(inputs.first()), shape(outputs.first()))
        else {
            return Err(misfit());
        };
        let is_fixed = !inputs.iter().flatten().any(|&length| length == 0);
        let fits = bands == front_end.mel_bins && (1..=chunk).contains(&shift);
        if !fits || !is_fixed || frames * size == 0 || inputs[1..] != outputs[1..] {
            return Err(misfit());
        }
        Ok(Self {
            states: inputs.len() - 1,
            graph,
            front_end,
            chunk,
            shift,
            frames,
            size,
        })
    }

    /// Samples a second.
    pub(super) fn sample_rate_hz(&self) -> f32 {
        self.front_end.sample_rate_hz as f32
    }

    /// Numbers in a frame that comes out.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Listens to an utterance, and to so many samples of silence after it.
    pub(super) fn run(&self, samples: &[f32], silence: usize) -> Result<Encoded, GraphError> {
        let features = self.features(samples, silence)?;
        let mut states = (1..=self.states)
            .map(|input| self.graph.zeros(input))
            .collect::<TractResult<TVec<_>>>()?;
        let mut values = Vec::new();
        for start in (0..=features.frames() - self.chunk).step_by(self.shift) {
            let chunk = &features.data[start * features.bins..][..self.chunk * features.bins];
            let chunk = Tensor::from_shape(&[1, self.chunk, features.bins], chunk)?;
            states.insert(0, chunk.into_tvalue());
            let mut outputs = self.graph.run(states)?;
            values.extend_from_slice(floats(&outputs.remove(0))?);
            states = outputs;
        }
        Ok(Encoded {
            values,
            hop: self.shift * self.hop() / self.frames,
        })
    }

    /// Features of whole chunks, as many as the utterance and the silence need.
    fn features(&self, samples: &[f32], silence: usize) -> Result<Features, GraphError> {
        let length = self.samples(self.front_end.frame_length_ms);
        let mirrored = length.saturating_sub(self.hop()) / 2;
        let wanted = (samples.len() + silence).div_ceil(self.hop());
        let more = wanted.saturating_sub(self.chunk).div_ceil(self.shift);
        let frames = self.chunk + more * self.shift;
        let mut padded: Vec<f32> = samples.iter().take(mirrored).rev().copied().collect();
        padded.extend_from_slice(samples);
        padded.resize((frames - 1) * self.hop() + length, 0.0);
        fbank::compute(self.front_end, &padded)
            .map_err(|error| TractError::msg(error.to_string()).into())
    }

    /// Samples from one frame of features to the next.
    fn hop(&self) -> usize {
        self.samples(self.front_end.frame_shift_ms)
    }

    fn samples(&self, ms: f32) -> usize {
        (ms * self.sample_rate_hz() / 1000.0) as usize
    }
}

/// A shape of three lengths.
fn shape(lengths: Option<&Vec<usize>>) -> Option<[usize; 3]> {
    lengths?.as_slice().try_into().ok()
}
