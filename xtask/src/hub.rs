//! Emulated hubs: that they hear what this machine hears, and that power cuts cost
//! nothing that was acknowledged.

mod machine;
mod memory;

use std::{
    fs,
    fs::File,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use claxon::FlacReader;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::boards::{self, Board, Class, Flash};
use crate::image::{self, Plan};
use crate::models;
use crate::process::{Build, output, root, run_quietly};
use crate::progress::Step;
use crate::report;
use machine::Machine;
use memory::Memory;

/// How much sound a hub hears unless it is said: an emulated one is slow.
pub const SECONDS: usize = 15;
const RATE_HZ: usize = 16_000;
/// Between two turns.
const PAUSE: usize = RATE_HZ;
/// How long an emulated machine may take to come up, and for one turn.
const PATIENCE: Duration = Duration::from_secs(300);
/// What the hub is asked; the recordings answer it.
const QUESTION: &str = "When is somebody leaving?";

/// What of the results is shown.
pub const GIST: &[&str] = &[
    "boot_to_init_s",
    "boot_to_listening_s",
    "records",
    "records_equal",
    "largest_key_difference",
    "answers_equal",
    "largest_score_difference",
    "largest_score_difference_same_keys",
    "peak_rss_mib",
    "wall_s",
    "rolled_back",
];

/// Boots a hub, plays it recordings, asks it, and compares it with this machine; then
/// boots one whose second slot is broken.
pub fn emulate(board: &Board, seconds: usize) -> Result<Value> {
    let image = image::make(board, &trial(board), Plan::TRIAL)?;
    let sound = recording(seconds)?;
    let folder = tempfile::tempdir()?;
    let step = Step::begin("hub", "boots and listens");
    let begun = Instant::now();
    let mut hub = Machine::start(board, &image)?;
    hub.hear(sound.clone(), true)?;
    let listening = hub.listening(PATIENCE)?;
    step.at("hears");
    let summary = loop {
        let line = hub
            .printed(PATIENCE)?
            .context("the hub heard nothing for too long")?;
        if let Some(summary) = line.get("summary") {
            break summary.clone();
        }
    };
    let answered = ask(&hub.store())?;
    let took = begun.elapsed().as_secs_f64();
    let started = hub.started()?;
    hub.switch_off(PATIENCE)?;
    step.end("listened, answered, and switched itself off");

    let kept = folder.path().join("hub.redb");
    image::read_data(&image.disk, "memory.redb", &kept)?;
    let theirs = Memory::of(&kept)?;
    let ours = folder.path().join("host.redb");
    listen_here(&ours, &sound, &theirs, folder.path())?;
    let difference = Memory::of(&ours)?.difference(&theirs);
    let (here, same_keys) = (ask(&ours)?, ask(&kept)?);
    let results = json!({
        "boot_to_init_s": started,
        "boot_to_listening_s": listening,
        "sound_s": sound.len() as f64 / 2.0 / RATE_HZ as f64,
        "heard_s": summary["audio_s"],
        "wall_s": took,
        "records": theirs.turns.len(),
        "records_equal": difference.said.is_empty(),
        "largest_key_difference": difference.largest_step,
        "answers_equal": memory::same_answer(&here, &answered),
        "largest_score_difference": memory::score_difference(&here, &answered),
        "largest_score_difference_same_keys": memory::score_difference(&same_keys, &answered),
        "peak_rss_mib": summary["peak_rss_mib"],
        "rolled_back": rolls_back(board)?,
    });
    ensure!(!theirs.turns.is_empty(), "the hub recorded nothing");
    ensure!(
        difference.said.is_empty(),
        "the hub's records are not this machine's:\n{}",
        difference.said.join("\n")
    );
    ensure!(
        difference.largest_step <= 1,
        "a key of the hub is {} steps away from this machine's",
        difference.largest_step
    );
    ensure!(
        results["answers_equal"] == true,
        "the hub's answer is supported by other records than this machine's:\n{answered}\n{here}"
    );
    ensure!(
        results["rolled_back"] == true,
        "a hub with a broken slot on trial did not come back with the other"
    );
    Ok(results)
}

/// What the tests check of hubs: the emulated ones hear what this machine hears, and
/// keep it through a few power cuts.
pub fn check() -> Result<()> {
    for board in boards::all()? {
        if board.class == Class::Hub && matches!(board.flash, Flash::Emulator { .. }) {
            eprintln!("\n== hub {}", board.name);
            emulate(&board, SECONDS)?;
            none_lost(&cut_often(&board, 5, 1)?)?;
        }
    }
    Ok(())
}

/// Where images are made that are only tried.
fn trial(board: &Board) -> PathBuf {
    image::folder(board).join("trial")
}

/// Whether a hub whose second slot is on trial and broken comes up with the first.
fn rolls_back(board: &Board) -> Result<bool> {
    let folder = trial(board).join("broken");
    let plan = Plan {
        second_broken: true,
        ..Plan::TRIAL
    };
    let image = image::make(board, &folder, plan)?;
    let step = Step::begin("hub", "boots with a broken slot on trial");
    let mut hub = Machine::start(board, &image)?;
    hub.listening(2 * PATIENCE)?;
    let console = hub.console();
    hub.cut()?;
    fs::remove_dir_all(folder)?;
    let tried = console.matches("boots slot b trial").count();
    let last = console
        .rsplit_once("boots slot ")
        .map_or("", |(_, slot)| slot);
    step.end(&format!("tried it {tried} times, then left it"));
    Ok(tried == 2 && last.starts_with("a confirmed"))
}

/// Options of `cargo xtask cuts`.
#[derive(clap::Args)]
pub struct CutsArgs {
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
pub fn cuts(args: &CutsArgs) -> Result<()> {
    let board = Board::find(&args.board)?;
    let results = cut_often(&board, args.count, args.seed)?;
    println!("{results:#}");
    if let Some(file) = &args.json {
        report::write(file, "cuts", &results)?;
    }
    none_lost(&results)
}

fn none_lost(results: &Value) -> Result<()> {
    let lost = results["lost"].as_array().map_or(0, Vec::len);
    ensure!(
        lost == 0,
        "acknowledged records were lost: {}",
        results["lost"]
    );
    Ok(())
}

/// The cuts; fails where the hub does not boot again.
pub fn cut_often(board: &Board, count: u32, seed: u64) -> Result<Value> {
    let image = image::make(board, &trial(board), Plan::TRIAL)?;
    let sound = recording(60)?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut acknowledged: Vec<Value> = Vec::new();
    let (mut before_listening, mut slowest, mut lost) = (0, 0.0_f64, Vec::new());
    let bar = ProgressBar::new(count.into());
    for cut in 1..=count {
        let mut hub = Machine::start(board, &image)?;
        hub.hear(sound.clone(), false)?;
        // One cut in five comes while the machine is still starting, the others around
        // a record that is being made.
        if random.u8(..5) == 0 {
            thread::sleep(Duration::from_millis(random.u64(500..8_000)));
            before_listening += 1;
        } else {
            slowest = slowest.max(hub.listening(PATIENCE)?);
            let present = ids(&records_of(&hub.store())?);
            lost.extend(missing(&acknowledged, &present, cut));
            for _ in 0..random.u8(..3) {
                acknowledged.extend(hub.printed(PATIENCE)?);
            }
            thread::sleep(Duration::from_millis(random.u64(..4_000)));
        }
        acknowledged.extend(hub.already_printed());
        acknowledged.extend(hub.cut()?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let mut hub = Machine::start(board, &image)?;
    slowest = slowest.max(hub.listening(PATIENCE)?);
    lost.extend(missing(
        &acknowledged,
        &ids(&records_of(&hub.store())?),
        count + 1,
    ));
    hub.cut()?;
    let records = acknowledged
        .iter()
        .filter(|line| line["id"].is_u64())
        .count();
    Ok(json!({
        "cuts": count,
        "seed": seed,
        "cuts_before_listening": before_listening,
        "records_acknowledged": records,
        "lost": lost,
        "slowest_boot_to_listening_s": slowest,
    }))
}

/// Acknowledged records that are not there before a cut.
fn missing(acknowledged: &[Value], present: &[u64], cut: u32) -> Vec<Value> {
    let ids = ids(acknowledged).into_iter();
    let lost = ids.filter(|id| !present.contains(id));
    lost.map(|id| json!({"record": id, "missing_before_cut": cut}))
        .collect()
}

fn ids(records: &[Value]) -> Vec<u64> {
    records
        .iter()
        .filter_map(|record| record["id"].as_u64())
        .collect()
}

/// The household's first turns, as the raw samples of so many seconds.
fn recording(seconds: usize) -> Result<Vec<u8>> {
    let folder = root().join("tests/data/household/audio");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)?
        .flatten()
        .map(|file| file.path())
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with('s'))
        })
        .collect();
    files.sort();
    let mut samples = Vec::new();
    for file in files {
        let turn = turn(&file)?;
        if samples.len() + turn.len() + PAUSE > seconds * RATE_HZ {
            break;
        }
        samples.extend(turn);
        samples.extend([0; PAUSE]);
    }
    ensure!(
        !samples.is_empty(),
        "{} holds no turn so short",
        folder.display()
    );
    Ok(samples
        .iter()
        .flat_map(|sample| sample.to_le_bytes())
        .collect())
}

fn turn(file: &Path) -> Result<Vec<i16>> {
    let mut reader = FlacReader::new(File::open(file)?)?;
    let info = reader.streaminfo();
    let fits = info.sample_rate as usize == RATE_HZ && info.channels == 1;
    ensure!(fits, "{} is not mono at 16 kHz", file.display());
    let samples: Result<Vec<i32>, _> = reader.samples().collect();
    Ok(samples?.into_iter().map(|sample| sample as i16).collect())
}

/// Hears the same sound on this machine, as one session that began when the hub's did.
fn listen_here(store: &Path, sound: &[u8], hub: &Memory, folder: &Path) -> Result<()> {
    let file = folder.join("sound.pcm");
    fs::write(&file, sound)?;
    let start = Duration::from_millis(hub.started_unix_ms);
    let start = format!("@{}", start.as_secs());
    let start = output(Command::new("date").args(["-u", "-d", &start, "+%Y-%m-%dT%H:%M:%SZ"]))?;
    let mut program = earwitness(store)?;
    program
        .args(["--json", "run", "--until-end", "--pcm"])
        .arg(&file)
        .args(["--start", start.trim()]);
    run_quietly(&mut program, |_| {}).map(drop)
}

/// The answer of whoever serves a store, or of the store itself.
fn ask(store: &Path) -> Result<Value> {
    let said = output(earwitness(store)?.args(["--json", "ask", QUESTION]))?;
    serde_json::from_str(&said).context("no answer came")
}

fn records_of(store: &Path) -> Result<Vec<Value>> {
    let said = output(earwitness(store)?.args(["--json", "memory", "list"]))?;
    let records: Result<Vec<Value>, _> = said.lines().map(serde_json::from_str).collect();
    records.context("the memory's list is garbled")
}

/// This machine's own program on a store.
fn earwitness(store: &Path) -> Result<Command> {
    let program = Build::Release.program("earwitness");
    if !program.exists() {
        bail!("{} was not built", program.display());
    }
    let mut command = Command::new(program);
    command
        .env("EARWITNESS_PACKS", models::ensure(Build::Release)?)
        .arg("--store")
        .arg(store);
    Ok(command)
}
