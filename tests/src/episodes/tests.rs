//! Sound episodes load; each kind of flaw is refused where it stands.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

fn sound() -> Value {
    json!({
        "id": "ep-1", "scenario": "household/chores", "source": "written for this test",
        "participants": [{"id": "p1", "name": "Alice", "aliases": ["Al"]}, {"id": "p2", "name": "Bob"}],
        "sessions": [
            {"id": "s2", "start": "2026-03-03T20:00:00+02:00", "turns": []},
            {"id": "s1", "start": "2026-03-02T18:00:00Z", "turns": [
                {"id": "t2", "speaker": "p2", "text": null, "start_ms": 2200.4, "end_ms": 3000},
                {"id": "t1", "speaker": "p1", "addressees": ["p2"], "text": "I leave on Monday.",
                 "start_ms": 0, "end_ms": 2100, "audio": "../clips/t1.wav", "mood": "unknown field",
                 "attachments": [{"kind": "image", "caption": "a timetable"}]}]}],
        "questions": [
            {"id": "q1", "session": "s2", "asker": "p1", "text": "When do I leave?", "audio": null,
             "task": "direct_recall", "speaker_query": "self_to_fact", "answer": "Monday",
             "evidence": ["t1"]}]
    })
}

/// A data set of the given episodes, in folders `0`, `1` and so on.
fn data_set(episodes: &[Value]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (folder, episode) in episodes.iter().enumerate() {
        write(dir.path(), &folder.to_string(), &episode.to_string());
    }
    fs::create_dir(dir.path().join("clips")).unwrap();
    fs::write(dir.path().join("clips/t1.wav"), b"sound").unwrap();
    dir
}

fn write(dir: &Path, folder: &str, text: &str) {
    fs::create_dir(dir.join(folder)).unwrap();
    fs::write(dir.join(folder).join("episode.json"), text).unwrap();
}

/// The refusal of a sound episode with `value` put at a JSON pointer.
fn refusal_with(pointer: &str, value: Value) -> Refusal {
    let mut episode = sound();
    *episode
        .pointer_mut(pointer)
        .expect("the pointer leads somewhere") = value;
    let dir = data_set(&[episode]);
    let mut set = load_set(dir.path()).unwrap();
    assert!(set.episodes.is_empty(), "{pointer} was taken as sound");
    set.refused.remove(0)
}

#[test]
fn a_sound_episode_loads_in_the_order_of_time() {
    let dir = data_set(&[sound()]);
    let set = load_set(dir.path()).unwrap();
    assert_eq!(set.refused, []);
    let episode = &set.episodes[0];
    let sessions: Vec<&str> = episode
        .sessions
        .iter()
        .map(|session| session.id.as_str())
        .collect();
    let turns: Vec<&str> = episode.sessions[0]
        .turns
        .iter()
        .map(|turn| turn.id.as_str())
        .collect();
    assert_eq!((sessions, turns), (vec!["s1", "s2"], vec!["t1", "t2"]));
    assert_eq!(episode.sessions[0].turns[1].start_ms, 2200);
    assert_eq!(
        episode.sessions[1].start,
        "2026-03-03T18:00:00Z".parse().unwrap()
    );
    assert_eq!(episode.name_of("p1"), "Alice");
    assert_eq!(episode.name_of("p9"), "p9");
}

#[test]
fn a_set_may_be_a_single_episode() {
    let dir = data_set(&[sound()]);
    assert_eq!(load_set(&dir.path().join("0")).unwrap().episodes.len(), 1);
}

#[test]
fn what_may_be_absent_may_be_null() {
    let mut episode = sound();
    let turn = episode.pointer_mut("/sessions/1/turns/1").unwrap();
    for field in ["addressees", "audio", "attachments", "text"] {
        turn[field] = Value::Null;
    }
    let question = episode.pointer_mut("/questions/0").unwrap();
    for field in ["asker", "speaker_query", "evidence", "answer"] {
        question[field] = Value::Null;
    }
    let dir = data_set(&[episode]);
    assert_eq!(load_set(dir.path()).unwrap().refused, []);
}

#[test]
fn every_flaw_is_refused_where_it_stands() {
    for (pointer, value, json_path, reason) in [
        ("/id", json!(""), "$.id", "empty"),
        (
            "/participants/1/id",
            json!("p1"),
            "$.participants[1].id",
            "twice",
        ),
        ("/sessions/1/id", json!("s2"), "$.sessions[1].id", "twice"),
        (
            "/sessions/1/turns/1/id",
            json!("t2"),
            "$.sessions[1].turns[1].id",
            "twice",
        ),
        (
            "/sessions/0/start",
            json!("yesterday"),
            "$.sessions[0].start",
            "RFC 3339",
        ),
        (
            "/sessions/0/start",
            json!("2026-03-02"),
            "$.sessions[0].start",
            "RFC 3339",
        ),
        (
            "/sessions/1/turns/0/speaker",
            json!("p3"),
            "$.sessions[1].turns[0].speaker",
            "\"p3\"",
        ),
        (
            "/sessions/1/turns/1/addressees/0",
            json!("p3"),
            "$.sessions[1].turns[1].addressees[0]",
            "\"p3\"",
        ),
        (
            "/sessions/1/turns/0/end_ms",
            json!(2100),
            "$.sessions[1].turns[0].end_ms",
            "before",
        ),
        (
            "/sessions/1/turns/0/start_ms",
            json!(-1),
            "$.sessions[1].turns[0].start_ms",
            "-1",
        ),
        (
            "/sessions/1/turns/0/end_ms",
            json!(1e300),
            "$.sessions[1].turns[0].end_ms",
            "within",
        ),
        (
            "/sessions/1/turns/0/text",
            json!(7),
            "$.sessions[1].turns[0].text",
            "string",
        ),
        (
            "/sessions/1/turns/1/audio",
            json!("none.wav"),
            "$.sessions[1].turns[1].audio",
            "none.wav",
        ),
        (
            "/sessions/1/turns/1/audio",
            json!("/etc/hosts"),
            "$.sessions[1].turns[1].audio",
            "relative",
        ),
        (
            "/sessions/1/turns",
            json!({}),
            "$.sessions[1].turns",
            "sequence",
        ),
        (
            "/questions/0/session",
            json!("s9"),
            "$.questions[0].session",
            "\"s9\"",
        ),
        (
            "/questions/0/asker",
            json!("p9"),
            "$.questions[0].asker",
            "\"p9\"",
        ),
        (
            "/questions/0/evidence/0",
            json!("t9"),
            "$.questions[0].evidence[0]",
            "\"t9\"",
        ),
        (
            "/questions/0",
            json!({"id": "q1"}),
            "$.questions[0]",
            "missing field",
        ),
    ] {
        let refusal = refusal_with(pointer, value);
        assert_eq!(refusal.json_path, json_path);
        assert!(
            refusal.reason.contains(reason),
            "{json_path}: {}",
            refusal.reason
        );
        assert!(refusal.file.ends_with("0/episode.json"));
    }
}

#[test]
fn text_that_is_no_json_is_refused() {
    for text in ["", "{", "[]", "{} {}", "{\"id\": 1e999}", "\u{0}"] {
        let dir = data_set(&[sound()]);
        write(dir.path(), "broken", text);
        let set = load_set(dir.path()).unwrap();
        assert_eq!((set.episodes.len(), set.refused.len()), (1, 1), "{text:?}");
        assert!(set.refused[0].file.ends_with("broken/episode.json"));
    }
}

#[test]
fn an_id_used_twice_in_a_set_is_refused_once() {
    let dir = data_set(&[sound(), sound()]);
    let set = load_set(dir.path()).unwrap();
    assert_eq!((set.episodes.len(), set.refused.len()), (1, 1));
    assert_eq!(set.refused[0].json_path, "$.id");
}

#[test]
fn a_folder_without_episodes_is_an_error_that_says_so() {
    let dir = data_set(&[]);
    assert!(matches!(load_set(dir.path()), Err(LoadError::Empty { .. })));
    assert!(matches!(
        load_set(&dir.path().join("gone")),
        Err(LoadError::Unreadable { .. })
    ));
}
