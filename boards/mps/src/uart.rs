//! The serial port of ARM's Cortex-M System Design Kit (APB UART), polled; its
//! interrupts only end a sleep.

/// Register offsets in words, and bits: Cortex-M System Design Kit Technical
/// Reference Manual, table 4-8.
const DATA: usize = 0;
const STATE: usize = 1;
const CTRL: usize = 2;
const INTERRUPTS: usize = 3;
const BAUDDIV: usize = 4;

const TX_FULL: u32 = 1 << 0;
const RX_FULL: u32 = 1 << 1;
const TX_AND_RX_ENABLE: u32 = 0b11;
const TX_AND_RX_INTERRUPT: u32 = 0b11 << 2;
const ALL_INTERRUPTS: u32 = 0b1111;
/// The smallest divider that the port accepts; an emulated wire has no speed.
const SMALLEST_DIVIDER: u32 = 16;

/// One serial port.
pub struct Uart {
    registers: *mut u32,
}

impl Uart {
    /// Switches a port on.
    ///
    /// # Safety
    /// At `address` must be such a port, and nobody else may use it.
    pub unsafe fn new(address: usize) -> Self {
        let mut uart = Self {
            registers: core::ptr::with_exposed_provenance_mut(address),
        };
        uart.set(BAUDDIV, SMALLEST_DIVIDER);
        uart.set(CTRL, TX_AND_RX_ENABLE | TX_AND_RX_INTERRUPT);
        uart
    }

    /// A byte that arrived.
    pub fn read(&mut self) -> Option<u8> {
        (self.get(STATE) & RX_FULL != 0).then(|| self.get(DATA) as u8)
    }

    /// Sends a byte; `false` if the port is busy with the one before.
    pub fn write(&mut self, byte: u8) -> bool {
        let free = self.get(STATE) & TX_FULL == 0;
        if free {
            self.set(DATA, byte.into());
        }
        free
    }

    /// Takes back what woke the processor.
    pub fn clear_interrupts(&mut self) {
        self.set(INTERRUPTS, ALL_INTERRUPTS);
    }

    fn get(&self, register: usize) -> u32 {
        // SAFETY: who made this value promised that the port is there; its registers
        // are aligned words.
        unsafe { self.registers.wrapping_add(register).read_volatile() }
    }

    fn set(&mut self, register: usize, value: u32) {
        // SAFETY: as for reading, and nobody else uses the port.
        unsafe { self.registers.wrapping_add(register).write_volatile(value) }
    }
}
