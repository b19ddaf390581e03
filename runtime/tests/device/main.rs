//! The real program with the real packs, as a device would run it.
#![allow(clippy::unwrap_used)]

mod bad_input;
mod daemon;
mod device;
mod faults;
mod hearing;
mod keeping;
mod memory;
mod nodes;
mod voices;
