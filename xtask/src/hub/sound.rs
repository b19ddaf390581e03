//! What an emulated hub hears.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};
use claxon::FlacReader;

use crate::process::root;

const RATE_HZ: usize = 16_000;
/// Between two turns.
const PAUSE: usize = RATE_HZ;
const BYTES_PER_SAMPLE: usize = 2;

/// The household's first turns, as the raw samples of so many seconds.
pub fn recording(seconds: usize) -> Result<Vec<u8>> {
    let folder = root().join("tests/data/household/audio");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)?
        .flatten()
        .map(|file| file.path())
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with('s'))
        })
        .collect();
    files.sort();
    let mut samples = Vec::new();
    for file in files {
        let turn = turn(&file)?;
        if samples.len() + turn.len() + PAUSE > seconds * RATE_HZ {
            break;
        }
        samples.extend(turn);
        samples.extend([0; PAUSE]);
    }
    ensure!(
        !samples.is_empty(),
        "{} holds no turn so short",
        folder.display()
    );
    Ok(samples
        .iter()
        .flat_map(|sample| sample.to_le_bytes())
        .collect())
}

fn turn(file: &Path) -> Result<Vec<i16>> {
    let mut reader = FlacReader::new(File::open(file)?)?;
    let info = reader.streaminfo();
    let fits = info.sample_rate as usize == RATE_HZ && info.channels == 1;
    ensure!(fits, "{} is not mono at 16 kHz", file.display());
    let samples: Result<Vec<i32>, _> = reader.samples().collect();
    Ok(samples?.into_iter().map(|sample| sample as i16).collect())
}

/// How long raw samples last.
pub fn seconds(samples: &[u8]) -> f64 {
    (samples.len() / BYTES_PER_SAMPLE) as f64 / RATE_HZ as f64
}
