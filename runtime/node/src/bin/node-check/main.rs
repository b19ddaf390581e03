//! Plays recordings to an emulated microphone node and checks what arrives.
//!
//! Listens on two ports, starts the emulator with them in place of `{link}` and
//! `{microphone}`, and sends the node through its formats, an equal share of the
//! sound in each. Raw samples, ADPCM and fixed-point features have to arrive bit for
//! bit as this machine computes them, without a gap, and the features within a bound
//! of the float front end. Prints one JSON object.

mod compare;
mod emulator;
mod sound;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use earwitness_api::node::{BLOCK_SAMPLES, NodeConfig, NodeFormat, NodeRequest, NodeStatus};
use serde::Serialize;

use compare::{Expected, Received};
use emulator::Emulator;

/// The largest difference between the node's features and float ones, in neper.
const FEATURE_BOUND: f32 = 1.0 / 128.0;

#[derive(Parser)]
struct Args {
    /// Folder with recordings (FLAC, 16 kHz, mono), played in the order of their names
    #[arg(long, value_name = "DIR")]
    sound: PathBuf,
    /// How much of them
    #[arg(long, default_value_t = 30)]
    seconds: usize,
    /// Instructions that the emulator executes in one tick of the node's clock
    #[arg(long, default_value_t = 1.0)]
    instructions_per_tick: f64,
    /// The emulator, with {link} and {microphone} where its ports go
    #[arg(last = true, required = true)]
    emulator: Vec<String>,
}

/// What is printed.
#[derive(Serialize)]
struct Report {
    booted: bool,
    seconds: usize,
    /// Frames that did not arrive or were damaged, and samples missing between them.
    gaps: u64,
    records_equal: bool,
    feature_difference: f32,
    feature_bound: f32,
    /// Mean for a block of 10 ms with features, the dearest format.
    instructions_per_frame: f64,
    instructions: Instructions,
    stack_used_bytes: u32,
}

/// Instructions for a block of 10 ms: the mean of each format, and the slowest block.
#[derive(Default, Serialize)]
struct Instructions {
    pcm: f64,
    adpcm: f64,
    fbank: f64,
    slowest: f64,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let formats = [NodeFormat::Pcm, NodeFormat::Adpcm, NodeFormat::Fbank];
    let samples = sound::read(&args.sound, args.seconds)?;
    let share = samples.len() / formats.len() / BLOCK_SAMPLES * BLOCK_SAMPLES;
    let mut node = Emulator::start(&args.emulator)?;
    let mut state = Expected::default();
    let mut instructions = Instructions::default();
    let (mut records_equal, mut feature_difference) = (true, 0.0);
    for (part, format) in samples.chunks_exact(share).zip(formats) {
        let before = configure(&mut node, format)?;
        node.play(part);
        let (expected, filtered) = state.next(part, format);
        let mut received = Received::default();
        while received.len() < expected.len() {
            node.receive(|event| received.take(event))
                .with_context(|| {
                    format!("after {} of {} blocks", received.len(), expected.len())
                })?;
        }
        let after = status(&mut node, NodeRequest::Status)?;
        *instructions.of(format) = per_block(&before, &after) * args.instructions_per_tick;
        records_equal &= received == expected;
        feature_difference = received
            .feature_difference(&filtered)
            .max(feature_difference);
    }
    let last = status(&mut node, NodeRequest::Status)?;
    instructions.slowest = f64::from(last.slowest_block_ticks) * args.instructions_per_tick;
    let counters = node.counters();
    let gaps = counters.refused + counters.lost_frames + counters.unsent_samples;
    let report = Report {
        booted: true,
        seconds: args.seconds,
        gaps: gaps + u64::from(last.lost_samples),
        records_equal,
        feature_difference,
        feature_bound: FEATURE_BOUND,
        instructions_per_frame: instructions.fbank,
        instructions,
        stack_used_bytes: last.stack_bytes,
    };
    println!("{}", serde_json::to_string(&report)?);
    ensure!(
        report.gaps == 0,
        "the stream has {} gaps: see the report",
        report.gaps
    );
    ensure!(
        records_equal,
        "what arrived is not what the node was played: see the report"
    );
    ensure!(
        feature_difference <= FEATURE_BOUND,
        "features are {feature_difference} neper off, more than {FEATURE_BOUND}"
    );
    Ok(())
}

impl Instructions {
    fn of(&mut self, format: NodeFormat) -> &mut f64 {
        match format {
            NodeFormat::Pcm => &mut self.pcm,
            NodeFormat::Adpcm => &mut self.adpcm,
            NodeFormat::Fbank => &mut self.fbank,
        }
    }
}

fn configure(node: &mut Emulator, format: NodeFormat) -> Result<NodeStatus> {
    let config = NodeConfig {
        format,
        gated: false,
    };
    let status = status(node, NodeRequest::Configure(config))?;
    ensure!(
        status.config == config,
        "the node did not take the format {format:?}"
    );
    Ok(status)
}

fn status(node: &mut Emulator, request: NodeRequest) -> Result<NodeStatus> {
    node.ask(request)?;
    let mut status = None;
    while status.is_none() {
        node.receive(|event| {
            if let earwitness_node::link::Event::Status(said) = event {
                status = Some(said);
            }
        })
        .context("the node was asked for its status")?;
    }
    status.context("the node said how it is")
}

fn per_block(before: &NodeStatus, after: &NodeStatus) -> f64 {
    let blocks = after.blocks.wrapping_sub(before.blocks);
    after.ticks.wrapping_sub(before.ticks) as f64 / f64::from(blocks)
}
