//! `eval ghosts`.

use anyhow::{Context, Result};
use clap::Args;
use earwitness::{
    answer::extractive::Extractive,
    hub::{Hub, HubOptions},
};
use earwitness_tests::{
    ghosts::{self, Amount, Outcome},
    report::table,
};
use jiff::tz::TimeZone;

use crate::output::{Common, Packs};

/// Counts the identities that come of noises, and of many turns of a few voices.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    packs: Packs,
    /// Which voiceprint pack: VARIANT is the folder voiceprint-VARIANT [default: the
    /// folder voiceprint]
    #[arg(long, env = "EARWITNESS_VOICEPRINT", value_name = "VARIANT")]
    voiceprint: Option<String>,
    /// Coughs, clicks, slammed doors, music and single words
    #[arg(long, default_value_t = 200)]
    ghosts: usize,
    /// Voices that speak after them
    #[arg(long, default_value_t = 3)]
    voices: usize,
    /// Turns of each voice
    #[arg(long, default_value_t = 200)]
    turns: usize,
    /// What the sounds are drawn from
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Arguments {
    /// Runs on the first episode, prints and writes.
    pub fn run(&self) -> Result<()> {
        let set = self.common.load()?;
        let episode = set.episodes.first().context("there is no episode")?;
        let memory = tempfile::tempdir()?;
        let hub = Hub::open(
            &self.packs.dir(),
            &memory.path().join("memory.redb"),
            Box::new(Extractive::new(TimeZone::UTC)),
            HubOptions {
                voiceprint: self.voiceprint.clone(),
                ..HubOptions::default()
            },
        )?;
        let amount = Amount {
            ghosts: self.ghosts,
            voices: self.voices,
            turns: self.turns,
            seed: self.seed,
        };
        let outcome = ghosts::listen(&hub, episode, amount)?;
        let table = table(&HEADINGS, &[row(&outcome)]);
        self.common.finish("eval ghosts", &set, outcome, &table)
    }
}

const HEADINGS: [&str; 6] = [
    "ghosts",
    "identities",
    "voices x turns",
    "identities",
    "records",
    "accuracy",
];

fn row(outcome: &Outcome) -> Vec<String> {
    vec![
        outcome.ghosts.to_string(),
        outcome.ghost_identities.to_string(),
        format!("{} x {}", outcome.voices, outcome.turns),
        outcome.identities.to_string(),
        outcome.records.to_string(),
        format!("{:.3}", outcome.accuracy),
    ]
}
