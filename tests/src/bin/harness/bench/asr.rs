//! `bench asr`: the project's own spoken turns, beside Moonshine's native library,
//! faster-whisper and PocketSphinx, whichever the Python of the peers has.
//!
//! Speed is processor time, so that other work on the machine does not count;
//! every recognizer hears every turn before the next turn comes.

use std::{
    collections::BTreeMap,
    fs, iter,
    path::{Path, PathBuf},
    slice,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use earwitness::{capture::SAMPLE_RATE_HZ, meter::peak_resident_mib, transcribe::LiveOptions};
use earwitness_models::{asr, asr::Recognizer, manifest::Kind, pack::Pack};
use earwitness_tests::{
    connect::{Hearing, recognize, recordings},
    episodes::{Episode, Turn, load_set},
    metrics::{WordErrors, normalize, percentile, word_errors},
};
use indicatif::ProgressBar;
use serde::Deserialize;
use tempfile::TempDir;

use super::{Series, peer::Peer, thread_ms};
use crate::output::progress;

/// The native library of the same weights, and the other recognizers that the peers'
/// script knows.
const NATIVE: &str = "moonshine-voice";
const OTHERS: [&str; 2] = ["faster-whisper", "pocketsphinx"];
/// Turns that are heard.
const TURNS: usize = 20;

/// Measures the recognizer of a folder of packs.
pub fn run(packs: &Path, python: Option<&Path>) -> Result<Vec<Series>> {
    let started = Instant::now();
    let mut recognizer = asr::load(&Pack::open(packs, Kind::Asr)?)?;
    let load_ms = started.elapsed().as_secs_f64() * 1e3;
    let set = load_set(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/household"))?;
    let turns = turns(&set.episodes)?;
    ensure!(!turns.is_empty(), "the household's recordings are missing");
    let mut peers: Vec<Recognizing> = iter::once(NATIVE)
        .chain(OTHERS)
        .filter_map(|engine| Recognizing::start(python?, engine).ok())
        .collect();
    let bar = progress("asr", 2 * turns.len());
    let folder = tempfile::tempdir()?;
    let mut ours = Tally::default();
    for (index, sound) in turns.iter().map(|turn| &turn.sound).enumerate() {
        let before = thread_ms();
        let text = recognizer.transcribe(sound)?.text;
        ours.add(&text, thread_ms() - before);
        let file = raw(&folder, index, sound)?;
        for peer in &mut peers {
            peer.hear(&file)?;
        }
        bar.inc(1);
    }
    let mut series = beside_peers(&turns, &ours, load_ms, &peers);
    series.extend(live(&mut *recognizer, &set.episodes, &bar)?);
    bar.finish_and_clear();
    series.extend(peak_resident_mib().map(|peak| {
        let of_peers = values(&peers, |peer| peer.peak_mib);
        Series::new("peak memory".into(), "MiB", peak, of_peers, None)
    }));
    Ok(series)
}

/// A turn's recording, and what was said.
struct Spoken {
    sound: Vec<f32>,
    words: Vec<String>,
}

/// The first turns.
fn turns(episodes: &[Episode]) -> Result<Vec<Spoken>> {
    let said = said(episodes).filter_map(|turn| turn.text.as_deref());
    let spoken = recordings(episodes)?.into_iter().zip(said);
    Ok(spoken
        .take(TURNS)
        .map(|(sound, text)| Spoken {
            sound,
            words: normalize(text),
        })
        .collect())
}

fn said(episodes: &[Episode]) -> impl Iterator<Item = &Turn> {
    let sessions = episodes.iter().flat_map(|episode| &episode.sessions);
    sessions
        .flat_map(|session| &session.turns)
        .filter(|turn| turn.audio.is_some())
}

/// Speed, errors and loading, beside those of the peers.
fn beside_peers(
    turns: &[Spoken],
    ours: &Tally,
    load_ms: f64,
    peers: &[Recognizing],
) -> Vec<Series> {
    let samples: usize = turns.iter().map(|turn| turn.sound.len()).sum();
    let audio_ms = samples as f64 * 1e3 / f64::from(SAMPLE_RATE_HZ);
    let is_native = |peer: &&Recognizing| peer.name.starts_with(NATIVE);
    let (native, others): (Vec<&Recognizing>, Vec<&Recognizing>) =
        peers.iter().partition(is_native);
    let rtf = |name: &str, peers: Vec<&Recognizing>| {
        let of_peers = values(peers, |peer| peer.heard.ms / audio_ms);
        Series::new(name.into(), "", ours.ms / audio_ms, of_peers, None)
    };
    let said: Vec<_> = turns.iter().map(|turn| turn.words.clone()).collect();
    let errors = |heard: &Tally| difference(&said, &heard.words);
    let mut series = vec![
        rtf(
            "real-time factor, processor time, same weights",
            native.clone(),
        ),
        rtf("real-time factor, processor time, other models", others),
        Series::new(
            "word error rate".into(),
            "",
            errors(ours),
            values(peers, |peer| errors(&peer.heard)),
            None,
        ),
        Series::new(
            "load".into(),
            "ms",
            load_ms,
            values(peers, |peer| peer.load_ms),
            None,
        ),
    ];
    series.extend(native.first().map(|native| {
        let name = format!("words that differ from {}", native.name);
        let rate = difference(&native.heard.words, &ours.words);
        Series::new(name, "", rate, BTreeMap::new(), None)
    }));
    series
}

/// A figure of each peer.
fn values<'p>(
    peers: impl IntoIterator<Item = &'p Recognizing>,
    value: impl Fn(&Recognizing) -> f64,
) -> BTreeMap<String, f64> {
    let peers = peers.into_iter();
    peers.map(|peer| (peer.name.clone(), value(peer))).collect()
}

/// Word error rate of some texts against others.
fn difference(said: &[Vec<String>], heard: &[Vec<String>]) -> f64 {
    let mut errors = WordErrors::default();
    for (said, heard) in said.iter().zip(heard) {
        errors += word_errors(said, heard);
    }
    errors.rate()
}

/// What a recognizer made of the turns.
#[derive(Default)]
struct Tally {
    words: Vec<Vec<String>>,
    ms: f64,
}

impl Tally {
    fn add(&mut self, text: &str, ms: f64) {
        self.words.push(normalize(text));
        self.ms += ms;
    }
}

/// How soon words are shown while they are spoken, and how much that costs.
fn live(
    recognizer: &mut dyn Recognizer,
    episodes: &[Episode],
    bar: &ProgressBar,
) -> Result<Vec<Series>> {
    let hearing = Hearing {
        partials: Some(LiveOptions::default()),
        place: None,
    };
    let (mut first, mut last, mut audio_ms) = (Vec::new(), Vec::new(), 0.0);
    let before = thread_ms();
    for episode in episodes {
        for turn in said(slice::from_ref(episode)).take(TURNS) {
            if let Some(heard) = recognize(recognizer, &hearing, episode, turn)? {
                first.extend(heard.first_partial_ms);
                last.push(heard.final_ms);
                audio_ms += heard.audio_ms;
            }
            bar.inc(1);
        }
    }
    let rtf = (thread_ms() - before) / audio_ms;
    let alone =
        |name: &str, unit, value| Series::new(name.to_owned(), unit, value, BTreeMap::new(), None);
    Ok(vec![
        alone("real-time factor with partials, processor time", "", rtf),
        alone("first partial, p50", "ms", percentile(&first, 50.0)),
        alone("first partial, p95", "ms", percentile(&first, 95.0)),
        alone(
            "final text after the end, p50",
            "ms",
            percentile(&last, 50.0),
        ),
        alone(
            "final text after the end, p95",
            "ms",
            percentile(&last, 95.0),
        ),
    ])
}

/// A file of raw samples.
fn raw(folder: &TempDir, index: usize, sound: &[f32]) -> Result<PathBuf> {
    let path = folder.path().join(format!("{index}.f32"));
    let bytes: Vec<u8> = sound
        .iter()
        .flat_map(|sample| sample.to_le_bytes())
        .collect();
    fs::write(&path, bytes)?;
    Ok(path)
}

/// Another recognizer.
struct Recognizing {
    peer: Peer,
    name: String,
    load_ms: f64,
    heard: Tally,
    peak_mib: f64,
}

#[derive(Deserialize)]
struct Hello {
    name: String,
    load_ms: f64,
}

#[derive(Deserialize)]
struct Answer {
    text: String,
    ms: f64,
    peak_mib: f64,
}

impl Recognizing {
    /// Fails where that Python does not have it.
    fn start(python: &Path, engine: &str) -> Result<Self> {
        let mut peer = Peer::start(python, "peer_asr.py", [engine])?;
        let Hello { name, load_ms } = serde_json::from_str(&peer.line()?)?;
        Ok(Self {
            peer,
            name,
            load_ms,
            heard: Tally::default(),
            peak_mib: 0.0,
        })
    }

    fn hear(&mut self, sound: &Path) -> Result<()> {
        let said = self.peer.ask(&sound.display().to_string())?;
        let Answer { text, ms, peak_mib } =
            serde_json::from_str(&said).with_context(|| format!("{} failed", self.name))?;
        self.heard.add(&text, ms);
        self.peak_mib = peak_mib;
        Ok(())
    }
}
