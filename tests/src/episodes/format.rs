//! What stands in an `episode.json`, field by field.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, de::Error};

/// One episode: several sessions among the same people, and questions about them.
#[derive(Clone, Debug, Deserialize)]
pub struct Episode {
    /// Unique within a data set.
    pub id: String,
    /// What kind of conversation it is, for example `household/chores`.
    #[serde(default)]
    pub scenario: Option<String>,
    /// Where the data came from.
    #[serde(default)]
    pub source: Option<String>,
    /// Everyone who speaks, is spoken to or asks.
    pub participants: Vec<Participant>,
    /// In the order of their start.
    pub sessions: Vec<Session>,
    /// Questions to a memory of the sessions.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub questions: Vec<Question>,
    /// The episode's folder; audio paths are relative to it.
    #[serde(skip)]
    pub dir: PathBuf,
}

/// Someone who takes part.
#[derive(Clone, Debug, Deserialize)]
pub struct Participant {
    /// Unique within the episode.
    pub id: String,
    /// What the others call them.
    pub name: String,
    /// Other names for them.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub aliases: Vec<String>,
}

/// One stretch of conversation.
#[derive(Clone, Debug, Deserialize)]
pub struct Session {
    /// Unique within the episode.
    pub id: String,
    /// When it began.
    #[serde(deserialize_with = "rfc_3339")]
    pub start: Timestamp,
    /// In the order of their start.
    pub turns: Vec<Turn>,
}

/// One thing said by one person.
#[derive(Clone, Debug, Deserialize)]
pub struct Turn {
    /// Unique within the episode.
    pub id: String,
    /// The participant who spoke.
    pub speaker: String,
    /// The participants spoken to, where they are known.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub addressees: Vec<String>,
    /// What was said; `None` where nobody wrote it down.
    #[serde(default)]
    pub text: Option<String>,
    /// Start within the session, in milliseconds.
    #[serde(deserialize_with = "milliseconds")]
    pub start_ms: u64,
    /// End within the session, in milliseconds.
    #[serde(deserialize_with = "milliseconds")]
    pub end_ms: u64,
    /// The recording, relative to the episode's folder.
    #[serde(default)]
    pub audio: Option<PathBuf>,
    /// What was shown with it.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub attachments: Vec<Attachment>,
}

/// Something shown or shared in a turn.
#[derive(Clone, Debug, Deserialize)]
pub struct Attachment {
    /// What it is, for example `image`.
    pub kind: String,
    /// What it shows, in words.
    #[serde(default)]
    pub caption: Option<String>,
}

/// A question with its answer and the turns that support it.
#[derive(Clone, Debug, Deserialize)]
pub struct Question {
    /// Unique within the episode.
    pub id: String,
    /// The session it is asked in.
    pub session: String,
    /// The participant who asks, where known.
    #[serde(default)]
    pub asker: Option<String>,
    /// The question in words.
    pub text: String,
    /// The question as a recording, relative to the episode's folder.
    #[serde(default)]
    pub audio: Option<PathBuf>,
    /// What kind of memory it needs, for example `historical_state`.
    pub task: String,
    /// How it refers to people, for example `self_to_fact`.
    #[serde(default)]
    pub speaker_query: Option<String>,
    /// The right answer.
    #[serde(default)]
    pub answer: Option<String>,
    /// The turns that support the answer; empty where none does.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub evidence: Vec<String>,
}

impl Episode {
    /// Where an audio path of this episode leads.
    pub fn audio_path(&self, audio: &Path) -> PathBuf {
        self.dir.join(audio)
    }

    /// The name of a participant; the id itself where there is no such one.
    pub fn name_of<'a>(&'a self, participant: &'a str) -> &'a str {
        self.participants
            .iter()
            .find(|known| known.id == participant)
            .map_or(participant, |known| &known.name)
    }
}

fn null_is_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    json: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(json)?.unwrap_or_default())
}

fn rfc_3339<'de, D: Deserializer<'de>>(json: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(json)?;
    text.parse().map_err(|_| {
        D::Error::custom(format!(
            "{text:?} is not a time in RFC 3339, such as 2026-03-02T18:00:00Z"
        ))
    })
}

/// Whole milliseconds from an integer or a fraction: generators write both.
fn milliseconds<'de, D: Deserializer<'de>>(json: D) -> Result<u64, D::Error> {
    /// 100 days: more is a wrong unit, and keeps sums far from overflow.
    const MOST_MS: f64 = 100.0 * 86_400_000.0;
    let value = f64::deserialize(json)?;
    if !(0.0..=MOST_MS).contains(&value) {
        return Err(D::Error::custom(format!(
            "{value} is not a time within a session: it must be from 0 to {MOST_MS} ms"
        )));
    }
    Ok(value.round() as u64)
}
