//! `cargo xtask qemu`: runs a board under QEMU and checks what it does.

use std::path::PathBuf;

use anyhow::Result;

use crate::boards::{Board, Class};
use crate::{hub, node, report};

/// Options of `cargo xtask qemu`.
#[derive(clap::Args)]
pub struct Args {
    /// Which board
    #[arg(long)]
    board: String,
    /// Seconds of sound that it hears [default: 30, of a hub 15]
    #[arg(long)]
    seconds: Option<usize>,
    /// Where to write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs a board with recordings, and compares what comes of them.
pub fn run(args: &Args) -> Result<()> {
    let board = Board::find(&args.board)?;
    let seconds = |usual| args.seconds.unwrap_or(usual);
    let (results, gist) = match board.class {
        Class::Hub => (hub::emulate(&board, seconds(hub::SECONDS))?, hub::GIST),
        Class::MicNode => (node::emulate(&board, seconds(30))?, node::GIST),
    };
    for key in gist {
        println!("{key}: {}", results[key]);
    }
    match &args.json {
        Some(file) => report::write(file, "qemu", &results),
        None => Ok(()),
    }
}
