//! `eval asr`.

use anyhow::{Result, ensure};
use clap::Args;
use earwitness_models::{asr, manifest::Kind, pack::Pack};
use earwitness_tests::{
    asr::{AsrReport, Tally},
    connect::recognize,
    episodes::{Episode, Turn},
    report::table,
};

use crate::output::{Common, Packs, progress};

/// Evaluates the recogniser turn by turn.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    packs: Packs,
}

impl Arguments {
    /// Runs, prints and writes.
    pub fn run(&self) -> Result<()> {
        let mut set = self.common.load()?;
        let mut recognizer = asr::load(&Pack::open(&self.packs.dir(), Kind::Asr)?)?;
        let mut tally = Tally::default();
        let bar = progress("asr", set.episodes.len());
        self.common.each_episode(&mut set, |episode| {
            let mut hear =
                |episode: &Episode, turn: &Turn| recognize(&mut *recognizer, episode, turn);
            tally.add(episode, &mut hear)?;
            bar.inc(1);
            Ok(())
        });
        bar.finish_and_clear();
        let report = tally.report();
        ensure!(
            report.turns > 0,
            "no turn here has both audio and a transcript; name a data set with both"
        );
        let table = table(&HEADINGS, &[row(&report)]);
        self.common.finish("eval asr", &set, report, &table)
    }
}

const HEADINGS: [&str; 8] = [
    "turns",
    "words",
    "WER",
    "sub",
    "del",
    "ins",
    "RTF",
    "final p95 ms",
];

fn row(report: &AsrReport) -> Vec<String> {
    vec![
        report.turns.to_string(),
        report.words.to_string(),
        format!("{:.3}", report.wer),
        report.substitutions.to_string(),
        report.deletions.to_string(),
        report.insertions.to_string(),
        format!("{:.3}", report.rtf),
        format!("{:.0}", report.final_ms.p95),
    ]
}
