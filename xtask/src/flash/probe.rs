//! A microphone node's program, through a debug probe.
//!
//! probe-rs's own program does the work; what it says when it fails is turned into what
//! to do about it. What is written is always read back and compared. Erasing the whole
//! chip, which also unlocks a locked one, happens only when asked for.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// What talks to the probe.
pub trait Probe {
    /// Writes a program to a chip and reads it back. Returns what was said in case of
    /// a failure, `None` for success.
    fn download(&mut self, chip: &str, program: &Path, erase_all: bool) -> Result<Option<String>>;
}

/// The program `probe-rs`.
pub struct ProbeRs;

impl Probe for ProbeRs {
    fn download(&mut self, chip: &str, program: &Path, erase_all: bool) -> Result<Option<String>> {
        let mut command = Command::new("probe-rs");
        command.args(["download", "--verify", "--chip", chip]);
        if erase_all {
            command.args(["--chip-erase", "--allow-erase-all"]);
        }
        // Progress is on its standard output.
        let child = command
            .arg(program)
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start `probe-rs`: `cargo install probe-rs-tools --locked`")?;
        let output = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((!output.status.success()).then_some(said))
    }
}

/// What a failure says, in lower case, and what to do about it.
const ADVICE: [(&str, &str); 6] = [
    (
        "no connected probes",
        "no debug probe was found: connect one, and under Linux let users open it \
         (https://probe.rs/docs/getting-started/probe-setup)",
    ),
    (
        "permission to do so: erase_all",
        "the chip is locked: --erase-all unlocks it, and erases everything on it for good",
    ),
    (
        "core is locked",
        "the chip is locked: --erase-all unlocks it, and erases everything on it for good",
    ),
    (
        "chip was not found",
        "this probe-rs does not know the chip: update it, or see `chip` in board.toml",
    ),
    (
        "verif",
        "what was read back is not what was written: write it again, and check the power \
         supply and the cable",
    ),
    (
        "connecting to the chip was unsuccessful",
        "no such chip answers: check that the board is the one named, has power, and is wired \
         to the probe",
    ),
];

/// Writes a program to a chip and verifies it.
pub fn write(probe: &mut impl Probe, chip: &str, program: &Path, erase_all: bool) -> Result<()> {
    eprintln!("writing {} to the {chip}", program.display());
    let Some(said) = probe.download(chip, program, erase_all)? else {
        eprintln!("written and verified");
        return Ok(());
    };
    let lower = said.to_lowercase();
    let advice = ADVICE.iter().find(|(words, _)| lower.contains(words));
    match advice {
        Some((_, advice)) => bail!("{}\n{advice}", said.trim()),
        None => bail!(
            "{}\nprobe-rs failed; `probe-rs info` shows what it sees",
            said.trim()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A probe that fails in a certain way until it may erase everything.
    struct Fake {
        says: &'static str,
        erased: bool,
    }

    impl Probe for Fake {
        fn download(&mut self, _: &str, _: &Path, erase_all: bool) -> Result<Option<String>> {
            self.erased |= erase_all;
            let locked = self.says.contains("erase_all") && !erase_all;
            let fails = locked || !(self.says.is_empty() || self.says.contains("erase_all"));
            Ok(fails.then(|| self.says.to_owned()))
        }
    }

    fn written(says: &'static str, erase_all: bool) -> (Result<()>, bool) {
        let mut probe = Fake {
            says,
            erased: false,
        };
        let outcome = write(&mut probe, "nRF52840_xxAA", Path::new("node"), erase_all);
        (outcome, probe.erased)
    }

    #[test]
    fn failures_say_what_to_do() {
        let last_line = |says| {
            let error = written(says, false).0.unwrap_err().to_string();
            error.lines().last().unwrap().to_owned()
        };
        assert!(last_line("Error: No connected probes were found.").contains("connect one"));
        assert!(last_line("Error: The given chip 'x' chip was not found").contains("board.toml"));
        let wrong = "Error: Connecting to the chip was unsuccessful.\nCaused by: no ack";
        assert!(last_line(wrong).contains("the one named"));
        assert!(last_line("Error: something new").contains("probe-rs info"));
    }

    #[test]
    fn a_locked_chip_is_erased_only_when_asked() {
        let locked = "Connecting to the chip was unsuccessful.\nAn operation could not be \
                      performed because it lacked the permission to do so: erase_all";
        let (outcome, erased) = written(locked, false);
        assert!(
            outcome
                .unwrap_err()
                .to_string()
                .contains("--erase-all unlocks it")
        );
        assert!(!erased);
        let (outcome, erased) = written(locked, true);
        assert!(outcome.is_ok() && erased);
    }
}
