//! Building for microcontrollers, with whatever toolchain this machine has.
//!
//! First choice is a target that rustup installed. Failing that, the
//! distribution's own Rust (Debian: `rustc-web`, `cargo-web`, `rust-web-src`)
//! builds the core library from its sources.

use std::{path::Path, process::Command};

use anyhow::Result;

use crate::process::{cargo, root, step, succeeds, target};

/// The microcontroller target that the shared crates must build for.
const TARGET: &str = "thumbv7em-none-eabihf";

/// The crates of a microphone node, with each FFT that it may choose.
const CRATES: &[(&str, &[&str])] = &[
    ("earwitness-dsp", &[]),
    ("earwitness-dsp", &["--features", "microfft"]),
    ("earwitness-api", &[]),
];

/// Builds the shared crates for [`TARGET`]; says what is missing where it cannot.
pub fn check() -> Result<()> {
    let Some(build) = toolchain() else {
        eprintln!(
            "\n== bare metal: left out, since no toolchain for {TARGET} was found; \
             `rustup target add {TARGET}`, or on Debian: apt install rustc-web cargo-web rust-web-src"
        );
        return Ok(());
    };
    for (package, features) in CRATES {
        let mut command = build();
        command
            .args(["-p", package, "--no-default-features"])
            .args(*features);
        step("bare metal", &mut command)?;
    }
    Ok(())
}

type Build = fn() -> Command;

fn toolchain() -> Option<Build> {
    let installed = Command::new("rustup")
        .args(["target", "list", "--installed"])
        .current_dir(root())
        .output()
        .is_ok_and(|output| {
            String::from_utf8_lossy(&output.stdout)
                .lines()
                .any(|line| line == TARGET)
        });
    if installed {
        return Some(with_rustup);
    }
    let sources = Path::new("/usr/lib/rustlib/src/rust/library/core").exists()
        || succeeds(Command::new("dpkg").args(["-s", "rust-web-src"]));
    (sources && Path::new("/usr/bin/cargo").exists()).then_some(with_distribution as Build)
}

fn with_rustup() -> Command {
    let mut command = cargo();
    command.args(["build", "--quiet", "--target", TARGET]);
    command
}

fn with_distribution() -> Command {
    let mut command = Command::new("/usr/bin/cargo");
    command
        .current_dir(root())
        // Cargo and the compiler must be of the same version here.
        .env("RUSTC", "/usr/bin/rustc")
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove("RUSTUP_TOOLCHAIN")
        .args(["build", "--quiet", "-Zbuild-std=core", "--target", TARGET])
        .arg("--target-dir")
        .arg(target().join("bare-metal"));
    command
}
