//! The daemon, kept alive.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::net::UnixStream,
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{clock, system};

/// The program, and its arguments, one a line, in a slot.
const PROGRAM: &str = "/bin/earwitness";
const ARGUMENTS: &str = "/etc/earwitness/arguments";
/// Where its socket lies.
pub const SOCKET: &str = "/data/memory.redb.sock";
/// Where what it prints goes, if the machine has such a port.
const RECORDS: &str = "records";

/// How often it is looked after.
const TICK: Duration = Duration::from_millis(250);
/// Longest pause before it is started again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Having run for this long, it counts as well.
const WELL: Duration = Duration::from_secs(60);
/// So many ends before it ever listened, and the slot has failed.
const GIVE_UP: u32 = 5;

/// What the daemon's keeper does besides.
pub struct Keeper<'a> {
    /// Called once, when the daemon first listens.
    pub on_listening: &'a mut dyn FnMut(),
    /// Whether the hub is to stop.
    pub stopping: &'a dyn Fn() -> bool,
    /// Where the time is kept.
    pub clock: &'a Path,
}

impl Keeper<'_> {
    /// Keeps the daemon running until the hub stops, or fails if it never comes up.
    pub fn keep(&mut self) -> Result<()> {
        let mut watchdog = Watchdog::open();
        let mut listened = false;
        let mut failures = 0;
        loop {
            let started = Instant::now();
            let mut child = start()?;
            if self.watch(&mut child, &mut watchdog, &mut listened)? {
                watchdog.disarm();
                return Ok(());
            }
            failures = if started.elapsed() >= WELL {
                1
            } else {
                failures + 1
            };
            if !listened && failures >= GIVE_UP {
                bail!("the daemon ended {failures} times and never listened");
            }
            let pause = pause(failures);
            crate::say(&format!("the daemon ended; again in {} s", pause.as_secs()));
            let begun = Instant::now();
            while begun.elapsed() < pause && !(self.stopping)() {
                watchdog.pet();
                sleep(TICK);
            }
        }
    }

    /// Looks after a running daemon; true when the hub stops, false when it ended.
    fn watch(
        &mut self,
        child: &mut Child,
        watchdog: &mut Watchdog,
        listened: &mut bool,
    ) -> Result<bool> {
        let mut kept = Instant::now();
        loop {
            watchdog.pet();
            if !*listened && UnixStream::connect(SOCKET).is_ok() {
                *listened = true;
                (self.on_listening)();
            }
            if kept.elapsed() >= clock::KEPT_EVERY {
                clock::keep(self.clock);
                kept = Instant::now();
            }
            if child.try_wait()?.is_some() {
                return Ok(false);
            }
            if (self.stopping)() {
                system::end_well(child, || watchdog.pet())?;
                return Ok(true);
            }
            sleep(TICK);
        }
    }
}

fn start() -> Result<Child> {
    let arguments = fs::read_to_string(ARGUMENTS)
        .with_context(|| format!("the slot has no {ARGUMENTS}: it is not whole"))?;
    // Left over from a power cut; the store's own lock keeps others out.
    let _ = fs::remove_file(SOCKET);
    let mut command = Command::new(PROGRAM);
    command
        .args(arguments.lines())
        .env("HOME", "/data")
        .stdin(Stdio::null());
    // What people said is nobody's business on the console.
    command.stdout(match system::port(RECORDS) {
        Some(port) => Stdio::from(OpenOptions::new().write(true).open(port)?),
        None => Stdio::null(),
    });
    command
        .spawn()
        .with_context(|| format!("{PROGRAM} cannot be started"))
}

/// How long to wait after so many ends in a row.
fn pause(failures: u32) -> Duration {
    let doubled = 1_u64
        .checked_shl(failures.saturating_sub(1))
        .unwrap_or(u64::MAX);
    Duration::from_secs(doubled).min(LONGEST_PAUSE)
}

/// The machine's watchdog, where there is one: it restarts a machine that hangs.
struct Watchdog(Option<File>);

impl Watchdog {
    fn open() -> Self {
        let device = OpenOptions::new().write(true).open("/dev/watchdog").ok();
        if device.is_none() {
            crate::say("the machine has no watchdog");
        }
        Self(device)
    }

    fn pet(&mut self) {
        self.write(b".");
    }

    /// The letter that says that closing it is meant.
    fn disarm(&mut self) {
        self.write(b"V");
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(file) = &mut self.0 {
            // It bites if this goes wrong for too long, which is its purpose.
            let _ = file.write_all(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let seconds = |failures| pause(failures).as_secs();
        assert_eq!(
            [1, 2, 3, 6, 7, 64, 999].map(seconds),
            [1, 2, 4, 32, 60, 60, 60]
        );
    }
}
