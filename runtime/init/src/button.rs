//! The power button: the key of that name, from whatever device sends it.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// An event as the kernel writes it: a time of two words, then kind, code and value.
const EVENT: usize = 24;
const KEY: u16 = 1;
const POWER: u16 = 116;
const PRESSED: i32 = 1;

/// Raises a flag when the button of any device in the folder is pressed; each is waited
/// for on a thread of its own.
pub fn watch(devices: &Path, flag: &Arc<AtomicBool>) -> io::Result<()> {
    for device in fs::read_dir(devices).into_iter().flatten().flatten() {
        if !device.file_name().to_string_lossy().starts_with("event") {
            continue;
        }
        let (mut events, flag) = (File::open(device.path())?, Arc::clone(flag));
        let thread = thread::Builder::new().name("button".to_owned());
        thread.spawn(move || wait(&mut events, &flag))?;
    }
    Ok(())
}

/// Reads until the device is gone.
fn wait(events: &mut impl Read, flag: &AtomicBool) {
    let mut event = [0; EVENT];
    while events.read_exact(&mut event).is_ok() {
        if is_press(&event) {
            flag.store(true, Ordering::Relaxed);
        }
    }
}

fn is_press(event: &[u8; EVENT]) -> bool {
    let [.., k0, k1, c0, c1, v0, v1, v2, v3] = *event;
    u16::from_ne_bytes([k0, k1]) == KEY
        && u16::from_ne_bytes([c0, c1]) == POWER
        && i32::from_ne_bytes([v0, v1, v2, v3]) == PRESSED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: u16, code: u16, value: i32) -> Vec<u8> {
        let mut bytes = vec![0x55; 16];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(code.to_ne_bytes());
        bytes.extend(value.to_ne_bytes());
        bytes
    }

    fn raised(events: &[Vec<u8>]) -> bool {
        let flag = AtomicBool::new(false);
        wait(&mut events.concat().as_slice(), &flag);
        flag.into_inner()
    }

    #[test]
    fn only_a_press_of_that_key_counts() {
        let (press, release) = (event(KEY, POWER, PRESSED), event(KEY, POWER, 0));
        let other = event(KEY, POWER + 1, PRESSED);
        let switch = event(5, POWER, PRESSED);
        assert!(!raised(&[release.clone(), other.clone(), switch]));
        assert!(raised(&[other, press.clone(), release]));
        assert!(!raised(&[press[..EVENT - 1].to_vec()]));
    }
}
