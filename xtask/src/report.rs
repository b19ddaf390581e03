//! Figures as JSON, as every evaluation and benchmark writes them.

use std::{env, fs, path::Path, thread};

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// Writes the figures of a command to a file.
pub fn write(file: &Path, command: &str, results: &Value) -> Result<()> {
    let host = json!({
        "arch": env::consts::ARCH,
        "cpu": cpu(),
        "threads": thread::available_parallelism().map_or(1, |count| count.get()),
    });
    let report = json!({ "command": command, "results": results, "host": host });
    fs::write(file, format!("{report:#}\n"))
        .with_context(|| format!("cannot write {}", file.display()))
}

/// The processor's name, where the system tells.
fn cpu() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().into())
}
