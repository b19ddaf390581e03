//! People: enrolled, merged, taken apart and judged, directly and through the
//! daemon.

use std::path::Path;

use earwitness_api::types::{Record, SpeakerId};
use serde_json::Value;

use crate::device::{Device, conversation, copy_of, records};

/// Turns of the household's first session; of at least three people.
const TURNS: usize = 6;

/// A clip of the household: turns 1 and 3 are Alice, 2 and 4 are Ben.
fn clip(turn: usize) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/household/audio");
    let path = folder.join(format!("s1t{turn:02}.flac"));
    path.to_str().unwrap().to_owned()
}

fn take_in(device: &Device) -> Vec<Record> {
    let recording = device.recording("talk.wav", &conversation(TURNS));
    records(&device.works(&["ingest", "--json", &recording]))
}

fn people(device: &Device) -> Vec<Value> {
    let listed = device.works(&["speakers", "list", "--json"]);
    listed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn speaker_of(record: &Record) -> SpeakerId {
    record.speaker.speaker.expect("a known speaker")
}

#[test]
fn an_enrolled_voice_is_known_from_the_first_turn_on() {
    let device = Device::new();
    let clips: Vec<String> = (1..=4).map(clip).collect();
    let enroll = |name, turns: &[usize]| -> Vec<&str> {
        let clips = turns.iter().map(|turn| clips[turn - 1].as_str());
        ["speakers", "enroll", name, "--wav"]
            .into_iter()
            .chain(clips)
            .collect()
    };
    let short = device.fails(&enroll("Alice", &[1]));
    assert!(short.contains("too little"), "{short}");
    let mixed = device.fails(&enroll("Alice", &[1, 2, 3, 4]));
    assert!(mixed.contains("not of one voice"), "{mixed}");
    assert!(people(&device).is_empty());

    let said = device.works(&enroll("Alice", &[1, 3]));
    assert!(said.contains("Alice is enrolled: quality 0."), "{said}");
    let alice = people(&device).remove(0);
    assert_eq!(
        (&alice["enrolled"], &alice["records"]),
        (&Value::Bool(true), &Value::from(0))
    );
    let other = device.fails(&enroll("Bob", &[1, 3]));
    assert!(other.contains("sounds like Alice"), "{other}");

    let heard = take_in(&device);
    let alice = SpeakerId(alice["id"].as_u64().unwrap() as u32);
    assert_eq!(speaker_of(&heard[0]), alice);
    assert_ne!(speaker_of(&heard[1]), alice);
}

/// Makes two people one and takes them apart again.
fn merge_and_split(device: &Device, heard: &[Record]) {
    let (one, two) = (speaker_of(&heard[0]), speaker_of(&heard[1]));
    let [into, from] = [one, two].map(|id| id.0.to_string());
    let before = people(device);
    device.works(&["speakers", "merge", &into, &from]);
    let merged = people(device);
    assert_eq!(merged.len() + 1, before.len());
    assert_eq!(merged[0]["members"], serde_json::json!([one, two]));
    let same = device.fails(&["speakers", "merge", &into, &into]);
    assert!(same.contains("are one already"), "{same}");
    let theirs = records(&device.works(&["memory", "list", "--speaker", &into, "--json"]));
    for record in heard
        .iter()
        .filter(|record| [one, two].contains(&speaker_of(record)))
    {
        let listed = theirs.iter().find(|other| other.id == record.id).unwrap();
        assert_eq!(speaker_of(listed), one);
    }
    let undone = device.works(&["speakers", "split", &from]);
    assert!(undone.contains("stays apart"), "{undone}");
    assert_eq!(people(device), before);
    assert_eq!(device.records(), heard);
}

#[test]
fn people_are_merged_and_taken_apart_again() {
    let device = Device::new();
    let heard = take_in(&device);
    merge_and_split(&device, &heard);

    let daemon = device.daemon(&["--pcm", "-"]);
    merge_and_split(&device, &heard);
    let estimates = device.works(&["doctor", "--voices", "--json"]);
    daemon.kill();
    assert_eq!(device.works(&["doctor", "--voices", "--json"]), estimates);
    let estimates: Value = serde_json::from_str(&estimates).unwrap();
    let estimates = estimates["voices"].as_array().unwrap();
    assert_eq!(estimates.len(), people(&device).len());
    assert!(
        estimates
            .iter()
            .all(|estimate| estimate["turns"].as_u64() >= Some(1))
    );
}

#[test]
fn records_of_somebody_else_become_a_new_speaker() {
    let device = Device::new();
    let heard = take_in(&device);
    let [one, two] = [0, 1].map(|turn| speaker_of(&heard[turn]).0.to_string());
    device.works(&["speakers", "merge", &one, &two]);
    let stray = heard[1].id.0.to_string();
    device.works(&["speakers", "split", &one, "--records", &stray]);
    let listed = device.records();
    let split = speaker_of(&listed[1]);
    assert!(
        heard
            .iter()
            .all(|record| record.speaker.speaker != Some(split))
    );
    let missing = device.fails(&["speakers", "split", &one, "--records", "4711"]);
    assert!(missing.contains("4711"), "{missing}");
    let nobody = device.fails(&["speakers", "split", "99"]);
    assert!(nobody.contains("not merged"), "{nobody}");
}

#[test]
fn a_memory_of_other_voiceprints_is_refused() {
    let device = Device::new();
    take_in(&device);
    let packs = device.path("packs");
    copy_of(&device.packs, &packs);
    let manifest = packs.join("voiceprint/manifest.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(
        &manifest,
        text.replacen("name = \"", "name = \"another-", 1),
    )
    .unwrap();
    let recording = device.recording("more.wav", &conversation(1));
    let packs = packs.to_str().unwrap();
    let refused = device.fails(&["ingest", "--packs", packs, &recording]);
    assert!(refused.contains("another-"), "{refused}");
    let missing = device.fails(&["ingest", "--voiceprint", "nonsense", &recording]);
    assert!(missing.contains("voiceprint-nonsense"), "{missing}");
}
