//! The store beside SQLite and beside floors, in one run.
//!
//! `cargo bench -p earwitness-store -- [--json FILE] [--folder DIR] [--small]`
//!
//! Every number is a cost: lower is better, and a ratio above 1 means that ours
//! costs more. `--folder` chooses the medium; `--small` leaves out the store of
//! half a million records.

mod measure;
mod peers;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

struct Options {
    json: Option<PathBuf>,
    folder: Option<PathBuf>,
    small: bool,
}

fn options() -> Outcome<Options> {
    let mut options = Options {
        json: None,
        folder: None,
        small: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut path = || arguments.next().map(PathBuf::from);
        match argument.as_str() {
            "--json" => options.json = path(),
            "--folder" => options.folder = path(),
            "--small" => options.small = true,
            // What cargo adds.
            "--bench" => {}
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    Ok(options)
}

fn run() -> Outcome<()> {
    let options = options()?;
    let folder = match &options.folder {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    let mut series = Vec::new();
    for part in measure::parts(options.small) {
        let measured = part(folder.path())?;
        measured.iter().for_each(|one| eprintln!("{one}"));
        series.extend(measured);
    }
    let report = serde_json::json!({
        "command": "bench store",
        "data": {"path": folder.path().display().to_string(), "episodes": 0, "questions": 0},
        "results": {"series": series.iter().map(measure::Series::json).collect::<Vec<_>>()},
        "host": {
            "arch": std::env::consts::ARCH,
            "cpu": cpu(),
            "threads": std::thread::available_parallelism()?.get(),
        },
    });
    match options.json {
        Some(path) => std::fs::write(path, report.to_string())?,
        None => println!("{report}"),
    }
    Ok(())
}

fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split(": ").nth(1));
    name.unwrap_or("unknown").to_owned()
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
