//! The evaluations as they are called: what they print, write and exit with.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};
use tempfile::TempDir;

fn harness(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_harness"))
        .args(arguments)
        .output()
        .expect("the harness starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn write_episode(dir: &Path, id: &str, speaker: &str) {
    let episode = json!({
        "id": id, "participants": [{"id": "p1", "name": "Ann"}],
        "sessions": [
            {"id": "s1", "start": "2026-03-02T18:00:00Z", "turns": [
                {"id": "t1", "speaker": speaker, "text": "The dentist is on Tuesday.", "start_ms": 0, "end_ms": 900},
                {"id": "t2", "speaker": "p1", "text": "We bought a bicycle.", "start_ms": 1000, "end_ms": 1900}]},
            {"id": "s2", "start": "2026-03-03T18:00:00Z", "turns": []}],
        "questions": [
            {"id": "q1", "session": "s2", "text": "When is the dentist?", "task": "direct_recall",
             "speaker_query": "speaker_independent", "answer": "Tuesday", "evidence": ["t1"]},
            {"id": "q2", "session": "s2", "text": "Who is the mayor?", "task": "missing_evidence",
             "answer": "nobody said", "evidence": []}]
    });
    fs::create_dir(dir.join(id)).expect("a new folder");
    fs::write(dir.join(id).join("episode.json"), episode.to_string()).expect("a new file");
}

fn data_set() -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    write_episode(dir.path(), "sound", "p1");
    dir
}

fn retrieval<'a>(dir: &'a TempDir, more: &[&'a str]) -> Vec<&'a str> {
    let dir = dir.path().to_str().expect("a plain path");
    let mut arguments = vec![
        "eval",
        "retrieval",
        "--retriever",
        "bm25",
        "--episodes",
        dir,
    ];
    arguments.extend(more);
    arguments
}

#[test]
fn json_on_standard_output_is_all_there_is() {
    let dir = data_set();
    let output = harness(&retrieval(&dir, &["--json", "-"]));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(report["command"], "eval retrieval");
    assert_eq!(
        (&report["data"]["episodes"], &report["data"]["questions"]),
        (&json!(1), &json!(2))
    );
    let bm25 = &report["results"]["bm25"];
    let all = json!({"n": 1, "r1": 1.0, "r3": 1.0, "r5": 1.0, "r15": 1.0, "em3": 1.0, "em5": 1.0, "em15": 1.0});
    assert_eq!(bm25["overall"], all);
    assert_eq!(bm25["by_task"], json!({"direct_recall": all}));
    assert_eq!(
        bm25["by_speaker_query"],
        json!({"speaker_independent": all})
    );
    assert!(bm25["latency_ms"]["p50"].is_number() && bm25["latency_ms"]["p99"].is_number());
    assert_eq!(
        (&bm25["skipped"], &report["results"]["skipped"]),
        (&json!(1), &json!(1))
    );
    assert!(report["host"]["threads"].as_u64() >= Some(1));
    assert!(text(&output.stderr).contains("bm25"));
}

#[test]
fn without_json_the_table_is_printed() {
    let dir = data_set();
    let output = harness(&retrieval(&dir, &["--pool", "all"]));
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("R@15"));
}

#[test]
fn a_malformed_episode_is_refused_and_the_rest_evaluated() {
    let dir = data_set();
    write_episode(dir.path(), "unsound", "p9");
    let file = dir.path().join("report.json");
    let output = harness(&retrieval(
        &dir,
        &["--json", file.to_str().expect("a plain path")],
    ));
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    for part in [
        "unsound/episode.json",
        "$.sessions[0].turns[0].speaker",
        "\"p9\"",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert!(
        said.lines()
            .last()
            .is_some_and(|last| last.contains("1 of 2 episodes")),
        "{said}"
    );
    let report: Value = serde_json::from_slice(&fs::read(file).expect("the report")).expect("JSON");
    assert_eq!(report["data"]["episodes"], 1);
    assert_eq!(report["results"]["bm25"]["overall"]["n"], 1);
}

#[test]
fn wrong_usage_exits_with_two_and_a_missing_folder_with_one() {
    let dir = data_set();
    assert_eq!(
        harness(&retrieval(&dir, &["--pool", "some"])).status.code(),
        Some(2)
    );
    assert_eq!(harness(&["eval", "retrieval"]).status.code(), Some(2));
    assert_eq!(
        harness(&[
            "eval",
            "retrieval",
            "--episodes",
            ".",
            "--retriever",
            "none"
        ])
        .status
        .code(),
        Some(2)
    );
    let output = harness(&[
        "eval",
        "retrieval",
        "--episodes",
        "/nowhere",
        "--retriever",
        "bm25",
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/nowhere"));
}
