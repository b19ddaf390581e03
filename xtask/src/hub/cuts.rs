//! `cargo xtask cuts`: the power of a hub that listens is cut, again and again.

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command, thread, time::Duration};

use anyhow::{Result, ensure};
use fastrand::Rng;
use serde_json::{Value, json};

use super::{PATIENCE, host::Host, machine::Machine, sound, trial};
use crate::boards::Board;
use crate::image::{self, Image, Plan};
use crate::process;
use crate::progress::Step;
use crate::report;

/// How much sound it is played after each boot.
const SECONDS: usize = 60;
/// The small voiceprint starts and hears sooner; what is tried here is the store.
const ARGUMENTS: [&str; 2] = ["--voiceprint", "ecapa"];

/// Options of `cargo xtask cuts`.
#[derive(clap::Args)]
pub struct Args {
    /// Which board
    #[arg(long, default_value = "qemu-virt-aarch64")]
    board: String,
    /// How many cuts
    #[arg(long, default_value_t = 100)]
    count: u32,
    /// Decides the moments
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where to write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Cuts the power of a hub that listens, boots it again, and looks for every record
/// that it had acknowledged.
pub fn run(args: &Args) -> Result<()> {
    let results = cut_often(Board::find(&args.board)?, args.count, args.seed)?;
    println!("{results:#}");
    if let Some(file) = &args.json {
        report::write(file, "cuts", &results)?;
    }
    none_lost(&results)
}

/// The same for the tests.
pub fn check(board: &Board, count: u32, seed: u64) -> Result<()> {
    none_lost(&cut_often(Board::find(&board.name)?, count, seed)?)
}

fn none_lost(results: &Value) -> Result<()> {
    ensure!(
        results["violations"] == 0,
        "acknowledged records were lost: {:#}",
        results["lost"]
    );
    Ok(())
}

/// Fails where the hub does not boot again, or its memory contradicts itself.
fn cut_often(mut board: Board, count: u32, seed: u64) -> Result<Value> {
    if let Some(image) = &mut board.image {
        let before = ARGUMENTS.map(str::to_owned);
        image.arguments.splice(0..0, before);
    }
    let image = image::make(&board, &trial(&board), Plan::TRIAL)?;
    let mut trials = Trials {
        host: Host::new()?,
        sound: sound::recording(SECONDS)?,
        board: &board,
        kept: image.disk.with_extension("cut"),
        image,
        random: Rng::with_seed(seed),
        acknowledged: Acknowledged::default(),
        lost: Vec::new(),
        before_listening: 0,
        slowest: 0.0,
    };
    for cut in 1..=count {
        let step = Step::begin(&format!("cut {cut} of {count}"), "boots and listens");
        trials.cut(cut)?;
        step.end(&format!(
            "{} records acknowledged so far",
            trials.acknowledged.0.len()
        ));
    }
    trials.end(count)?;
    let lost = trials
        .lost
        .iter()
        .filter_map(|lost| lost["records"].as_array());
    let violations: usize = lost.map(Vec::len).sum();
    Ok(json!({
        "cuts": count,
        "seed": seed,
        "cuts_before_listening": trials.before_listening,
        "records_acknowledged": trials.acknowledged.0.len(),
        "violations": violations,
        "lost": trials.lost,
        "slowest_boot_to_listening_s": trials.slowest,
    }))
}

/// One disk through many cuts.
struct Trials<'a> {
    host: Host,
    sound: Vec<u8>,
    board: &'a Board,
    image: Image,
    /// The disk as the last cut left it.
    kept: PathBuf,
    random: Rng,
    acknowledged: Acknowledged,
    lost: Vec<Value>,
    before_listening: u32,
    slowest: f64,
}

impl Trials<'_> {
    /// Boots the hub, and cuts its power at a moment that the seed decides.
    fn cut(&mut self, cut: u32) -> Result<()> {
        let mut hub = Machine::start(self.board, &self.image)?;
        hub.hear(self.sound.clone(), false)?;
        // One cut in five comes while the machine is still starting, the others around
        // a record that is being made.
        if self.random.u8(..5) == 0 {
            thread::sleep(Duration::from_millis(self.random.u64(500..8_000)));
            self.before_listening += 1;
        } else {
            self.look(&mut hub, cut)?;
            for _ in 0..self.random.u8(..3) {
                self.acknowledged.extend(hub.printed(PATIENCE)?);
            }
            thread::sleep(Duration::from_millis(self.random.u64(..4_000)));
        }
        self.acknowledged.extend(hub.cut()?);
        self.keep_disk()
    }

    /// Looks whether all that was acknowledged is there, once the hub listens.
    fn look(&mut self, hub: &mut Machine, cut: u32) -> Result<()> {
        self.slowest = self.slowest.max(hub.listening(PATIENCE)?);
        let present = self.host.records(&hub.store())?;
        let lost = self.acknowledged.take_missing(&present);
        if !lost.is_empty() {
            let disk = self.kept.with_extension(format!("before-cut-{cut}"));
            fs::rename(&self.kept, &disk)?;
            self.lost
                .push(json!({"before_cut": cut, "records": lost, "disk": disk}));
        }
        Ok(())
    }

    /// Keeps the disk as the cut left it, for whoever has to find out what was lost.
    fn keep_disk(&self) -> Result<()> {
        let mut copy = Command::new("cp");
        copy.arg("--sparse=always").arg(&self.image.disk);
        process::run(copy.arg(&self.kept))
    }

    /// The last boot ends in good order; then the memory has to agree with itself.
    fn end(&mut self, count: u32) -> Result<()> {
        let step = Step::begin("after the cuts", "boots, and verifies its memory");
        let mut hub = Machine::start(self.board, &self.image)?;
        self.look(&mut hub, count + 1)?;
        hub.switch_off(PATIENCE)?;
        let folder = tempfile::tempdir()?;
        let memory = folder.path().join("hub.redb");
        image::read_data(&self.image.disk, "memory.redb", &memory)?;
        self.host.verify(&memory)?;
        step.end("everything agrees");
        Ok(())
    }
}

/// Records that the hub has acknowledged, by their ids.
#[derive(Default)]
struct Acknowledged(BTreeMap<u64, Value>);

impl Acknowledged {
    /// Takes in lines that the daemon has printed; what is no record is left out.
    fn extend(&mut self, lines: impl IntoIterator<Item = Value>) {
        let records = lines
            .into_iter()
            .filter_map(|line| Some((line["id"].as_u64()?, line)));
        self.0.extend(records);
    }

    /// Takes out what is not there, or not as it was. Who said it may have changed: voices
    /// that turn out to be one are merged.
    fn take_missing(&mut self, present: &[Value]) -> Vec<Value> {
        let same = |a: &Value, b: &Value| {
            ["id", "session", "start_ms", "end_ms", "text"]
                .iter()
                .all(|field| a[field] == b[field])
        };
        let gone = |record: &Value| !present.iter().any(|found| same(found, record));
        self.0
            .extract_if(.., |_, record| gone(record))
            .map(|(_, record)| record)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: u64, text: &str) -> Value {
        json!({"id": id, "session": 1, "start_ms": 0, "end_ms": 9, "text": text})
    }

    #[test]
    fn what_is_gone_or_garbled_is_missing_once() {
        let mut acknowledged = Acknowledged::default();
        let summary = json!({"summary": {}});
        let heard = [
            record(1, "Hello."),
            record(2, "Yes."),
            record(3, "No."),
            summary,
        ];
        acknowledged.extend(heard);
        let mut merged = record(1, "Hello.");
        merged["speaker"] = json!({"speaker": 7});
        let present = [merged, record(3, "Now.")];
        let missing = acknowledged.take_missing(&present);
        assert_eq!(missing, [record(2, "Yes."), record(3, "No.")]);
        assert!(acknowledged.take_missing(&present).is_empty());
    }
}
