//! What a stream of sound came to: records, and where the time went.

use std::time::Duration;

use earwitness::{
    listen::Account,
    meter::{Meter, peak_resident_mib},
};
use serde_json::json;

use super::{Common, print};

/// The accounts of one or more streams, added up.
pub(super) struct Summary {
    load: Duration,
    records: u64,
    wordless: u64,
    refused: u64,
    audio: Duration,
    stages: Meter,
}

impl Summary {
    /// Nothing heard yet; the models took so long to load.
    pub(super) fn new(load: Duration) -> Self {
        Self {
            load,
            records: 0,
            wordless: 0,
            refused: 0,
            audio: Duration::ZERO,
            stages: Meter::default(),
        }
    }

    /// Adds one stream.
    pub(super) fn add(&mut self, account: &Account) {
        self.records += account.records;
        self.wordless += account.wordless;
        self.refused += account.refused;
        self.audio += account.audio;
        self.stages.merge(&account.stages);
    }

    /// Prints it; `wall` is the time since the program started.
    pub(super) fn print(&self, common: &Common, wall: Duration) -> anyhow::Result<()> {
        let (audio_s, load_s) = (self.audio.as_secs_f64(), self.load.as_secs_f64());
        let work_s = wall.saturating_sub(self.load).as_secs_f64();
        if !common.json {
            eprintln!(
                "{} records from {audio_s:.1} s of sound in {work_s:.1} s; models loaded in {load_s:.1} s",
                self.records
            );
            return Ok(());
        }
        print::json(&json!({ "summary": {
            "records": self.records,
            "wordless": self.wordless,
            "refused": self.refused,
            "audio_s": audio_s,
            "wall_s": wall.as_secs_f64(),
            "load_s": load_s,
            "rtf": if audio_s > 0.0 { work_s / audio_s } else { 0.0 },
            "peak_rss_mib": peak_resident_mib(),
            "stages": self.stages,
        }}))
    }
}
