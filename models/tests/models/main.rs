//! The crate from outside: made-up packs, and the real ones at work.

#![allow(clippy::unwrap_used)]

mod asr;
mod embed;
mod packs;
mod parity;
mod streaming;
mod support;
mod vad;
mod voiceprint;
