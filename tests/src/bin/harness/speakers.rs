//! `eval speakers`.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use clap::Args;
use earwitness::attribute::{AttributeOptions, Update, reconcile::ReconcileOptions};
use earwitness_models::{
    manifest::{Kind, Thresholds},
    pack::Pack,
    vad::SpeechDetector,
    voiceprint::VoiceprintEncoder,
};
use earwitness_tests::{
    connect::{Ear, Tracker},
    episodes::{Episode, Turn},
    report::table,
    speakers::{SpeakersReport, Trials, listen},
};
use serde::Serialize;

use crate::output::{Common, Packs, progress};

/// Evaluates the tracker alone, with a moving average, and with reconciliation.
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
}

/// The ablation of VoxPolyMem's table 6, and between its last two rows the mean
/// weighted by duration that the device learns by. The last one is the device.
const VARIANTS: [&str; 4] = ["static", "ema", "weighted", "reconciled"];

fn tracker(variant: &str, thresholds: Thresholds) -> Tracker {
    let device = AttributeOptions::new(thresholds);
    let with = |update| AttributeOptions { update, ..device };
    match variant {
        "static" => Tracker::new(with(Update::Never), None),
        "ema" => Tracker::new(
            with(Update::MovingAverage(AttributeOptions::EMA_ALPHA)),
            None,
        ),
        "weighted" => Tracker::new(device, None),
        _ => Tracker::new(device, Some(ReconcileOptions::new(thresholds.merge))),
    }
}

#[derive(Serialize)]
struct Results {
    #[serde(flatten)]
    variants: BTreeMap<&'static str, SpeakersReport>,
    /// The voiceprint model, as its pack calls it.
    voiceprint: String,
    /// Over all pairs of turns of 1.6 s and more within an episode.
    eer: f64,
    min_dcf: f64,
    trials: usize,
}

impl Arguments {
    /// Runs, prints and writes.
    pub fn run(&self) -> Result<()> {
        let mut set = self.common.load()?;
        let packs = self.packs.dir();
        let pack = Pack::open_variant(&packs, Kind::Voiceprint, self.voiceprint.as_deref())?;
        let encoder = VoiceprintEncoder::load(&pack)?;
        let thresholds = encoder.thresholds();
        let detector = SpeechDetector::load(&Pack::open(&packs, Kind::Vad)?)?;
        let mut ear = Ear::new(detector, encoder);
        let mut variants: BTreeMap<&'static str, SpeakersReport> = BTreeMap::new();
        let mut trials = Trials::default();
        let bar = progress("speakers", set.episodes.len());
        self.common.each_episode(&mut set, |episode| {
            let mut hear = |episode: &Episode, turn: &Turn| ear.hear(episode, turn);
            let turns = listen(episode, &mut hear)?;
            trials.add(&turns);
            for variant in VARIANTS {
                let report = variants.entry(variant).or_default();
                report.add(&episode.id, &turns, &mut tracker(variant, thresholds));
            }
            bar.inc(1);
            Ok(())
        });
        bar.finish_and_clear();
        let heard = variants.values().any(|report| report.turns > 0);
        ensure!(
            heard,
            "no turn here has audio; name a data set with recordings"
        );
        let rows: Vec<_> = VARIANTS
            .iter()
            .map(|variant| row(variant, &variants[variant]))
            .collect();
        let (errors, (same, different)) = (trials.errors(), trials.counts());
        let table = format!(
            "{}\n{}: EER {:.4}, minDCF(0.01) {:.3} over {same} trials of one speaker and \
             {different} of two\n",
            table(&HEADINGS, &rows),
            pack.manifest.name,
            errors.eer,
            errors.min_dcf
        );
        let results = Results {
            variants,
            voiceprint: pack.manifest.name,
            eer: errors.eer,
            min_dcf: errors.min_dcf,
            trials: same + different,
        };
        self.common.finish("eval speakers", &set, results, &table)
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
