//! The first process of a hub.
//!
//! It lives in the initramfs and needs nothing else: it mounts what there is, sets the
//! clock, chooses one of two slots, and keeps the slot's daemon running. A slot is an
//! image of the runtime with its model packs, read-only; the store, the kept time and
//! the choice of the slot lie on the `data` partition, which no update touches.
//! Whatever fails ends in a restart of the machine, with the other slot if it was the
//! slot that failed.
#![forbid(unsafe_code)]

mod boot;
mod bridge;
mod button;
mod clock;
mod daemon;
mod system;

use std::{
    path::Path,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::sleep,
    time::Duration,
};

use anyhow::Result;
use nix::{mount::MsFlags, sys::reboot::RebootMode};

use boot::Choice;
use daemon::Keeper;

/// Drivers to load, in the initramfs.
const MODULES: &str = "/modules/order";
const DATA: &str = "/data";
const CHOICE: &str = "/data/boot";
const CLOCK: &str = "/data/clock";
const INPUTS: &str = "/dev/input";
const SLOT: &str = "/slot";
/// The port over which the message API is spoken, where there is one.
const API: &str = "api";
/// Time to read why the machine is about to restart.
const LAST_WORDS: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    if std::process::id() != 1 {
        eprintln!("earwitness-init is the first process of a hub, and nothing else");
        return ExitCode::FAILURE;
    }
    let how = match live() {
        Ok(how) => how,
        Err(error) => {
            say(&format!("{error:#}; restarting"));
            sleep(LAST_WORDS);
            RebootMode::RB_AUTOBOOT
        }
    };
    system::end(how, DATA);
    ExitCode::FAILURE
}

/// From the kernel's hand-over to the end of the hub.
fn live() -> Result<RebootMode> {
    system::mount_kernel()?;
    say_when("started");
    system::load_modules(Path::new(MODULES))?;
    system::name_ports()?;
    let lasting = MsFlags::MS_NOATIME | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    system::mount_partition("data", DATA, lasting)?;
    if clock::catch_up(Path::new(CLOCK))? {
        say("the clock was behind and is set to the last time kept");
    }
    let choice = choose();
    say(&format!("boots slot {}", choice.to_string().trim()));
    run(choice).inspect_err(|_| {
        // What is kept by now: the slot may have been confirmed since it was chosen.
        save(Choice::load(Path::new(CHOICE)).failed());
    })
}

/// The slot of this boot, which is kept before anything of it runs.
fn choose() -> Choice {
    let kept = Choice::load(Path::new(CHOICE));
    let choice = kept.at_boot();
    if choice == kept || save(choice) {
        choice
    } else {
        choice.uncounted()
    }
}

/// Keeps a choice; says so where that fails, as on a full disk, and goes on.
fn save(choice: Choice) -> bool {
    let saved = choice.save(Path::new(CHOICE));
    if let Err(error) = &saved {
        say(&format!("the choice of the slot cannot be kept: {error}"));
    }
    saved.is_ok()
}

/// Enters the slot and keeps its daemon until the hub is told to stop.
fn run(choice: Choice) -> Result<RebootMode> {
    system::mount_partition(choice.slot.label(), SLOT, MsFlags::MS_RDONLY)?;
    for folder in ["/proc", "/sys", "/dev", "/run", DATA] {
        system::bind(folder, &format!("{SLOT}{folder}"))?;
    }
    system::enter(SLOT)?;
    if let Some(port) = system::port(API) {
        bridge::start(port, daemon::SOCKET.into())?;
    }
    let [power_off, restart] = [
        system::on_signal(system::TERM)?,
        system::on_signal(system::INT)?,
    ];
    button::watch(Path::new(INPUTS), &power_off)?;
    let told = |flag: &Arc<AtomicBool>| flag.load(Ordering::Relaxed);
    let mut on_listening = || {
        say_when("listening");
        clock::keep(Path::new(CLOCK));
        if choice.confirmed() != choice {
            save(choice.confirmed());
        }
    };
    let mut keeper = Keeper {
        on_listening: &mut on_listening,
        stopping: &|| told(&power_off) || told(&restart),
        clock: Path::new(CLOCK),
    };
    keeper.keep()?;
    clock::keep(Path::new(CLOCK));
    Ok(if told(&restart) {
        RebootMode::RB_AUTOBOOT
    } else {
        RebootMode::RB_POWER_OFF
    })
}

/// Says how far the boot has come, and how long the kernel has been running.
fn say_when(what: &str) {
    let seconds = clock::since_boot().as_secs_f64();
    say(&format!("{what} after {seconds:.2} s"));
}

/// Says something on the console.
fn say(what: &str) {
    eprintln!("earwitness-init: {what}");
}
