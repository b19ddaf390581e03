//! A private Python environment with exactly the packages that the recipes pin.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Error, Result, anyhow, bail};
use sha2::{Digest, Sha256};

use super::cache::{Cache, hexadecimal};
use crate::process::{root, run_quietly};
use crate::progress::Step;

/// Minor versions of Python 3 for which all pinned packages have wheels.
const MINOR_VERSIONS: std::ops::RangeInclusive<u32> = 10..=14;

/// A Python that can run the recipes.
pub struct Python {
    program: PathBuf,
}

impl Python {
    /// Makes the environment, or takes the one that an earlier run made.
    pub fn prepare(cache: &Cache) -> Result<Self> {
        let (system, version) = find()?;
        let requirements = root().join("models/recipes/requirements.txt");
        let pins = fs::read(&requirements)
            .with_context(|| format!("cannot read {}", requirements.display()))?;
        let pins = &hexadecimal(Sha256::digest(pins))[..16];
        let environment = cache.folder.join(format!("python-{version}-{pins}"));
        let python = Self {
            program: environment.join("bin/python"),
        };
        let complete = environment.join("complete");
        if !complete.exists() {
            let step = Step::begin("python", "making an environment for the recipes");
            python
                .make(&system, &environment, &requirements, &step)
                .map_err(explain)?;
            fs::write(&complete, "")
                .with_context(|| format!("cannot write {}", complete.display()))?;
            step.end("environment made");
        }
        Ok(python)
    }

    /// Where the interpreter is.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The interpreter, which leaves no compiled files behind.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env_remove("PYTHONPATH")
            .env_remove("PYTHONHOME");
        command
    }

    fn make(
        &self,
        system: &Path,
        environment: &Path,
        requirements: &Path,
        step: &Step,
    ) -> Result<()> {
        let mut venv = Command::new(system);
        run_quietly(
            venv.args(["-m", "venv", "--clear"]).arg(environment),
            |line| step.at(line),
        )?;
        let mut pip = self.command();
        pip.args([
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "--no-deps",
            "--only-binary=:all:",
        ]);
        pip.args(["--require-hashes", "--requirement"])
            .arg(requirements);
        run_quietly(&mut pip, |line| step.at(line))?;
        Ok(())
    }
}

/// The first Python of a fitting version: `$PYTHON`, `python3`, then by version.
fn find() -> Result<(PathBuf, String)> {
    let chosen = std::env::var_os("PYTHON").map(PathBuf::from);
    let named = MINOR_VERSIONS
        .rev()
        .map(|minor| PathBuf::from(format!("python3.{minor}")));
    let mut unfit = Vec::new();
    for program in chosen
        .into_iter()
        .chain([PathBuf::from("python3")])
        .chain(named)
    {
        match version(&program) {
            Some((3, minor)) if MINOR_VERSIONS.contains(&minor) => {
                return Ok((program, format!("3.{minor}")));
            }
            Some((major, minor)) => unfit.push(format!("{} is {major}.{minor}", program.display())),
            None => {}
        }
    }
    let (oldest, newest) = (MINOR_VERSIONS.start(), MINOR_VERSIONS.end());
    let found = if unfit.is_empty() {
        "none was found".into()
    } else {
        unfit.join(", ")
    };
    bail!(
        "building the model packs takes Python 3.{oldest} to 3.{newest} and {found}; \
         install one (Debian, Ubuntu: apt install python3 python3-venv) or name it in PYTHON"
    )
}

fn version(program: &Path) -> Option<(u32, u32)> {
    let script = "import sys; print(sys.version_info[0], sys.version_info[1])";
    let output = Command::new(program).args(["-c", script]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// What well-known failures of Python and pip mean, and the way out.
const EXPLANATIONS: &[(&str, &str)] = &[
    (
        "No space left on device",
        "the disk is full; about 1 GB is needed in the user's cache (XDG_CACHE_HOME)",
    ),
    (
        "ensurepip",
        "this Python cannot make environments; install its venv module (Debian, Ubuntu: apt install python3-venv)",
    ),
    (
        "No module named venv",
        "this Python has no venv module; install it (Debian, Ubuntu: apt install python3-venv)",
    ),
    (
        "DO NOT MATCH THE HASHES",
        "a package is not the pinned one; check which package index pip is set to use",
    ),
    (
        "not the pinned file",
        "a package is not the pinned one; check which package index pip is set to use",
    ),
    (
        "Temporary failure in name resolution",
        "the package index cannot be reached; connect to the network and run it again",
    ),
    (
        "Failed to establish a new connection",
        "the package index cannot be reached; connect to the network and run it again",
    ),
    (
        "Network is unreachable",
        "the package index cannot be reached; connect to the network and run it again",
    ),
    (
        "(from versions: none)",
        "the package index cannot be reached or lacks the package; check the network and pip's index",
    ),
];

/// Adds what is known about a failure to it.
pub fn explain(error: Error) -> Error {
    let text = format!("{error:#}");
    let known = EXPLANATIONS.iter().find(|(sign, _)| text.contains(sign));
    known.map_or(error, |(_, meaning)| anyhow!("{text}\n{meaning}"))
}
