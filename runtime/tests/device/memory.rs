//! Nothing that was acknowledged is lost, and the records depend on nothing but
//! the sound: whatever is killed, and however the sound comes in.

use std::process::Stdio;
use std::sync::mpsc;

use earwitness_api::{
    client::Client,
    message::{Request, Response, Write},
    types::Record,
};

use crate::device::{Device, Running, conversation, pcm, records, wait_for};

const TURNS: usize = 6;

const INGEST: [&str; 6] = [
    "--json",
    "ingest",
    "--session",
    "s1",
    "--start",
    "2026-03-02T18:00:00Z",
];

fn ingest(device: &Device, extra: &[&str], recording: &str) -> Vec<Record> {
    let args = [&INGEST[..], extra, &[recording]].concat();
    records(&device.works(&args))
}

#[test]
fn a_killed_ingest_keeps_what_it_acknowledged_and_goes_on_to_the_same_end() {
    let sound = conversation(TURNS);
    let whole = Device::new();
    let expected = ingest(&whole, &[], &whole.recording("talk.wav", &sound));
    assert!(expected.len() >= TURNS - 1, "{expected:?}");

    for acknowledged in [1, 3, 4] {
        let device = Device::new();
        let recording = device.recording("talk.wav", &sound);
        let mut command = device.command(&INGEST);
        let child = command
            .arg(&recording)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut running = Running { child };
        let lines = running.lines_until(&format!("\"id\":{},", expected[acknowledged - 1].id.0));
        running.kill();

        let kept = device.records();
        assert!(kept.len() >= lines.len());
        assert_eq!(kept, expected[..kept.len()]);
        ingest(&device, &["--resume"], &recording);
        assert_eq!(device.records(), expected);
        assert!(device.works(&["memory", "verify"]).contains("agrees"));
    }
}

/// Writes turns through the daemon for as long as it lives; hands on each that it
/// acknowledged.
fn write_on(device: &Device, round: usize, acknowledged: &mpsc::Sender<Record>) {
    let socket = device.path("memory.redb.sock");
    // The socket of a killed daemon is still there.
    let mut client = None;
    wait_for("the daemon", || {
        client = Client::connect(&socket).ok();
        client.is_some()
    });
    let mut client = client.unwrap();
    for number in 0.. {
        let turn = Write {
            session: "call".into(),
            unix_ms: 1_772_000_000_000,
            start_ms: number * 2_000,
            end_ms: number * 2_000 + 1_000,
            text: format!("Turn {number} of round {round}."),
            speaker: None,
            audio: Vec::new(),
        };
        match client.call(Request::Write(Box::new(turn))) {
            Ok(Response::Record(record)) => acknowledged.send(*record).unwrap(),
            _ => return,
        }
    }
}

/// It is killed in the middle of a turn, each time after a few more.
#[test]
fn a_daemon_that_is_killed_again_and_again_keeps_every_turn_it_acknowledged() {
    let device = Device::new();
    let silence = device.recording("silence.wav", &[0.0; 16_000]);
    let mut kept = Vec::new();
    for round in 1..=6 {
        let daemon = device.daemon(&["--keep-unasked", "forever", "--wav", &silence]);
        let (sender, acknowledged) = mpsc::channel();
        std::thread::scope(|threads| {
            threads.spawn(|| write_on(&device, round, &sender));
            kept.extend(acknowledged.iter().take(2 * round));
            daemon.kill();
        });
        drop(sender);
        kept.extend(acknowledged);
        let there = device.records();
        assert!(kept.len() >= 2 && kept.iter().all(|record| there.contains(record)));
        assert!(
            there.len() <= kept.len() + round,
            "one a round may be unacknowledged"
        );
        assert!(device.works(&["memory", "verify"]).contains("agrees"));
    }
}

#[test]
fn a_pipe_gives_the_same_records_as_a_file() {
    let sound = conversation(TURNS);
    let device = Device::new();
    let recording = device.recording("talk.wav", &sound);
    let expected = ingest(&device, &[], &recording);

    let live = Device::new();
    let mut daemon = live.daemon(&[
        "--pcm",
        "-",
        "--until-end",
        "--session",
        "s1",
        "--start",
        "2026-03-02T18:00:00Z",
    ]);
    let bytes = pcm(&sound);
    for piece in bytes.chunks(1237) {
        daemon.write(piece);
    }
    drop(daemon.child.stdin.take());
    let lines = daemon.lines_until("\"summary\"").join("\n");
    assert_eq!(records(&lines), expected);
}

#[test]
fn forgetting_a_speaker_leaves_nothing_of_them() {
    let device = Device::new();
    let spoken = ingest(
        &device,
        &[],
        &device.recording("talk.wav", &conversation(TURNS)),
    );
    let speaker = spoken[0]
        .speaker
        .speaker
        .expect("the first turn has a speaker");
    device.works(&["speakers", "name", &speaker.0.to_string(), "Zaphod"]);
    assert!(device.works(&["speakers", "list"]).contains("Zaphod"));
    device.works(&["memory", "forget", "--speaker", "zaphod"]);

    let kept = device.records();
    assert!(!kept.is_empty());
    assert!(
        kept.iter()
            .all(|record| record.speaker.speaker != Some(speaker))
    );
    let file = std::fs::read(device.store()).unwrap();
    let gone = |what: &str| {
        !file
            .windows(what.len())
            .any(|bytes| bytes == what.as_bytes())
    };
    assert!(gone("Zaphod"));
    for record in spoken
        .iter()
        .filter(|record| record.speaker.speaker == Some(speaker))
    {
        assert!(gone(&record.text), "{:?} is still in the file", record.text);
    }
    assert!(device.works(&["memory", "verify"]).contains("agrees"));
}

#[test]
fn resuming_with_other_sound_is_refused_and_changes_nothing() {
    let device = Device::new();
    let sound = conversation(4);
    let spoken = ingest(&device, &[], &device.recording("talk.wav", &sound));
    let other = device.recording("other.wav", &sound[60_000..]);
    let error = device.fails(&["ingest", "--session", "s1", "--resume", &other]);
    assert!(error.contains("other sound"), "{error}");
    assert_eq!(device.records(), spoken);
}

#[test]
fn files_of_one_session_follow_each_other() {
    let device = Device::new();
    let first = device.recording("first.wav", &conversation(2));
    let second = device.recording("second.wav", &conversation(1));
    let both = ingest(&device, &[&first], &second);
    let length_ms = conversation(2).len() as u64 / 16;
    let last = both.last().unwrap();
    assert_eq!(last.start_ms, both[0].start_ms + length_ms);
    assert_eq!(last.text, both[0].text);
}

#[test]
fn a_time_range_is_forgotten() {
    let device = Device::new();
    let spoken = ingest(
        &device,
        &[],
        &device.recording("talk.wav", &conversation(4)),
    );
    let range = [
        "--since",
        "2026-03-02T18:00:00Z",
        "--until",
        "2026-03-02T18:00:05Z",
    ];
    device.works(&[&["memory", "forget"][..], &range].concat());
    let kept: Vec<_> = spoken
        .into_iter()
        .filter(|record| record.start_ms >= 5000)
        .collect();
    assert_eq!(device.records(), kept);
    assert_eq!(
        device
            .run(&["memory", "forget", range[0], range[1]])
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn a_name_that_two_voices_share_forgets_neither() {
    let device = Device::new();
    let spoken = ingest(
        &device,
        &[],
        &device.recording("talk.wav", &conversation(TURNS)),
    );
    device.works(&["speakers", "name", "1", "Ada"]);
    device.works(&["speakers", "name", "2", "ada"]);
    assert!(
        device
            .fails(&["memory", "forget", "--speaker", "ADA"])
            .contains("1 and 2")
    );
    assert_eq!(device.records(), spoken);
    device.works(&["memory", "forget", "--speaker", "ada"]);
    assert!(device.works(&["speakers", "list"]).contains("Ada"));
    for name in ["3", "  ", "A\u{1b}[31m"] {
        assert!(
            device
                .fails(&["speakers", "name", "1", name])
                .contains("a name has")
        );
    }
}
