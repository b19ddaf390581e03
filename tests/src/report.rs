//! What every evaluation writes: one JSON object, and a table for people.

use std::{
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::Serialize;

use crate::episodes::{EpisodeSet, Refusal};

/// The envelope around the results of a command.
#[derive(Debug, Serialize)]
pub struct Report<R> {
    /// The command, for example `eval retrieval`.
    pub command: &'static str,
    /// What it ran on.
    pub data: Data,
    /// What it found; the shape depends on the command.
    pub results: R,
    /// Where it ran.
    pub host: Host,
}

/// The data set behind a report.
#[derive(Debug, Serialize)]
pub struct Data {
    /// The folder, as it was named.
    pub path: PathBuf,
    /// Episodes that were evaluated.
    pub episodes: usize,
    /// Their questions.
    pub questions: usize,
    /// Episodes that were not, and why.
    pub refused: Vec<Refusal>,
}

impl Data {
    /// For what runs on no data set.
    pub fn none() -> Self {
        Self {
            path: PathBuf::new(),
            episodes: 0,
            questions: 0,
            refused: Vec::new(),
        }
    }

    /// Describes a loaded set.
    pub fn new(path: &Path, set: &EpisodeSet) -> Self {
        Self {
            path: path.to_owned(),
            episodes: set.episodes.len(),
            questions: set
                .episodes
                .iter()
                .map(|episode| episode.questions.len())
                .sum(),
            refused: set.refused.clone(),
        }
    }
}

/// The machine behind a report.
#[derive(Debug, Serialize)]
pub struct Host {
    /// Instruction set, for example `aarch64`.
    pub arch: &'static str,
    /// The processor's own name, or `unknown`.
    pub cpu: String,
    /// Hardware threads that this process may use.
    pub threads: usize,
}

impl Host {
    /// The machine this runs on.
    pub fn here() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self {
            arch: std::env::consts::ARCH,
            cpu: cpu_name(&info).unwrap_or("unknown").to_owned(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// The processor's name in Linux's `/proc/cpuinfo`; x86 says `model name`, an
/// ARM board often only its own name as `Model`.
fn cpu_name(cpuinfo: &str) -> Option<&str> {
    ["model name", "Model", "Hardware"]
        .iter()
        .find_map(|wanted| {
            let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
            fields
                .map(|(key, value)| (key.trim(), value.trim()))
                .find_map(|(key, value)| (key == *wanted && !value.is_empty()).then_some(value))
        })
}

impl<R: Serialize> Report<R> {
    /// Writes the object to `path`; `-` is standard output.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut json = serde_json::to_vec_pretty(self)?;
        json.push(b'\n');
        if path == Path::new("-") {
            io::stdout().write_all(&json)
        } else {
            fs::write(path, json)
        }
    }
}

/// Lines up rows of cells under their headings: the first column to the left,
/// numbers to the right.
pub fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(column))
            .map(String::as_str);
        cells
            .chain(headings.get(column).copied())
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let mut text = String::new();
    let headings: Vec<String> = headings
        .iter()
        .map(|heading| (*heading).to_owned())
        .collect();
    for row in std::iter::once(&headings).chain(rows) {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Writing to a string cannot fail.
            let _ = match column {
                0 => write!(text, "{cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.push('\n');
    }
    text
}
