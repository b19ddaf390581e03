//! What a microcontroller's program does, from its disassembly: who calls whom, how
//! much stack each function takes, and which of them use floating point.
//!
//! Reads what `arm-none-eabi-objdump` prints. Limits: a call through a pointer has no
//! name in it, so what is only called that way shows as a function that nobody calls;
//! [`Program::worst_stack`] says how that is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// What an exception puts on the stack: eight registers, and those of the FPU with
/// their padding (ARMv7-M Architecture Reference Manual, B1.5.7).
const EXCEPTION_FRAME: u64 = 104;

/// The functions of a program, by their demangled names.
#[derive(Default)]
pub struct Program {
    functions: BTreeMap<String, Function>,
}

/// One function.
#[derive(Default)]
struct Function {
    /// Bytes of stack of its own.
    stack: u64,
    calls: BTreeSet<String>,
    /// The first instruction that works on floats.
    float: Option<String>,
}

impl Program {
    /// Disassembles a program.
    pub fn read(elf: &Path) -> Result<Self> {
        let output = Command::new("arm-none-eabi-objdump")
            .args(["--disassemble", "--demangle", "--no-show-raw-insn"])
            .arg(elf)
            .output()
            .context(
                "cannot start `arm-none-eabi-objdump`; on Debian: `apt install gcc-arm-none-eabi`",
            )?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success(),
            "cannot disassemble {}: {}",
            elf.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let mut program = Self::default();
        let mut name = String::new();
        for line in text.lines() {
            if let Some(header) = line.strip_suffix(">:") {
                name = header
                    .split_once('<')
                    .map_or(header, |(_, name)| name)
                    .into();
                program.functions.entry(name.clone()).or_default();
            } else if let Some((_, instruction)) = line.split_once(":\t")
                && let Some(function) = program.functions.get_mut(&name)
            {
                function.add(instruction, &name);
            }
        }
        program
    }

    /// Names of functions that contain `part`.
    pub fn named<'a>(&'a self, part: &'a str) -> impl Iterator<Item = &'a str> {
        let names = self.functions.keys().map(String::as_str);
        names.filter(move |name| name.contains(part))
    }

    /// The first float instruction that `root` or anything it calls executes, with
    /// the function that it is in.
    pub fn float_in<'a>(&'a self, root: &'a str) -> Option<(&'a str, &'a str)> {
        let reached = self.reached([root]);
        reached.into_iter().find_map(|name| {
            let instruction = self.functions[name].float.as_deref()?;
            Some((name, instruction))
        })
    }

    /// Bytes of stack at the worst moment: the deepest chain of calls from reset,
    /// and on top of it the deepest one that nobody calls by name (interrupts, tasks,
    /// pointers), as if it interrupted there.
    pub fn worst_stack(&self) -> u64 {
        let called: BTreeSet<&String> = self.functions.values().flat_map(|f| &f.calls).collect();
        let from_reset = self.reached(["Reset"]);
        let others = self
            .functions
            .keys()
            .filter(|name| !called.contains(name) && !from_reset.contains(name.as_str()));
        let known = &mut BTreeMap::new();
        let reset = self.depth("Reset", known);
        let interrupting = others.map(|name| self.depth(name, known)).max();
        reset + EXCEPTION_FRAME + interrupting.unwrap_or(0)
    }

    /// The deepest chain of calls from a function; recursion counts once.
    fn depth<'a>(&'a self, name: &'a str, known: &mut BTreeMap<&'a str, u64>) -> u64 {
        if let Some(&depth) = known.get(name) {
            return depth;
        }
        let Some(function) = self.functions.get(name) else {
            return 0;
        };
        // What comes back here while the function is being worked out is recursion.
        known.insert(name, 0);
        let calls = function.calls.iter();
        let deepest = calls.map(|callee| self.depth(callee, known)).max();
        let depth = function.stack + deepest.unwrap_or(0);
        known.insert(name, depth);
        depth
    }

    fn reached<'a>(&'a self, roots: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut left: Vec<&str> = roots.into_iter().collect();
        while let Some(name) = left.pop() {
            if let Some(function) = self.functions.get(name)
                && reached.insert(name)
            {
                left.extend(function.calls.iter().map(String::as_str));
            }
        }
        reached
    }
}

impl Function {
    fn add(&mut self, instruction: &str, own_name: &str) {
        let (mnemonic, operands) = instruction.split_once('\t').unwrap_or((instruction, ""));
        self.stack += stack_taken(mnemonic, operands);
        if mnemonic.starts_with('b')
            && let Some(callee) = called(operands)
            && callee != own_name
        {
            self.calls.insert(callee.into());
        }
        let soft_float = called(operands).is_some_and(is_float_routine);
        if self.float.is_none() && (mnemonic.starts_with('v') || soft_float) {
            self.float = Some(instruction.replace('\t', " "));
        }
    }
}

/// The function that a branch goes to, if it goes to the start of one.
fn called(operands: &str) -> Option<&str> {
    let (_, name) = operands.split_once('<')?;
    let name = name.rsplit_once('>')?.0;
    let offset = name.rsplit_once("+0x");
    let inside = offset.is_some_and(|(_, digits)| digits.chars().all(|c| c.is_ascii_hexdigit()));
    (!inside).then_some(name)
}

/// Routines of the run-time library that compute floats without an FPU
/// (Run-time ABI for the Arm Architecture, 4.1.2).
fn is_float_routine(name: &str) -> bool {
    let kinds = [
        "__aeabi_f",
        "__aeabi_d",
        "__aeabi_i2f",
        "__aeabi_i2d",
        "__aeabi_ui2",
    ];
    kinds.iter().any(|kind| name.starts_with(kind))
}

/// Bytes by which an instruction moves the stack pointer down.
fn stack_taken(mnemonic: &str, operands: &str) -> u64 {
    let plain = mnemonic.trim_end_matches(".w");
    match plain {
        "push" => 4 * registers(operands),
        "stmdb" if operands.starts_with("sp!") => 4 * registers(operands),
        "vpush" | "vstmdb" => 8 * registers(operands),
        "sub" | "subw" if operands.starts_with("sp") => immediate(operands),
        "str" | "strd" => {
            let moved = operands
                .split_once("[sp, #-")
                .filter(|_| operands.contains("]!"));
            moved.map_or(0, |(_, count)| leading_number(count))
        }
        _ => 0,
    }
}

/// How many registers a list such as `{r4, r5, lr}` or `{d8-d11}` names.
fn registers(operands: &str) -> u64 {
    let list = operands.split_once('{').map_or("", |(_, list)| list);
    let list = list.split_once('}').map_or("", |(list, _)| list);
    let number = |register: &str| register.trim()[1..].parse::<u64>().ok();
    let count = |part: &str| match part.split_once('-') {
        Some((first, last)) => number(last)
            .zip(number(first))
            .map_or(1, |(l, f)| l - f + 1),
        None => 1,
    };
    list.split(',').map(count).sum()
}

fn immediate(operands: &str) -> u64 {
    operands
        .rsplit_once('#')
        .map_or(0, |(_, digits)| leading_number(digits))
}

fn leading_number(text: &str) -> u64 {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
00000400 <Reset>:
     400:\tpush\t{r7, lr}
     402:\tbl\t408 <app::main>

00000408 <app::main>:
     408:\tstmdb\tsp!, {r4, r5, r6, r7, r8, lr}
     40c:\tvpush\t{d8-d9}
     410:\tsub.w\tsp, sp, #1000\t@ 0x3e8
     414:\tbl\t500 <dsp::fixed::features>
     418:\tbl\t600 <dsp::gate>
     41c:\tb.n\t418 <app::main+0x10>

00000500 <dsp::fixed::features>:
     500:\tstr.w\tr8, [sp, #-8]!
     504:\tbl\t500 <dsp::fixed::features>
     508:\tsmull\tr0, r1, r2, r3

00000600 <dsp::gate>:
     600:\tpush\t{r4, lr}
     602:\tvmul.f32\ts0, s0, s1

00000700 <TIMER0>:
     700:\tsub\tsp, #64\t@ 0x40
     704:\tbl\t800 <__aeabi_fmul>

00000800 <__aeabi_fmul>:
     800:\tbx\tlr
";

    #[test]
    fn floats_are_found_in_what_a_function_calls() {
        let program = Program::parse(TEXT);
        assert_eq!(program.float_in("dsp::fixed::features"), None);
        let found = program.float_in("app::main").map(|(name, _)| name);
        assert_eq!(found, Some("app::main"));
        let found = program.float_in("dsp::gate");
        assert_eq!(found, Some(("dsp::gate", "vmul.f32 s0, s0, s1")));
        let found = program.float_in("TIMER0").map(|(name, _)| name);
        assert_eq!(found, Some("TIMER0"));
    }

    #[test]
    fn the_deepest_chain_is_found_and_an_interrupt_on_top_of_it() {
        let main = 6 * 4 + 2 * 8 + 1_000;
        let expected = 8 + main + 8 + EXCEPTION_FRAME + 64;
        assert_eq!(Program::parse(TEXT).worst_stack(), expected);
    }

    #[test]
    fn functions_are_found_by_a_part_of_their_name() {
        let program = Program::parse(TEXT);
        assert_eq!(
            program.named("::fixed::").collect::<Vec<_>>(),
            ["dsp::fixed::features"]
        );
    }
}
