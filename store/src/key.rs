//! One retrieval key: who, what and when as three int8 blocks (PERSIST section
//! 2.2), each with its own scale.
//!
//! A block stands for the real vector `scale * values`. A block whose scale is 0
//! stands for "not known" and scores 0 against everything.

use earwitness_dsp::quantize::quantize_i8;
use serde::{Deserialize, Serialize};

/// The largest scale of a block. With it every score is a finite number.
pub const MAX_SCALE: f32 = 1e6;

/// How many values each block of a key has; one layout holds for a whole store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyLayout {
    /// Values of the semantic block.
    pub semantic: u16,
    /// Values of the speaker block.
    pub speaker: u16,
    /// Values of the temporal block.
    pub temporal: u16,
}

impl KeyLayout {
    /// Values of a whole key: semantic, speaker, temporal, in this order.
    pub fn values(&self) -> usize {
        self.ends()[2]
    }

    /// Sizes of the three blocks, in their order within a key.
    pub(crate) fn sizes(&self) -> [usize; 3] {
        [self.semantic, self.speaker, self.temporal].map(usize::from)
    }

    /// Where the three blocks end within a key.
    pub(crate) fn ends(&self) -> [usize; 3] {
        let semantic = usize::from(self.semantic);
        let speaker = semantic + usize::from(self.speaker);
        [semantic, speaker, speaker + usize::from(self.temporal)]
    }
}

/// One block of a key: the vector `scale * values`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// From 0 to [`MAX_SCALE`].
    pub scale: f32,
    /// The quantised values.
    pub values: Vec<i8>,
}

impl Block {
    /// The closest block to a vector of finite numbers.
    pub fn quantize(vector: &[f32]) -> Self {
        let mut values = vec![0; vector.len()];
        let scale = quantize_i8(vector, &mut values);
        Self { scale, values }
    }

    /// The vector that the block stands for.
    pub fn dequantize(&self) -> Vec<f32> {
        let values = self.values.iter();
        values.map(|&value| self.scale * f32::from(value)).collect()
    }

    /// The block of something that is not known.
    pub fn unknown(dim: u16) -> Self {
        Self {
            scale: 0.0,
            values: vec![0; usize::from(dim)],
        }
    }
}

/// The key of one record, or of a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Key {
    /// What was said.
    pub semantic: Block,
    /// Who said it.
    pub speaker: Block,
    /// When it was said.
    pub temporal: Block,
}

/// Why a key was refused.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum KeyError {
    /// The blocks have other sizes than the store's keys.
    #[error(
        "a key of {found:?} does not fit a memory with keys of {expected:?}: use the model packs \
         that this memory was written with, or begin a new memory"
    )]
    Layout {
        /// The layout of the store.
        expected: KeyLayout,
        /// The layout of the key.
        found: KeyLayout,
    },
    /// A block has more values than a layout can say.
    #[error("a key block has {0} values, the most is 65535: use a smaller model")]
    TooLong(usize),
    /// A scale is not a number from 0 to [`MAX_SCALE`].
    #[error("a key block has the scale {0}: it has to be a number from 0 to {MAX_SCALE}")]
    Scale(f32),
}

impl Key {
    /// The sizes of the three blocks.
    pub fn layout(&self) -> Result<KeyLayout, KeyError> {
        let dim = |block: &Block| {
            u16::try_from(block.values.len()).map_err(|_| KeyError::TooLong(block.values.len()))
        };
        Ok(KeyLayout {
            semantic: dim(&self.semantic)?,
            speaker: dim(&self.speaker)?,
            temporal: dim(&self.temporal)?,
        })
    }

    /// Whether scales are in range and, where a layout is given, the sizes fit.
    pub(crate) fn check(&self, expected: Option<KeyLayout>) -> Result<KeyLayout, KeyError> {
        if let Some(scale) = self.scales().into_iter().find(|scale| !in_range(*scale)) {
            return Err(KeyError::Scale(scale));
        }
        let found = self.layout()?;
        match expected {
            Some(expected) if expected != found => Err(KeyError::Layout { expected, found }),
            _ => Ok(found),
        }
    }

    pub(crate) fn blocks(&self) -> [&Block; 3] {
        [&self.semantic, &self.speaker, &self.temporal]
    }

    pub(crate) fn scales(&self) -> [f32; 3] {
        self.blocks().map(|block| block.scale)
    }
}

/// Whether a block may have this scale.
pub(crate) fn in_range(scale: f32) -> bool {
    (0.0..=MAX_SCALE).contains(&scale)
}
