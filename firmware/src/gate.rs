//! Lets blocks pass while somebody may be speaking, and what came shortly before.

use crate::Block;
use earwitness_api::node::BLOCK_SAMPLES;
use earwitness_dsp::vad::{EnergyVad, EnergyVadOptions, VAD_FRAME};
use heapless::Deque;

const _: () = assert!(VAD_FRAME == BLOCK_SAMPLES, "one decision a block");

/// Blocks kept while the gate is closed: 100 ms, since it opens some frames after a
/// soft onset.
const PRE_ROLL: usize = 10;

pub(crate) struct Gate {
    vad: EnergyVad,
    before: Deque<Block, PRE_ROLL>,
}

impl Gate {
    #[inline(always)]
    pub fn new() -> Self {
        Self {
            vad: EnergyVad::new(EnergyVadOptions::default()),
            before: Deque::new(),
        }
    }

    /// Whether there may be speech in this block.
    pub fn judge(&mut self, block: &Block) -> bool {
        let samples = block.samples.map(|sample| f32::from(sample) / 32_768.0);
        let mut open = false;
        self.vad.push(&samples, |decision| open = decision);
        open
    }

    /// Keeps a block for when the gate opens, and lets go of the oldest.
    pub fn keep(&mut self, block: Block) {
        if self.before.is_full() {
            self.before.pop_front();
        }
        // There is room: one was let go.
        let _ = self.before.push_back(block);
    }

    /// The oldest block that was kept.
    pub fn release(&mut self) -> Option<Block> {
        self.before.pop_front()
    }
}
