//! Speakers: their names and their voices.

use crate::error::StorageError;
use crate::schema::{EMBEDDINGS, SPEAKERS, SpeakerRow, decode, of_speaker, open, put, row};
use crate::store::Store;
use earwitness_api::types::{RecordId, Speaker, SpeakerId};
use redb::{ReadableTable, WriteTransaction};

/// The longest name of a speaker or a session, in bytes of UTF-8.
pub const MAX_NAME_BYTES: usize = 128;

/// A speaker's voice as it was last learned.
#[derive(Clone, Debug, PartialEq)]
pub struct Voice {
    /// Whose.
    pub speaker: SpeakerId,
    /// The running centroid of their embeddings.
    pub centroid: Vec<f32>,
    /// Speech it was learned from, in seconds.
    pub seconds: f32,
    /// Turns it was learned from.
    pub turns: u32,
}

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
    /// All speakers, in the order of their ids.
    pub fn speakers(&self) -> Result<Vec<Speaker>, StorageError> {
        self.speaker_rows(|row| row.speaker)
    }

    /// All voices, in the order of their speakers' ids.
    pub fn voices(&self) -> Result<Vec<Voice>, StorageError> {
        self.speaker_rows(|row| Voice {
            speaker: row.speaker.id,
            centroid: row.centroid,
            seconds: row.learned_ms as f32 / 1000.0,
            turns: row.turns,
        })
    }

    /// The embeddings kept of one speaker's turns, oldest first.
    pub fn embeddings(
        &self,
        speaker: SpeakerId,
    ) -> Result<Vec<(RecordId, Vec<f32>)>, StorageError> {
        self.read(|transaction| {
            let table = transaction.open_table(EMBEDDINGS)?;
            let mut embeddings = Vec::new();
            for entry in table.range(of_speaker(speaker))? {
                let (key, embedding) = entry?;
                embeddings.push((RecordId(key.value().1), decode(embedding.value())?));
            }
            Ok(embeddings)
        })
    }

    /// Gives a speaker a name, trimmed; an earlier name is replaced. Several
    /// speakers may share a name: one person can have been heard as two voices.
    pub fn name_speaker(&self, id: SpeakerId, name: &str) -> Result<Speaker, NameError> {
        let name = name.trim();
        // A number would be taken for an id.
        if !is_name(name) || name.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NameError::Name);
        }
        let _writing = self.begin_writing();
        self.write(|transaction| rename(transaction, id, name))
    }

    fn speaker_rows<T>(&self, pick: impl Fn(SpeakerRow) -> T) -> Result<Vec<T>, StorageError> {
        self.read(|transaction| {
            let table = transaction.open_table(SPEAKERS)?;
            let rows = table.iter()?;
            rows.map(|row| Ok(pick(decode(row?.1.value())?))).collect()
        })
    }
}

/// Whether a speaker or a session can be called so: what goes to a terminal must
/// not command it.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control)
}

fn rename(transaction: &WriteTransaction, id: SpeakerId, name: &str) -> Result<Speaker, NameError> {
    let mut table = open(transaction, SPEAKERS)?;
    let found: Option<SpeakerRow> = row(&table, id.0)?;
    let mut found = found.ok_or(NameError::NoSuchSpeaker(id))?;
    found.speaker.name = Some(name.to_owned());
    put(&mut table, id.0, &found)?;
    Ok(found.speaker)
}
