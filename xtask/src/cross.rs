//! What the tests check for other machines than this one: the kernels on 64-bit
//! Arm, and the crates of a microphone node on a microcontroller.

use anyhow::Result;

use crate::{process::step, toolchain::Toolchain};

/// Processors that the signal processing is tested on: every extension that QEMU
/// knows, and a core without the dot product instructions.
const ARM_CORES: &[&str] = &["max", "cortex-a53"];

/// The crates of a microphone node, with each FFT that it may choose.
const NODE_CRATES: &[(&str, &[&str])] = &[
    ("earwitness-dsp", &[]),
    ("earwitness-dsp", &["--features", "microfft"]),
    ("earwitness-api", &[]),
];

/// Runs the checks; says what is missing where one cannot run.
pub fn check() -> Result<()> {
    let with = |triple, check: fn(&Toolchain) -> Result<()>| match Toolchain::find(triple) {
        Ok(toolchain) => check(&toolchain),
        Err(missing) => {
            eprintln!("\n== left out: {missing}");
            Ok(())
        }
    };
    with("aarch64-unknown-linux-gnu", arm)?;
    with("thumbv7em-none-eabihf", microcontroller)
}

fn arm(toolchain: &Toolchain) -> Result<()> {
    for core in ARM_CORES {
        let mut tests = toolchain.cargo("test");
        tests.args(["--quiet", "-p", "earwitness-dsp", "--tests"]);
        if let Err(missing) = toolchain.emulate(&mut tests, core) {
            eprintln!("\n== left out: {missing}");
            return Ok(());
        }
        step(&format!("tests on Arm ({core})"), &mut tests)?;
    }
    Ok(())
}

fn microcontroller(toolchain: &Toolchain) -> Result<()> {
    for (package, features) in NODE_CRATES {
        let mut build = toolchain.cargo("build");
        build
            .args(["--quiet", "-p", package, "--no-default-features"])
            .args(*features);
        step("bare metal", &mut build)?;
    }
    Ok(())
}
