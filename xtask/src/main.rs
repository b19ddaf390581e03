//! One door for every chore of the project: `cargo xtask --help`.
//!
//! A thin program: it knows none of the other crates and runs them as processes.
#![forbid(unsafe_code)]

mod bench;
mod boards;
mod cross;
mod disassembly;
mod flash;
mod fuzz;
mod harness;
mod hub;
mod image;
mod models;
mod node;
mod process;
mod progress;
mod qemu;
mod report;
mod sizes;
mod test;
mod toolchain;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "One door for every chore of the project"
)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Builds the model packs, or verifies them where they are there
    Models(models::Args),
    /// Runs every test that needs no special hardware
    Test(test::Args),
    /// Shows the whole thing at work, from a fresh clone
    Demo(harness::Args),
    /// Lists the boards and checks their descriptions
    Boards,
    /// Measures the programs of microphone nodes against their budgets
    Sizes(sizes::Args),
    /// Makes all that a hub boots from: kernel, initramfs and disk
    Image(image::Args),
    /// Cuts the power of an emulated hub while it listens, again and again
    Cuts(hub::CutsArgs),
    /// Writes a hub's disk or a node's program, and verifies it
    Flash(flash::Args),
    /// Runs a board under QEMU and checks what it does
    Qemu(qemu::Args),
    /// Evaluates on a folder of episodes
    Eval(harness::Args),
    /// Measures how fast a part is, beside a peer
    Bench(bench::Args),
    /// Feeds any bytes to what reads files, archives and rows
    Fuzz(fuzz::Args),
    /// Listens to hours of speech, noise and silence
    Soak(harness::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().chore {
        Chore::Models(args) => models::run(&args),
        Chore::Test(args) => test::run(&args),
        Chore::Demo(args) => harness::demo(&args),
        Chore::Boards => boards::list(),
        Chore::Sizes(args) => sizes::run(&args),
        Chore::Image(args) => image::run_image(&args),
        Chore::Cuts(args) => hub::cuts(&args),
        Chore::Flash(args) => flash::run(&args),
        Chore::Qemu(args) => qemu::run(&args),
        Chore::Eval(args) => harness::eval(&args),
        Chore::Bench(args) => bench::run_all(&args),
        Chore::Fuzz(args) => fuzz::run(&args),
        Chore::Soak(args) => harness::soak(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
