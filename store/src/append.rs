//! Writing one turn: record, key, speaker and voice in one durable transaction.

use crate::error::StorageError;
use crate::identity::Aliases;
use crate::key::{Block, Key, KeyError, KeyLayout};
use crate::schema::{
    LAYOUT, MERGES, META, Row, SESSIONS, SPEAKERS, SpeakerRow, encode, layout, next_id,
    next_record_id, open, put, row,
};
use crate::store::Store;
use crate::turn::{Said, Turn, put_turn};
use crate::voiceprint::{VoiceprintError, check_dim, check_finite};
use earwitness_api::types::{Attachment, Attribution, Record, RecordId, SessionId, SpeakerId};
use redb::{ReadableTable, Table, WriteTransaction};

/// The longest text of a record, in bytes of UTF-8.
pub const MAX_TEXT_BYTES: usize = 4096;
/// The most addressees of a record.
pub const MAX_ADDRESSEES: usize = 32;
/// The most attachments of a record.
pub const MAX_ATTACHMENTS: usize = 16;
/// The longest kind or caption of an attachment, in bytes of UTF-8.
pub const MAX_CAPTION_BYTES: usize = 1024;

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

/// What a turn teaches about a voice; its voiceprint is the speaker block of its
/// key.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// The speaker's centroid from now on, of the dimension of the voiceprint.
    pub centroid: Vec<f32>,
    /// Speech in the turn, in milliseconds.
    pub speech_ms: u32,
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
    /// A score is NaN or infinite.
    #[error("{0} is not finite: write the turn as unknown")]
    NotFinite(&'static str),
    /// The voiceprint does not fit.
    #[error(transparent)]
    Voiceprint(#[from] VoiceprintError),
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
    let layout = fix_layout(transaction, &new.key)?;
    let id = next_record_id(transaction)?;
    let mut record = Record {
        id: RecordId(id),
        session: new.session,
        start_ms: new.start_ms,
        end_ms: new.end_ms,
        unix_ms: new.unix_ms,
        speaker: new.speaker.unattributed(),
        addressees: new.addressees.clone(),
        text: new.text.clone(),
        attachments: new.attachments.clone(),
    };
    let taught = write_speaker(transaction, &new.speaker, &mut record)?;
    let turn = Turn {
        key: new.key.clone(),
        said: Said { record, taught },
    };
    put_turn(transaction, &turn)?;
    let aliases = Aliases::read(&open(transaction, MERGES)?)?;
    Ok((aliases.resolve(turn.said.record), layout))
}

/// Every key of a store has the layout of its first.
fn fix_layout(transaction: &WriteTransaction, key: &Key) -> Result<KeyLayout, AppendError> {
    let known = layout(transaction)?;
    let layout = key.check(known)?;
    if known.is_none() {
        check_dim(transaction, usize::from(layout.speaker))?;
        open(transaction, META)?
            .insert(LAYOUT, encode(&layout)?.as_slice())
            .map_err(StorageError::from)?;
    }
    Ok(layout)
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

/// Updates or makes the speaker's row and says in the record who it is. Returns
/// whether their voice learned.
fn write_speaker(
    transaction: &WriteTransaction,
    speaking: &Speaking,
    record: &mut Record,
) -> Result<bool, AppendError> {
    let (mut row, learned) = match speaking {
        Speaking::Unknown { .. } => return Ok(false),
        Speaking::Known { id, learned, .. } => {
            let row: Option<SpeakerRow> = row(&open(transaction, SPEAKERS)?, id.0)?;
            let row = row.ok_or(AppendError::NoSuchSpeaker(*id))?;
            (row, learned.as_ref())
        }
        Speaking::New { learned, .. } => {
            let id = next_id(transaction, |last| &mut last.speaker)?;
            (SpeakerRow::new(SpeakerId(id)), Some(learned))
        }
    };
    row.hear(record);
    if let Some(learned) = learned {
        row.learn(learned.speech_ms.into());
        row.centroid.clone_from(&learned.centroid);
    }
    let speaker = row.speaker.id;
    record.speaker.speaker = Some(speaker);
    put(&mut open(transaction, SPEAKERS)?, speaker.0, &row)?;
    Ok(learned.is_some())
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
            finite("an addressee's score", addressee.score)?;
        }
        self.speaker.check(&self.key.speaker)
    }
}

impl Speaking {
    fn parts(&self) -> (f32, Option<&Learned>) {
        match self {
            Self::Unknown { score } => (*score, None),
            Self::Known { score, learned, .. } => (*score, learned.as_ref()),
            Self::New { score, learned } => (*score, Some(learned)),
        }
    }

    /// The score, for nobody yet.
    fn unattributed(&self) -> Attribution {
        Attribution {
            speaker: None,
            score: self.parts().0,
        }
    }

    fn check(&self, voiceprint: &Block) -> Result<(), AppendError> {
        let (score, learned) = self.parts();
        finite("the speaker's score", score)?;
        if let Some(Learned { centroid, .. }) = learned {
            let (expected, found) = (voiceprint.values.len(), centroid.len());
            if expected != found || found == 0 {
                return Err(VoiceprintError::Dim { expected, found }.into());
            }
            check_finite("the voice's centroid", centroid)?;
        }
        Ok(())
    }
}

fn at_most(what: &'static str, found: usize, most: usize) -> Result<(), AppendError> {
    if found > most {
        return Err(AppendError::TooLong { what, found, most });
    }
    Ok(())
}

fn finite(what: &'static str, score: f32) -> Result<(), AppendError> {
    if score.is_finite() {
        Ok(())
    } else {
        Err(AppendError::NotFinite(what))
    }
}
