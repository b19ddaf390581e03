//! What nodes with a real microphone share: the queue behind it, and the loop around
//! the node.
//!
//! A board's program brings two tasks: one hands every 10 ms that its microphone
//! recorded to a [`Recorder`], the other ends in [`run`] with the two halves of its
//! serial port. Recording never waits for the node: a block that finds the queue full
//! is lost, and the stamp of the next one tells.
#![no_std]

use core::task::Poll;

use cortex_m::peripheral::DWT;
use defmt::info;
use earwitness_api::node::BLOCK_SAMPLES;
use earwitness_firmware::{Block, Board, Node};
use embassy_futures::{poll_once, select::select};
use embassy_sync::{blocking_mutex::raw::CriticalSectionRawMutex, channel::Channel};
use embedded_io_async::{BufRead, Write};
use static_cell::StaticCell;

/// Blocks between the microphone and the node: 40 ms.
static RECORDED: Channel<CriticalSectionRawMutex, Block, 4> = Channel::new();

static NODE: StaticCell<Node> = StaticCell::new();

/// Stamps what a microphone records.
#[derive(Default)]
pub struct Recorder {
    sample: u64,
}

impl Recorder {
    /// Takes the next 10 ms.
    pub fn push(&mut self, samples: [i16; BLOCK_SAMPLES]) {
        let sample = self.sample;
        self.sample += BLOCK_SAMPLES as u64;
        let _ = RECORDED.try_send(Block { sample, samples });
    }
}

/// Is a node for ever; `id` is a number of the chip's own.
pub async fn run(id: u32, receiver: impl BufRead, sender: impl Write) -> ! {
    let mut core = cortex_m::Peripherals::take().expect("nobody took them before");
    core.DCB.enable_trace();
    core.DWT.enable_cycle_counter();
    info!("node {=u32:08x} listens", id);
    let node = NODE.init_with(|| Node::new(id));
    let mut board = Live { receiver, sender };
    loop {
        while node.step(&mut board) {}
        // What still waits for the link goes with the next block.
        let _ = select(RECORDED.ready_to_receive(), board.receiver.fill_buf()).await;
    }
}

/// The board as the node sees it.
struct Live<R, W> {
    receiver: R,
    sender: W,
}

impl<R: BufRead, W: Write> Board for Live<R, W> {
    fn capture(&mut self) -> Option<Block> {
        RECORDED.try_receive().ok()
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        match poll_once(self.sender.write(bytes)) {
            Poll::Ready(Ok(taken)) => taken,
            // Full, or in trouble: it takes bytes again later.
            Poll::Ready(Err(_)) | Poll::Pending => 0,
        }
    }

    fn read(&mut self) -> Option<u8> {
        let Poll::Ready(Ok(bytes)) = poll_once(self.receiver.fill_buf()) else {
            return None;
        };
        let byte = bytes.first().copied()?;
        self.receiver.consume(1);
        Some(byte)
    }

    fn ticks(&mut self) -> u32 {
        DWT::cycle_count()
    }

    fn stack_bytes(&self) -> u32 {
        stack::used_bytes()
    }
}
