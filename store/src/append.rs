//! Writing one turn: record, key, speaker and voice in one durable change.

use crate::consent::is_refused;
use crate::error::StorageError;
use crate::identity::Aliases;
use crate::key::{Block, Key, KeyError, KeyLayout};
use crate::limits::{Limits, count_refused_voice};
use crate::schema::{
    LAYOUT, Row, SESSIONS, SPEAKERS, SpeakerRow, layout, next_id, next_record_id, put_meta,
    put_speaker, row,
};
use crate::store::Store;
use crate::transaction::Change;
use crate::turn::{Said, Turn, put_turn};
use crate::voiceprint::{VoiceprintError, check_dim, check_finite};
use earwitness_api::types::{Attachment, Attribution, Record, RecordId, SessionId, SpeakerId};
use redb::{ReadableTable, Table};
use std::sync::atomic::Ordering;

/// The longest text of a record, in bytes of UTF-8.
pub const MAX_TEXT_BYTES: usize = 4096;
/// The most turns of one transaction; in a store for fewer than four times as
/// many records, a quarter of these.
pub const MAX_GROUP: usize = 1024;
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
    /// A voice not heard before. It gets its id in the same change.
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
    /// The speaker refused to be recorded.
    #[error("speaker {} refused to be recorded: drop the turn", .0.0)]
    NoConsent(SpeakerId),
    /// Something is longer than the store keeps.
    #[error("{what} is {found} long, the most is {most}: split it")]
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
        let written = self.write_turns(|change| append(change, &new, &self.limits))?;
        self.change_keys(|keys| keys.push(written.0.id, &new.key, written.1));
        Ok(written.0)
    }

    /// Writes some turns, in this order, in one change, which costs a medium
    /// little more than a single turn. All are durable when this returns `Ok`, and
    /// none was written when it does not.
    pub fn append_all(&self, group: &[NewRecord]) -> Result<Vec<Record>, AppendError> {
        let most = MAX_GROUP.min(self.limits.group());
        at_most("the group of turns", group.len(), most)?;
        group.iter().try_for_each(NewRecord::check)?;
        let _writing = self.begin_writing();
        let written = self.write_turns(|change| {
            let turns = group.iter().map(|new| append(change, new, &self.limits));
            turns.collect::<Result<Vec<_>, AppendError>>()
        })?;
        self.change_keys(|keys| {
            for (new, (record, layout)) in group.iter().zip(&written) {
                keys.push(record.id, &new.key, *layout);
            }
        });
        Ok(written.into_iter().map(|(record, _)| record).collect())
    }

    /// Makes room, then writes; all in one change.
    fn write_turns<T>(
        &self,
        work: impl FnOnce(&Change<'_>) -> Result<T, AppendError>,
    ) -> Result<T, AppendError> {
        self.check_on()?;
        // What was evicted already is cut off the file before more has to go.
        let due = self.shrink_due.load(Ordering::Relaxed);
        let crowded = !due && self.is_crowded();
        let (removal, written) = self.write(|change| {
            let written = work(change)?;
            Ok::<_, AppendError>((self.make_room(change, crowded)?, written))
        })?;
        self.change_keys(|keys| keys.remove(&removal.records));
        if due || crowded {
            // The turns are durable whether or not the file can be made smaller
            // now; the next append tries again.
            let shrunk = self.shrink(self.is_overcrowded());
            self.shrink_due.store(!shrunk, Ordering::Relaxed);
        }
        Ok(written)
    }
}

fn append(
    change: &Change<'_>,
    new: &NewRecord,
    limits: &Limits,
) -> Result<(Record, KeyLayout), AppendError> {
    check_references(change, new)?;
    let layout = fix_layout(change, &new.key)?;
    let id = next_record_id(change)?;
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
    let taught = write_speaker(change, &new.speaker, &mut record, limits)?;
    let turn = Turn {
        key: new.key.clone(),
        said: Said { record, taught },
    };
    put_turn(change, &turn)?;
    let aliases = Aliases::read(change)?;
    Ok((aliases.resolve(turn.said.record), layout))
}

/// Every key of a store has the layout of its first.
fn fix_layout(change: &Change<'_>, key: &Key) -> Result<KeyLayout, AppendError> {
    let known = layout(change)?;
    let layout = key.check(known)?;
    if known.is_none() {
        check_dim(change, usize::from(layout.speaker))?;
        put_meta(change, LAYOUT, &layout)?;
    }
    Ok(layout)
}

fn check_references(change: &Change<'_>, new: &NewRecord) -> Result<(), AppendError> {
    if !exists(&change.open(SESSIONS)?, new.session.0)? {
        return Err(AppendError::NoSuchSession(new.session));
    }
    let speakers = change.open(SPEAKERS)?;
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
    change: &Change<'_>,
    speaking: &Speaking,
    record: &mut Record,
    limits: &Limits,
) -> Result<bool, AppendError> {
    let (mut row, learned) = match speaking {
        Speaking::Unknown { .. } => return Ok(false),
        Speaking::Known { id, .. } if is_refused(change, *id)? => {
            return Err(AppendError::NoConsent(*id));
        }
        Speaking::Known { id, learned, .. } => {
            let row: Option<SpeakerRow> = row(change, SPEAKERS, id.0)?;
            let row = row.ok_or(AppendError::NoSuchSpeaker(*id))?;
            (row, learned.as_ref())
        }
        Speaking::New { .. } if !limits.has_room_for_voice(change)? => {
            count_refused_voice(change)?;
            return Ok(false);
        }
        Speaking::New { learned, .. } => {
            let id = next_id(change, |last| &mut last.speaker)?;
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
    put_speaker(change, &row)?;
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
        check_texts(&self.text, &self.addressees, &self.attachments)?;
        self.speaker.check(&self.key.speaker)
    }
}

/// Whether a record is within its bounds.
pub(crate) fn check_texts(
    text: &str,
    addressees: &[Attribution],
    attachments: &[Attachment],
) -> Result<(), AppendError> {
    at_most("the text", text.len(), MAX_TEXT_BYTES)?;
    at_most("the list of addressees", addressees.len(), MAX_ADDRESSEES)?;
    at_most(
        "the list of attachments",
        attachments.len(),
        MAX_ATTACHMENTS,
    )?;
    for Attachment { kind, caption } in attachments {
        at_most("an attachment's kind", kind.len(), MAX_CAPTION_BYTES)?;
        at_most("an attachment's caption", caption.len(), MAX_CAPTION_BYTES)?;
    }
    for addressee in addressees {
        finite("an addressee's score", addressee.score)?;
    }
    Ok(())
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

/// Whether a score is a number.
pub(crate) fn finite(what: &'static str, score: f32) -> Result<(), AppendError> {
    if score.is_finite() {
        Ok(())
    } else {
        Err(AppendError::NotFinite(what))
    }
}
