//! The crate from outside: made-up packs, and the real ones at work.

mod packs;
mod parity;
mod support;
mod vad;
mod voiceprint;
