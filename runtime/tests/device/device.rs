//! A device to test on: the real program, the real packs, a store of its own.

use std::{
    env,
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use earwitness::capture::decode;
use earwitness_api::types::Record;
use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Device {
    pub folder: TempDir,
    pub packs: PathBuf,
}

impl Device {
    pub fn new() -> Self {
        let packs = env::var_os("EARWITNESS_PACKS")
            .expect("EARWITNESS_PACKS must name the model packs; `cargo xtask test` sets it");
        Self {
            folder: TempDir::new().unwrap(),
            packs: packs.into(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn store(&self) -> PathBuf {
        self.path("memory.redb")
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_earwitness"));
        command
            .arg("--store")
            .arg(self.store())
            .arg("--packs")
            .arg(&self.packs);
        command
            .args(args)
            .stdin(Stdio::null())
            .env("EARWITNESS_LOG", "error")
            .env_remove("EARWITNESS_KEY");
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command that must work; returns what it prints.
    pub fn works(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{args:?} failed:\n{err}");
        out
    }

    /// Runs a command that must fail with exit status 1; returns its last line
    /// on standard error.
    pub fn fails(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let err = text(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{args:?} printed {}\n{err}",
            text(&output.stdout)
        );
        assert!(!err.contains("panicked"), "{err}");
        err.lines().last().unwrap_or_default().to_owned()
    }

    /// All records, as `memory list` shows them.
    pub fn records(&self) -> Vec<Record> {
        records(&self.works(&["memory", "list", "--json"]))
    }

    /// Writes a recording of 16 kHz mono samples.
    pub fn recording(&self, name: &str, samples: &[f32]) -> String {
        let path = self.path(name);
        let spec = hound::WavSpec {
            channels: 1,
            sample_rate: 16_000,
            bits_per_sample: 16,
            sample_format: hound::SampleFormat::Int,
        };
        let mut writer = hound::WavWriter::create(&path, spec).unwrap();
        for sample in samples {
            writer.write_sample((sample * 32767.0) as i16).unwrap();
        }
        writer.finalize().unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Starts a daemon and waits until it answers.
    pub fn daemon(&self, args: &[&str]) -> Running {
        let mut command = self.command(&["--json", "run"]);
        command.args(args).stdout(Stdio::piped());
        let child = command.stdin(Stdio::piped()).spawn().unwrap();
        let running = Running { child };
        let socket = self.path("memory.redb.sock");
        wait_for("the daemon's socket", || socket.exists());
        running
    }
}

/// A program that is killed when the test is over.
pub struct Running {
    pub child: Child,
}

impl Running {
    /// Lines of its output until one holds `last`.
    pub fn lines_until(&mut self, last: &str) -> Vec<String> {
        let stdout = self.child.stdout.take().unwrap();
        let mut lines = Vec::new();
        for line in BufReader::new(stdout).lines() {
            lines.push(line.unwrap());
            if lines.last().unwrap().contains(last) {
                return lines;
            }
        }
        panic!("the program ended before it printed {last:?}");
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.child.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let started = Instant::now();
    while !there() {
        assert!(started.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The records among lines of JSON.
pub fn records(lines: &str) -> Vec<Record> {
    lines
        .lines()
        .filter(|line| !line.contains("\"summary\""))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The first turns of the household's first session as one recording.
pub fn conversation(turns: usize) -> Vec<f32> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/household");
    let episode = File::open(folder.join("episode.json")).unwrap();
    let episode: Value = serde_json::from_reader(episode).unwrap();
    let mut sound = vec![0.0; 8_000];
    for turn in episode["sessions"][0]["turns"]
        .as_array()
        .unwrap()
        .iter()
        .take(turns)
    {
        sound.extend(decode(&folder.join(turn["audio"].as_str().unwrap())).unwrap());
        sound.extend([0.0; 12_000]);
    }
    sound
}

/// Sound as `--pcm` takes it.
pub fn pcm(sound: &[f32]) -> Vec<u8> {
    let samples = sound.iter().map(|sample| (sample * 32767.0) as i16);
    samples.flat_map(i16::to_le_bytes).collect()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A copy of the packs that may be damaged.
pub fn copy_of(packs: &Path, into: &Path) {
    for entry in fs::read_dir(packs).unwrap().map(Result::unwrap) {
        let target = into.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy_of(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
