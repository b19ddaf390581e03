//! Another program at the same task, in a process of its own: a line in, a line out.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result};

/// A script of `tests/recipes` that runs.
pub struct Peer {
    process: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts a script. What it lacks shows in the first line, which does not come.
    pub fn start(
        python: &Path,
        script: &str,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Self> {
        let recipes = Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes");
        let mut process = Command::new(python)
            .arg(recipes.join(script))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", python.display()))?;
        let asks = process.stdin.take().context("no standard input")?;
        let answers = BufReader::new(process.stdout.take().context("no standard output")?);
        Ok(Self {
            process,
            asks,
            answers,
        })
    }

    /// The next line that it says; empty at its end.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// What it answers to a line.
    pub fn ask(&mut self, line: &str) -> Result<String> {
        writeln!(self.asks, "{line}")?;
        self.line()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends by itself with its input; a killed one is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
