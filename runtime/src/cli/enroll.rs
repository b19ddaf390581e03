//! `earwitness speakers enroll`: the recordings, and what came of them.

use std::path::PathBuf;

use earwitness::{capture, desk};
use earwitness_api::message::{Enrol, Enrolled, Request, Response};

use super::{Common, Hearing, backend, print, speakers};

/// Enrols somebody through the daemon, or with models of our own where none runs.
pub(super) fn run(common: &Common, name: &str, recordings: Vec<Vec<i16>>) -> anyhow::Result<()> {
    let enrol = Enrol {
        name: name.to_owned(),
        recordings,
    };
    let response = match backend::daemon(&common.store()) {
        Some(mut client) => client.call(Request::Enrol(enrol))?,
        None => backend::accepted(desk::enrol(&common.open_hub(&Hearing::default())?, &enrol))?,
    };
    match response {
        Response::Enrolled(enrolled) if common.json => print::json(&enrolled),
        Response::Enrolled(enrolled) => show(common, &enrolled),
        other => backend::unexpected(&other),
    }
}

fn show(common: &Common, enrolled: &Enrolled) -> anyhow::Result<()> {
    for remark in &enrolled.remarks {
        eprintln!("left out: {remark}");
    }
    print::line(&format!(
        "{} is enrolled: quality {:.2} from {:.1} s of speech",
        speakers::name(&enrolled.identity.speaker),
        enrolled.quality,
        f64::from(enrolled.speech_ms) / 1000.0
    ))?;
    speakers::show(common, &enrolled.identity)
}

/// The sound of some files.
pub(super) fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<Vec<i16>>> {
    paths
        .iter()
        .map(|path| Ok(pcm(&capture::decode(path)?)))
        .collect()
}

fn pcm(samples: &[f32]) -> Vec<i16> {
    samples
        .iter()
        .map(|&sample| (sample * 32767.0).round() as i16)
        .collect()
}

/// What to say: everyday words that between them hold most sounds of English.
#[cfg(feature = "mic")]
const SENTENCES: [&str; 3] = [
    "The boy was there when the sun rose, and a large house stood on the hill.",
    "Please put the blue cup and the thick yellow book on the small kitchen table.",
    "We should leave at five o'clock on Tuesday, just before the weather changes.",
];

/// Asks for some sentences and listens to each.
#[cfg(feature = "mic")]
pub(super) fn guided() -> anyhow::Result<Vec<Vec<i16>>> {
    use earwitness::capture::{AudioSource, Microphone, SAMPLE_RATE_HZ};
    const SECONDS: usize = 8;
    eprintln!("Speak as you would from your usual place. You have {SECONDS} s for each sentence.");
    let mut microphone = Microphone::open()?;
    let mut recordings = Vec::new();
    for (number, sentence) in (1..).zip(SENTENCES) {
        eprintln!("{number} of {}: {sentence}", SENTENCES.len());
        let mut samples = Vec::new();
        while samples.len() < SECONDS * SAMPLE_RATE_HZ as usize && microphone.read(&mut samples)? {}
        recordings.push(pcm(&samples));
    }
    Ok(recordings)
}

#[cfg(not(feature = "mic"))]
pub(super) fn guided() -> anyhow::Result<Vec<Vec<i16>>> {
    anyhow::bail!(
        "this program was built without microphone input; use --wav, or build it with the feature `mic`"
    )
}
