//! `cargo xtask fuzz`: any bytes into what reads files, archives and rows, guided by
//! coverage.
//!
//! `cargo fuzz` builds and runs the targets. It works with the compiler of the
//! workspace, since no sanitizer is asked for: the code under test is safe Rust,
//! whose faults are panics, endless loops and unbounded memory, and libFuzzer finds
//! these by itself. What it learns goes below the target folder; the committed
//! corpus stays as it is.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use crate::{
    process::{cargo, root, run_quietly, succeeds, target},
    progress::Step,
    report,
};

/// Where the targets and their corpora are.
const FUZZ_DIR: &str = "store/fuzz";
/// An input that takes longer is a fault, in seconds.
const SLOWEST: u32 = 30;
/// An input that takes more memory is one too, in MiB.
const MOST_MEMORY: u32 = 1024;

/// Options of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub struct Args {
    /// Time for all targets together; each gets its share
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// Where the dice start
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    seed: u32,
    /// Only this target
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Write the figures to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<()> {
    ensure!(
        succeeds(cargo().args(["fuzz", "--version"])),
        "cargo-fuzz is missing: `cargo install cargo-fuzz`, and a C++ compiler, for example \
         `apt-get install g++`"
    );
    let targets = chosen(args)?;
    let share = (args.seconds / targets.len() as u64).max(1);
    let mut figures = Vec::new();
    for name in &targets {
        build(name)?;
        let executions = fuzz(name, share, args.seed)?;
        figures.push(json!({ "target": name, "seconds": share, "executions": executions }));
    }
    match &args.json {
        Some(file) => report::write(file, "fuzz", &json!({ "targets": figures })),
        None => Ok(()),
    }
}

/// The targets are the corpora: there is none without.
fn chosen(args: &Args) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join(FUZZ_DIR).join("corpus"))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    if let Some(only) = &args.only {
        ensure!(
            names.contains(only),
            "there is no target {only}: choose one of {}",
            names.join(", ")
        );
        names.retain(|name| name == only);
    }
    Ok(names)
}

fn cargo_fuzz(verb: &str, name: &str) -> Command {
    let mut command = cargo();
    command.args(["fuzz", verb, "--fuzz-dir", FUZZ_DIR]);
    command.args(["--sanitizer", "none", "--debug-assertions"]);
    command.arg("--target-dir").arg(folder("build"));
    command.arg(name);
    command
}

/// What a run leaves, below the target folder.
fn folder(of: &str) -> PathBuf {
    target().join("fuzz").join(of)
}

fn build(name: &str) -> Result<()> {
    let step = Step::begin(name, "building");
    run_quietly(&mut cargo_fuzz("build", name), |line| step.at(line))?;
    step.end("built");
    Ok(())
}

/// Runs a target for some seconds; returns how often it was called.
fn fuzz(name: &str, seconds: u64, seed: u32) -> Result<u64> {
    let learned = folder("corpus").join(name);
    let faults = folder("artifacts").join(name);
    for folder in [&learned, &faults] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let mut command = cargo_fuzz("run", name);
    command
        .arg(&learned)
        .arg(root().join(FUZZ_DIR).join("corpus").join(name))
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-seed={seed}"))
        .arg(format!("-timeout={SLOWEST}"))
        .arg(format!("-rss_limit_mb={MOST_MEMORY}"))
        .arg(format!("-artifact_prefix={}/", faults.display()))
        .arg("-print_final_stats=1");
    let step = Step::begin(name, &format!("fuzzing for {seconds} s"));
    let mut executions = 0;
    let outcome = run_quietly(&mut command, |line| {
        step.at(line);
        if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
            executions = count.trim().parse().unwrap_or(0);
        }
    });
    match outcome {
        Err(error) => bail!("{error:#}\n{}", keep_advice(name, &faults)),
        Ok(_) if executions == 0 => bail!("{name} was never called: its corpus is unreadable"),
        Ok(_) => {
            step.end(&format!("{executions} executions, no fault"));
            Ok(executions)
        }
    }
}

fn keep_advice(name: &str, faults: &Path) -> String {
    format!(
        "the input is in {}: once it is mended, keep it in {FUZZ_DIR}/corpus/{name}, whose inputs \
         every test run reads",
        faults.display()
    )
}
