//! What a client may ask of the daemon, and what the daemon says back.
//!
//! Protocol version 1. Every message travels in an [`Envelope`] whose first
//! field is the version, so that a peer of another version is recognised before
//! the rest is read.
//!
//! On the wire a variant is its position and a struct is its fields in order
//! (postcard). So within a version the lists below are append-only: new variants
//! go to the end of an enum, nothing is reordered, removed or given another
//! type, and no struct gains a field. Anything else is a new version. The golden
//! bytes under `tests/` hold every released version to this.

use crate::frame::{self, FrameError};
use crate::types::{
    Answer, Consent, Forgotten, Identity, Merge, Record, RecordFilter, RecordId, Selection,
    Session, SessionId, Speaker, SpeakerId,
};
use alloc::{boxed::Box, string::String, vec::Vec};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The version of the protocol that this crate speaks.
pub const PROTOCOL_VERSION: u16 = 1;

/// The longest spoken question: 30 s at 16 kHz.
pub const MAX_QUESTION_SAMPLES: usize = 480_000;

/// The most sound of one enrolment, all recordings together: 30 s at 16 kHz.
pub const MAX_ENROLMENT_SAMPLES: usize = 480_000;
/// The longest text of one turn, in bytes.
pub const MAX_WRITE_TEXT: usize = 8_192;

/// A message with the version it is written in and the request it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Envelope<T> {
    /// [`PROTOCOL_VERSION`] of the sender.
    pub version: u16,
    /// Chosen by the client; every response repeats the id of its request.
    pub id: u32,
    /// A [`Request`] or a [`Response`].
    pub body: T,
}

/// Why an envelope could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// The peer speaks another version.
    #[error(
        "the peer speaks protocol version {0}, this program speaks {PROTOCOL_VERSION}: \
         update the older of the two"
    )]
    Version(u16),
    /// The payload is not such a message.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

impl<T> Envelope<T> {
    /// Wraps `body` in this crate's version.
    pub fn new(id: u32, body: T) -> Self {
        Self {
            version: PROTOCOL_VERSION,
            id,
            body,
        }
    }
}

impl<T: DeserializeOwned> Envelope<T> {
    /// Opens the payload of one frame.
    pub fn open(payload: &[u8]) -> Result<Self, EnvelopeError> {
        let (version, _) =
            postcard::take_from_bytes::<u16>(payload).map_err(|_| FrameError::Payload)?;
        if version != PROTOCOL_VERSION {
            return Err(EnvelopeError::Version(version));
        }
        Ok(frame::decode(payload)?)
    }
}

/// What a client asks for. Append-only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Who is there? Answered by [`Response::Hello`].
    Hello,
    /// How is the daemon? Answered by [`Response::Status`].
    Status,
    /// Answer a question from memory. Answered by [`Response::Answer`].
    Ask(Ask),
    /// List records. Answered by [`Response::Records`].
    ListRecords(RecordFilter),
    /// Show one record. Answered by [`Response::Record`].
    ShowRecord(RecordId),
    /// Forget for good. Answered by [`Response::Forgotten`].
    Forget(Selection),
    /// List speakers. Answered by [`Response::Speakers`].
    ListSpeakers,
    /// Give a speaker a name. Answered by [`Response::Speaker`].
    NameSpeaker {
        /// Who.
        speaker: SpeakerId,
        /// The name.
        name: String,
    },
    /// List sessions. Answered by [`Response::Sessions`].
    ListSessions,
    /// Send every record from now on as soon as it is durable. Answered by
    /// [`Response::Subscribed`], then one [`Response::Acknowledged`] a record
    /// under the same id until the connection ends.
    Subscribe,
    /// List people with all voices of each. Answered by [`Response::Identities`].
    ListIdentities,
    /// List the merges that hold. Answered by [`Response::Merges`].
    ListMerges,
    /// Two identities are one person. Answered by [`Response::Identity`].
    MergeSpeakers {
        /// The one that stays.
        into: SpeakerId,
        /// The one that is given up.
        from: SpeakerId,
        /// Also where the two bear different names; the name of `into` holds.
        despite_names: bool,
    },
    /// A voice is not the person that it was merged into, and stays apart. Answered
    /// by [`Response::Merge`], the one that was undone.
    UndoMerge {
        /// The voice that was given up.
        from: SpeakerId,
    },
    /// Some records of a speaker were somebody else. Answered by
    /// [`Response::Speaker`], the new one.
    SplitSpeaker {
        /// Whose records.
        speaker: SpeakerId,
        /// Which.
        records: Vec<RecordId>,
    },
    /// Learn a voice that somebody lends on purpose. Answered by
    /// [`Response::Enrolled`].
    Enrol(Enrol),
    /// How well can voices be told apart? Answered by [`Response::VoiceEstimates`].
    EstimateVoices,
    /// Send what is heard while it is spoken, and every record as soon as it is
    /// durable. Answered by [`Response::Subscribed`], then by
    /// [`Response::Partial`], [`Response::Transcript`] and
    /// [`Response::Acknowledged`] under the same id until the connection ends.
    Follow,
    /// Remember what somebody else has transcribed. Answered by
    /// [`Response::Record`].
    Write(Box<Write>),
    /// Write down what a person agreed to; a refusal forgets what they said at
    /// once. Answered by [`Response::Identity`].
    SetConsent {
        /// Who.
        speaker: SpeakerId,
        /// What they agreed to.
        consent: Consent,
    },
    /// Switch the memory on or off, also for the time after a restart. While it is
    /// off, what is heard is dropped, and every request about memory is refused.
    /// Answered by [`Response::Done`].
    Switch {
        /// On?
        on: bool,
    },
    /// Rewrite the memory's file without its gaps. Answered by [`Response::Done`].
    Compact,
    /// The words so far of a question that is still being asked. Whoever then asks
    /// the same in text is answered sooner. Answered by [`Response::Done`].
    Prepare(String),
}

/// A voice to be learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Enrol {
    /// The person's name.
    pub name: String,
    /// Recordings of that person alone: mono samples at 16 kHz, at most
    /// [`MAX_ENROLMENT_SAMPLES`] together.
    pub recordings: Vec<Vec<i16>>,
}

/// A question to memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// The question itself.
    pub question: Question,
    /// Who asks, where that is known from elsewhere than the voice.
    pub as_speaker: Option<SpeakerRef>,
    /// At most so many pieces of evidence; 0 leaves it to the daemon.
    pub limit: u32,
}

/// A question, typed or spoken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Question {
    /// In words.
    Text(String),
    /// Spoken: mono samples at 16 kHz, at most [`MAX_QUESTION_SAMPLES`].
    Audio(Vec<i16>),
}

/// A turn that was transcribed elsewhere (PERSIST section 2.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Write {
    /// Name of the session it belongs to, which begins if there is none yet.
    pub session: String,
    /// Wall clock at its start, in milliseconds since the Unix epoch.
    pub unix_ms: i64,
    /// Start within the session, in milliseconds.
    pub start_ms: u64,
    /// End within the session, in milliseconds.
    pub end_ms: u64,
    /// What was said: at most [`MAX_WRITE_TEXT`] bytes.
    pub text: String,
    /// Who said it, where that is known from elsewhere than the voice.
    pub speaker: Option<SpeakerRef>,
    /// Its sound, for the voiceprint: mono samples at 16 kHz, at most
    /// [`MAX_QUESTION_SAMPLES`]; may be empty.
    pub audio: Vec<i16>,
}

/// Words while they are spoken. Both texts empty: nothing was said after all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partial {
    /// The session.
    pub session: SessionId,
    /// Start of the turn within the session, in milliseconds.
    pub start_ms: u64,
    /// Words that will not change: the raw transcript begins with them.
    pub stable: String,
    /// The words after them, which may.
    pub tentative: String,
}

/// What was said in one turn, known at its end; a record follows unless the text
/// is empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    /// The session.
    pub session: SessionId,
    /// Start of the turn within the session, in milliseconds.
    pub start_ms: u64,
    /// End of the turn within the session, in milliseconds.
    pub end_ms: u64,
    /// The words in their written form, as the record has them.
    pub text: String,
    /// The words as the recognizer gave them.
    pub raw: String,
    /// The raw words one by one.
    pub words: Vec<SpokenWord>,
}

/// One word of a transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpokenWord {
    /// The word with the punctuation that follows it.
    pub text: String,
    /// Start within the session, in milliseconds.
    pub start_ms: u64,
    /// End within the session, in milliseconds.
    pub end_ms: u64,
    /// How probable the recognizer held it, from 0 to 1.
    pub probability: f32,
}

/// Names a speaker the way a person does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpeakerRef {
    /// By id.
    Id(SpeakerId),
    /// By the name somebody gave.
    Name(String),
}

/// What the daemon says. Append-only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Response {
    /// To [`Request::Hello`].
    Hello {
        /// Name and version of the program, for people.
        program: String,
    },
    /// To [`Request::Status`].
    Status(Status),
    /// To [`Request::Ask`].
    Answer(Box<Answer>),
    /// To [`Request::ListRecords`].
    Records(Vec<Record>),
    /// To [`Request::ShowRecord`].
    Record(Box<Record>),
    /// To [`Request::Forget`].
    Forgotten(Forgotten),
    /// To [`Request::ListSpeakers`].
    Speakers(Vec<Speaker>),
    /// To [`Request::NameSpeaker`].
    Speaker(Speaker),
    /// To [`Request::ListSessions`].
    Sessions(Vec<Session>),
    /// To [`Request::Subscribe`]: records follow.
    Subscribed,
    /// One record that has just become durable.
    Acknowledged(Box<Record>),
    /// The request was not done.
    Error {
        /// What kind of failure, for programs.
        code: ErrorCode,
        /// What was wrong and what to do, for people.
        message: String,
    },
    /// To [`Request::ListIdentities`].
    Identities(Vec<Identity>),
    /// To [`Request::ListMerges`], in the order in which they were made.
    Merges(Vec<Merge>),
    /// To [`Request::MergeSpeakers`] and [`Request::SetConsent`].
    Identity(Identity),
    /// To [`Request::UndoMerge`].
    Merge(Merge),
    /// To [`Request::Enrol`].
    Enrolled(Enrolled),
    /// To [`Request::EstimateVoices`], in the order of the identities' ids.
    VoiceEstimates(Vec<VoiceEstimate>),
    /// Words while they are spoken.
    Partial(Partial),
    /// What was said in a turn that is over.
    Transcript(Box<Transcript>),
    /// To [`Request::Switch`] and [`Request::Compact`].
    Done,
}

/// A voice that was learned on purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Enrolled {
    /// Whose it is.
    pub identity: Identity,
    /// Speech that was good enough to learn from, in milliseconds.
    pub speech_ms: u32,
    /// How good the enrolment is, from 0 to 1: how likely its least typical piece
    /// is of the same voice, scaled down where there is little speech.
    pub quality: f32,
    /// What was wrong with the recordings, piece by piece; empty for good ones.
    pub remarks: Vec<String>,
}

/// How well one person's voice is told from the others, judged by the turns that
/// are kept of each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct VoiceEstimate {
    /// Who.
    pub identity: SpeakerId,
    /// Turns and pieces of an enrolment that this rests on.
    pub turns: u32,
    /// Share of them that would not have been recognised; `None` for a single one.
    pub false_reject: Option<f32>,
    /// Share of everybody else's turns that are close enough to be taken for this
    /// person; `None` where nobody else is known.
    pub false_accept: Option<f32>,
    /// The person whose voice is most alike.
    pub nearest: Option<NearestVoice>,
}

/// Another person's voice, and how alike the two are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NearestVoice {
    /// Whose.
    pub identity: SpeakerId,
    /// Mean cosine similarity of a turn of one to a turn of the other.
    pub similarity: f32,
    /// How likely such a pair of turns is of one voice, from 0 to 1.
    pub same: f32,
}

/// Kinds of failure. Append-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorCode {
    /// The request makes no sense; sending it again will not help.
    BadRequest,
    /// What the request names does not exist.
    NotFound,
    /// The daemon cannot do it now, for example because the disk is full.
    Unavailable,
    /// The daemon failed.
    Internal,
}

/// How the daemon is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Since it started, in milliseconds.
    pub uptime_ms: u64,
    /// Whether sound is being captured now.
    pub listening: bool,
    /// Whether records can be written now.
    pub writable: bool,
    /// Sessions kept.
    pub sessions: u64,
    /// Records kept.
    pub records: u64,
    /// Speakers kept.
    pub speakers: u64,
    /// Size of the store, in bytes.
    pub store_bytes: u64,
}
