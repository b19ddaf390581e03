//! `earwitness-pack check DIR...` verifies packs and repeats their parity check
//! on this machine; `earwitness-pack seal DIR...` does so for packs fresh from
//! the recipes and writes the figure into their manifests; `earwitness-pack
//! operators DIR...` lists the operators that a pack's models really run;
//! `earwitness-pack voiceprints DIR...` prints what a pack makes of its reference
//! recordings on this processor, one voiceprint a line.

use std::path::Path;
use std::process::ExitCode;

use earwitness_models::operator_counts;
use earwitness_models::pack::Pack;
use earwitness_models::parity::{self, ParityError, Report};

type Action = fn(&Path) -> Result<String, ParityError>;

const USAGE: &str = "usage: earwitness-pack check|seal|operators|voiceprints DIR...";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (action, dirs): (Action, _) = match arguments.split_first() {
        Some((verb, dirs)) if verb == "check" && !dirs.is_empty() => (check, dirs),
        Some((verb, dirs)) if verb == "seal" && !dirs.is_empty() => (seal, dirs),
        Some((verb, dirs)) if verb == "operators" && !dirs.is_empty() => (operators, dirs),
        Some((verb, dirs)) if verb == "voiceprints" && !dirs.is_empty() => (voiceprints, dirs),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut status = ExitCode::SUCCESS;
    for dir in dirs {
        match action(Path::new(dir)) {
            Ok(said) => println!("{dir}: {said}"),
            Err(error) => {
                eprintln!("{error}");
                status = ExitCode::FAILURE;
            }
        }
    }
    status
}

fn check(dir: &Path) -> Result<String, ParityError> {
    let pack = Pack::open_unsealed(dir)?;
    pack.require_seal()?;
    parity::check(&pack).map(figure)
}

fn seal(dir: &Path) -> Result<String, ParityError> {
    parity::seal(dir).map(figure)
}

fn figure(report: Report) -> String {
    format!("{} {}", report.metric.name(), report.worst)
}

fn operators(dir: &Path) -> Result<String, ParityError> {
    let pack = Pack::open_unsealed(dir)?;
    let mut said = String::new();
    for file in pack
        .manifest
        .files
        .keys()
        .filter(|file| file.ends_with(".onnx"))
    {
        said += &format!("\n  {file}");
        for (operator, count) in operator_counts(&pack, file)? {
            said += &format!("\n    {count:>4} {operator}");
        }
    }
    Ok(said)
}

fn voiceprints(dir: &Path) -> Result<String, ParityError> {
    let mut said = String::new();
    for voiceprint in parity::voiceprints(&Pack::open_unsealed(dir)?)? {
        let values: Vec<String> = voiceprint.iter().map(f32::to_string).collect();
        said += &format!("\n{}", values.join(" "));
    }
    Ok(said)
}
