//! `earwitness ask`: a typed or spoken question, its evidence and its answer.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use earwitness::{
    capture::{self, SAMPLE_RATE_HZ},
    desk,
};
use earwitness_api::message::{Ask, MAX_QUESTION_SAMPLES, Question, Request, Response};

use super::{Common, Hearing, backend, print};

#[derive(clap::Args)]
pub(super) struct Args {
    /// Who asks: a speaker's number or name
    #[arg(long = "as", value_name = "SPEAKER")]
    asker: Option<String>,
    /// A recording of the question
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "text",
        required_unless_present = "text"
    )]
    wav: Option<PathBuf>,
    /// Pieces of evidence to show
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=50))]
    top: u32,
    /// The question in words
    #[arg(value_name = "TEXT")]
    text: Option<String>,
}

pub(super) fn run(common: &Common, args: &Args) -> anyhow::Result<()> {
    let ask = Ask {
        question: question(args)?,
        as_speaker: args.asker.as_deref().map(backend::speaker_ref),
        limit: args.top,
    };
    let response = match backend::daemon(&common.store()) {
        Some(mut client) => client.call(Request::Ask(ask))?,
        None => backend::accepted(desk::ask(&common.open_hub(&Hearing::default())?, ask))?,
    };
    match response {
        Response::Answer(answer) if common.json => print::json(&answer),
        Response::Answer(answer) => print::answer(&answer),
        other => backend::unexpected(&other),
    }
}

fn question(args: &Args) -> anyhow::Result<Question> {
    if let Some(path) = &args.wav {
        return Ok(Question::Audio(spoken(path)?));
    }
    let text = args.text.as_deref().unwrap_or_default().trim();
    ensure!(
        !text.is_empty(),
        "the question is empty; type one, or name a recording with --wav"
    );
    Ok(Question::Text(text.to_owned()))
}

fn spoken(path: &Path) -> anyhow::Result<Vec<i16>> {
    let samples = capture::decode(path)?;
    ensure!(
        samples.len() <= MAX_QUESTION_SAMPLES,
        "{} is longer than the {} s of a spoken question; ask a shorter one",
        path.display(),
        MAX_QUESTION_SAMPLES / SAMPLE_RATE_HZ as usize
    );
    Ok(samples
        .iter()
        .map(|&sample| (sample * 32767.0).round() as i16)
        .collect())
}
