//! The recordings that the node hears.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use earwitness_api::node::NODE_RATE_HZ;

/// The first `seconds` of all recordings in a folder, one after the other.
pub fn read(folder: &Path, seconds: usize) -> Result<Vec<i16>> {
    let wanted = seconds * NODE_RATE_HZ as usize;
    let cannot = || format!("cannot read {}", folder.display());
    let entries = fs::read_dir(folder).with_context(cannot)?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|e| e.path())).collect();
    let mut paths = paths.with_context(cannot)?;
    paths.retain(|path| path.extension().is_some_and(|kind| kind == "flac"));
    paths.sort();
    let mut samples = Vec::new();
    for path in paths {
        if samples.len() >= wanted {
            break;
        }
        append(&path, &mut samples).with_context(|| format!("cannot use {}", path.display()))?;
    }
    ensure!(
        samples.len() >= wanted,
        "the recordings in {} are shorter than {seconds} s: ask for fewer --seconds",
        folder.display()
    );
    samples.truncate(wanted);
    Ok(samples)
}

fn append(path: &Path, samples: &mut Vec<i16>) -> Result<()> {
    let mut reader = claxon::FlacReader::open(path)?;
    let info = reader.streaminfo();
    ensure!(
        (info.sample_rate, info.channels, info.bits_per_sample) == (NODE_RATE_HZ, 1, 16),
        "it is not 16 kHz, mono, 16 bits: convert it"
    );
    for sample in reader.samples() {
        samples.push(i16::try_from(sample?)?);
    }
    Ok(())
}
