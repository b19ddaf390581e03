//! `bench asr`: the project's own spoken turns, beside Moonshine's native library,
//! faster-whisper and PocketSphinx, whichever the Python of the peers has.
//!
//! Speed is processor time, so that other work on the machine does not count;
//! every recognizer hears every turn before the next turn comes.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use earwitness::{capture::SAMPLE_RATE_HZ, meter::peak_resident_mib, transcribe::LiveOptions};
use earwitness_models::{asr, asr::Recognizer, manifest::Kind, pack::Pack};
use earwitness_tests::{
    connect::{Hearing, recognize, recordings},
    episodes::{Episode, load_set},
    metrics::{WordErrors, normalize, percentile, word_errors},
};
use serde::Deserialize;
use tempfile::TempDir;

use super::Series;

/// The recognizers that the peers' script knows.
const PEERS: [&str; 3] = ["moonshine-voice", "faster-whisper", "pocketsphinx"];
/// Turns that are heard.
const TURNS: usize = 20;

/// Measures the recognizer of a folder of packs.
pub fn run(packs: &Path, python: Option<&Path>) -> Result<Vec<Series>> {
    let started = Instant::now();
    let mut recognizer = asr::load(&Pack::open(packs, Kind::Asr)?)?;
    let load_ms = started.elapsed().as_secs_f64() * 1e3;
    let set = load_set(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/household"))?;
    let sounds: Vec<_> = recordings(&set.episodes)?.into_iter().take(TURNS).collect();
    ensure!(!sounds.is_empty(), "the household's recordings are missing");
    let mut peers = PEERS
        .iter()
        .filter_map(|engine| Peer::start(python?, engine).ok())
        .collect::<Vec<_>>();
    let folder = tempfile::tempdir()?;
    let mut ours = Tally::default();
    for (index, sound) in sounds.iter().enumerate() {
        let before = processor_ms()?;
        let text = recognizer.transcribe(sound)?.text;
        ours.add(&text, processor_ms()? - before);
        let file = raw(&folder, index, sound)?;
        for peer in &mut peers {
            peer.hear(&file)?;
        }
    }
    let audio_ms =
        sounds.iter().map(Vec::len).sum::<usize>() as f64 * 1e3 / f64::from(SAMPLE_RATE_HZ);
    let of_peers = |value: &dyn Fn(&Peer) -> f64| -> BTreeMap<String, f64> {
        peers
            .iter()
            .map(|peer| (peer.name.clone(), value(peer)))
            .collect()
    };
    let mut series = vec![
        Series::new(
            "real-time factor, processor time".into(),
            "",
            ours.ms / audio_ms,
            of_peers(&|peer| peer.heard.ms / audio_ms),
            None,
        ),
        Series::new(
            "load".into(),
            "ms",
            load_ms,
            of_peers(&|peer| peer.load_ms),
            None,
        ),
    ];
    series.extend(differences(&ours, &peers));
    series.extend(live(&mut *recognizer, &set.episodes)?);
    if let Some(peak) = peak_resident_mib() {
        let peak_of = |peer: &Peer| peer.peak_mib;
        series.push(Series::new(
            "peak memory".into(),
            "MiB",
            peak,
            of_peers(&peak_of),
            None,
        ));
    }
    Ok(series)
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

/// The share of words that differ from those of the native library with the same
/// weights.
fn differences(ours: &Tally, peers: &[Peer]) -> Option<Series> {
    let native = peers.iter().find(|peer| peer.name.starts_with(PEERS[0]))?;
    let mut errors = WordErrors::default();
    for (theirs, ours) in native.heard.words.iter().zip(&ours.words) {
        errors += word_errors(theirs, ours);
    }
    let name = format!("words that differ from {}", native.name);
    Some(Series::new(name, "", errors.rate(), BTreeMap::new(), None))
}

/// How soon words are shown while they are spoken, and how much that costs.
fn live(recognizer: &mut dyn Recognizer, episodes: &[Episode]) -> Result<Vec<Series>> {
    let hearing = Hearing {
        partials: Some(LiveOptions::default()),
        place: None,
    };
    let (mut first, mut last, mut audio_ms) = (Vec::new(), Vec::new(), 0.0);
    let before = processor_ms()?;
    for episode in episodes {
        let turns = episode.sessions.iter().flat_map(|session| &session.turns);
        for turn in turns.take(TURNS) {
            let Some(heard) = recognize(recognizer, &hearing, episode, turn)? else {
                continue;
            };
            first.extend(heard.first_partial_ms);
            last.push(heard.final_ms);
            audio_ms += heard.audio_ms;
        }
    }
    let rtf = (processor_ms()? - before) / audio_ms;
    let alone =
        |name: &str, unit, value| Series::new(name.to_owned(), unit, value, BTreeMap::new(), None);
    Ok(vec![
        alone("real-time factor with partials, processor time", "", rtf),
        alone("first partial, p50", "ms", percentile(&first, 50.0)),
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

/// Processor time of this thread.
fn processor_ms() -> Result<f64> {
    let account = fs::read_to_string("/proc/thread-self/schedstat")
        .context("processor time cannot be read here; this benchmark needs Linux")?;
    let nanoseconds = account.split(' ').next().context("/proc is malformed")?;
    Ok(nanoseconds.parse::<f64>()? / 1e6)
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

/// Another recognizer, in a process of its own.
struct Peer {
    process: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
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

impl Peer {
    /// Fails where that Python does not have it.
    fn start(python: &Path, engine: &str) -> Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes/peer_asr.py");
        let mut process = Command::new(python)
            .arg(script)
            .arg(engine)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", python.display()))?;
        let asks = process.stdin.take().context("no standard input")?;
        let mut answers = BufReader::new(process.stdout.take().context("no standard output")?);
        let Hello { name, load_ms } = answer(&mut answers)?;
        Ok(Self {
            process,
            asks,
            answers,
            name,
            load_ms,
            heard: Tally::default(),
            peak_mib: 0.0,
        })
    }

    fn hear(&mut self, sound: &Path) -> Result<()> {
        writeln!(self.asks, "{}", sound.display())?;
        let Answer { text, ms, peak_mib } =
            answer(&mut self.answers).with_context(|| format!("{} failed", self.name))?;
        self.heard.add(&text, ms);
        self.peak_mib = peak_mib;
        Ok(())
    }
}

fn answer<T: for<'d> Deserialize<'d>>(answers: &mut impl BufRead) -> Result<T> {
    let mut line = String::new();
    answers.read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends by itself with its input; a killed one is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
