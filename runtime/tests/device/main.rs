//! The real program with the real packs, as a device would run it.

mod bad_input;
mod daemon;
mod device;
mod memory;
