//! `cargo xtask bench`: how fast a part is, beside peers and floors measured in the
//! same run.

use std::{ffi::OsString, process::Command};

use anyhow::Result;
use clap::ValueEnum;

use crate::{
    models,
    process::{Build, cargo, run},
};

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub struct Args {
    /// What to measure; everything, one after the other, if it is not said
    #[arg(value_enum)]
    name: Option<Name>,
    /// Passed on to the benchmark: `--json FILE`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// A benchmark and the program that runs it.
#[derive(Clone, Copy, ValueEnum)]
enum Name {
    /// Voiceprints of 3 s, beside onnxruntime
    Voiceprint,
    /// Words, beside the recognizers of EARWITNESS_PEERS
    Asr,
    /// Evidence and keys, beside the indices of EARWITNESS_PEERS
    Retrieval,
    /// Scoring of keys, beside the memory's bandwidth
    Kernels,
    /// The memory on disk, beside SQLite
    Store,
}

pub fn run_all(args: &Args) -> Result<()> {
    match args.name {
        Some(name) => bench(name, &args.rest),
        None => Name::value_variants()
            .iter()
            .try_for_each(|&name| bench(name, &args.rest)),
    }
}

fn bench(name: Name, rest: &[OsString]) -> Result<()> {
    let mut command = match name {
        Name::Voiceprint => harness("voiceprint")?,
        Name::Asr => harness("asr")?,
        Name::Retrieval => harness("retrieval")?,
        Name::Kernels => of_crate("earwitness-dsp", "kernels"),
        Name::Store => of_crate("earwitness-store", "store"),
    };
    run(command.args(rest))
}

/// A benchmark of the harness, with the packs and the Python that made them.
fn harness(name: &str) -> Result<Command> {
    let packs = models::ensure(Build::Release)?;
    let python = models::python()?;
    Build::Release.make()?;
    let mut harness = Command::new(Build::Release.program("harness"));
    harness
        .args(["bench", name])
        .env("EARWITNESS_PACKS", packs)
        .env("EARWITNESS_PYTHON", python);
    Ok(harness)
}

/// A benchmark of one crate, which needs no models.
fn of_crate(package: &str, name: &str) -> Command {
    let mut bench = cargo();
    bench.args(["bench", "--quiet", "-p", package, "--bench", name, "--"]);
    bench
}
