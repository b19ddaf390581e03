//! The part of Moonshine that speaks: one token in, a score for every next one out,
//! and where in the sound the decoder looked for it.

use std::sync::Arc;

use tract_onnx::prelude::*;

use super::encoder::Heard;
use crate::graph::{Graph, GraphError, LoadError, floats};
use crate::pack::Pack;

pub(super) struct Decoder {
    graph: Graph,
    cache: Cache,
}

/// Size of the caches: heads of all layers, numbers in a head, tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheShape {
    pub(super) heads: usize,
    pub(super) width: usize,
    pub(super) capacity: usize,
    /// Heads of the cross-attention that follow the speech.
    pub(super) alignment_heads: usize,
}

/// What one step gives.
pub(super) struct Step {
    /// Scores (logits) of every token to come.
    pub(super) logits: TValue,
    /// How much each frame of the sound weighed in it, from 0 to 1.
    pub(super) attention: Vec<f32>,
}

/// Keys `[1, heads, width, capacity]` and values `[1, heads, capacity, width]` of
/// the tokens so far, for all layers. The graph reads no place that has not been
/// written for the utterance at hand, so it is never cleared.
struct Cache {
    keys: Arc<Tensor>,
    values: Arc<Tensor>,
    width: usize,
    capacity: usize,
}

/// The decoder at work on one utterance.
pub(super) struct Utterance<'a> {
    decoder: &'a mut Decoder,
    heard: &'a Heard,
    position: usize,
}

impl Decoder {
    pub(super) fn load(pack: &Pack, shape: CacheShape, tokens: usize) -> Result<Self, LoadError> {
        let CacheShape {
            heads,
            width,
            capacity,
            alignment_heads,
        } = shape;
        let keys = [1, heads, width, capacity];
        let values = [1, heads, capacity, width];
        let heard = [[1, heads, width, 0], [1, heads, 0, width]];
        let inputs: [&[usize]; 6] = [&[1, 1], &[1], &keys, &values, &heard[0], &heard[1]];
        let new = [1, heads, width];
        let attention = [1, alignment_heads, 0];
        let outputs: [&[usize]; 4] = [&[1, tokens], &new, &new, &attention];
        Ok(Self {
            graph: Graph::load_shaped(pack, "decoder.onnx", &inputs, &outputs)?,
            cache: Cache {
                keys: zeros(&keys),
                values: zeros(&values),
                width,
                capacity,
            },
        })
    }

    /// Most tokens that an utterance can have.
    pub(super) fn capacity(&self) -> usize {
        self.cache.capacity
    }

    /// Starts on what the encoder heard.
    pub(super) fn begin<'a>(&'a mut self, heard: &'a Heard) -> Utterance<'a> {
        Utterance {
            decoder: self,
            heard,
            position: 0,
        }
    }
}

impl Utterance<'_> {
    /// What comes after `token`.
    pub(super) fn step(&mut self, token: u32) -> Result<Step, GraphError> {
        let Decoder { graph, cache } = &mut *self.decoder;
        let inputs = tvec!(
            tensor2(&[[i64::from(token)]]).into_tvalue(),
            tensor1(&[self.position as i64]).into_tvalue(),
            cache.keys.clone().into_tvalue(),
            cache.values.clone().into_tvalue(),
            self.heard.keys.clone(),
            self.heard.values.clone(),
        );
        let mut outputs = graph.run(inputs)?;
        cache.write(self.position, floats(&outputs[1])?, floats(&outputs[2])?)?;
        self.position += 1;
        Ok(Step {
            attention: mean_over_heads(&outputs[3])?,
            logits: outputs.remove(0),
        })
    }
}

/// From weights `[1, heads, frames]` to one for each frame.
fn mean_over_heads(weights: &Tensor) -> TractResult<Vec<f32>> {
    let &[_, heads, frames] = weights.shape() else {
        return Ok(Vec::new());
    };
    let mut mean = vec![0.0; frames];
    for head in floats(weights)?.chunks_exact(frames.max(1)) {
        for (mean, weight) in mean.iter_mut().zip(head) {
            *mean += weight / heads as f32;
        }
    }
    Ok(mean)
}

impl Cache {
    /// Stores the key and value of every head at one position.
    fn write(&mut self, position: usize, keys: &[f32], values: &[f32]) -> TractResult<()> {
        let mut stored = Arc::make_mut(&mut self.keys).try_as_plain_ram_mut()?;
        let rows = stored
            .as_slice_mut::<f32>()?
            .chunks_exact_mut(self.capacity);
        for (row, &key) in rows.zip(keys) {
            row[position] = key;
        }
        let mut stored = Arc::make_mut(&mut self.values).try_as_plain_ram_mut()?;
        let heads = stored
            .as_slice_mut::<f32>()?
            .chunks_exact_mut(self.capacity * self.width);
        for (head, value) in heads.zip(values.chunks_exact(self.width)) {
            head[position * self.width..][..self.width].copy_from_slice(value);
        }
        Ok(())
    }
}

fn zeros(shape: &[usize]) -> Arc<Tensor> {
    Arc::new(Tensor::from(tract_ndarray::ArrayD::<f32>::zeros(shape)))
}
