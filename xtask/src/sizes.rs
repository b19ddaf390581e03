//! `cargo xtask sizes`: what the programs of microphone nodes take, beside their
//! budgets and the figures that were saved last.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{collections::BTreeMap, fs};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::boards::{self, Board};
use crate::disassembly::Program;
use crate::process::root;
use crate::{node, report};

/// The figures that were saved last, below the root.
const SAVED: &str = "boards/sizes.json";

/// Options of `cargo xtask sizes`.
#[derive(clap::Args)]
pub struct Args {
    /// Which boards; all that have a program of their own if none is named
    boards: Vec<String>,
    /// Keep these figures as those to compare with
    #[arg(long)]
    save: bool,
    /// Where to write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What a program takes of its board, in bytes.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Size {
    /// Code, constants and what variables begin with.
    pub flash: u64,
    /// Variables, without the stack.
    pub ram: u64,
    /// The deepest stack that is possible, as estimated from the disassembly.
    pub stack: u64,
}

/// Prints flash, RAM and stack of each node; fails over budget.
pub fn run(args: &Args) -> Result<()> {
    let mut boards = Vec::new();
    for name in &args.boards {
        boards.push(Board::find(name)?);
    }
    if boards.is_empty() {
        boards = boards::all()?;
        boards.retain(Board::has_program);
    }
    let mut saved = saved()?;
    let (mut figures, mut over) = (serde_json::Map::new(), Vec::new());
    println!("board                   flash            RAM          stack");
    for board in &boards {
        let size = Size::of(&node::build(board)?)?;
        let before = saved.insert(board.name.clone(), size).unwrap_or(size);
        println!("{:18} {}", board.name, size.beside(&before));
        if let Err(reason) = size.check(board) {
            over.push(reason.to_string());
        }
        let figure = json!({
            "flash": size.flash, "ram": size.ram, "stack": size.stack,
            "budget_flash": board.budget.program.0, "budget_ram": board.budget.memory.0,
        });
        figures.insert(board.name.clone(), figure);
    }
    if args.save {
        let text = serde_json::to_string_pretty(&saved)? + "\n";
        fs::write(root().join(SAVED), text).with_context(|| format!("cannot write {SAVED}"))?;
    }
    if let Some(file) = &args.json {
        report::write(file, "sizes", &json!({ "boards": figures }))?;
    }
    ensure!(over.is_empty(), "{}", over.join("; "));
    Ok(())
}

fn saved() -> Result<BTreeMap<String, Size>> {
    let text = fs::read_to_string(root().join(SAVED))
        .with_context(|| format!("cannot read {SAVED}; write {{}} into it to begin anew"))?;
    serde_json::from_str(&text).with_context(|| format!("{SAVED} is damaged"))
}

impl Size {
    /// Measures a program.
    pub fn of(elf: &Path) -> Result<Self> {
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

    /// Fails where a program takes more than its board's budget.
    pub fn check(&self, board: &Board) -> Result<()> {
        let (flash, ram) = (board.budget.program, board.budget.memory);
        ensure!(
            self.flash <= flash.0 && self.ram + self.stack <= ram.0,
            "{} takes {} bytes of flash and, with its stack, {} of RAM, and may take {flash} \
             and {ram}",
            board.name,
            self.flash,
            self.ram + self.stack
        );
        Ok(())
    }

    /// The figures, each with its difference to an earlier one.
    fn beside(&self, before: &Self) -> String {
        let pairs = [
            (self.flash, before.flash),
            (self.ram, before.ram),
            (self.stack, before.stack),
        ];
        let columns = pairs.map(|(now, before)| {
            let difference = now.cast_signed() - before.cast_signed();
            format!("{now:7} {:7}", format!("({difference:+})"))
        });
        columns.join("")
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
        let said = "   text\t   data\t    bss\t    dec\n  27908\t      4\t  14104\t  42016\n";
        assert_eq!(columns(said), Some([27_908, 4, 14_104]));
        assert_eq!(columns("arm-none-eabi-size: no such file\n"), None);
    }

    #[test]
    fn over_budget_is_refused_stack_included() {
        let board = Board::find("qemu-mps2-an386").unwrap();
        let size = |flash, ram, stack| Size { flash, ram, stack }.check(&board).is_ok();
        let kib = 1 << 10;
        assert!(size(256 * kib, 100 * kib, 28 * kib));
        assert!(!size(256 * kib, 100 * kib, 28 * kib + 1));
        assert!(!size(256 * kib + 1, 0, 0));
    }

    #[test]
    fn differences_are_shown_with_their_sign() {
        let size = |flash| Size {
            flash,
            ram: 5,
            stack: 6,
        };
        assert!(size(90).beside(&size(100)).contains("90 (-10)"));
        assert!(size(90).beside(&size(90)).contains("90 (+0)"));
    }
}
