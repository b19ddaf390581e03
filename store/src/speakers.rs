//! Speakers: their names, and what records count for them.

use crate::error::StorageError;
use crate::identity::Identities;
use crate::schema::{SPEAKERS, SpeakerRow, put_speaker, row};
use crate::store::Store;
use crate::transaction::Change;
use earwitness_api::types::{Consent, Record, Speaker, SpeakerId};

/// The longest name of a speaker or a session, in bytes of UTF-8.
pub const MAX_NAME_BYTES: usize = 128;

/// Why a speaker was not named.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// The speaker does not exist.
    #[error("there is no speaker {}: `earwitness speakers list` shows them", .0.0)]
    NoSuchSpeaker(SpeakerId),
    /// The name is blank, too long, a number, or holds control characters.
    #[error(
        "a name has 1 to {MAX_NAME_BYTES} bytes that can be shown, and is no number: choose another"
    )]
    Name,
    /// The file failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Store {
    /// All speakers, in the order of their ids: one for each identity, with the
    /// records of all its voices.
    pub fn speakers(&self) -> Result<Vec<Speaker>, StorageError> {
        self.read(|snapshot| {
            let identities = Identities::read(snapshot)?;
            Ok(identities.describe().map(|one| one.speaker).collect())
        })
    }

    /// Gives the identity of a voice a name, trimmed; an earlier name is
    /// replaced. Several may share a name: one person can have been heard as two
    /// voices.
    pub fn name_speaker(&self, id: SpeakerId, name: &str) -> Result<Speaker, NameError> {
        let name = checked_name(name)?;
        let _writing = self.begin_writing();
        self.write(|change| rename(change, id, name))
    }
}

fn rename(change: &Change<'_>, id: SpeakerId, name: &str) -> Result<Speaker, NameError> {
    let identities = Identities::read(change)?;
    if identities.members(id).is_empty() {
        return Err(NameError::NoSuchSpeaker(id));
    }
    let root = identities.aliases.root(id);
    let found: Option<SpeakerRow> = row(change, SPEAKERS, root.0)?;
    let mut found = found.ok_or(NameError::NoSuchSpeaker(root))?;
    found.speaker.name = Some(name.to_owned());
    put_speaker(change, &found)?;
    let described = Identities::read(change)?
        .describe()
        .find(|known| known.speaker.id == root);
    Ok(described.map_or(found.speaker, |known| known.speaker))
}

/// A speaker's name without the blanks around it.
pub(crate) fn checked_name(name: &str) -> Result<&str, NameError> {
    let name = name.trim();
    // A number would be taken for an id.
    if !is_name(name) || name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NameError::Name);
    }
    Ok(name)
}

/// Whether a speaker or a session can be called so: what goes to a terminal must
/// not command it.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control)
}

impl SpeakerRow {
    /// Counts one of their records.
    pub fn hear(&mut self, record: &Record) {
        let speaker = &mut self.speaker;
        if speaker.records == 0 {
            speaker.first_heard_unix_ms = record.unix_ms;
            speaker.last_heard_unix_ms = record.unix_ms;
        }
        speaker.records = speaker.records.saturating_add(1);
        speaker.first_heard_unix_ms = speaker.first_heard_unix_ms.min(record.unix_ms);
        speaker.last_heard_unix_ms = speaker.last_heard_unix_ms.max(record.unix_ms);
    }

    /// Starts counting anew.
    pub fn forget_records(&mut self) {
        self.speaker.records = 0;
        self.speaker.first_heard_unix_ms = 0;
        self.speaker.last_heard_unix_ms = 0;
    }

    /// Books a turn that the centroid was learned from.
    pub fn learn(&mut self, speech_ms: u64) {
        self.speech_ms = self.speech_ms.saturating_add(speech_ms);
        self.turns = self.turns.saturating_add(1);
    }

    /// Whether they are somebody even when none of their records is left.
    pub fn is_kept_without_records(&self) -> bool {
        self.speaker.name.is_some() || self.enrolled || self.consent != Consent::Unknown
    }
}
