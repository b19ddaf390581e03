//! The nouns: what a record is, who a speaker is, what an answer rests on.
//!
//! These types are also what the store keeps, so a field added here is a change
//! of the file format as well as of the wire format.

use alloc::{string::String, vec::Vec};
use serde::{Deserialize, Serialize};

/// Names one record for ever; ids grow monotonically and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordId(pub u64);

/// Names one voice that the tracker tells apart; ids are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpeakerId(pub u32);

/// Names one session: a stretch of recording that began at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub u32);

/// One session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Its name, unique in a store; a file's stem or a date where nobody chose one.
    pub name: String,
    /// When it began, in milliseconds since the Unix epoch.
    pub started_unix_ms: i64,
}

/// A speaker or an addressee with the confidence of that attribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attribution {
    /// Who; `None` is "unknown", which is an answer and not an error.
    pub speaker: Option<SpeakerId>,
    /// Cosine similarity to the best stored voice, from -1 to 1; kept for
    /// unknown speakers too.
    pub score: f32,
}

/// Something shown or shared while a turn was spoken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attachment {
    /// What it is, for example `image`.
    pub kind: String,
    /// What it shows, in words.
    pub caption: String,
}

/// One turn made durable: who said what to whom, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its id, in the order of acknowledgement.
    pub id: RecordId,
    /// The session it was said in.
    pub session: SessionId,
    /// Start within the session, in milliseconds.
    pub start_ms: u64,
    /// End within the session, in milliseconds.
    pub end_ms: u64,
    /// Wall clock at the start, in milliseconds since the Unix epoch.
    pub unix_ms: i64,
    /// Who spoke.
    pub speaker: Attribution,
    /// Who was spoken to; empty when unknown.
    pub addressees: Vec<Attribution>,
    /// What was said.
    pub text: String,
    /// What was shown with it.
    pub attachments: Vec<Attachment>,
}

/// One voice that the hub has learned to tell apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speaker {
    /// Its id.
    pub id: SpeakerId,
    /// The name a person gave it.
    pub name: Option<String>,
    /// Records attributed to it and still kept.
    pub records: u64,
    /// When it was first heard, in milliseconds since the Unix epoch; 0 when no
    /// record of it is kept.
    pub first_heard_unix_ms: i64,
    /// When it was last heard, likewise.
    pub last_heard_unix_ms: i64,
}

/// One person as far as the hub can tell: a voice with every other voice that
/// was found, or said, to be the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The voice that stands for all, with the name and the counts of all.
    pub speaker: Speaker,
    /// Every voice that belongs to it, itself included, in the order of their ids.
    pub members: Vec<SpeakerId>,
    /// Whether somebody lent their voice on purpose.
    pub enrolled: bool,
    /// What they agreed to; a refusal of any of the voices holds for all.
    pub consent: Consent,
}

/// What a person agreed to. Append-only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Consent {
    /// Nobody asked them.
    #[default]
    Unknown,
    /// They are here for a while.
    Guest,
    /// They agreed to be remembered.
    Given,
    /// They refused: nothing of what they say is kept.
    Refused,
}

/// One merge of two identities; it can be undone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Merge {
    /// Its place in the order of all merges.
    pub number: u32,
    /// The voice whose identity was given up.
    pub from: SpeakerId,
    /// The voice whose identity took it over.
    pub into: SpeakerId,
    /// Why.
    pub why: MergeReason,
}

/// What two identities were merged for. Append-only.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum MergeReason {
    /// Somebody said so.
    ByHand,
    /// Their voices are alike (VoxPolyMem appendix B.1); cosine similarities.
    Reconciled {
        /// Between the two.
        similarity: f32,
        /// To the next best candidate, where there was one.
        runner_up: Option<f32>,
        /// Within the less cohesive of the two; 1 for a single turn.
        cohesion: f32,
    },
}

/// Which records to list. A record has to pass every condition that is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordFilter {
    /// Only this session.
    pub session: Option<SessionId>,
    /// Only what this speaker said.
    pub speaker: Option<SpeakerId>,
    /// Only records with a higher id: where to go on after a limit was reached.
    pub after: Option<RecordId>,
    /// Only from this moment on, in milliseconds since the Unix epoch.
    pub from_unix_ms: Option<i64>,
    /// Only before this moment, in milliseconds since the Unix epoch.
    pub to_unix_ms: Option<i64>,
    /// At most so many; `None` is no limit.
    pub limit: Option<u32>,
    /// Newest first instead of oldest first.
    pub newest_first: bool,
}

/// What to forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Selection {
    /// One record.
    Record(RecordId),
    /// A session with all its records.
    Session(SessionId),
    /// A speaker: the voice, the name, every record of theirs, and every
    /// mention of them as an addressee.
    Speaker(SpeakerId),
    /// All records that began at or after `from` and before `to`, both in
    /// milliseconds since the Unix epoch.
    TimeRange {
        /// First millisecond that is forgotten.
        from: i64,
        /// First millisecond that is kept again.
        to: i64,
    },
}

/// What was forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    /// Records, each with its key.
    pub records: u64,
    /// Voices: a centroid with every embedding it was learned from.
    pub voiceprints: u64,
    /// Whether the bytes are gone from the file as well. When false, the
    /// medium had no room to rewrite the file; it is tried again when the store
    /// is opened and when it is compacted.
    pub reclaimed: bool,
}

/// The three parts of a 3W score (PERSIST section 2.2): a part is the weighted
/// dot product of one block of the query with that block of the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartialScores {
    /// Speaker block.
    pub who: f32,
    /// Semantic block.
    pub what: f32,
    /// Temporal block.
    pub when: f32,
}

impl PartialScores {
    /// The joint score: the sum of the weighted parts.
    pub fn total(&self) -> f32 {
        self.who + self.what + self.when
    }
}

/// One record that supports an answer, and why it ranked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The record.
    pub record: Record,
    /// The name of its session.
    pub session_name: String,
    /// The name of its speaker, where one is known.
    pub speaker_name: Option<String>,
    /// Its weighted partial scores.
    pub scores: PartialScores,
}

/// How long the steps of one answer took, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AskTimings {
    /// Speech recognition and voiceprint of a spoken question; 0 for a typed one.
    pub listen_ms: f32,
    /// Embedding of the question.
    pub embed_ms: f32,
    /// Scoring of all keys and selection of the best.
    pub score_ms: f32,
    /// Reading the records and wording the answer.
    pub answer_ms: f32,
}

/// An answer with what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The question as it was understood.
    pub question: String,
    /// Who asked.
    pub asker: Attribution,
    /// The asker's name, where one is known.
    pub asker_name: Option<String>,
    /// The answer in words.
    pub text: String,
    /// The records that the answer rests on; empty when the evidence was too
    /// weak to answer at all.
    pub support: Vec<RecordId>,
    /// The records that were considered, best first.
    pub evidence: Vec<Evidence>,
    /// Where the time went.
    pub timings: AskTimings,
}
