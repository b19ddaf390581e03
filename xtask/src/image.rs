//! `cargo xtask image`: all that a hub boots from.
//!
//! | file | what it is |
//! |---|---|
//! | `kernel` | the distribution's |
//! | `initramfs` | our first process (`runtime/init`) and the drivers it loads |
//! | `disk.img` | GPT with what the board's firmware starts these two by, two slots, each the runtime and its model packs, and the data |
//!
//! Programs are linked statically: a slot holds no library of the distribution's.

mod boot;
mod debian;
mod disk;
mod initramfs;
mod kernel;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, ensure};

use crate::boards::{self, Board, Class};
use crate::models;
use crate::process::{Build, run, target};
use crate::toolchain::Toolchain;
use kernel::Kernel;

pub use boot::arguments;
pub use disk::read_data;

/// Options of `cargo xtask image`.
#[derive(clap::Args)]
pub struct Args {
    /// Which board
    #[arg(long)]
    board: String,
    /// The folder for the files [default: target/images/BOARD]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// A folder with boot/ and lib/modules/, in place of the distribution's kernel
    #[arg(long, value_name = "DIR")]
    kernel: Option<PathBuf>,
    /// What the programs are built with; `release` is quicker to build, and larger
    #[arg(long, default_value = Plan::DEVICE.profile)]
    profile: String,
}

/// The files of an image.
pub struct Image {
    /// What a bootloader starts.
    pub kernel: PathBuf,
    /// What goes with it.
    pub initramfs: PathBuf,
    /// The whole disk.
    pub disk: PathBuf,
}

/// How an image is made.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// A folder with a kernel, in place of the distribution's.
    pub kernel: Option<&'a Path>,
    /// The profile that the programs are built with.
    pub profile: &'a str,
    /// Whether the second slot has no program that starts, and is on trial: for tests.
    pub second_broken: bool,
}

impl Plan<'_> {
    /// As it goes onto a board: small, within its budget, and slow to build.
    pub const DEVICE: Self = Self {
        kernel: None,
        profile: "device",
        second_broken: false,
    };
    /// As it is tried here.
    pub const TRIAL: Self = Self {
        profile: "release",
        ..Self::DEVICE
    };
}

/// Makes the image of a board.
pub fn run_image(args: &Args) -> Result<()> {
    let board = Board::find(&args.board)?;
    let output = args.output.clone().unwrap_or_else(|| folder(&board));
    let plan = Plan {
        kernel: args.kernel.as_deref(),
        profile: &args.profile,
        ..Plan::DEVICE
    };
    let image = make(&board, &output, plan)?;
    for path in [&image.kernel, &image.initramfs, &image.disk] {
        println!("{}", path.display());
    }
    Ok(())
}

/// Where the image of a board is made unless another place is named.
pub fn folder(board: &Board) -> PathBuf {
    target().join("images").join(&board.name)
}

/// Builds everything and makes the image in a folder.
pub fn make(board: &Board, output: &Path, plan: Plan) -> Result<Image> {
    ensure!(
        board.class == Class::Hub,
        "{} is no hub: it has no disk",
        board.name
    );
    let described = board.image.as_ref().with_context(|| {
        format!(
            "no image is made for {}: what it needs to boot is missing, and boards/README.md \
             says what that is",
            board.name
        )
    })?;
    fs::create_dir_all(output).with_context(|| format!("cannot make {}", output.display()))?;
    let kernel = match plan.kernel {
        Some(folder) => Kernel::read(folder)?,
        None => Kernel::fetch(described, &models::cache_folder()?.join("kernels"))?,
    };
    let image = Image {
        kernel: output.join("kernel"),
        initramfs: output.join("initramfs"),
        disk: output.join("disk.img"),
    };
    fs::copy(&kernel.image, &image.kernel)?;
    let init = program(board, "earwitness-init", plan.profile)?;
    initramfs::write(
        &image.initramfs,
        &init,
        &kernel.drivers(&described.modules)?,
    )?;

    let roots = output.join("roots");
    let _ = fs::remove_dir_all(&roots);
    let whole = roots.join("slot");
    slot(&whole, board, described, plan)?;
    let data = roots.join("data");
    fs::create_dir_all(&data)?;
    // No clock on the board is right that is behind this.
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    fs::write(data.join("clock"), now.to_string())?;
    let second = if plan.second_broken {
        fs::write(data.join("boot"), "b trial 2\n")?;
        broken(&roots.join("broken"))?
    } else {
        whole.clone()
    };
    let boot = described.boot.as_ref().map(|_| roots.join("boot"));
    if let (Some(folder), Some(how)) = (&boot, &described.boot) {
        boot::lay_out(folder, how, &image, &kernel, &board.console)?;
    }
    let contents = disk::Contents {
        boot: boot.as_deref(),
        slots: [&whole, &second],
        data: &data,
    };
    disk::make(&image.disk, board.storage, &contents)?;
    fs::remove_dir_all(&roots)?;
    Ok(image)
}

/// A slot: the runtime, what it is started with, and its model packs.
fn slot(root: &Path, board: &Board, described: &boards::Image, plan: Plan) -> Result<()> {
    lay_out(root, &described.arguments)?;
    let program = program(board, "earwitness", plan.profile)?;
    let size = boards::Bytes(fs::metadata(&program)?.len());
    ensure!(
        size <= board.budget.program || plan.profile != Plan::DEVICE.profile,
        "the program takes {size}, and its budget on {} is {}",
        board.name,
        board.budget.program
    );
    fs::copy(program, root.join("bin/earwitness"))?;
    let packs = models::ensure(Build::Release)?;
    copy_folder(&packs, &root.join("usr/share/earwitness/packs"))
}

/// Where the first process shows a slot what it has mounted.
const MOUNTED: [&str; 5] = ["proc", "sys", "dev", "run", "data"];

/// The folders of a slot, and what its program is started with.
fn lay_out(root: &Path, arguments: &[String]) -> Result<()> {
    for folder in ["bin", "etc/earwitness", "tmp"].iter().chain(&MOUNTED) {
        fs::create_dir_all(root.join(folder))?;
    }
    let arguments = arguments.join("\n") + "\n";
    fs::write(root.join("etc/earwitness/arguments"), arguments).map_err(Into::into)
}

/// A slot whose program was not written to its end.
fn broken(root: &Path) -> Result<PathBuf> {
    lay_out(root, &["run".to_owned()])?;
    let program = root.join("bin/earwitness");
    fs::write(&program, "\x7fELF")?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok(root.to_owned())
}

/// Builds a program of ours for the board.
fn program(board: &Board, name: &str, profile: &str) -> Result<PathBuf> {
    let toolchain = Toolchain::find(&board.target)?;
    let mut build = toolchain.cargo("rustc");
    build
        .args(["--profile", profile, "-p", name, "--bin", name])
        .args(["--", "-C", "target-feature=+crt-static"]);
    eprintln!("== {name} for {}", board.target);
    run(&mut build)?;
    Ok(toolchain.built(profile).join(name))
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
