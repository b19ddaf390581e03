//! `spokentrace --out DIR --seed N`: writes the episodes of all splits, or of one.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::Parser;
use earwitness_spokentrace::{Generator, Split};
use indicatif::{ProgressBar, ProgressStyle};

/// Generates SpokenTrace: dialogues over several sessions with questions to a
/// memory of them.
#[derive(Parser)]
struct Args {
    /// Where the splits' folders go, each with a folder an episode.
    #[arg(long)]
    out: PathBuf,
    /// Gives other episodes; the same seed always gives the same.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only this split; all of them otherwise.
    #[arg(long)]
    split: Option<Split>,
    /// Episodes of each split; as many as published otherwise.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=99_999))]
    episodes: Option<u32>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let splits = args.split.map_or(Split::ALL.to_vec(), |split| vec![split]);
    for split in splits {
        let published = split.published_size().0;
        let episodes = args
            .episodes
            .map_or(published, |episodes| episodes as usize);
        let generator = Generator::new(split, args.seed, episodes)?;
        write(&generator, &args.out.join(split.name()))?;
    }
    Ok(())
}

fn write(generator: &Generator, folder: &Path) -> Result<()> {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}")?;
    let progress = ProgressBar::new(generator.len() as u64).with_style(style);
    progress.set_message(folder.display().to_string());
    for index in 0..generator.len() {
        let episode = generator.episode(index)?;
        let folder = folder.join(&episode.id);
        let file = folder.join("episode.json");
        let json = serde_json::to_vec_pretty(&episode)?;
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&file, json))
            .with_context(|| format!("cannot write {}; is there room?", file.display()))?;
        progress.inc(1);
    }
    progress.finish();
    eprintln!("{}: {} episodes", folder.display(), generator.len());
    Ok(())
}
