//! The programs of microphone nodes: building, measuring, and running them under QEMU.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::boards::{self, Board, Class, Flash};
use crate::disassembly::Program;
use crate::process::{Build, cargo, root, run};
use crate::sizes::Size;
use crate::toolchain::Toolchain;

/// Functions that must do without floats, by a part of their names.
const FLOAT_FREE: &str = "FixedTables>::features";

/// What of the results is shown.
pub const GIST: &[&str] = &[
    "gaps",
    "records_equal",
    "instructions_per_frame",
    "ram_bytes",
    "flash_bytes",
];

/// What the tests check of nodes: what is emulated runs, within its budget, and the
/// fixed-point front end is free of floats.
pub fn check() -> Result<()> {
    for board in boards::all()? {
        if board.class == Class::MicNode && matches!(board.flash, Flash::Emulator { .. }) {
            let toolchain = Toolchain::find(&board.target);
            if let Err(missing) = toolchain.and_then(|toolchain| toolchain.emulator()) {
                eprintln!("\n== node {} left out: {missing}", board.name);
                continue;
            }
            eprintln!("\n== node {}", board.name);
            emulate(&board, 6)?;
        }
    }
    Ok(())
}

/// Runs a node over some seconds of sound; returns the figures.
pub fn emulate(board: &Board, seconds: usize) -> Result<Value> {
    let Flash::Emulator { machine, clock_hz } = &board.flash else {
        bail!(
            "{} is no emulated board: `cargo xtask boards` lists those that are",
            board.name
        );
    };
    let Some(clock_hz) = clock_hz else {
        bail!("{} says nothing of its clock", board.name);
    };
    let emulator = Toolchain::find(&board.target)?.emulator()?;
    let elf = build(board)?;
    let size = Size::of(&elf)?;
    size.check(board)?;
    float_free(&Program::read(&elf)?)?;
    // One instruction takes a nanosecond of the emulated time.
    let instructions_per_tick = 1e9 / f64::from(*clock_hz);
    let mut check = node_check(seconds, instructions_per_tick)?;
    check
        .args(["--", emulator, "-machine", machine])
        .args(["-display", "none", "-monitor", "none", "-icount", "shift=0"])
        .args(["-semihosting-config", "enable=on,target=native"])
        .args(["-serial", "tcp:{link}", "-serial", "tcp:{microphone}"])
        .arg("-kernel")
        .arg(&elf);
    let output = check
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start node-check")?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "the node failed its check: {said}");
    let mut results: Value = serde_json::from_str(&said)?;
    results["ram_bytes"] = json!(size.ram + size.stack);
    results["flash_bytes"] = json!(size.flash);
    Ok(results)
}

/// The program at the other end of the node's wires, built; the emulator's command
/// line comes behind its own.
fn node_check(seconds: usize, instructions_per_tick: f64) -> Result<Command> {
    run(cargo().args(["build", "--quiet", "-p", "earwitness-node", "--bins"]))?;
    let mut check = Command::new(Build::Test.program("node-check"));
    check
        .arg("--sound")
        .arg(root().join("tests/data/household/audio"))
        .arg(format!("--seconds={seconds}"))
        .arg(format!("--instructions-per-tick={instructions_per_tick}"));
    Ok(check)
}

/// Builds the program of a node; returns its file.
pub fn build(board: &Board) -> Result<PathBuf> {
    ensure!(
        board.has_program(),
        "{} has no program of its own: boards/README.md says which boards have",
        board.name
    );
    let toolchain = Toolchain::find(&board.target)?;
    let mut build = toolchain.cargo("build");
    build
        .current_dir(root().join("boards"))
        .args(["--quiet", "--release", "-p", &board.name]);
    run(&mut build)?;
    Ok(toolchain.built("release").join(&board.name))
}

/// Fails where the fixed-point front end uses a float.
fn float_free(program: &Program) -> Result<()> {
    let roots: Vec<&str> = program.named(FLOAT_FREE).collect();
    ensure!(
        !roots.is_empty(),
        "the program holds no `{FLOAT_FREE}`: it cannot be checked for floats"
    );
    for root in roots {
        if let Some((function, instruction)) = program.float_in(root) {
            bail!("the fixed-point front end uses floats: `{instruction}` in {function}");
        }
    }
    Ok(())
}
