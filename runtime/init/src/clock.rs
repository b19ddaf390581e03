//! Time that never goes back.
//!
//! Retention forgets by the clock, so a hub whose clock lost its battery must not
//! live in 1970. The time is kept on the disk every minute; one that is older than
//! the last kept is set to that.

use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use nix::{
    sys::time::TimeSpec,
    time::{ClockId, clock_gettime, clock_settime},
};

use crate::boot::replace;

/// How often the time is kept.
pub const KEPT_EVERY: Duration = Duration::from_secs(60);

/// Sets the clock to the last time kept, if it is behind; says whether it was.
pub fn catch_up(kept: &Path) -> Result<bool> {
    let Some(last) = read(kept) else {
        return Ok(false);
    };
    let behind = now() < last;
    if behind {
        let time = TimeSpec::from_duration(last);
        clock_settime(ClockId::CLOCK_REALTIME, time).context("the clock cannot be set")?;
    }
    Ok(behind)
}

/// Keeps the time. A disk that is full for a while only says so: the hub goes on.
pub fn keep(file: &Path) {
    let seconds = now().as_secs().to_string();
    if let Err(error) = replace(file, &seconds) {
        crate::say(&format!("the time cannot be kept: {error}"));
    }
}

/// Time since the kernel started.
pub fn since_boot() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from)
}

fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

fn read(file: &Path) -> Option<Duration> {
    let seconds = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_right_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("clock");
        assert!(!catch_up(&file).unwrap());
        keep(&file);
        assert!(read(&file).is_some_and(|kept| kept <= now()));
        assert!(!catch_up(&file).unwrap());
        fs::write(&file, "never").unwrap();
        assert!(!catch_up(&file).unwrap());
    }
}
