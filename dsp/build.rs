//! Says whether the target is a Cortex-M with the DSP extension, which stable
//! Rust does not tell: every core of Armv7E-M has it, of later ones not all.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(cortex_m_dsp)");
    if env::var("TARGET").is_ok_and(|target| target.starts_with("thumbv7em-")) {
        println!("cargo::rustc-cfg=cortex_m_dsp");
    }
}
