//! Drivers and main loop of the MPS boards that QEMU emulates.
//!
//! Their stand-in for a microphone is a second serial port: whoever feeds it 16-bit
//! little-endian samples is the microphone, and as fast as the node listens. So a
//! run loses nothing and gives the same frames on a slow machine as on a fast one.
#![no_std]

mod uart;

use core::panic::PanicInfo;

use cortex_m::asm::wfi;
use cortex_m::interrupt::InterruptNumber;
use cortex_m::peripheral::{NVIC, SYST, syst::SystClkSource};
use cortex_m_semihosting::{debug, hio};
use earwitness_api::node::BLOCK_SAMPLES;
use earwitness_firmware::{Block, Board, Node};
use static_cell::StaticCell;

pub use uart::Uart;

/// The clock has 24 bits.
const TICKS_MASK: u32 = 0x00ff_ffff;

static NODE: StaticCell<Node> = StaticCell::new();

/// An interrupt line, by its number.
#[derive(Clone, Copy)]
pub struct Interrupt(pub u16);

// SAFETY: the number is what it says, and does not change.
unsafe impl InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        self.0
    }
}

/// An MPS board: one port to the hub, one from the microphone, and SysTick as clock.
pub struct Mps {
    link: Uart,
    microphone: Uart,
    interrupts: &'static [Interrupt],
    last_count: u32,
    ticks: u32,
    block: Block,
    filled_bytes: usize,
}

impl Mps {
    /// Takes the board's hardware into use; `interrupts` are those of both ports.
    pub fn new(
        link: Uart,
        microphone: Uart,
        interrupts: &'static [Interrupt],
        mut clock: SYST,
    ) -> Self {
        // A pending interrupt ends a sleep also where it is masked, so that no
        // handler is needed.
        cortex_m::interrupt::disable();
        for &interrupt in interrupts {
            // SAFETY: with all interrupts masked no handler runs.
            unsafe { NVIC::unmask(interrupt) };
        }
        clock.set_clock_source(SystClkSource::Core);
        clock.set_reload(TICKS_MASK);
        clock.clear_current();
        clock.enable_counter();
        Self {
            link,
            microphone,
            interrupts,
            last_count: 0,
            ticks: 0,
            block: Block {
                sample: 0,
                samples: [0; BLOCK_SAMPLES],
            },
            filled_bytes: 0,
        }
    }

    /// Is a node for ever.
    pub fn run(mut self, id: u32) -> ! {
        let node = NODE.init_with(|| Node::new(id));
        loop {
            if !node.step(&mut self) {
                wfi();
                self.clear_interrupts();
            }
        }
    }

    fn clear_interrupts(&mut self) {
        self.link.clear_interrupts();
        self.microphone.clear_interrupts();
        self.interrupts.iter().copied().for_each(NVIC::unpend);
    }

    /// Puts a byte from the microphone into its sample.
    fn fill(&mut self, byte: u8) {
        let sample = &mut self.block.samples[self.filled_bytes / 2];
        let [low, _] = sample.to_le_bytes();
        *sample = match self.filled_bytes % 2 {
            0 => i16::from_le_bytes([byte, 0]),
            _ => i16::from_le_bytes([low, byte]),
        };
        self.filled_bytes += 1;
    }
}

impl Board for Mps {
    fn capture(&mut self) -> Option<Block> {
        while self.filled_bytes < 2 * BLOCK_SAMPLES {
            let byte = self.microphone.read()?;
            self.fill(byte);
        }
        let block = self.block.clone();
        self.block.sample += BLOCK_SAMPLES as u64;
        self.filled_bytes = 0;
        Some(block)
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.iter().take_while(|&&byte| self.link.write(byte));
        taken.count()
    }

    fn read(&mut self) -> Option<u8> {
        self.link.read()
    }

    fn ticks(&mut self) -> u32 {
        // SysTick counts down. Only differences between close calls mean something.
        let count = SYST::get_current();
        let passed = self.last_count.wrapping_sub(count) & TICKS_MASK;
        self.last_count = count;
        self.ticks = self.ticks.wrapping_add(passed);
        self.ticks
    }

    fn stack_bytes(&self) -> u32 {
        stack::used_bytes()
    }
}

/// Says where a program broke its own rules, and ends the emulation.
pub fn give_up(info: &PanicInfo) -> ! {
    if let (Some(location), Ok(mut out)) = (info.location(), hio::hstderr()) {
        // The emulation ends whether this is seen or not.
        let _ = out.write_all(b"the firmware panicked in ");
        let _ = out.write_all(location.file().as_bytes());
        let _ = out.write_all(b"\n");
    }
    loop {
        debug::exit(debug::EXIT_FAILURE);
    }
}
