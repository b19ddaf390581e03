//! The part of Moonshine that listens: samples become the keys and values that
//! every step of the decoder attends to.

use tract_onnx::prelude::*;

use crate::graph::{Graph, GraphError, LoadError};
use crate::pack::Pack;

/// Samples from one frame to the next.
pub(super) const HOP: usize = 384;
/// Samples that a frame sees beyond its hop.
const OVERLAP: usize = 511;

pub(super) struct Encoder {
    graph: Graph,
}

/// Keys `[1, heads, width, frames]` and values `[1, heads, frames, width]` for the
/// decoder's cross-attention; `heads` counts those of all layers.
pub(super) struct Heard {
    pub(super) keys: TValue,
    pub(super) values: TValue,
}

impl Encoder {
    pub(super) fn load(pack: &Pack, heads: usize, width: usize) -> Result<Self, LoadError> {
        let keys = [1, heads, width, 0];
        let values = [1, heads, 0, width];
        let graph = Graph::load_shaped(pack, "encoder.onnx", &[&[1, 0]], &[&keys, &values])?;
        Ok(Self { graph })
    }

    /// Listens to an utterance, padded with silence to at least `min_samples`.
    ///
    /// As in the original, samples that do not fill a last frame are not heard.
    pub(super) fn run(&self, samples: &[f32], min_samples: usize) -> Result<Heard, GraphError> {
        let wanted = samples.len().max(min_samples).max(HOP + OVERLAP);
        let whole = (wanted - OVERLAP) / HOP * HOP + OVERLAP;
        let mut input = samples[..samples.len().min(whole)].to_vec();
        input.resize(whole, 0.0);
        let input = Tensor::from_shape(&[1, whole], &input)?;
        let mut outputs = self.graph.run(tvec!(input.into_tvalue()))?;
        let (values, keys) = (outputs.remove(1), outputs.remove(0));
        Ok(Heard { keys, values })
    }
}
