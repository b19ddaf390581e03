//! Text embedding: a sentence becomes a vector whose dot product with another
//! says how alike the two are in meaning.
//!
//! The model is all-MiniLM-L6-v2 (Reimers and Gurevych, "Sentence-BERT", 2019;
//! Wang et al., "MiniLM", 2020), built by `models/recipes/embed.py`. Text beyond
//! the manifest's longest input is ignored.

mod wordpiece;

use tract_onnx::prelude::*;

use crate::graph::{Graph, GraphError, LoadError, floats};
use crate::manifest::FrontEnd;
use crate::pack::Pack;
use wordpiece::WordPiece;

/// Embeds texts one at a time.
pub struct TextEmbedder {
    tokenizer: WordPiece,
    encoder: Graph,
    dim: usize,
}

impl TextEmbedder {
    /// Loads the pack's vocabulary and graph.
    pub fn load(pack: &Pack) -> Result<Self, LoadError> {
        let FrontEnd::WordPiece {
            lower_case: true,
            max_tokens,
        } = pack.manifest.front_end
        else {
            return Err(pack
                .malformed("the front end is not lower-case WordPiece")
                .into());
        };
        let &[dim] = &pack.manifest.output.shape[..] else {
            return Err(pack.malformed("the output is not a vector").into());
        };
        let vocabulary = pack.read_text("vocabulary.txt")?;
        let tokenizer =
            WordPiece::new(&vocabulary, max_tokens).map_err(|error| pack.malformed(error))?;
        let encoder = Graph::load_shaped(pack, "encoder.onnx", &[&[1, 0]], &[&[1, dim]])?;
        Ok(Self {
            tokenizer,
            encoder,
            dim,
        })
    }

    /// Length of a vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The token ids that the model is given for `text`.
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        self.tokenizer.encode(text)
    }

    /// The embedding of `text`, of length 1; an empty text has one too.
    pub fn embed(&mut self, text: &str) -> Result<Vec<f32>, GraphError> {
        let tokens: Vec<i64> = self.tokens(text).into_iter().map(i64::from).collect();
        let input = Tensor::from_shape(&[1, tokens.len()], &tokens)?;
        let output = self.encoder.run(tvec!(input.into_tvalue()))?;
        Ok(floats(&output[0])?.to_vec())
    }
}
