//! Hours of speech, noise and silence: nothing grows, and where nobody speaks no
//! word is heard.

use anyhow::Result;
use earwitness::{
    capture::SAMPLE_RATE_HZ,
    hub::Hub,
    listen::{Listener, Placement, Told},
    meter::resident_mib,
};
use serde::Serialize;

use crate::noisy::wordless;

/// Length of each sound without words, in seconds.
const WORDLESS_S: usize = 20;
/// Sound is handed over in such chunks, as a sound card would.
const CHUNK: usize = SAMPLE_RATE_HZ as usize / 10;

/// What a soak came to.
#[derive(Debug, Serialize)]
pub struct SoakReport {
    /// Sound listened to, in seconds.
    pub audio_s: f64,
    /// Records made of the speech.
    pub records: u64,
    /// What was heard where nobody spoke: the sound, and the words.
    pub made_up: Vec<(String, String)>,
    /// Resident set after each round, in MiB; empty where the system does not tell.
    pub resident_mib: Vec<f64>,
}

impl SoakReport {
    /// By how much the resident set grew from the end of the first third of the
    /// rounds, when every buffer has had its greatest size, to the last.
    pub fn growth_mib(&self) -> f64 {
        let rounds = &self.resident_mib;
        let settled = rounds.get(rounds.len() / 3).or(rounds.first());
        rounds.last().copied().unwrap_or(0.0) - settled.copied().unwrap_or(0.0)
    }
}

/// Plays rounds of speech, every wordless sound, and silence, until so many
/// seconds have been heard. Every round is a session of its own.
pub fn soak(
    hub: &Hub,
    speech: &[f32],
    seconds: f64,
    seed: u64,
    mut progress: impl FnMut(f64),
) -> Result<SoakReport> {
    let mut report = SoakReport {
        audio_s: 0.0,
        records: 0,
        made_up: Vec::new(),
        resident_mib: Vec::new(),
    };
    for round in 0.. {
        if report.audio_s >= seconds {
            break;
        }
        report.records += play(hub, &format!("speech {round}"), speech)?.len() as u64;
        report.audio_s += length_s(speech);
        for (name, sound) in wordless(seed + round, WORDLESS_S) {
            let heard = play(hub, &format!("{name} {round}"), &sound)?;
            let heard = heard.into_iter().map(|text| (name.to_owned(), text));
            report.made_up.extend(heard);
            report.audio_s += length_s(&sound);
            progress(report.audio_s);
        }
        report.resident_mib.extend(resident_mib());
    }
    Ok(report)
}

/// The texts of the records that a sound leads to in a session of its own.
pub fn play(hub: &Hub, session: &str, sound: &[f32]) -> Result<Vec<String>> {
    let session = hub.store().begin_session(session, 0)?;
    let mut listener = Listener::new(hub, session, Placement::default())?;
    let mut texts = Vec::new();
    let mut tell = |told: Told<'_>| {
        if let Told::Record(record) = told {
            texts.push(record.text.clone());
        }
    };
    for chunk in sound.chunks(CHUNK) {
        listener.push(chunk, &mut tell)?;
    }
    listener.finish(&mut tell)?;
    Ok(texts)
}

fn length_s(sound: &[f32]) -> f64 {
    sound.len() as f64 / f64::from(SAMPLE_RATE_HZ)
}
