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

use anyhow::{Context, Result, ensure};
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

/// A pack: its folder and the name of its recipe.
#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Vad,
    Voiceprint,
    VoiceprintEcapa,
    Asr,
    Embed,
    Threew,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Vad => "vad",
            Self::Voiceprint => "voiceprint",
            Self::VoiceprintEcapa => "voiceprint-ecapa",
            Self::Asr => "asr",
            Self::Embed => "embed",
            Self::Threew => "threew",
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

/// Compares all packs with the original models on an emulated 64-bit Arm.
pub fn check_on_arm() -> Result<()> {
    let kinds = Kind::value_variants();
    compare_on_arm(&provide(kinds, false, Build::Test)?, kinds)
}

/// The folder with all packs. Where one is missing it is built first, with the
/// programs of that build.
pub fn ensure(programs: Build) -> Result<PathBuf> {
    provide(Kind::value_variants(), false, programs)
}

/// The project's corner of the user's cache.
pub fn cache_folder() -> Result<PathBuf> {
    Ok(Cache::open()?.folder)
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

/// How alike a voiceprint of one recording has to be on two processors.
const SAME_VOICEPRINT: f64 = 0.9999;

/// Repeats the comparison with the original models in a program built for 64-bit Arm.
fn compare_on_arm(packs: &Path, kinds: &[Kind]) -> Result<()> {
    let toolchain = Toolchain::find("aarch64-unknown-linux-gnu")?;
    let on_arm = |verb: &str, folders: &[PathBuf]| -> Result<Command> {
        let mut program = toolchain.cargo("run");
        program.args(["--release", "-p", "earwitness-models"]);
        program
            .args(["--bin", "earwitness-pack", "--", verb])
            .args(folders);
        toolchain.emulate(&mut program, "max")?;
        Ok(program)
    };
    let folders = |wanted: fn(Kind) -> bool| -> Vec<PathBuf> {
        let wanted = kinds.iter().filter(|&&kind| wanted(kind));
        wanted.map(|kind| packs.join(kind.name())).collect()
    };
    step(
        "comparing on 64-bit Arm",
        &mut on_arm("check", &folders(|_| true))?,
    )?;
    for folder in folders(|kind| matches!(kind, Kind::Voiceprint | Kind::VoiceprintEcapa)) {
        Build::Release.make()?;
        let mut here = Command::new(Build::Release.program("earwitness-pack"));
        let here = voiceprints(here.arg("voiceprints").arg(&folder))?;
        let there = voiceprints(&mut on_arm("voiceprints", std::slice::from_ref(&folder))?)?;
        let least = least_cosine(&here, &there)?;
        println!(
            "{}: voiceprints here and on 64-bit Arm, least cosine {least:.7}",
            folder.display()
        );
        ensure!(
            least >= SAME_VOICEPRINT,
            "the voiceprints of {} differ between the processors: cosine {least}, at least {SAME_VOICEPRINT} is wanted",
            folder.display()
        );
    }
    Ok(())
}

/// The voiceprints that a run of `earwitness-pack voiceprints` prints.
fn voiceprints(command: &mut Command) -> Result<Vec<Vec<f64>>> {
    let number = |text: &str| text.parse::<f64>().ok();
    let mut found = Vec::new();
    run_quietly(command, |line| {
        found.extend(line.split(' ').map(number).collect::<Option<Vec<_>>>());
    })?;
    Ok(found)
}

/// The least cosine of vectors in the same place of two lists.
fn least_cosine(a: &[Vec<f64>], b: &[Vec<f64>]) -> Result<f64> {
    ensure!(
        !a.is_empty() && a.len() == b.len(),
        "{} voiceprints here, {} there",
        a.len(),
        b.len()
    );
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let cosine = |(a, b): (&Vec<f64>, &Vec<f64>)| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    Ok(a.iter().zip(b).map(cosine).fold(f64::INFINITY, f64::min))
}

/// Puts a finished pack in the place of whatever is there.
fn publish(staging: &Path, pack: &Path) -> Result<()> {
    if pack.exists() {
        fs::remove_dir_all(pack).with_context(|| format!("cannot remove {}", pack.display()))?;
    }
    fs::rename(staging, pack).with_context(|| format!("cannot move the pack to {}", pack.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pair_that_is_least_alike_counts() {
        let [a, b] = [vec![3.0, 4.0], vec![4.0, 3.0]];
        let least = least_cosine(&[a.clone(), a.clone()], &[a.clone(), b]).unwrap();
        assert!((least - 0.96).abs() < 1e-12);
        assert!(least_cosine(&[a], &[]).is_err());
        assert!(least_cosine(&[], &[]).is_err());
    }
}
