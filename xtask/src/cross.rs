//! What the tests check for other machines than this one: the signal processing
//! on 64-bit Arm, and the crates of a microphone node on a microcontroller.
//!
//! A check whose tools are missing is left out, and says how to get them.

use anyhow::Result;

use crate::{process::step, toolchain::Toolchain};

/// Processors with every extension that the emulator knows, without any, and
/// what is tested there.
const ARM_CORES: &[(&str, &[&str])] = &[("max", &["--tests"]), ("cortex-a53", &["--test", "scan"])];

/// A board with a Cortex-M4.
const BOARD: &str = "mps2-an386";

/// The crates of a microphone node, with each FFT that it may choose.
const NODE_CRATES: &[(&str, &[&str])] = &[
    ("earwitness-dsp", &[]),
    ("earwitness-dsp", &["--features", "microfft"]),
    ("earwitness-api", &[]),
];

/// The tests that a microcontroller shares with the hub.
const NODE_TESTS: &str = "dsp/tests/bare-metal/Cargo.toml";

/// Runs the checks whose tools are there.
pub fn check() -> Result<()> {
    arm()?;
    microcontroller()
}

fn arm() -> Result<()> {
    let Some(toolchain) = there(Toolchain::find("aarch64-unknown-linux-gnu")) else {
        return Ok(());
    };
    for (core, tested) in ARM_CORES {
        let mut tests = toolchain.cargo("test");
        tests
            .args(["--quiet", "-p", "earwitness-dsp"])
            .args(*tested);
        if there(toolchain.emulate(&mut tests, core)).is_some() {
            step(&format!("tests on 64-bit Arm ({core})"), &mut tests)?;
        }
    }
    Ok(())
}

fn microcontroller() -> Result<()> {
    let Some(toolchain) = there(Toolchain::find("thumbv7em-none-eabihf")) else {
        return Ok(());
    };
    for (package, features) in NODE_CRATES {
        let mut build = toolchain.cargo("build");
        build
            .args(["--quiet", "-p", package, "--no-default-features"])
            .args(*features);
        step("bare metal", &mut build)?;
    }
    let mut tests = toolchain.cargo("run");
    tests.args(["--quiet", "--manifest-path", NODE_TESTS]);
    if there(toolchain.emulate(&mut tests, BOARD)).is_some() {
        step("tests on a microcontroller", &mut tests)?;
    }
    Ok(())
}

/// What was found, or a word about what is missing.
fn there<T>(found: Result<T>) -> Option<T> {
    found
        .inspect_err(|missing| eprintln!("\n== left out: {missing}"))
        .ok()
}
