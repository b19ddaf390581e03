//! `cargo xtask models`: builds the model packs once, and verifies them afterwards.
//!
//! A pack comes out of a recipe (`models/recipes`, in Python) and is sealed by
//! the runtime's own code, which must compute what the original model does. Both
//! happen in a staging folder; a pack appears under its name only when it is
//! whole. Everything is kept in the user's cache, in a folder named after the
//! recipes, so that a second clone builds and downloads nothing.

mod cache;
mod python;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::process::{Build, root, run_quietly, step};
use crate::progress::Step;
use crate::toolchain::Toolchain;
use cache::Cache;
use python::Python;

/// Options of `cargo xtask models`.
#[derive(clap::Args)]
pub struct Args {
    /// Build again even what is there and intact
    #[arg(long)]
    force: bool,
    /// Also compare them with the original models on an emulated 64-bit Arm, which
    /// takes minutes to build for
    #[arg(long)]
    on_arm: bool,
    /// Which packs; all of them if none is named
    #[arg(value_enum)]
    kinds: Vec<Kind>,
}

/// What a pack is for; also its folder and the name of its recipe.
#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Vad,
    Voiceprint,
    VoiceprintEcapa,
    Asr,
    Embed,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Vad => "vad",
            Self::Voiceprint => "voiceprint",
            Self::VoiceprintEcapa => "voiceprint-ecapa",
            Self::Asr => "asr",
            Self::Embed => "embed",
        }
    }
}

/// Builds or verifies what was asked for and prints the folder of the packs.
pub fn run(args: &Args) -> Result<()> {
    let kinds = if args.kinds.is_empty() {
        Kind::value_variants()
    } else {
        &args.kinds
    };
    let packs = provide(kinds, args.force, Build::Release)?;
    println!("{}", packs.display());
    if args.on_arm {
        compare_on_arm(&packs, kinds)?;
    }
    Ok(())
}

/// The folder with all packs. Where one is missing it is built first, with the
/// programs of that build.
pub fn ensure(programs: Build) -> Result<PathBuf> {
    provide(Kind::value_variants(), false, programs)
}

/// The Python that made the packs, which has onnxruntime.
pub fn python() -> Result<PathBuf> {
    Ok(Python::prepare(&Cache::open()?)?.program().to_owned())
}

fn provide(kinds: &[Kind], force: bool, programs: Build) -> Result<PathBuf> {
    let cache = Cache::open()?;
    let _lock = cache.lock()?;
    let mut missing = Vec::new();
    for &kind in kinds {
        if force || !verified(&cache, kind) {
            missing.push(kind);
        }
    }
    if !missing.is_empty() {
        let python = Python::prepare(&cache)?;
        programs.make()?;
        for kind in missing {
            build(&cache, &python, programs, kind)
                .with_context(|| format!("the {} pack was not built", kind.name()))?;
        }
    }
    Ok(cache.packs)
}

/// Whether a pack is there with all its files as they were when it was sealed.
fn verified(cache: &Cache, kind: Kind) -> bool {
    let pack = cache.packs.join(kind.name());
    if !pack.exists() {
        return false;
    }
    let step = Step::begin(kind.name(), "verifying");
    match cache::verify(&pack) {
        Ok(()) => {
            step.end("verified");
            true
        }
        Err(error) => {
            step.end(&format!("building again, since {error:#}"));
            false
        }
    }
}

fn build(cache: &Cache, python: &Python, programs: Build, kind: Kind) -> Result<()> {
    let name = kind.name();
    let step = Step::begin(name, "building");
    let staging = cache.staging(name)?;
    let mut recipe = python.command();
    recipe
        .current_dir(root().join("models"))
        .args(["-m", "recipes", name]);
    recipe
        .arg("--downloads")
        .arg(cache.folder.join("downloads"))
        .arg("--out")
        .arg(&staging);
    run_quietly(&mut recipe, |line| step.at(line)).map_err(python::explain)?;

    step.at("comparing with the original model");
    let mut seal = Command::new(programs.program("earwitness-pack"));
    let said = run_quietly(seal.arg("seal").arg(&staging), |_| ())?;
    publish(&staging, &cache.packs.join(name))?;
    step.end(
        said.trim()
            .rsplit_once(": ")
            .map_or("built", |(_, figure)| figure),
    );
    Ok(())
}

/// Repeats the comparison with the original models in a program built for 64-bit Arm.
fn compare_on_arm(packs: &Path, kinds: &[Kind]) -> Result<()> {
    let toolchain = Toolchain::find("aarch64-unknown-linux-gnu")?;
    let mut check = toolchain.cargo("run");
    check.args(["--release", "-p", "earwitness-models"]);
    check.args(["--bin", "earwitness-pack", "--", "check"]);
    check.args(kinds.iter().map(|kind| packs.join(kind.name())));
    toolchain.emulate(&mut check, "max")?;
    step("comparing on 64-bit Arm", &mut check)
}

/// Puts a finished pack in the place of whatever is there.
fn publish(staging: &Path, pack: &Path) -> Result<()> {
    if pack.exists() {
        fs::remove_dir_all(pack).with_context(|| format!("cannot remove {}", pack.display()))?;
    }
    fs::rename(staging, pack).with_context(|| format!("cannot move the pack to {}", pack.display()))
}
