//! The demo.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use earwitness_tests::demo::{self, Options, Teller};

use super::output::Common;

/// What the demo takes.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    common: Common,
    /// The program of the device
    #[arg(long, value_name = "FILE")]
    earwitness: PathBuf,
    /// Keep the recordings and the store in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

impl Arguments {
    /// Runs the demo on the first episode.
    pub fn run(&self) -> Result<()> {
        let set = self.common.load()?;
        let episode = set
            .episodes
            .first()
            .context("there is no episode to show")?;
        let json_on_stdout = self.common.json() == Some(Path::new("-"));
        let options = Options {
            earwitness: self.earwitness.clone(),
            teller: if json_on_stdout {
                Teller::Error
            } else {
                Teller::Output
            },
            keep: self.keep.clone(),
        };
        let outcome = demo::run(&options, episode)?;
        self.common.finish("demo", &set, demo::json(&outcome), "")
    }
}
