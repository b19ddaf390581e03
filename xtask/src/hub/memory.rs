//! A memory as its archive tells it, and how far two of them are apart.

use anyhow::{Context, Result};
use serde_json::Value;

/// What was recorded.
pub struct Memory {
    /// When the first session began.
    pub started_unix_ms: i64,
    /// Records with their keys.
    pub turns: Vec<Value>,
}

/// How far two memories are apart.
pub struct Difference {
    /// What was said otherwise, or by others.
    pub said: Vec<String>,
    /// The largest difference of two codes of a key.
    pub largest_step: u64,
}

impl Memory {
    /// Reads an archive.
    pub fn parse(archive: &str) -> Result<Self> {
        let rows: Result<Vec<Value>, _> = archive.lines().map(serde_json::from_str).collect();
        let rows = rows.context("the archive is garbled")?;
        let started = rows
            .iter()
            .find_map(|row| row["session"]["started_unix_ms"].as_i64());
        Ok(Self {
            started_unix_ms: started.context("the memory has no session")?,
            turns: rows
                .into_iter()
                .filter_map(|mut row| row.get_mut("turn").map(Value::take))
                .collect(),
        })
    }

    /// Compares two memories of one sound.
    pub fn difference(&self, other: &Self) -> Difference {
        let mut difference = Difference {
            said: Vec::new(),
            largest_step: 0,
        };
        for at in 0..self.turns.len().max(other.turns.len()) {
            let [here, there] = [self, other].map(|memory| memory.turns.get(at));
            let [ours, theirs] = [here, there].map(|turn| turn.map_or(String::new(), said));
            if ours != theirs {
                difference
                    .said
                    .push(format!("here:  {ours}\nthere: {theirs}"));
            }
            if let (Some(here), Some(there)) = (here, there) {
                difference.largest_step = difference.largest_step.max(largest_step(here, there));
            }
        }
        difference
    }
}

/// Who said what, and when.
fn said(turn: &Value) -> String {
    let record = &turn["record"];
    format!(
        "{} {}-{} {}: {}",
        record["id"],
        record["start_ms"],
        record["end_ms"],
        record["speaker"]["speaker"],
        record["text"]
    )
}

fn largest_step(here: &Value, there: &Value) -> u64 {
    let codes = |turn: &Value, block: &str| -> Vec<i64> {
        let values = turn[block]["values"].as_array();
        values
            .into_iter()
            .flatten()
            .filter_map(Value::as_i64)
            .collect()
    };
    ["semantic", "speaker", "temporal"]
        .into_iter()
        .flat_map(|block| {
            let pairs = codes(here, block).into_iter().zip(codes(there, block));
            pairs.map(|(a, b)| a.abs_diff(b)).collect::<Vec<_>>()
        })
        .max()
        .unwrap_or(0)
}

/// Whether two answers say the same and support it by the same records.
pub fn same_answer(here: &Value, there: &Value) -> bool {
    // The hour is worded in the time zone of each machine.
    let support = |answer: &Value| answer["support"].clone();
    let evidence = |answer: &Value| -> Vec<Value> {
        let evidence = answer["evidence"].as_array().cloned().unwrap_or_default();
        evidence
            .into_iter()
            .map(|one| one["record"]["id"].clone())
            .collect()
    };
    support(here) == support(there) && evidence(here) == evidence(there)
}

/// The largest difference between the scores of the evidence.
pub fn score_difference(here: &Value, there: &Value) -> f64 {
    let scores = |answer: &Value| -> Vec<f64> {
        let evidence = answer["evidence"].as_array().cloned().unwrap_or_default();
        let parts = evidence.into_iter().flat_map(|one| {
            ["who", "what", "when"].map(|part| one["scores"][part].as_f64().unwrap_or(f64::NAN))
        });
        parts.collect()
    };
    let pairs = scores(here).into_iter().zip(scores(there));
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn memory(text: &str, code: i64) -> Memory {
        let turn = json!({
            "record": {"id": 1, "start_ms": 0, "end_ms": 10, "speaker": {"speaker": 1}, "text": text},
            "semantic": {"scale": 1.0, "values": [code, 3]},
        });
        Memory {
            started_unix_ms: 0,
            turns: vec![turn],
        }
    }

    #[test]
    fn other_words_and_other_codes_are_seen() {
        let one = memory("Hello.", 5);
        let same = one.difference(&memory("Hello.", 5));
        assert!(same.said.is_empty());
        assert_eq!(same.largest_step, 0);
        let other = one.difference(&memory("Hullo.", -7));
        assert_eq!(other.said.len(), 1);
        assert_eq!(other.largest_step, 12);
        let nothing = Memory {
            started_unix_ms: 0,
            turns: Vec::new(),
        };
        assert_eq!(one.difference(&nothing).said.len(), 1);
    }

    #[test]
    fn answers_are_compared_by_what_supports_them() {
        let answer = |support: u64, who: f64| {
            json!({
                "support": [support],
                "evidence": [{"record": {"id": 4}, "scores": {"who": who, "what": 0.5, "when": 0.0}}],
            })
        };
        assert!(same_answer(&answer(0, 0.1), &answer(0, 0.2)));
        assert!(!same_answer(&answer(0, 0.1), &answer(1, 0.1)));
        assert!((score_difference(&answer(0, 0.1), &answer(0, 0.2)) - 0.1).abs() < 1e-9);
    }
}
