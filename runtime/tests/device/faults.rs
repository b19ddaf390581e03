//! What befalls a device: the power goes, the disk is full. Nothing that was
//! acknowledged is lost.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Command, Output},
    thread,
    time::Duration,
};

use crate::device::{Device, conversation, pcm, text};
use earwitness_api::types::Record;

const ROUNDS: u32 = 4;
const SEED: u32 = 20_260_302;

/// Lets a daemon listen until it has acknowledged so many records, and kills it
/// some time later; everything that it acknowledged.
fn killed_round(device: &Device, session: &str, records: usize, later: Duration) -> Vec<Record> {
    let mut daemon = device.daemon(&["--pcm", "-", "--session", session]);
    let mut sound = daemon.child.stdin.take().unwrap();
    // Nobody takes the end of it once the daemon is dead.
    let speaking = thread::spawn(move || sound.write_all(&pcm(&conversation(6))));
    let mut lines = BufReader::new(daemon.child.stdout.take().unwrap()).lines();
    let mut acknowledged: Vec<String> = lines.by_ref().take(records).map(Result::unwrap).collect();
    assert_eq!(acknowledged.len(), records, "the daemon ended early");
    thread::sleep(later);
    daemon.kill();
    let _ = speaking.join().unwrap();
    acknowledged.extend(lines.map(Result::unwrap));
    let records = acknowledged.iter();
    // The last line may be torn, or be the summary of all.
    records
        .map_while(|line| serde_json::from_str(line).ok())
        .collect()
}

#[test]
fn a_killed_daemon_keeps_what_it_acknowledged() {
    let device = Device::new();
    let mut acknowledged = Vec::new();
    let mut state = SEED;
    for round in 0..ROUNDS {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let records = 1 + (state >> 16) as usize % 3;
        let later = Duration::from_millis(u64::from(state >> 24));
        let session = format!("round {round}");
        acknowledged.extend(killed_round(&device, &session, records, later));

        let kept = device.records();
        for record in &acknowledged {
            assert!(kept.contains(record), "round {round} lost {record:?}");
        }
        assert!(device.works(&["memory", "verify"]).contains("agrees"));
    }
}

/// Runs a command that cannot make a file longer than so many blocks of 512 bytes.
fn without_room(device: &Device, blocks: u64, args: &[&str]) -> Output {
    let program = device.command(args);
    let limited = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &limited]).arg(program.get_program());
    shell.args(program.get_args()).output().unwrap()
}

#[test]
fn without_room_a_forget_works_or_says_what_to_do() {
    let device = Device::new();
    device.works(&["ingest", &device.recording("talk.wav", &conversation(4))]);
    device.works(&["memory", "compact"]);
    let mut kept = device.records();
    let all = kept.len();
    let blocks = fs::metadata(device.store()).unwrap().len() / 512;
    for room in [0, 8, 64, 4096] {
        let first = kept[0].id.0.to_string();
        let output = without_room(
            &device,
            blocks + room,
            &["memory", "forget", "--record", &first],
        );
        let error = text(&output.stderr);
        if output.status.success() {
            kept.remove(0);
        } else {
            assert_eq!(output.status.code(), Some(1), "{error}");
            assert!(error.contains("free space"), "{error}");
        }
        let listed = without_room(&device, blocks, &["--json", "memory", "list"]);
        assert_eq!(crate::device::records(&text(&listed.stdout)), kept);
        assert!(device.works(&["memory", "verify"]).contains("agrees"));
    }
    assert!(kept.len() < all, "2 MiB are room enough");
}
