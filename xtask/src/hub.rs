//! Emulated hubs: that they hear what this machine hears, and that power cuts cost
//! nothing that was acknowledged.

mod cuts;
mod host;
mod machine;
mod memory;
mod sound;

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::boards::{self, Board, Class, Flash};
use crate::image::{self, Plan};
use crate::progress::Step;
use host::Host;
use machine::Machine;

pub use cuts::{Args as CutsArgs, run as cuts};

/// How much sound a hub hears unless it is said: an emulated one is slow.
pub const SECONDS: usize = 15;
/// How long an emulated machine may take to come up, and for one turn: on a busy machine
/// that is minutes, and one that hangs is all that this is to end.
const PATIENCE: Duration = Duration::from_mins(20);

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
    "clock_caught_up",
];

/// Boots a hub, plays it recordings, asks it, and compares it with this machine; then
/// boots one whose second slot is broken and whose clock is lost.
pub fn emulate(board: &Board, seconds: usize) -> Result<Value> {
    let image = image::make(board, &trial(board), Plan::TRIAL)?;
    let host = Host::new()?;
    let sound = sound::recording(seconds)?;
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
    let answered = host.ask(&hub.store())?;
    let took = begun.elapsed().as_secs_f64();
    let started = hub.started()?;
    hub.switch_off(PATIENCE)?;
    step.end("listened, answered, and switched itself off");

    let kept = folder.path().join("hub.redb");
    image::read_data(&image.disk, "memory.redb", &kept)?;
    let theirs = host.memory(&kept)?;
    let ours = folder.path().join("host.redb");
    host.listen(&ours, &sound, theirs.started_unix_ms)?;
    let difference = host.memory(&ours)?.difference(&theirs);
    let (here, same_keys) = (host.ask(&ours)?, host.ask(&kept)?);
    let recovery = recover(board)?;
    let results = json!({
        "boot_to_init_s": started,
        "boot_to_listening_s": listening,
        "sound_s": sound::seconds(&sound),
        "heard_s": summary["audio_s"],
        "wall_s": took,
        "records": theirs.turns.len(),
        "records_equal": difference.said.is_empty(),
        "largest_key_difference": difference.largest_step,
        "answers_equal": memory::same_answer(&here, &answered),
        "largest_score_difference": memory::score_difference(&here, &answered),
        "largest_score_difference_same_keys": memory::score_difference(&same_keys, &answered),
        "peak_rss_mib": summary["peak_rss_mib"],
        "rolled_back": recovery.rolled_back,
        "clock_caught_up": recovery.clock_caught_up,
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
        recovery.clock_caught_up,
        "a hub that had lost its clock did not take the last time kept"
    );
    ensure!(
        recovery.rolled_back,
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
            cuts::check(&board, 5, 1)?;
        }
    }
    Ok(())
}

/// Where images are made that are only tried.
fn trial(board: &Board) -> PathBuf {
    image::folder(board).join("trial")
}

/// How a hub came up whose second slot is broken and on trial, and whose clock was lost.
struct Recovery {
    rolled_back: bool,
    clock_caught_up: bool,
}

fn recover(board: &Board) -> Result<Recovery> {
    let folder = trial(board).join("broken");
    let plan = Plan {
        second_broken: true,
        ..Plan::TRIAL
    };
    let image = image::make(board, &folder, plan)?;
    let step = Step::begin("hub", "boots with a broken slot on trial, in 1970");
    let mut hub = Machine::start_at(board, &image, "1970-01-02")?;
    hub.listening(PATIENCE)?;
    let console = hub.console();
    hub.cut()?;
    fs::remove_dir_all(folder)?;
    let tried = console.matches("boots slot b trial").count();
    let last = console
        .rsplit_once("boots slot ")
        .map_or("", |(_, slot)| slot);
    step.end(&format!("tried it {tried} times, then left it"));
    Ok(Recovery {
        rolled_back: tried == 2 && last.starts_with("a confirmed"),
        clock_caught_up: console.contains("the clock was behind"),
    })
}
