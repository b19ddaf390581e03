//! The episode format, as it is written.

use serde::Serialize;

/// One episode.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Episode {
    /// Unique within its split.
    pub id: String,
    /// Domain and subscenario, such as `living/travel_itinerary`.
    pub scenario: String,
    /// Where the data came from.
    pub source: &'static str,
    /// Everyone who speaks.
    pub participants: Vec<Participant>,
    /// Two of history, then the current one.
    pub sessions: Vec<Session>,
    /// All asked at the end of the current session.
    pub questions: Vec<Question>,
}

/// Someone who takes part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Participant {
    /// Unique within the episode.
    pub id: String,
    /// What records call them.
    pub name: String,
    /// What friends call them.
    pub aliases: Vec<String>,
    /// The voice that speaks for them where the episode is synthesised.
    pub voice: String,
}

/// One stretch of conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Session {
    /// Unique within the episode.
    pub id: String,
    /// When it began, RFC 3339.
    pub start: String,
    /// In the order of time.
    pub turns: Vec<Turn>,
}

/// One thing said.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Turn {
    /// Unique within the episode.
    pub id: String,
    /// Who spoke.
    pub speaker: String,
    /// Whom to.
    pub addressees: Vec<String>,
    /// What.
    pub text: String,
    /// Since the session began.
    pub start_ms: u64,
    /// Since the session began.
    pub end_ms: u64,
}

/// A question with its answer and evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Question {
    /// Unique within the episode.
    pub id: String,
    /// The current session.
    pub session: String,
    /// Who asks.
    pub asker: String,
    /// In words.
    pub text: String,
    /// The memory task.
    pub task: &'static str,
    /// How the question refers to people.
    pub speaker_query: &'static str,
    /// The right answer.
    pub answer: String,
    /// The turns that the answer rests on.
    pub evidence: Vec<String>,
}
