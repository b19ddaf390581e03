//! `cargo xtask flash`: puts what was built onto a board.
//!
//! | target | how |
//! |---|---|
//! | a file or block device | a hub's whole disk, read back and compared |
//! | `probe` | a microphone node's program, through probe-rs, verified |

mod disk;
mod probe;

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};

use crate::boards::{Board, Class, Flash};
use crate::image::{self, Plan};
use crate::node;

/// Options of `cargo xtask flash`.
#[derive(clap::Args)]
pub struct Args {
    /// Which board
    #[arg(long)]
    board: String,
    /// A file or a block device for a hub, `probe` for a node
    #[arg(long, value_name = "TARGET")]
    to: String,
    /// What is written to a hub, the image of its whole disk; it is made where none is
    /// named
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
    /// What the programs of an image are built with; `release` is quicker to build, and
    /// larger
    #[arg(long, conflicts_with = "image", default_value = Plan::DEVICE.profile)]
    profile: String,
    /// Write to a block device without asking
    #[arg(long)]
    yes: bool,
    /// Erase the whole chip first, with everything that is on it; unlocks one that is
    /// locked
    #[arg(long)]
    erase_all: bool,
}

/// Puts what was built onto a board.
pub fn run(args: &Args) -> Result<()> {
    let board = Board::find(&args.board)?;
    match board.class {
        Class::Hub => hub(&board, args),
        Class::MicNode => mic_node(&board, args),
    }
}

fn hub(board: &Board, args: &Args) -> Result<()> {
    ensure!(
        matches!(board.flash, Flash::BlockDevice),
        "{} is emulated, and nothing is written to it",
        board.name
    );
    ensure!(
        !args.erase_all,
        "--erase-all is for chips; the disk of a hub is written as a whole"
    );
    let target = args.to.as_ref();
    if let Some(image) = &args.image {
        return disk::write(image, target, args.yes);
    }
    // Who may not be written to is better told before all is built.
    disk::check(target)?;
    let plan = Plan {
        profile: &args.profile,
        ..Plan::DEVICE
    };
    let made = image::make(board, &image::folder(board), plan)?;
    disk::write(&made.disk, target, args.yes)
}

fn mic_node(board: &Board, args: &Args) -> Result<()> {
    let Flash::ProbeRs { chip } = &board.flash else {
        bail!(
            "{} is emulated, and nothing is written to it: `cargo xtask qemu --board {}`",
            board.name,
            board.name
        );
    };
    ensure!(
        args.to == "probe",
        "a node is written through a debug probe: `--to probe`"
    );
    let program = node::build(board)?;
    probe::write(&mut probe::ProbeRs, chip, &program, args.erase_all)
}
