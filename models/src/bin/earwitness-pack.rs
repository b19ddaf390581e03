//! `earwitness-pack check DIR...` verifies packs and repeats their parity check
//! on this machine; `earwitness-pack seal DIR...` does so for packs fresh from
//! the recipes and writes the figure into their manifests.

use std::path::Path;
use std::process::ExitCode;

use earwitness_models::pack::Pack;
use earwitness_models::parity::{self, ParityError, Report};

type Action = fn(&Path) -> Result<Report, ParityError>;

const USAGE: &str = "usage: earwitness-pack check|seal DIR...";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (action, dirs): (Action, _) = match arguments.split_first() {
        Some((verb, dirs)) if verb == "check" && !dirs.is_empty() => (check, dirs),
        Some((verb, dirs)) if verb == "seal" && !dirs.is_empty() => (parity::seal, dirs),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut status = ExitCode::SUCCESS;
    for dir in dirs {
        match action(Path::new(dir)) {
            Ok(report) => println!("{dir}: {} {}", report.metric.name(), report.worst),
            Err(error) => {
                eprintln!("{error}");
                status = ExitCode::FAILURE;
            }
        }
    }
    status
}

fn check(dir: &Path) -> Result<Report, ParityError> {
    let pack = Pack::open_unsealed(dir)?;
    pack.require_seal()?;
    parity::check(&pack)
}
