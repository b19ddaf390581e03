//! The commands that run the real thing and measure it: `demo`, `eval`, `soak`.

use std::{ffi::OsString, process::Command};

use anyhow::Result;

use crate::{
    models,
    process::{Build, root, run},
};

/// Options that go to the harness as they are; `--help` lists them.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Passed on to the harness
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// Everything from a fresh clone: packs, build, and the household's three
/// sessions through the real program.
pub fn demo(args: &Args) -> Result<()> {
    let mut demo = harness("demo", args)?;
    demo.arg("--earwitness")
        .arg(Build::Release.program("earwitness"));
    run(demo
        .arg("--episodes")
        .arg(root().join("tests/data/household")))
}

/// An evaluation on a folder of episodes.
pub fn eval(args: &Args) -> Result<()> {
    run(&mut harness("eval", args)?)
}

/// Hours of sound through the real pipeline.
pub fn soak(args: &Args) -> Result<()> {
    let mut soak = harness("soak", args)?;
    run(soak
        .arg("--episodes")
        .arg(root().join("tests/data/household")))
}

fn harness(command: &str, args: &Args) -> Result<Command> {
    let packs = models::ensure(Build::Release)?;
    Build::Release.make()?;
    let mut harness = Command::new(Build::Release.program("harness"));
    harness
        .arg(command)
        .args(&args.rest)
        .env("EARWITNESS_PACKS", packs);
    Ok(harness)
}
