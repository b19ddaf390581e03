//! Everything that runs in tract, and the model packs it comes from.
//!
//! A pack is opened and verified ([`pack`]), then a model is loaded from it and
//! run by one caller at a time. Models are `Send`, start no threads and keep no
//! files open.

pub mod manifest;
pub mod pack;
