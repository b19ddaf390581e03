//! `cargo xtask test`: every check that runs without special hardware.

use std::process::Command;

use anyhow::{Result, bail};

use crate::{
    cross, hub, models, node,
    process::{Build, cargo, root, runtime_features, step},
};

/// Feature sets of the crates that microcontrollers share, beside the default.
const FEATURE_SETS: &[(&str, &[&str])] = &[
    ("earwitness-dsp", &["--no-default-features"]),
    (
        "earwitness-dsp",
        &["--no-default-features", "--features", "microfft"],
    ),
    ("earwitness-api", &["--no-default-features"]),
    (
        "earwitness-api",
        &["--no-default-features", "--features", "alloc"],
    ),
];

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub struct Args {
    /// Also what takes long: the models on an emulated Arm, and an emulated hub with
    /// power cuts
    #[arg(long)]
    all: bool,
    /// Leave out formatting, lints and documentation
    #[arg(long)]
    no_lint: bool,
    /// Passed on to `cargo test`, for example a test's name
    #[arg(last = true)]
    rest: Vec<String>,
}

pub fn run(args: &Args) -> Result<()> {
    let packs = models::ensure(Build::Test)?;
    if !args.no_lint {
        lint()?;
    }
    for (package, features) in FEATURE_SETS {
        step(
            "features",
            cargo()
                .args(["check", "--quiet", "-p", package])
                .args(*features),
        )?;
    }
    cross::check()?;
    node::check()?;
    let mut dsp = cargo();
    dsp.args([
        "test",
        "--quiet",
        "-p",
        "earwitness-dsp",
        "--features",
        "microfft,serde",
    ]);
    step("tests of the microcontroller's features", &mut dsp)?;
    let mut tests = cargo();
    tests
        .args(["test", "--workspace", "--no-fail-fast"])
        .args(runtime_features())
        .args(&args.rest);
    step("tests", tests.env("EARWITNESS_PACKS", packs))?;
    if args.all {
        models::check_on_arm()?;
        hub::check()?;
    }
    Ok(())
}

fn lint() -> Result<()> {
    step("format", cargo().args(["fmt", "--all", "--check"]))?;
    let mut clippy = cargo();
    clippy
        .args(["clippy", "--workspace", "--all-targets"])
        .args(runtime_features());
    step("lints", clippy.args(["--", "-D", "warnings"]))?;
    let mut doc = cargo();
    doc.args([
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ]);
    step(
        "documentation",
        doc.args(runtime_features())
            .env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    dsp_is_bare()
}

/// The signal processing of a microcontroller depends on nothing that allocates
/// or needs an operating system.
fn dsp_is_bare() -> Result<()> {
    let mut tree = Command::new(cargo().get_program());
    tree.current_dir(root()).args([
        "tree",
        "--prefix",
        "none",
        "-e",
        "normal",
        "-p",
        "earwitness-dsp",
    ]);
    let output = tree
        .args(["--no-default-features", "--format", "{p}"])
        .output()?;
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    for heavy in ["rustfft", "realfft", "rubato"] {
        if listed.contains(heavy) {
            bail!("earwitness-dsp pulls in {heavy} without its feature `std`");
        }
    }
    Ok(())
}
