//! Enrolment: a named voice that was lent on purpose, without any record.

use crate::error::StorageError;
use crate::identity::{Identities, describe};
use crate::key::Block;
use crate::limits::Limits;
use crate::schema::{
    ENROLMENTS, SPEAKERS, SpeakerRow, VOICEPRINTS_PER_SPEAKER, next_id, put, put_speaker, row,
};
use crate::speakers::{NameError, checked_name};
use crate::store::Store;
use crate::transaction::Change;
use crate::voiceprint::{VoiceprintError, check_dim, check_finite};
use earwitness_api::types::{Identity, SpeakerId};

/// A voice to be enrolled.
#[derive(Clone, Debug, PartialEq)]
pub struct Enrolment {
    /// The person's name; a person of that name who is known is extended.
    pub name: String,
    /// The voiceprints. Of one speaker the newest [`VOICEPRINTS_PER_SPEAKER`] are
    /// kept, quantised to eight bits.
    pub embeddings: Vec<Vec<f32>>,
    /// The centroid of the voice from now on.
    pub centroid: Vec<f32>,
    /// Speech in the embeddings, in milliseconds.
    pub speech_ms: u64,
}

/// Why a voice was not enrolled.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// The name cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Several people have that name.
    #[error("several speakers are named {0:?}: rename or merge them first")]
    Ambiguous(String),
    /// There are as many voices as the limits allow.
    #[error("there is no room for another voice: forget somebody, or raise the limit")]
    Full,
    /// There is no voiceprint.
    #[error("there is no voiceprint to enrol: record some speech")]
    Nothing,
    /// A voiceprint does not fit.
    #[error(transparent)]
    Voiceprint(#[from] VoiceprintError),
    /// The file failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Store {
    /// Makes a named speaker of a voice, or adds the voice to the speaker of that
    /// name. It stays, without any record, until it is forgotten.
    pub fn enrol(&self, enrolment: &Enrolment) -> Result<Identity, EnrolError> {
        let name = checked_name(&enrolment.name)?;
        enrolment.check()?;
        let _writing = self.begin_writing();
        self.write(|change| enrol(change, name, enrolment, &self.limits))
    }
}

impl Enrolment {
    fn check(&self) -> Result<(), EnrolError> {
        if self.embeddings.is_empty() || self.centroid.is_empty() {
            return Err(EnrolError::Nothing);
        }
        check_finite("the voice's centroid", &self.centroid)?;
        for embedding in &self.embeddings {
            let (expected, found) = (self.centroid.len(), embedding.len());
            if expected != found {
                return Err(VoiceprintError::Dim { expected, found }.into());
            }
            check_finite("a voiceprint of the enrolment", embedding)?;
        }
        Ok(())
    }
}

fn enrol(
    change: &Change<'_>,
    name: &str,
    enrolment: &Enrolment,
    limits: &Limits,
) -> Result<Identity, EnrolError> {
    check_dim(change, enrolment.centroid.len())?;
    let mut speaker = match named(change, name)? {
        Some(row) => row,
        None if !limits.has_room_for_voice(change)? => return Err(EnrolError::Full),
        None => {
            let id = next_id(change, |last| &mut last.speaker)?;
            SpeakerRow::new(SpeakerId(id))
        }
    };
    let id = speaker.speaker.id;
    speaker.speaker.name = Some(name.to_owned());
    speaker.centroid.clone_from(&enrolment.centroid);
    speaker.speech_ms = speaker.speech_ms.saturating_add(enrolment.speech_ms);
    speaker.enrolled = true;
    put_speaker(change, &speaker)?;
    keep_voiceprints(change, id, &enrolment.embeddings)?;
    let identities = Identities::read(change)?;
    Ok(describe(
        identities.aliases.root(id),
        identities.members(id),
    ))
}

/// The voice that stands for the one identity of that name.
fn named(change: &Change<'_>, name: &str) -> Result<Option<SpeakerRow>, EnrolError> {
    let identities = Identities::read(change)?;
    let mut found = identities
        .describe()
        .filter(|known| known.speaker.name.as_deref() == Some(name));
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => Err(EnrolError::Ambiguous(name.to_owned())),
        (Some(known), None) => Ok(row(change, SPEAKERS, known.speaker.id.0)?),
        (None, _) => Ok(None),
    }
}

fn keep_voiceprints(
    change: &Change<'_>,
    speaker: SpeakerId,
    embeddings: &[Vec<f32>],
) -> Result<(), StorageError> {
    let id = speaker.0;
    let mut kept: Vec<Block> = row(change, ENROLMENTS, id)?.unwrap_or_default();
    kept.extend(
        embeddings
            .iter()
            .map(|embedding| Block::quantize(embedding)),
    );
    let beyond = kept.len().saturating_sub(VOICEPRINTS_PER_SPEAKER);
    kept.drain(..beyond);
    put(change, ENROLMENTS, id, id, &kept)
}
