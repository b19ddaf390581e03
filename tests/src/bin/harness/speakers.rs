//! `eval speakers`.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use clap::Args;
use earwitness::attribute::{AttributeOptions, reconcile::ReconcileOptions};
use earwitness_models::{
    manifest::{Kind, Thresholds},
    pack::Pack,
    voiceprint::VoiceprintEncoder,
};
use earwitness_tests::{
    connect::{Tracker, hear},
    episodes::{Episode, Turn},
    report::table,
    speakers::{SpeakersReport, listen},
};

use crate::output::{Common, Packs, progress};

/// Evaluates the tracker alone, with a moving average, and with reconciliation.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    packs: Packs,
}

/// The ablation of VoxPolyMem's table 6.
const VARIANTS: [&str; 3] = ["static", "ema", "reconciled"];

fn tracker(variant: &str, thresholds: Thresholds) -> Tracker {
    let moving = AttributeOptions::new(thresholds);
    let fixed = AttributeOptions {
        alpha: 0.0,
        ..moving
    };
    match variant {
        "static" => Tracker::new(fixed, None),
        "ema" => Tracker::new(moving, None),
        _ => Tracker::new(moving, Some(ReconcileOptions::new(thresholds.merge))),
    }
}

impl Arguments {
    /// Runs, prints and writes.
    pub fn run(&self) -> Result<()> {
        let mut set = self.common.load()?;
        let mut encoder =
            VoiceprintEncoder::load(&Pack::open(&self.packs.dir(), Kind::Voiceprint)?)?;
        let thresholds = encoder.thresholds();
        let mut results: BTreeMap<&str, SpeakersReport> = BTreeMap::new();
        let bar = progress("speakers", set.episodes.len());
        self.common.each_episode(&mut set, |episode| {
            let mut hear = |episode: &Episode, turn: &Turn| hear(&mut encoder, episode, turn);
            let turns = listen(episode, &mut hear)?;
            for variant in VARIANTS {
                let report = results.entry(variant).or_default();
                report.add(&episode.id, &turns, &mut tracker(variant, thresholds));
            }
            bar.inc(1);
            Ok(())
        });
        bar.finish_and_clear();
        let heard = results.values().any(|report| report.turns > 0);
        ensure!(
            heard,
            "no turn here has audio; name a data set with recordings"
        );
        let rows: Vec<_> = VARIANTS
            .iter()
            .map(|variant| row(variant, &results[variant]))
            .collect();
        self.common
            .finish("eval speakers", &set, results, &table(&HEADINGS, &rows))
    }
}

const HEADINGS: [&str; 7] = [
    "variant",
    "turns",
    "accuracy",
    ">= 1.6 s",
    "ARI",
    "unknown",
    "made/true",
];

fn row(variant: &str, report: &SpeakersReport) -> Vec<String> {
    let made: usize = report.episodes.iter().map(|episode| episode.made).sum();
    let people: usize = report.episodes.iter().map(|episode| episode.people).sum();
    vec![
        variant.to_owned(),
        report.turns.to_string(),
        format!("{:.3}", report.accuracy),
        format!("{:.3}", report.accuracy_1600ms),
        format!("{:.3}", report.ari),
        report.unknown.to_string(),
        format!("{made}/{people}"),
    ]
}
