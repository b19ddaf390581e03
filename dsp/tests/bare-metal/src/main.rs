//! The tests that every target shares, on a microcontroller.
//!
//! Runs under QEMU and tells the outcome by its exit status, over semihosting.
#![no_std]
#![no_main]

#[path = "../../scan_case/mod.rs"]
mod scan_case;

use cortex_m_rt::entry;
use earwitness_dsp::scan::Kernel;
use semihosting::{println, process};

#[entry]
fn main() -> ! {
    // Otherwise the test would pass without the kernel that it is for.
    assert_eq!(Kernel::best().name(), "cortex-m-smlad");
    for kernel in Kernel::available() {
        assert_eq!(scan_case::checksum(kernel), scan_case::CHECKSUM, "{}", kernel.name());
        println!("scan with {}: ok", kernel.name());
    }
    process::exit(0)
}
