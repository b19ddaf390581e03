//! Running other programs, and saying clearly when one fails.

use std::{
    collections::VecDeque,
    env,
    ffi::OsStr,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// The root of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// The cargo that runs this task, in the workspace's root.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command with our own input and output.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command
        .status()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status}); what it says above tells why");
    }
    Ok(())
}

/// Lines of a failed command that are shown.
const LINES_SHOWN: usize = 30;

/// Runs a command that is no business of the user's unless it fails: each line
/// that it prints goes to `on_line`, the last ones into the error. Returns the
/// last line.
pub fn run_quietly(command: &mut Command, mut on_line: impl FnMut(&str)) -> Result<String> {
    let shown = show(command);
    let (reader, writer) = io::pipe()?;
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start `{shown}`"))?;
    // The command keeps the pipe's other end open for as long as it holds it too.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut last_lines = VecDeque::new();
    for line in BufReader::new(reader).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).trim_end().to_owned();
        on_line(&line);
        last_lines.push_back(line);
        if last_lines.len() > LINES_SHOWN {
            last_lines.pop_front();
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!(
            "`{shown}` failed ({status}):\n{}",
            Vec::from(last_lines).join("\n")
        );
    }
    Ok(last_lines.pop_back().unwrap_or_default())
}

/// Runs a command and gives what it printed.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let done = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !done.status.success() {
        bail!("`{shown}` failed ({})", done.status);
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Announces a step on standard error, then runs it.
pub fn step(name: &str, command: &mut Command) -> Result<()> {
    eprintln!("\n== {name}: {}", show(command));
    run(command)
}

/// Whether a program runs and exits well; what it prints is thrown away.
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Features of the runtime that this machine can build: the microphone needs the
/// ALSA headers on Linux.
pub fn runtime_features() -> &'static [&'static str] {
    let has_alsa = succeeds(Command::new("pkg-config").args(["--exists", "alsa"]));
    if has_alsa || !cfg!(target_os = "linux") {
        &["--features", "earwitness/mic"]
    } else {
        &[]
    }
}

/// How the workspace is built. Always as a whole: what is built together shares
/// the features of its dependencies, and the large ones are compiled only once.
#[derive(Clone, Copy)]
pub enum Build {
    /// As a device runs it.
    Release,
    /// As the tests run it.
    Test,
}

impl Build {
    /// Builds all programs.
    pub fn make(self) -> Result<()> {
        eprintln!("== building the runtime (a first build takes some minutes)");
        let mut build = cargo();
        match self {
            Self::Release => build.args(["build", "--release", "--workspace", "--bins"]),
            Self::Test => build.args(["test", "--workspace", "--no-run"]),
        };
        run(build.args(runtime_features()))
    }

    /// A program that [`Build::make`] built.
    pub fn program(self, name: &str) -> PathBuf {
        let folder = match self {
            Self::Release => "release",
            Self::Test => "debug",
        };
        target().join(folder).join(name)
    }
}

fn show(command: &Command) -> String {
    let words: Vec<&OsStr> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .collect();
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}
