//! What a microphone node does, without the hardware it does it on.
//!
//! ```text
//! capture -> high-pass -> energy gate -> samples, ADPCM or features -> frames -> link
//! ```
//!
//! [`Node`] is all of it but the two ends, which a board provides through
//! [`Board`]: a microphone, a serial link to the hub, and a clock. The programs of
//! the boards are in `boards/`; they hold nothing but drivers and a loop around
//! [`Node::step`].
//!
//! `no_std`, no heap, and no unbounded queue: what the link cannot take in time is
//! dropped frame by frame and counted, and so are samples that the microphone
//! lost. A node takes about 16 KiB of RAM, put it into a `static`.
#![no_std]

mod gate;
mod node;
mod outbox;

pub use node::Node;

use earwitness_api::node::BLOCK_SAMPLES;

/// 10 ms of sound.
#[derive(Clone)]
pub struct Block {
    /// Samples from power-on to the first of these, lost ones included.
    pub sample: u64,
    /// 16 kHz, mono.
    pub samples: [i16; BLOCK_SAMPLES],
}

/// The hardware of a node. No method waits.
pub trait Board {
    /// The oldest block that the microphone has recorded and nobody has taken. A
    /// board that had to throw samples away goes on counting them.
    fn capture(&mut self) -> Option<Block>;

    /// Hands bytes to the link; returns how many it took.
    fn write(&mut self, bytes: &[u8]) -> usize;

    /// A byte that came from the hub.
    fn read(&mut self) -> Option<u8>;

    /// A clock for measuring how long work takes: cycles where the processor counts
    /// them. Goes round.
    fn ticks(&mut self) -> u32;

    /// Bytes of stack that were ever in use; 0 where the board does not know.
    fn stack_bytes(&self) -> u32 {
        0
    }
}
