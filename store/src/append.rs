//! Writing one turn: record, key, speaker, voice and embedding in one durable
//! transaction.

use crate::error::StorageError;
use crate::key::{Key, KeyError, KeyLayout};
use crate::schema::{
    EMBEDDINGS, EMBEDDINGS_PER_SPEAKER, KEYS, LAYOUT, META, RECORDS, Row, SESSIONS, SPEAKERS,
    SpeakerRow, decode, encode, encode_key, meta, next_id, of_speaker, open, put, row,
};
use crate::store::Store;
use earwitness_api::types::{
    Attachment, Attribution, Record, RecordId, SessionId, Speaker, SpeakerId,
};
use redb::{ReadableTable, Table, WriteTransaction};

/// The longest text of a record, in bytes of UTF-8.
pub const MAX_TEXT_BYTES: usize = 4096;
/// The most addressees of a record.
pub const MAX_ADDRESSEES: usize = 32;
/// The most attachments of a record.
pub const MAX_ATTACHMENTS: usize = 16;
/// The longest kind or caption of an attachment, in bytes of UTF-8.
pub const MAX_CAPTION_BYTES: usize = 1024;
/// The most values of a voiceprint.
pub const MAX_VOICEPRINT_DIM: usize = 1024;

/// A turn to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRecord {
    /// The session it was said in.
    pub session: SessionId,
    /// Start within the session, in milliseconds.
    pub start_ms: u64,
    /// End within the session, in milliseconds; not before the start.
    pub end_ms: u64,
    /// Wall clock at the start, in milliseconds since the Unix epoch.
    pub unix_ms: i64,
    /// Who spoke, and what their voice teaches.
    pub speaker: Speaking,
    /// Who was spoken to; at most [`MAX_ADDRESSEES`].
    pub addressees: Vec<Attribution>,
    /// What was said; at most [`MAX_TEXT_BYTES`].
    pub text: String,
    /// What was shown; at most [`MAX_ATTACHMENTS`].
    pub attachments: Vec<Attachment>,
    /// Its retrieval key.
    pub key: Key,
}

/// Who spoke a turn. Scores are cosine similarities to the best stored voice.
#[derive(Clone, Debug, PartialEq)]
pub enum Speaking {
    /// Nobody that can be told; nothing is learned.
    Unknown {
        /// How well the best voice fitted.
        score: f32,
    },
    /// A known speaker.
    Known {
        /// Who.
        id: SpeakerId,
        /// How well their voice fitted.
        score: f32,
        /// What to learn; `None` when the match is too weak to learn from.
        learned: Option<Learned>,
    },
    /// A voice not heard before. It gets its id in the same transaction.
    New {
        /// How well the best voice fitted.
        score: f32,
        /// The voice.
        learned: Learned,
    },
}

/// What a turn teaches about a voice. Both have the dimension of every other
/// voiceprint in the store, at most [`MAX_VOICEPRINT_DIM`].
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// The speaker's centroid from now on.
    pub centroid: Vec<f32>,
    /// The embedding of this turn; the newest
    /// [`EMBEDDINGS_PER_SPEAKER`] of a speaker
    /// are kept.
    pub embedding: Vec<f32>,
}

/// Why a turn was not written. Nothing of it was.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The session does not exist.
    #[error("there is no session {}: begin it first", .0.0)]
    NoSuchSession(SessionId),
    /// The speaker or an addressee does not exist.
    #[error("there is no speaker {}: they may have been forgotten; attribute the turn again", .0.0)]
    NoSuchSpeaker(SpeakerId),
    /// Something is longer than the store keeps.
    #[error("{what} is {found} long, the most is {most}: split the turn")]
    TooLong {
        /// What.
        what: &'static str,
        /// How long it is.
        found: usize,
        /// How long it may be.
        most: usize,
    },
    /// The turn ends before it starts.
    #[error("the turn ends at {end_ms} ms, before its start at {start_ms} ms: swap the two")]
    Backwards {
        /// Start.
        start_ms: u64,
        /// End.
        end_ms: u64,
    },
    /// A score or a voiceprint holds NaN or infinity.
    #[error("{0} is not finite: drop the turn's voiceprint and write it as unknown")]
    NotFinite(&'static str),
    /// A voiceprint has another dimension than the store's.
    #[error(
        "a voiceprint of {found} values does not fit voices of {expected}: use the voiceprint \
         pack that this memory was written with"
    )]
    VoiceprintDim {
        /// Values of the voiceprints in the store, or of the turn's other one.
        expected: usize,
        /// Values of this one.
        found: usize,
    },
    /// The key does not fit.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The file failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Store {
    /// Writes one turn. It is durable when this returns.
    pub fn append(&self, new: NewRecord) -> Result<Record, AppendError> {
        new.check()?;
        let _writing = self.begin_writing();
        let (record, layout) = self.write(|transaction| append(transaction, &new))?;
        self.change_keys(|keys| keys.push(record.id, &new.key, layout));
        Ok(record)
    }
}

fn append(
    transaction: &WriteTransaction,
    new: &NewRecord,
) -> Result<(Record, KeyLayout), AppendError> {
    check_references(transaction, new)?;
    let known = known_layout(transaction)?;
    let layout = new.key.check(known)?;
    if known.is_none() {
        fix_layout(transaction, layout)?;
    }
    let id = next_id(transaction, |last| &mut last.record, 1)?;
    let record = Record {
        id: RecordId(id),
        session: new.session,
        start_ms: new.start_ms,
        end_ms: new.end_ms,
        unix_ms: new.unix_ms,
        speaker: write_speaker(transaction, new, id)?,
        addressees: new.addressees.clone(),
        text: new.text.clone(),
        attachments: new.attachments.clone(),
    };
    put(&mut open(transaction, RECORDS)?, id, &record)?;
    write_key(transaction, id, &new.key)?;
    Ok((record, layout))
}

fn known_layout(transaction: &WriteTransaction) -> Result<Option<KeyLayout>, StorageError> {
    meta(&open(transaction, META)?, LAYOUT)
}

fn fix_layout(transaction: &WriteTransaction, layout: KeyLayout) -> Result<(), StorageError> {
    open(transaction, META)?.insert(LAYOUT, encode(&layout)?.as_slice())?;
    Ok(())
}

fn write_key(transaction: &WriteTransaction, id: u64, key: &Key) -> Result<(), StorageError> {
    open(transaction, KEYS)?.insert(id, encode_key(key).as_slice())?;
    Ok(())
}

fn check_references(transaction: &WriteTransaction, new: &NewRecord) -> Result<(), AppendError> {
    if !exists(&open(transaction, SESSIONS)?, new.session.0)? {
        return Err(AppendError::NoSuchSession(new.session));
    }
    let speakers = open(transaction, SPEAKERS)?;
    for id in new.addressees.iter().filter_map(|to| to.speaker) {
        if !exists(&speakers, id.0)? {
            return Err(AppendError::NoSuchSpeaker(id));
        }
    }
    Ok(())
}

fn exists(table: &Table<u32, Row>, id: u32) -> Result<bool, StorageError> {
    Ok(table.get(id)?.is_some())
}

/// Updates or makes the speaker's row and returns the attribution.
fn write_speaker(
    transaction: &WriteTransaction,
    new: &NewRecord,
    record: u64,
) -> Result<Attribution, AppendError> {
    let (mut row, score, learned) = match &new.speaker {
        Speaking::Unknown { score } => {
            return Ok(Attribution {
                speaker: None,
                score: *score,
            });
        }
        Speaking::Known { id, score, learned } => {
            let row: Option<SpeakerRow> = row(&open(transaction, SPEAKERS)?, id.0)?;
            let row = row.ok_or(AppendError::NoSuchSpeaker(*id))?;
            (row, *score, learned.as_ref())
        }
        Speaking::New { score, learned } => {
            let id = next_id(transaction, |last| &mut last.speaker, 1)?;
            (new_row(SpeakerId(id)), *score, Some(learned))
        }
    };
    row.hear(new);
    if let Some(learned) = learned {
        check_dim(transaction, learned)?;
        row.learn(new, learned);
        keep_embedding(transaction, row.speaker.id, record, &learned.embedding)?;
    }
    let speaker = row.speaker.id;
    put(&mut open(transaction, SPEAKERS)?, speaker.0, &row)?;
    Ok(Attribution {
        speaker: Some(speaker),
        score,
    })
}

fn new_row(id: SpeakerId) -> SpeakerRow {
    SpeakerRow {
        speaker: Speaker {
            id,
            name: None,
            records: 0,
            first_heard_unix_ms: 0,
            last_heard_unix_ms: 0,
        },
        centroid: Vec::new(),
        learned_ms: 0,
        turns: 0,
    }
}

impl SpeakerRow {
    fn hear(&mut self, new: &NewRecord) {
        let speaker = &mut self.speaker;
        if speaker.records == 0 {
            speaker.first_heard_unix_ms = new.unix_ms;
            speaker.last_heard_unix_ms = new.unix_ms;
        }
        speaker.records += 1;
        speaker.first_heard_unix_ms = speaker.first_heard_unix_ms.min(new.unix_ms);
        speaker.last_heard_unix_ms = speaker.last_heard_unix_ms.max(new.unix_ms);
    }

    fn learn(&mut self, new: &NewRecord, learned: &Learned) {
        self.centroid.clone_from(&learned.centroid);
        self.learned_ms += new.end_ms - new.start_ms;
        self.turns += 1;
    }
}

/// Every voiceprint of a store has the dimension of its first.
fn check_dim(transaction: &WriteTransaction, learned: &Learned) -> Result<(), AppendError> {
    let found = learned.centroid.len();
    let expected = match first_speaker(transaction)? {
        Some(row) => row.centroid.len(),
        None => found,
    };
    if found != expected {
        return Err(AppendError::VoiceprintDim { expected, found });
    }
    Ok(())
}

fn first_speaker(transaction: &WriteTransaction) -> Result<Option<SpeakerRow>, StorageError> {
    let speakers = open(transaction, SPEAKERS)?;
    let first = speakers.first()?;
    first.map(|(_, bytes)| decode(bytes.value())).transpose()
}

/// Keeps the embedding of one turn and lets go of the speaker's oldest.
fn keep_embedding(
    transaction: &WriteTransaction,
    speaker: SpeakerId,
    record: u64,
    embedding: &Vec<f32>,
) -> Result<(), StorageError> {
    let mut table = open(transaction, EMBEDDINGS)?;
    put(&mut table, (speaker.0, record), embedding)?;
    let oldest = {
        let mut own = table.range(of_speaker(speaker))?;
        let first = own.next().transpose()?.map(|(key, _)| key.value());
        first.filter(|_| own.count() >= EMBEDDINGS_PER_SPEAKER)
    };
    if let Some(oldest) = oldest {
        table.remove(oldest)?;
    }
    Ok(())
}

impl NewRecord {
    /// Everything that can be said without looking into the store.
    fn check(&self) -> Result<(), AppendError> {
        if self.end_ms < self.start_ms {
            return Err(AppendError::Backwards {
                start_ms: self.start_ms,
                end_ms: self.end_ms,
            });
        }
        at_most("the text", self.text.len(), MAX_TEXT_BYTES)?;
        at_most(
            "the list of addressees",
            self.addressees.len(),
            MAX_ADDRESSEES,
        )?;
        at_most(
            "the list of attachments",
            self.attachments.len(),
            MAX_ATTACHMENTS,
        )?;
        for Attachment { kind, caption } in &self.attachments {
            at_most("an attachment's kind", kind.len(), MAX_CAPTION_BYTES)?;
            at_most("an attachment's caption", caption.len(), MAX_CAPTION_BYTES)?;
        }
        for addressee in &self.addressees {
            finite("an addressee's score", &[addressee.score])?;
        }
        self.speaker.check()
    }
}

impl Speaking {
    fn check(&self) -> Result<(), AppendError> {
        let (score, learned) = match self {
            Self::Unknown { score } => (score, None),
            Self::Known { score, learned, .. } => (score, learned.as_ref()),
            Self::New { score, learned } => (score, Some(learned)),
        };
        finite("the speaker's score", &[*score])?;
        learned.map_or(Ok(()), Learned::check)
    }
}

impl Learned {
    fn check(&self) -> Result<(), AppendError> {
        let (expected, found) = (self.centroid.len(), self.embedding.len());
        at_most("the voiceprint", expected, MAX_VOICEPRINT_DIM)?;
        if expected != found || expected == 0 {
            return Err(AppendError::VoiceprintDim { expected, found });
        }
        finite("the voice's centroid", &self.centroid)?;
        finite("the turn's embedding", &self.embedding)
    }
}

fn at_most(what: &'static str, found: usize, most: usize) -> Result<(), AppendError> {
    if found > most {
        return Err(AppendError::TooLong { what, found, most });
    }
    Ok(())
}

fn finite(what: &'static str, values: &[f32]) -> Result<(), AppendError> {
    if values.iter().all(|value| value.is_finite()) {
        Ok(())
    } else {
        Err(AppendError::NotFinite(what))
    }
}
