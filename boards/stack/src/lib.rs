//! How much of the stack a node ever used.
//!
//! `cortex-m-rt` paints the stack before `main` (its feature `paint-stack`); what no
//! longer has the paint was used.
#![no_std]

use core::ptr::addr_of;

use cortex_m_rt::STACK_PAINT_VALUE;

unsafe extern "C" {
    // Symbols of cortex-m-rt's linker script; only their addresses mean something.
    static _stack_start: u32;
    static _stack_end: u32;
}

/// Bytes of stack that were ever in use.
pub fn used_bytes() -> u32 {
    let top = addr_of!(_stack_start);
    let mut word = addr_of!(_stack_end);
    // SAFETY: all addresses from `_stack_end` to `_stack_start` are RAM that was
    // painted before `main`, and aligned. A word that is being used may change
    // between two reads, which a volatile read allows for.
    while word < top && unsafe { word.read_volatile() } == STACK_PAINT_VALUE {
        word = word.wrapping_add(1);
    }
    (top.addr() - word.addr()) as u32
}
