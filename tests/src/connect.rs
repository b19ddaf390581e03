//! The system's own parts, put behind the seams of the evaluations.

mod hearing;
mod threew;
mod tracker;

pub use hearing::{Ear, Hearing, recognize, recordings};
pub use threew::ThreeW;
pub use tracker::Tracker;

use anyhow::Result;
use earwitness_models::embed::TextEmbedder;

use crate::retrieval::Embed;

impl Embed for TextEmbedder {
    fn embed(&mut self, text: &str) -> Result<Vec<f32>> {
        Ok(Self::embed(self, text)?)
    }
}
