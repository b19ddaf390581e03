//! An emulated hub: QEMU, its serial ports and its console.
//!
//! | port | carries |
//! |---|---|
//! | `microphone` | raw samples to the hub, as fast as it reads them |
//! | `records` | what the daemon prints: a line of JSON for each record that is durable |
//! | `api` | the message API, at the place of a socket that the host's own program finds |
//!
//! A fourth socket, QEMU's own, has the power button.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::boards::{Board, Flash};
use crate::image::{self, Image};
use crate::toolchain::Toolchain;

/// How often the console is looked at.
const POLL: Duration = Duration::from_millis(100);
/// The first process's words when it starts, and when the daemon first takes a client.
const STARTED: &str = "earwitness-init: started after ";
const LISTENING: &str = "earwitness-init: listening after ";

/// The socket of QEMU's own commands.
const MONITOR: &str = "monitor";

/// A machine that runs until it is dropped or its power is cut.
pub struct Machine {
    qemu: Child,
    ports: TempDir,
    microphone: UnixStream,
    records: Receiver<Value>,
}

impl Machine {
    /// Switches it on, with a disk that keeps what the guest was told is written.
    pub fn start(board: &Board, image: &Image) -> Result<Self> {
        Self::start_at(board, image, "utc")
    }

    /// The same with a clock that shows another time than this machine's.
    pub fn start_at(board: &Board, image: &Image, clock: &str) -> Result<Self> {
        let Flash::Emulator { machine, .. } = &board.flash else {
            bail!(
                "{} is no emulated board: `cargo xtask boards` lists those that are",
                board.name
            );
        };
        let ports = tempfile::tempdir()?;
        let place = |name: &str| ports.path().join(name).display().to_string();
        let mut qemu = Command::new(Toolchain::system_emulator()?);
        qemu.args(["-machine", machine, "-cpu", &board.cpu.core, "-smp", "2"])
            .args(["-m", &format!("{}M", board.memory.0 >> 20)])
            .args(["-rtc", &format!("base={clock}")])
            .args(["-display", "none", "-monitor"])
            .arg(format!("unix:{},server=on,wait=off", place(MONITOR)))
            .args(["-serial", &format!("file:{}", place("console"))])
            .arg("-kernel")
            .arg(&image.kernel)
            .arg("-initrd")
            .arg(&image.initramfs)
            .args(["-append", &image::arguments(&board.console)])
            .arg("-drive")
            .arg(format!(
                "if=none,id=disk,format=raw,cache=writethrough,file={}",
                image.disk.display()
            ))
            .args(["-device", "virtio-blk-device,drive=disk"])
            .args(["-device", "virtio-serial-device", "-device", "i6300esb"]);
        for port in ["microphone", "records", "api"] {
            let socket = place(socket_of(port));
            qemu.arg("-chardev")
                .arg(format!("socket,id={port},server=on,wait=off,path={socket}"))
                .arg("-device")
                .arg(format!("virtserialport,chardev={port},name={port}"));
        }
        let mut qemu = qemu
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start QEMU")?;
        let mut plug = |port: &str| plug(&ports.path().join(socket_of(port)), &mut qemu);
        // Plugged in before the guest looks: a port without another end has ended.
        let microphone = plug("microphone")?;
        let records = read_lines(plug("records")?)?;
        Ok(Self {
            qemu,
            ports,
            microphone,
            records,
        })
    }

    /// Plays raw samples into the microphone, on a thread of its own; the sound ends
    /// behind them if it is said so.
    pub fn hear(&self, samples: Vec<u8>, ends: bool) -> Result<()> {
        let mut microphone = self.microphone.try_clone()?;
        thread::spawn(move || {
            // A machine without power hears nothing more.
            let played = microphone.write_all(&samples);
            if ends && played.is_ok() {
                let _ = microphone.shutdown(Shutdown::Write);
            }
        });
        Ok(())
    }

    /// Waits until the daemon listens; gives the guest's seconds since its start.
    pub fn listening(&mut self, patience: Duration) -> Result<f64> {
        let begun = Instant::now();
        loop {
            let console = self.console();
            if console.contains(LISTENING) {
                return seconds(&console, LISTENING);
            }
            let waiting = self.qemu.try_wait()?.is_none() && begun.elapsed() < patience;
            ensure!(
                waiting,
                "the hub did not come up; its console:\n{}",
                tail(&console)
            );
            thread::sleep(POLL);
        }
    }

    /// The guest's seconds since its start when its first process began.
    pub fn started(&self) -> Result<f64> {
        seconds(&self.console(), STARTED)
    }

    /// The next line that the daemon prints; none if there is none for so long.
    pub fn printed(&self, patience: Duration) -> Result<Option<Value>> {
        match self.records.recv_timeout(patience) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                bail!("the hub went away; its console:\n{}", tail(&self.console()))
            }
        }
    }

    /// Where the host's own program finds the hub's memory: its socket is there.
    pub fn store(&self) -> PathBuf {
        self.ports.path().join("memory.redb")
    }

    /// What was said on the console so far.
    pub fn console(&self) -> String {
        let bytes = fs::read(self.ports.path().join("console")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Presses the power button, and waits until the hub has switched itself off.
    pub fn switch_off(mut self, patience: Duration) -> Result<()> {
        let mut monitor = plug(&self.ports.path().join(MONITOR), &mut self.qemu)?;
        monitor.write_all(b"system_powerdown\n")?;
        let begun = Instant::now();
        while self.qemu.try_wait()?.is_none() {
            ensure!(
                begun.elapsed() < patience,
                "the hub did not switch itself off; its console:\n{}",
                tail(&self.console())
            );
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Takes the power away: what the guest has not written to its disk is lost.
    pub fn cut(mut self) -> Result<Vec<Value>> {
        self.qemu.kill()?;
        self.qemu.wait()?;
        // What was printed before is on its way still.
        Ok(self.records.iter().collect())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// The socket of a port. That of the API is called as a daemon's beside its store.
fn socket_of(port: &str) -> &str {
    match port {
        "api" => "memory.redb.sock",
        other => other,
    }
}

fn plug(socket: &Path, qemu: &mut Child) -> Result<UnixStream> {
    loop {
        if let Ok(stream) = UnixStream::connect(socket) {
            return Ok(stream);
        }
        ensure!(
            qemu.try_wait()?.is_none(),
            "QEMU ended; its reason is above"
        );
        thread::sleep(POLL);
    }
}

/// Lines of JSON as they come; a line that a power cut left torn is none.
fn read_lines(stream: UnixStream) -> Result<Receiver<Value>> {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            if let Ok(value) = serde_json::from_str(&line)
                && sender.send(value).is_err()
            {
                return;
            }
        }
    })?;
    Ok(receiver)
}

/// The number behind the last of those words.
fn seconds(console: &str, words: &str) -> Result<f64> {
    let (_, after) = console
        .rsplit_once(words)
        .with_context(|| format!("the console lacks {words:?}"))?;
    let seconds = after.split_whitespace().next().unwrap_or_default();
    seconds.parse().context("the console is garbled")
}

fn tail(console: &str) -> String {
    let lines: Vec<&str> = console.lines().collect();
    lines[lines.len().saturating_sub(25)..].join("\n")
}
