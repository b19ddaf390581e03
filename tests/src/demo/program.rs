//! The program of the device, run as a household would: as processes.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Output, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use earwitness_api::types::{Answer, Record, SpeakerId};
use serde::{Deserialize, Serialize};

use super::table::{self, Teller};
use crate::episodes::Session;

/// The program with its store.
pub struct Earwitness {
    program: PathBuf,
    store: PathBuf,
    teller: Teller,
}

/// What an ingest or a daemon says at its end.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Summary {
    /// Seconds of sound.
    pub audio_s: f64,
    /// Seconds it took, models loaded included.
    pub wall_s: f64,
    /// Highest resident set, in MiB.
    pub peak_rss_mib: Option<f64>,
    /// Where the time went.
    pub stages: BTreeMap<String, StageTime>,
}

/// The account of one stage.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct StageTime {
    /// Seconds of sound that the stage worked on.
    pub audio_s: f64,
    /// Seconds it took.
    pub wall_s: f64,
    /// Their ratio.
    pub rtf: f64,
}

impl Summary {
    /// Adds the account of another process.
    pub fn add(&mut self, other: &Self) {
        self.audio_s += other.audio_s;
        self.wall_s += other.wall_s;
        self.peak_rss_mib = self
            .peak_rss_mib
            .into_iter()
            .chain(other.peak_rss_mib)
            .reduce(f64::max);
        for (name, time) in &other.stages {
            let sum = self.stages.entry(name.clone()).or_default();
            sum.audio_s += time.audio_s;
            sum.wall_s += time.wall_s;
            sum.rtf = if sum.audio_s > 0.0 {
                sum.wall_s / sum.audio_s
            } else {
                0.0
            };
        }
    }
}

/// One line of `ingest --json` or `run --json`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Summary { summary: Summary },
    Record(Record),
}

impl Earwitness {
    pub fn new(program: &Path, store: &Path, teller: Teller) -> Self {
        Self {
            program: program.to_owned(),
            store: store.to_owned(),
            teller,
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--store")
            .arg(&self.store)
            .arg("--json")
            // The sessions are older than what is kept of unknown people.
            .env("EARWITNESS_KEEP_UNASKED", "forever")
            .stderr(Stdio::inherit());
        command
    }

    /// Takes a recording in; prints each record as it is acknowledged.
    pub fn ingest(&self, recording: &Path, session: &Session) -> Result<(Vec<Record>, Summary)> {
        let mut ingest = self.command();
        ingest.args([
            "ingest",
            "--session",
            &session.id,
            "--start",
            &session.start.to_string(),
        ]);
        let mut child = ingest
            .arg(recording)
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start earwitness")?;
        let lines = read_lines(self.teller, child.stdout.take());
        ensure!(child.wait()?.success(), "earwitness ingest failed");
        lines
    }

    /// Gives a voice a name.
    pub fn name(&self, speaker: SpeakerId, name: &str) -> Result<()> {
        self.output([
            OsStr::new("speakers"),
            "name".as_ref(),
            speaker.0.to_string().as_ref(),
            name.as_ref(),
        ])?;
        self.teller
            .tell(format_args!("   speaker {} is {name}", speaker.0));
        Ok(())
    }

    /// Asks a question aloud.
    pub fn ask(&self, recording: &Path) -> Result<Answer> {
        let output = self.output(["ask".as_ref(), "--wav".as_ref(), recording.as_os_str()])?;
        serde_json::from_slice(&output.stdout).context("earwitness ask printed no answer")
    }

    fn output<'a>(&self, args: impl IntoIterator<Item = &'a OsStr>) -> Result<Output> {
        let mut command = self.command();
        let output = command
            .args(args)
            .output()
            .context("cannot start earwitness")?;
        ensure!(output.status.success(), "{command:?} failed");
        Ok(output)
    }
}

/// A daemon that hears one recording.
pub struct Daemon {
    child: Child,
    teller: Teller,
}

impl Daemon {
    pub fn start(program: &Earwitness, recording: &Path, session: &Session) -> Result<Self> {
        let mut run = program.command();
        run.args([
            "run",
            "--session",
            &session.id,
            "--start",
            &session.start.to_string(),
            "--wav",
        ]);
        let child = run
            .arg(recording)
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start earwitness")?;
        Ok(Self {
            child,
            teller: program.teller,
        })
    }

    /// Waits until the whole recording has been heard; returns its records and
    /// where the time went.
    pub fn wait_until_heard(&mut self) -> Result<(Vec<Record>, Summary)> {
        read_lines(self.teller, self.child.stdout.take())
    }

    /// Stops it in good order.
    pub fn stop(mut self) -> Result<()> {
        let pid = self.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status();
        ensure!(
            asked.is_ok_and(|status| status.success()),
            "the daemon could not be stopped"
        );
        ensure!(
            self.child.wait()?.success(),
            "the daemon did not stop in good order"
        );
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // After a failure elsewhere; a stopped daemon is no longer there.
        let _ = self.child.kill();
    }
}

/// Prints records as they come, up to the summary.
fn read_lines(teller: Teller, stdout: Option<ChildStdout>) -> Result<(Vec<Record>, Summary)> {
    let mut records = Vec::new();
    for line in BufReader::new(stdout.context("earwitness has no output")?).lines() {
        match serde_json::from_str(&line?).context("earwitness printed something else than JSON")? {
            Line::Summary { summary } => return Ok((records, summary)),
            Line::Record(record) => {
                teller.tell(table::record(&record));
                records.push(record);
            }
        }
    }
    bail!("earwitness ended before it had heard everything; see its message above")
}
