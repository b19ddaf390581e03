//! Frames on their way to the link.

use crate::Board;
use earwitness_api::frame::{self, NODE_FRAME_BYTES};
use earwitness_api::node::NodeFrame;
use heapless::Deque;

/// Bytes that may wait: 230 ms of raw samples.
const CAPACITY: usize = 8 * 1024;

/// A queue of bytes that takes whole frames or nothing.
pub(crate) struct Outbox {
    waiting: Deque<u8, CAPACITY>,
    frame: [u8; NODE_FRAME_BYTES],
}

impl Outbox {
    #[inline(always)]
    pub const fn new() -> Self {
        Self {
            waiting: Deque::new(),
            frame: [0; NODE_FRAME_BYTES],
        }
    }

    /// Puts a frame at the end; `false` if there is no room for it.
    pub fn put(&mut self, frame: &NodeFrame) -> bool {
        let Ok(bytes) = frame::encode(frame, &mut self.frame) else {
            return false;
        };
        let fits = bytes.len() <= CAPACITY - self.waiting.len();
        if fits {
            self.waiting.extend(bytes);
        }
        fits
    }

    /// Writes what the link takes now; returns whether it took anything.
    pub fn flush(&mut self, board: &mut impl Board) -> bool {
        let mut any = false;
        loop {
            let (front, _) = self.waiting.as_slices();
            let written = board.write(front);
            for _ in 0..written {
                self.waiting.pop_front();
            }
            if written == 0 {
                return any;
            }
            any = true;
        }
    }
}
