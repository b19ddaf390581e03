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
    /// How much sound it hears
    #[arg(long, default_value_t = 30)]
    seconds: usize,
    /// Where to write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs a board with recordings, and compares what comes of them.
pub fn run(args: &Args) -> Result<()> {
    let board = Board::find(&args.board)?;
    let (results, gist) = match board.class {
        Class::Hub => (hub::emulate(&board, args.seconds)?, hub::GIST),
        Class::MicNode => (node::emulate(&board, args.seconds)?, node::GIST),
    };
    for key in gist {
        println!("{key}: {}", results[key]);
    }
    match &args.json {
        Some(file) => report::write(file, "qemu", &results),
        None => Ok(()),
    }
}
