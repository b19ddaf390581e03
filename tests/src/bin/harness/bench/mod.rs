//! `bench`: how fast a part is, beside a peer or a floor measured in the same run.

mod asr;
mod peer;
mod retrieval;
mod voiceprint;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use earwitness_tests::report::{Data, Host, Report, table};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::output::Packs;

/// Runs benchmarks.
#[derive(Debug, Args)]
pub struct Arguments {
    /// What to measure
    #[arg(value_enum)]
    name: Name,
    /// Writes the results as one JSON object; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// A Python that has onnxruntime, for the peers [default: none are measured]
    #[arg(long, env = "EARWITNESS_PYTHON", value_name = "FILE")]
    python: Option<PathBuf>,
    /// A Python that has other recognizers and indices, as `tests/recipes/peers.txt`
    /// lists them
    /// [default: none are measured]
    #[arg(long, env = "EARWITNESS_PEERS", value_name = "FILE")]
    peers: Option<PathBuf>,
    #[command(flatten)]
    packs: Packs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    /// The voiceprint of 3 s of sound, for each voiceprint pack
    Voiceprint,
    /// Recognising words
    Asr,
    /// Finding the best keys, and a question's evidence
    Retrieval,
}

/// One thing measured.
#[derive(Debug, Serialize)]
struct Series {
    name: String,
    ours: f64,
    unit: &'static str,
    /// Others at the same task.
    peers: BTreeMap<String, f64>,
    /// What no program could beat on this machine.
    floor: Option<f64>,
    /// Ours over the best peer: below 1 is better.
    ratio_best_peer: Option<f64>,
    /// Ours over the floor.
    ratio_floor: Option<f64>,
}

impl Series {
    /// A series of times or sizes, of which less is better.
    fn new(
        name: String,
        unit: &'static str,
        ours: f64,
        peers: BTreeMap<String, f64>,
        floor: Option<f64>,
    ) -> Self {
        let best = peers.values().copied().reduce(f64::min);
        Self {
            name,
            ours,
            unit,
            ratio_best_peer: best.map(|best| ours / best),
            ratio_floor: floor.map(|floor| ours / floor),
            peers,
            floor,
        }
    }

    fn row(&self) -> Vec<String> {
        let ratio =
            |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        let peers: Vec<String> = self
            .peers
            .iter()
            .map(|(name, value)| format!("{name} {value:.2}"))
            .collect();
        vec![
            self.name.clone(),
            format!("{:.2} {}", self.ours, self.unit),
            peers.join(", "),
            ratio(self.ratio_best_peer),
            ratio(self.ratio_floor),
        ]
    }
}

#[derive(Serialize)]
struct Results {
    series: Vec<Series>,
}

const HEADINGS: [&str; 5] = ["series", "ours", "peers", "to peer", "to floor"];

impl Arguments {
    /// Runs, prints and writes.
    pub fn run(&self) -> Result<()> {
        let (command, series) = match self.name {
            Name::Voiceprint => (
                "bench voiceprint",
                voiceprint::run(&self.packs.dir(), self.python.as_deref())?,
            ),
            Name::Asr => (
                "bench asr",
                asr::run(&self.packs.dir(), self.peers.as_deref())?,
            ),
            Name::Retrieval => (
                "bench retrieval",
                retrieval::run(&self.packs.dir(), self.peers.as_deref())?,
            ),
        };
        let rows: Vec<_> = series.iter().map(Series::row).collect();
        let table = table(&HEADINGS, &rows);
        if self.json.as_deref() == Some(Path::new("-")) {
            eprint!("{table}");
        } else {
            print!("{table}");
        }
        let report = Report {
            command,
            data: Data::none(),
            results: Results { series },
            host: Host::here(),
        };
        match &self.json {
            Some(path) => report
                .write(path)
                .with_context(|| format!("cannot write {}", path.display())),
            None => Ok(()),
        }
    }
}

/// Processor time of this thread, in milliseconds.
fn thread_ms() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}
