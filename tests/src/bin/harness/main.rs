//! Runs the evaluations and benchmarks: `cargo xtask eval` and `bench` are this program.
//!
//! Exit status: 0 done, 1 something failed or an episode was refused (the last
//! line on standard error says what), 2 wrong usage.

mod asr;
mod bench;
mod demo;
mod ghosts;
mod output;
mod retrieval;
mod soak;
mod speakers;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures Earwitness on recorded or written conversations.
#[derive(Debug, Parser)]
#[command(version, name = "harness")]
struct Harness {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// A household's three sessions through the real program
    Demo(demo::Arguments),
    /// Hours of speech, noise and silence: nothing grows, no word is made up
    Soak(soak::Arguments),
    /// Evaluates one part of the system on a data set
    #[command(subcommand)]
    Eval(Eval),
    /// Measures how fast a part is, beside a peer
    Bench(bench::Arguments),
}

#[derive(Debug, Subcommand)]
enum Eval {
    /// Telling voices apart and knowing them again
    Speakers(speakers::Arguments),
    /// Making nobody of noises, and one identity of one voice
    Ghosts(ghosts::Arguments),
    /// Recognising words
    Asr(asr::Arguments),
    /// Finding the records that support an answer
    Retrieval(retrieval::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Harness::parse().command {
        Command::Demo(arguments) => arguments.run(),
        Command::Bench(arguments) => arguments.run(),
        Command::Soak(arguments) => arguments.run(),
        Command::Eval(Eval::Speakers(arguments)) => arguments.run(),
        Command::Eval(Eval::Ghosts(arguments)) => arguments.run(),
        Command::Eval(Eval::Asr(arguments)) => arguments.run(),
        Command::Eval(Eval::Retrieval(arguments)) => arguments.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
