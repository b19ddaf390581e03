//! The programs of microphone nodes: building, measuring, and running them under QEMU.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::boards::{self, Board, Class, Flash};
use crate::disassembly::Program;
use crate::process::{cargo, root, run, target};
use crate::report;
use crate::toolchain::Toolchain;

/// Functions that must do without floats, by a part of their names.
const FLOAT_FREE: &str = "FixedTables>::features";

/// Options of `cargo xtask sizes`.
#[derive(clap::Args)]
pub struct SizesArgs {
    /// Which boards; all nodes if none is named
    boards: Vec<String>,
    /// Where to write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Options of `cargo xtask qemu`.
#[derive(clap::Args)]
pub struct QemuArgs {
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

/// What a program takes of its board, in bytes.
struct Size {
    flash: u64,
    /// Variables, without the stack.
    ram: u64,
    /// The deepest stack that is possible, as estimated from the disassembly.
    stack: u64,
}

/// Prints flash, RAM and stack of each node beside its budget; fails over budget.
pub fn sizes(args: &SizesArgs) -> Result<()> {
    let all = boards::all()?;
    let wanted = |board: &Board| match args.boards.as_slice() {
        [] => board.class == Class::MicNode,
        names => names.contains(&board.name),
    };
    for name in &args.boards {
        Board::find(name)?;
    }
    let mut figures = serde_json::Map::new();
    let mut over = Vec::new();
    println!(
        "{:18} {:>8} {:>8} {:>8}   budget",
        "board", "flash", "RAM", "stack"
    );
    for board in all.iter().filter(|board| wanted(board)) {
        let size = Size::of(&build(board)?)?;
        let (flash_budget, ram_budget) = (board.budget.program, board.budget.memory);
        println!(
            "{:18} {:8} {:8} {:8}   {flash_budget} flash, {ram_budget} RAM with stack",
            board.name, size.flash, size.ram, size.stack
        );
        if size.check(board).is_err() {
            over.push(board.name.clone());
        }
        let figure = json!({
            "flash": size.flash, "ram": size.ram, "stack": size.stack,
            "budget_flash": flash_budget.0, "budget_ram": ram_budget.0,
        });
        figures.insert(board.name.clone(), figure);
    }
    report::write(args.json.as_deref(), "sizes", json!({ "boards": figures }))?;
    ensure!(
        over.is_empty(),
        "over budget: {}; see above",
        over.join(", ")
    );
    Ok(())
}

/// Runs a node under QEMU with recordings, and compares what arrives.
pub fn qemu(args: &QemuArgs) -> Result<()> {
    let board = Board::find(&args.board)?;
    let results = emulate(&board, args.seconds)?;
    report::write(args.json.as_deref(), "qemu", results)
}

/// What the tests check of nodes: what is emulated runs, within its budget, and the
/// fixed-point front end is free of floats.
pub fn check() -> Result<()> {
    for board in boards::all()? {
        if board.class == Class::MicNode && matches!(board.flash, Flash::Emulator { .. }) {
            eprintln!("\n== node: {}", board.name);
            if let Err(missing) = Toolchain::find(&board.target) {
                eprintln!("left out: {missing}");
                continue;
            }
            emulate(&board, 6)?;
        }
    }
    Ok(())
}

/// Runs a node over some seconds of sound; returns the figures.
fn emulate(board: &Board, seconds: usize) -> Result<Value> {
    let Flash::Emulator { machine, clock_hz } = &board.flash else {
        bail!(
            "{} is no emulated board: `cargo xtask boards` lists those that are",
            board.name
        );
    };
    let Some(clock_hz) = clock_hz else {
        bail!("{} is a hub, and no image is made for hubs yet", board.name);
    };
    let elf = build(board)?;
    let size = Size::of(&elf)?;
    size.check(board)?;
    float_free(&Program::read(&elf)?)?;
    run(cargo().args(["build", "--quiet", "--release", "-p", "earwitness-node"]))?;

    // One instruction takes a nanosecond of the emulated time.
    let instructions_per_tick = 1e9 / f64::from(*clock_hz);
    let mut check = Command::new(target().join("release/node-check"));
    check
        .arg("--sound")
        .arg(root().join("tests/data/household/audio"))
        .args(["--seconds", &seconds.to_string()])
        .args([
            "--instructions-per-tick",
            &instructions_per_tick.to_string(),
        ])
        .args(["--", "qemu-system-arm", "-machine", machine])
        .args(["-display", "none", "-monitor", "none", "-icount", "shift=0"])
        .args(["-semihosting-config", "enable=on,target=native"])
        .args(["-serial", "tcp:{link}", "-serial", "tcp:{microphone}"])
        .arg("-kernel")
        .arg(&elf);
    let output = check
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot start node-check")?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "the node failed its check: {said}");
    let mut results: Value = serde_json::from_str(&said)?;
    results["ram_bytes"] = json!(size.ram + size.stack);
    results["flash_bytes"] = json!(size.flash);
    Ok(results)
}

/// The program of a node, built.
fn build(board: &Board) -> Result<PathBuf> {
    ensure!(
        board.class == Class::MicNode,
        "{} is a hub, and only nodes have a program of their own",
        board.name
    );
    let toolchain = Toolchain::find(&board.target)?;
    let mut build = toolchain.cargo("build");
    build
        .current_dir(root().join("boards"))
        .args(["--quiet", "--release", "-p", &board.name]);
    run(&mut build)?;
    Ok(toolchain.built("release").join(&board.name))
}

/// Fails where the fixed-point front end uses a float.
fn float_free(program: &Program) -> Result<()> {
    let roots: Vec<&str> = program.named(FLOAT_FREE).collect();
    ensure!(
        !roots.is_empty(),
        "the program holds no `{FLOAT_FREE}`: it cannot be checked for floats"
    );
    for root in roots {
        if let Some((function, instruction)) = program.float_in(root) {
            bail!("the fixed-point front end uses floats: `{instruction}` in {function}");
        }
    }
    Ok(())
}

impl Size {
    fn of(elf: &Path) -> Result<Self> {
        let output = Command::new("arm-none-eabi-size")
            .arg(elf)
            .output()
            .context(
                "cannot start `arm-none-eabi-size`; on Debian: `apt install gcc-arm-none-eabi`",
            )?;
        let said = String::from_utf8_lossy(&output.stdout);
        let [text, data, bss] =
            columns(&said).with_context(|| format!("cannot measure {}: {said}", elf.display()))?;
        Ok(Self {
            flash: text + data,
            ram: data + bss,
            stack: Program::read(elf)?.worst_stack(),
        })
    }

    fn check(&self, board: &Board) -> Result<()> {
        let (flash, ram) = (board.budget.program, board.budget.memory);
        ensure!(
            self.flash <= flash.0 && self.ram + self.stack <= ram.0,
            "{} takes {} bytes of flash and {} of RAM, and may take {flash} and {ram}",
            board.name,
            self.flash,
            self.ram + self.stack
        );
        Ok(())
    }
}

/// Text, data and bss from the second line that `size` prints.
fn columns(said: &str) -> Option<[u64; 3]> {
    let mut numbers = said.lines().nth(1)?.split_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some([next()?, next()?, next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_printed() {
        let said = "   text\t   data\t    bss\t    dec\t    hex\tfilename\n  27908\t      4\t  14104\t  42016\t   a420\tx\n";
        assert_eq!(columns(said), Some([27_908, 4, 14_104]));
        assert_eq!(columns("arm-none-eabi-size: 'x': No such file\n"), None);
    }
}
