//! Where the time goes: wall time of each stage beside the sound it worked on.

use std::time::{Duration, Instant};

use serde::{Serialize, Serializer};

/// The stages of the pipeline, in the order of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Voice activity and cutting.
    Segment,
    /// Voiceprint and attribution.
    Attribute,
    /// Speech recognition while it is spoken.
    Partials,
    /// Speech recognition at the end of a turn.
    Transcribe,
    /// Text embedding of the key.
    Embed,
    /// The durable transaction.
    Write,
}

impl Stage {
    /// All stages in order.
    pub const ALL: [Self; 6] = [
        Self::Segment,
        Self::Attribute,
        Self::Partials,
        Self::Transcribe,
        Self::Embed,
        Self::Write,
    ];

    /// Its name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Segment => "segment",
            Self::Attribute => "attribute",
            Self::Partials => "partials",
            Self::Transcribe => "transcribe",
            Self::Embed => "embed",
            Self::Write => "write",
        }
    }
}

/// What one stage has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct StageTime {
    /// Sound it worked on.
    pub audio: Duration,
    /// Wall time it took.
    pub wall: Duration,
}

/// The account of all stages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    stages: [StageTime; Stage::ALL.len()],
}

impl Meter {
    /// Books the time since `started` on a stage.
    pub fn book(&mut self, stage: Stage, audio: Duration, started: Instant) {
        self.add(stage, audio, started.elapsed());
    }

    /// Books a measured time on a stage.
    pub fn add(&mut self, stage: Stage, audio: Duration, wall: Duration) {
        let entry = &mut self.stages[stage as usize];
        entry.audio += audio;
        entry.wall += wall;
    }

    /// Adds the account of another stream.
    pub fn merge(&mut self, other: &Self) {
        for stage in Stage::ALL {
            let StageTime { audio, wall } = other.stage(stage);
            self.add(stage, audio, wall);
        }
    }

    /// What a stage has done so far.
    pub fn stage(&self, stage: Stage) -> StageTime {
        self.stages[stage as usize]
    }
}

impl Serialize for Meter {
    /// `{"segment": {"audio_s": ..., "wall_s": ..., "rtf": ...}, ...}`, without the
    /// stages that had no sound.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = Stage::ALL.map(|stage| (stage.name(), self.stage(stage)));
        let at_work = entries
            .into_iter()
            .filter(|(_, time)| !time.audio.is_zero());
        serializer.collect_map(at_work)
    }
}

impl Serialize for StageTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (audio_s, wall_s) = (self.audio.as_secs_f64(), self.wall.as_secs_f64());
        let rtf = if audio_s > 0.0 { wall_s / audio_s } else { 0.0 };
        serializer.collect_map([("audio_s", audio_s), ("wall_s", wall_s), ("rtf", rtf)])
    }
}

/// Highest resident set of this process so far, in MiB; `None` where the system
/// does not tell.
pub fn peak_resident_mib() -> Option<f64> {
    memory_mib("VmHWM:")
}

/// Resident set of this process now, in MiB; `None` where the system does not tell.
pub fn resident_mib() -> Option<f64> {
    memory_mib("VmRSS:")
}

fn memory_mib(entry: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(entry))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib / 1024.0)
}
