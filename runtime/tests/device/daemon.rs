//! The daemon: questions and memory over its socket, and what is left behind
//! when it is killed.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::device::{Device, conversation, pcm};
use earwitness_api::types::Answer;

#[test]
fn a_daemon_serves_the_memory_it_holds() {
    let device = Device::new();
    let recording = device.recording("talk.wav", &conversation(4));
    let mut daemon = device.daemon(&["--wav", &recording, "--session", "s1"]);
    let lines = daemon.lines_until("\"summary\"");
    let spoken = crate::device::records(&lines.join("\n"));

    assert_eq!(device.records(), spoken);
    assert!(
        device
            .works(&["memory", "show", &spoken[0].id.0.to_string()])
            .contains(&spoken[0].text)
    );
    let answer: Answer =
        serde_json::from_str(&device.works(&["--json", "ask", &spoken[1].text])).unwrap();
    assert_eq!(answer.evidence[0].record, spoken[1]);
    assert!(
        device
            .fails(&["ask", "--as", "Nobody", "Anything?"])
            .contains("Nobody")
    );
    assert!(
        device
            .fails(&["run", "--wav", &recording])
            .contains("in use")
    );
    let mode = fs::metadata(device.path("memory.redb.sock"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    daemon.kill();
    assert!(
        device.path("memory.redb.sock").exists(),
        "a killed daemon cannot clean up"
    );
    assert_eq!(device.records(), spoken);
    drop(device.daemon(&["--wav", &recording, "--session", "s2"]));
}

#[test]
fn noise_on_the_socket_harms_nobody() {
    use std::{io::Write, os::unix::net::UnixStream};
    let device = Device::new();
    let recording = device.recording("silence.wav", &[0.0; 16_000]);
    let _daemon = device.daemon(&["--wav", &recording]);
    let noise: Vec<u8> = (0..100_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut stream = UnixStream::connect(device.path("memory.redb.sock")).unwrap();
    let _ = stream.write_all(&noise);
    drop(stream);
    assert!(device.records().is_empty());
    assert!(
        device
            .works(&["ask", "What did I say?"])
            .contains("I have no record of that.")
    );
}

#[test]
fn clients_that_left_make_room_for_others() {
    use earwitness_api::{client::Client, message::Request};
    use std::os::unix::net::UnixStream;
    let device = Device::new();
    let recording = device.recording("silence.wav", &[0.0; 16_000]);
    let _daemon = device.daemon(&["--wav", &recording]);
    let socket = device.path("memory.redb.sock");
    for _ in 0..earwitness::serve::MAX_CLIENTS {
        let client = Client::<UnixStream>::connect(&socket).unwrap();
        drop(client.subscribe().unwrap());
    }
    let answers = || {
        Client::<UnixStream>::connect(&socket)
            .unwrap()
            .call(Request::Status)
            .is_ok()
    };
    crate::device::wait_for("places of those who left", answers);
}

#[test]
fn a_stopped_daemon_records_what_was_being_said() {
    let device = Device::new();
    let sound = conversation(1);
    let mut daemon = device.daemon(&["--pcm", "-"]);
    let bytes = pcm(&sound);
    // The turn's last words are cut off, and the pipe stays open.
    daemon.write(&bytes[..bytes.len() - 32_000]);
    let status = std::process::Command::new("kill")
        .arg(daemon.child.id().to_string())
        .status();
    assert!(status.unwrap().success());
    let lines = daemon.lines_until("\"summary\"").join("\n");
    assert!(daemon.child.wait().unwrap().success());
    assert_eq!(crate::device::records(&lines), device.records());
    assert_eq!(device.records().len(), 1);
}

#[test]
fn only_a_socket_gives_way_to_the_daemons_socket() {
    let device = Device::new();
    let recording = device.recording("silence.wav", &[0.0; 16_000]);
    fs::write(device.path("memory.redb.sock"), "precious").unwrap();
    device.fails(&["run", "--wav", &recording]);
    assert_eq!(
        fs::read_to_string(device.path("memory.redb.sock")).unwrap(),
        "precious"
    );
}

#[test]
fn a_session_that_is_forgotten_while_it_goes_on_begins_anew() {
    let device = Device::new();
    let mut daemon = device.daemon(&["--pcm", "-", "--session", "s1"]);
    let bytes = pcm(&conversation(4));
    let (before, after) = bytes.split_at(bytes.len() / 2);
    daemon.write(before);
    crate::device::wait_for("the first record", || !device.records().is_empty());
    device.works(&["memory", "forget", "--session", "s1"]);
    daemon.write(after);
    drop(daemon.child.stdin.take());
    daemon.lines_until("\"summary\"");
    let kept = device.records();
    assert!(!kept.is_empty());
    assert!(
        kept.iter()
            .all(|record| record.session != earwitness_api::types::SessionId(1))
    );
}

#[test]
fn a_daemon_that_comes_up_twice_within_a_second_begins_another_session() {
    let device = Device::new();
    let silence = device.recording("silence.wav", &[0.0; 16_000]);
    for _ in 0..2 {
        device.works(&[
            "run",
            "--until-end",
            "--start",
            "2026-03-02T18:00:00Z",
            "--wav",
            &silence,
        ]);
    }
}
