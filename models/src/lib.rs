//! Everything that runs in tract, and the model packs it comes from.
//!
//! A pack is opened and verified ([`pack`]), then a model is loaded from it and
//! run by one caller at a time. Models are `Send`, start no threads and keep no
//! files open.
#![forbid(unsafe_code)]

pub mod asr;
pub mod embed;
mod graph;
pub mod manifest;
mod operators;
pub mod pack;
pub mod parity;
pub mod threew;
pub mod vad;
pub mod voiceprint;

pub use graph::{GraphError, LoadError, operator_counts};
