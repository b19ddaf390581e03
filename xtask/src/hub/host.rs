//! This machine's own program, which does what the hub does.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::Value;

use super::memory::Memory;
use crate::models;
use crate::process::{Build, output, run_quietly};

/// What is asked; the recordings answer it.
const QUESTION: &str = "When is somebody leaving?";

/// The program with its model packs.
pub struct Host {
    packs: PathBuf,
}

impl Host {
    /// Builds both, where they are not there.
    pub fn new() -> Result<Self> {
        Build::Release.make()?;
        Ok(Self {
            packs: models::ensure(Build::Release)?,
        })
    }

    /// Hears raw samples, as one session that began at that time.
    pub fn listen(&self, store: &Path, samples: &[u8], start_unix_ms: i64) -> Result<()> {
        let file = store.with_extension("pcm");
        fs::write(&file, samples)?;
        let start = Timestamp::from_millisecond(start_unix_ms)?.to_string();
        let mut run = self.program(store);
        run.args(["--json", "run", "--until-end", "--pcm"])
            .arg(&file)
            .args(["--start", &start]);
        run_quietly(&mut run, |_| {}).map(drop)
    }

    /// The answer of whoever serves a store, or of the store itself.
    pub fn ask(&self, store: &Path) -> Result<Value> {
        let said = output(self.program(store).args(["--json", "ask", QUESTION]))?;
        serde_json::from_str(&said).context("no answer came")
    }

    /// The records of whoever serves a store.
    pub fn records(&self, store: &Path) -> Result<Vec<Value>> {
        let said = output(self.program(store).args(["--json", "memory", "list"]))?;
        let records: Result<Vec<Value>, _> = said.lines().map(serde_json::from_str).collect();
        records.context("the memory's list is garbled")
    }

    /// What is in a store that nobody uses.
    pub fn memory(&self, store: &Path) -> Result<Memory> {
        let archive = store.with_extension("jsonl");
        let mut export = self.program(store);
        export
            .args(["memory", "export", "--voiceprints"])
            .arg(&archive);
        run_quietly(&mut export, |_| {})?;
        Memory::parse(&fs::read_to_string(archive)?)
    }

    /// Fails unless everything in a store that nobody uses agrees.
    pub fn verify(&self, store: &Path) -> Result<()> {
        let mut verify = self.program(store);
        run_quietly(verify.args(["memory", "verify"]), |_| {}).map(drop)
    }

    fn program(&self, store: &Path) -> Command {
        let mut command = Command::new(Build::Release.program("earwitness"));
        command
            .env("EARWITNESS_PACKS", &self.packs)
            .arg("--store")
            .arg(store);
        command
    }
}
