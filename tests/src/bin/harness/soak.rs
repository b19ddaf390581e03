//! `soak`.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use earwitness::{
    answer::extractive::Extractive,
    hub::{Hub, HubOptions},
    transcribe::LiveOptions,
};
use earwitness_tests::{connect::recordings, episodes::load_set, soak::soak};
use jiff::tz::TimeZone;

use crate::output::{Packs, progress};

/// Growth of the resident set that is no leak, in MiB: the records made meanwhile
/// are kept, and so are their keys.
const ALLOWED_MIB: f64 = 8.0;

/// Listens for hours, as fast as it can, to speech, noise and silence.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A folder of episodes with recordings, or one episode
    #[arg(long, value_name = "DIR")]
    episodes: PathBuf,
    /// Hours of sound
    #[arg(long, default_value_t = 4.0)]
    hours: f64,
    /// Decides the noise
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    packs: Packs,
}

impl Arguments {
    /// Runs and prints; fails if a word was made up or memory grew.
    pub fn run(&self) -> Result<()> {
        let set = load_set(&self.episodes)?;
        let speech = recordings(&set.episodes)?.concat();
        ensure!(!speech.is_empty(), "no turn here has audio");
        let folder = tempfile::tempdir()?;
        let options = HubOptions {
            partials: Some(LiveOptions::default()),
            ..HubOptions::default()
        };
        let answerer = Box::new(Extractive::new(TimeZone::UTC));
        let store = folder.path().join("memory.redb");
        let hub = Hub::open(&self.packs.dir(), &store, answerer, options)?;
        let seconds = self.hours * 3600.0;
        let bar = progress("soak", seconds as usize);
        let report = soak(&hub, &speech, seconds, self.seed, |heard| {
            bar.set_position(heard as u64);
        })?;
        bar.finish_and_clear();
        println!("{}", serde_json::to_string(&report)?);
        ensure!(
            report.made_up.is_empty(),
            "words were heard where nobody spoke: {:?}",
            report.made_up
        );
        let growth = report.growth_mib();
        ensure!(
            growth <= ALLOWED_MIB,
            "the resident set grew by {growth:.1} MiB; see `resident_mib` above"
        );
        Ok(())
    }
}
