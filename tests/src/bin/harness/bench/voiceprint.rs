//! `bench voiceprint`: 3 s of sound on one thread, the model alone beside
//! onnxruntime on the same file, and the whole way from samples to voiceprint.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, ensure};
use earwitness_models::{
    manifest::Kind,
    pack::Pack,
    voiceprint::{Features, VoiceprintEncoder},
};

use super::{Series, peer::Peer, thread_ms};

const SECONDS: usize = 3;
/// The two sides take turns, and the fastest turn of each counts, in processor time:
/// whatever else the machine does only ever makes a turn slower.
const TURNS: usize = 15;
const RUNS_A_TURN: usize = 4;

/// Measures every voiceprint pack in a folder.
pub fn run(packs: &Path, python: Option<&Path>) -> Result<Vec<Series>> {
    let mut series = Vec::new();
    for variant in variants(packs)? {
        let pack = Pack::open_variant(packs, Kind::Voiceprint, variant.as_deref())?;
        series.extend(measure(&pack, python)?);
    }
    ensure!(
        !series.is_empty(),
        "{} holds no voiceprint pack; `cargo xtask models` builds them",
        packs.display()
    );
    Ok(series)
}

/// The variants of the voiceprint pack that are there; `None` is the one without.
fn variants(packs: &Path) -> Result<Vec<Option<String>>> {
    let entries = fs::read_dir(packs)
        .with_context(|| format!("cannot read {}", packs.display()))?
        .collect::<Result<Vec<_>, _>>()?;
    let mut variants: Vec<Option<String>> = entries
        .iter()
        .filter_map(|entry| {
            let folder = entry.file_name().into_string().ok()?;
            let rest = folder.strip_prefix(Kind::Voiceprint.name())?;
            match rest.strip_prefix('-') {
                Some(variant) => Some(Some(variant.to_owned())),
                None => rest.is_empty().then_some(None),
            }
        })
        .collect();
    variants.sort();
    Ok(variants)
}

fn measure(pack: &Pack, python: Option<&Path>) -> Result<[Series; 2]> {
    let mut encoder = VoiceprintEncoder::load(pack)?;
    let samples = sound();
    let features = encoder.features(&samples)?;
    let mut peer = match python {
        Some(python) => OnnxRuntime::start(python, pack, &features)?,
        None => None,
    };
    let (mut model, mut whole) = (Vec::new(), Vec::new());
    let mut theirs = Vec::new();
    for _ in 0..TURNS {
        model.push(timed(|| {
            Ok(encoder.embed_features(&features).map(drop)?)
        })?);
        whole.push(timed(|| Ok(encoder.embed(&samples).map(drop)?))?);
        if let Some(peer) = &mut peer {
            theirs.push(peer.turn()?);
        }
    }
    let peers = peer
        .map(|peer| (format!("onnxruntime {}", peer.version), fastest(&theirs)))
        .into_iter()
        .collect();
    let name = &pack.manifest.name;
    Ok([
        Series::new(
            format!("{name}, model, {SECONDS} s"),
            "ms",
            fastest(&model),
            peers,
            None,
        ),
        Series::new(
            format!("{name}, from samples, {SECONDS} s"),
            "ms",
            fastest(&whole),
            BTreeMap::new(),
            None,
        ),
    ])
}

/// Something with energy in every band; how long a model takes does not depend on it.
fn sound() -> Vec<f32> {
    (0..SECONDS * 16_000)
        .map(|index| {
            let time = index as f32 / 16_000.0;
            (0..8)
                .map(|octave| (40.0 * 2_f32.powi(octave) * time * 6.3).sin() / 16.0)
                .sum()
        })
        .collect()
}

/// Milliseconds of one run, as the mean over one turn.
fn timed(mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let started = thread_ms();
    for _ in 0..RUNS_A_TURN {
        run()?;
    }
    Ok((thread_ms() - started) / RUNS_A_TURN as f64)
}

fn fastest(turns: &[f64]) -> f64 {
    turns.iter().copied().fold(f64::INFINITY, f64::min)
}

/// onnxruntime in a Python of its own.
struct OnnxRuntime {
    peer: Peer,
    version: String,
}

impl OnnxRuntime {
    /// `None` where the model uses operators of this project, which nobody else can
    /// run.
    fn start(python: &Path, pack: &Pack, features: &Features) -> Result<Option<Self>> {
        let model = pack.dir.join("model.onnx").into_os_string();
        let shape = [features.frames(), features.bins].map(|size| size.to_string().into());
        let arguments = std::iter::once(model).chain(shape);
        let mut peer = Peer::start(python, "peer_onnxruntime.py", arguments)?;
        let version = peer.line()?;
        Ok((!version.is_empty()).then_some(Self { peer, version }))
    }

    /// Milliseconds of one run.
    fn turn(&mut self) -> Result<f64> {
        let took = self.peer.ask(&RUNS_A_TURN.to_string())?;
        let took: f64 = took
            .parse()
            .context("the peer gave no time; its model may have failed")?;
        Ok(took / RUNS_A_TURN as f64)
    }
}
