//! What was heard against what was really said.

use std::collections::{HashMap, HashSet};

use earwitness_api::types::{Answer, Record, SpeakerId};

use crate::{
    episodes::{Episode, Question, Session, Turn},
    metrics::{Attribution, WordErrors, best_mapping, normalize, rate, word_errors},
};

/// How many pieces of evidence count as found.
const TOP: usize = 3;

/// One question and what came of it.
#[derive(Debug)]
pub struct Asked {
    /// What the program said.
    pub answer: Answer,
    /// Whether every supporting turn is among the best pieces of evidence;
    /// `None` for a question that nothing supports.
    pub evidence_found: Option<bool>,
    /// Whether the answer holds what it should.
    pub right: bool,
    /// Whether the asker was recognised.
    pub asker_known: bool,
}

/// The demo's figures.
#[derive(Debug)]
pub struct Score {
    /// Turns attributed to the right voice, under the best one-to-one mapping.
    pub attribution: Attribution,
    /// Words, sessions whole and in order.
    pub words: WordErrors,
    /// The questions.
    pub asked: Vec<Asked>,
}

impl Score {
    /// Scores what was heard in each session, in the order of the episode.
    pub fn new(episode: &Episode, heard: &[Vec<Record>], asked: Vec<Asked>) -> Self {
        let turns = attributed(episode, heard);
        let mapping = best_mapping(&turns);
        let mut words = WordErrors::default();
        for (session, records) in episode.sessions.iter().zip(heard) {
            words += session_errors(session, records);
        }
        Self {
            attribution: Attribution::count(&turns, &mapping),
            words,
            asked,
        }
    }

    /// The share of questions for which something holds, of those that it can
    /// be said of.
    pub fn share(&self, holds: impl Fn(&Asked) -> Option<bool>) -> f64 {
        let verdicts: Vec<bool> = self.asked.iter().filter_map(holds).collect();
        rate(
            verdicts.iter().filter(|&&holds| holds).count(),
            verdicts.len(),
        )
    }
}

impl Asked {
    /// Judges one answer.
    pub fn new(
        episode: &Episode,
        question: &Question,
        answer: Answer,
        heard: &[Vec<Record>],
        people: &HashMap<SpeakerId, String>,
    ) -> Self {
        let best: HashSet<&str> = answer
            .evidence
            .iter()
            .take(TOP)
            .filter_map(|evidence| turn_behind(episode, heard, &evidence.record))
            .map(|turn| turn.id.as_str())
            .collect();
        let asker = answer
            .asker
            .speaker
            .and_then(|speaker| people.get(&speaker));
        let (evidence_found, right) = if question.evidence.is_empty() {
            (None, answer.support.is_empty())
        } else {
            let said = question.answer.as_deref().unwrap_or_default();
            let found = question
                .evidence
                .iter()
                .all(|id| best.contains(id.as_str()));
            (
                Some(found),
                !answer.support.is_empty() && holds(&answer.text, said),
            )
        };
        Self {
            evidence_found,
            right,
            asker_known: asker == question.asker.as_ref(),
            answer,
        }
    }
}

/// The person who is mostly behind each voice.
pub fn people_behind(episode: &Episode, heard: &[Vec<Record>]) -> HashMap<SpeakerId, String> {
    best_mapping(&attributed(episode, heard))
}

/// Every turn that was spoken so far: its person and the voice it was given.
fn attributed(episode: &Episode, heard: &[Vec<Record>]) -> Vec<(String, Option<SpeakerId>)> {
    let sessions = episode.sessions.iter().zip(heard);
    sessions
        .flat_map(|(session, records)| {
            session.turns.iter().map(|turn| {
                let record = records.iter().max_by_key(|record| overlap_ms(turn, record));
                let speaker = record
                    .filter(|record| overlap_ms(turn, record) > 0)
                    .and_then(|record| record.speaker.speaker);
                (turn.speaker.clone(), speaker)
            })
        })
        .collect()
}

/// The turn that a record overlaps most.
fn turn_behind<'e>(
    episode: &'e Episode,
    heard: &[Vec<Record>],
    record: &Record,
) -> Option<&'e Turn> {
    let session = heard
        .iter()
        .position(|records| records.iter().any(|r| r.id == record.id))?;
    let turns = &episode.sessions[session].turns;
    turns
        .iter()
        .max_by_key(|turn| overlap_ms(turn, record))
        .filter(|turn| overlap_ms(turn, record) > 0)
}

fn overlap_ms(turn: &Turn, record: &Record) -> u64 {
    turn.end_ms
        .min(record.end_ms)
        .saturating_sub(turn.start_ms.max(record.start_ms))
}

fn session_errors(session: &Session, records: &[Record]) -> WordErrors {
    let said: Vec<String> = session
        .turns
        .iter()
        .flat_map(|turn| normalize(turn.text.as_deref().unwrap_or("")))
        .collect();
    let heard: Vec<String> = records
        .iter()
        .flat_map(|record| normalize(&record.text))
        .collect();
    word_errors(&said, &heard)
}

/// Whether all words of the answer stand in a row in the text.
fn holds(text: &str, answer: &str) -> bool {
    let (text, answer) = (normalize(text), normalize(answer));
    !answer.is_empty() && text.windows(answer.len()).any(|window| window == answer)
}
