//! Reading the data set and writing the report, alike for every evaluation.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use clap::Args;
use earwitness::paths;
use earwitness_tests::{
    episodes::{Episode, EpisodeSet, Refusal, load_set},
    report::{Data, Host, Report},
};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// What every evaluation takes.
#[derive(Debug, Args)]
pub struct Common {
    /// A folder of episodes, or one episode
    #[arg(long, value_name = "DIR")]
    episodes: PathBuf,
    /// Writes the results as one JSON object; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Common {
    /// Loads the episodes and says which of them are refused.
    pub fn load(&self) -> Result<EpisodeSet> {
        let set = load_set(&self.episodes)?;
        for refusal in &set.refused {
            eprintln!("refused: {refusal}");
        }
        Ok(set)
    }

    /// Where the JSON goes.
    pub fn json(&self) -> Option<&Path> {
        self.json.as_deref()
    }

    /// Evaluates the episodes one by one. One that fails, because its audio is
    /// damaged for example, is refused and the others go on.
    pub fn each_episode(
        &self,
        set: &mut EpisodeSet,
        mut evaluate: impl FnMut(&Episode) -> Result<()>,
    ) {
        let refused = &mut set.refused;
        set.episodes.retain(|episode| match evaluate(episode) {
            Ok(()) => true,
            Err(error) => {
                let refusal = Refusal {
                    file: episode.dir.join("episode.json"),
                    json_path: "$".into(),
                    reason: format!("{error:#}"),
                };
                eprintln!("refused: {refusal}");
                refused.push(refusal);
                false
            }
        });
    }

    /// Prints the table, writes the JSON, and fails if an episode was refused.
    pub fn finish<R: Serialize>(
        &self,
        command: &'static str,
        set: &EpisodeSet,
        results: R,
        table: &str,
    ) -> Result<()> {
        if self.json() == Some(Path::new("-")) {
            eprint!("{table}");
        } else {
            print!("{table}");
        }
        let data = Data::new(&self.episodes, set);
        let report = Report {
            command,
            data,
            results,
            host: Host::here(),
        };
        if let Some(path) = &self.json {
            report
                .write(path)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        match set.refused.len() {
            0 => Ok(()),
            count => bail!(
                "{count} of {} episodes refused; mend them as said above and run again",
                count + set.episodes.len()
            ),
        }
    }
}

/// Where the models are.
#[derive(Debug, Args)]
pub struct Packs {
    /// The folder of the model packs [default: where the device keeps them]
    #[arg(long, env = "EARWITNESS_PACKS", value_name = "DIR")]
    packs: Option<PathBuf>,
}

impl Packs {
    /// The folder to open packs in.
    pub fn dir(&self) -> PathBuf {
        self.packs.clone().unwrap_or_else(paths::default_packs)
    }
}

/// A bar on standard error; silent where that is not a terminal.
pub fn progress(what: &str, steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64).with_message(what.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{msg:20} {wide_bar} {pos}/{len} {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
