//! A microphone node on QEMU's `mps3-an547`: ARM's MPS board with a Cortex-M55.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

use cortex_m::Peripherals;
use cortex_m_rt::entry;
use mps::{Interrupt, Mps, Uart};

/// Serial ports of the FPGA image: the first is the link to the hub, the second
/// brings the microphone.
const LINK: usize = 0x5930_3000;
const MICROPHONE: usize = 0x5930_4000;
/// Receiving and sending on the link, receiving from the microphone.
static INTERRUPTS: [Interrupt; 3] = [Interrupt(33), Interrupt(34), Interrupt(35)];

#[entry]
fn main() -> ! {
    let peripherals = Peripherals::take().expect("nobody took them before");
    // SAFETY: the addresses are those of the FPGA image, and only this uses them.
    let (link, microphone) = unsafe { (Uart::new(LINK), Uart::new(MICROPHONE)) };
    Mps::new(link, microphone, &INTERRUPTS, peripherals.SYST).run(547)
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    mps::give_up(info)
}
