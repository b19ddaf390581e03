//! `eval asr`.

use anyhow::{Result, ensure};
use clap::Args;
use earwitness::transcribe::LiveOptions;
use earwitness_models::{asr, manifest::Kind, pack::Pack};
use earwitness_tests::{
    asr::{AsrReport, Tally},
    connect::{Hearing, recognize, recordings},
    episodes::{Episode, Turn},
    noisy::Surroundings,
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
    /// Recognises each turn at its end only, as `ingest` does
    #[arg(long)]
    no_partials: bool,
    /// Hears the turns in an echoing room, with people talking or a car around
    /// them at 10 dB
    #[arg(long, value_name = "SEED")]
    noisy: Option<u64>,
}

impl Arguments {
    /// Runs, prints and writes.
    pub fn run(&self) -> Result<()> {
        let mut set = self.common.load()?;
        let mut recognizer = asr::load(&Pack::open(&self.packs.dir(), Kind::Asr)?)?;
        let hearing = self.hearing(&set.episodes)?;
        let mut tally = Tally::default();
        let bar = progress("asr", set.episodes.len());
        self.common.each_episode(&mut set, |episode| {
            let mut hear = |episode: &Episode, turn: &Turn| {
                recognize(&mut *recognizer, &hearing, episode, turn)
            };
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

    fn hearing(&self, episodes: &[Episode]) -> Result<Hearing> {
        let place = match self.noisy {
            Some(seed) => Some(Surroundings::new(seed, &recordings(episodes)?)),
            None => None,
        };
        Ok(Hearing {
            partials: (!self.no_partials).then(LiveOptions::default),
            place,
        })
    }
}

const HEADINGS: [&str; 9] = [
    "turns",
    "words",
    "WER",
    "sub",
    "del",
    "ins",
    "RTF",
    "first partial p50 ms",
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
        report
            .first_partial_ms
            .as_ref()
            .map_or_else(|| "-".to_owned(), |latency| format!("{:.0}", latency.p50)),
        format!("{:.0}", report.final_ms.p95),
    ]
}
