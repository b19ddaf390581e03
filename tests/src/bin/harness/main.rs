//! Runs the evaluations: `cargo xtask eval` is this program.
//!
//! Exit status: 0 done, 1 something failed or an episode was refused (the last
//! line on standard error says what), 2 wrong usage.

mod asr;
mod output;
mod retrieval;
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
    /// Evaluates one part of the system on a data set
    #[command(subcommand)]
    Eval(Eval),
}

#[derive(Debug, Subcommand)]
enum Eval {
    /// Telling voices apart and knowing them again
    Speakers(speakers::Arguments),
    /// Recognising words
    Asr(asr::Arguments),
    /// Finding the records that support an answer
    Retrieval(retrieval::Arguments),
}

fn main() -> ExitCode {
    let Command::Eval(eval) = Harness::parse().command;
    let outcome = match eval {
        Eval::Speakers(arguments) => arguments.run(),
        Eval::Asr(arguments) => arguments.run(),
        Eval::Retrieval(arguments) => arguments.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
