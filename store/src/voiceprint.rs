//! What a voiceprint must be like: finite, and of the model that all others in
//! the store come from.

use crate::error::StorageError;
use crate::schema::{SPEAKERS, SpeakerRow, VOICEPRINT_MODEL, layout, meta, put_meta, row};
use crate::store::Store;
use crate::transaction::{Change, Tables};
use redb::ReadableTable;
use serde::{Deserialize, Serialize};

/// The most values of a voiceprint.
pub const MAX_VOICEPRINT_DIM: usize = 1024;

/// The model that voiceprints come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoiceprintModel {
    /// Its name, as its pack says it.
    pub name: String,
    /// Values of its voiceprints.
    pub dim: u16,
}

/// Why a voiceprint, or a model of voiceprints, was refused.
#[derive(Debug, thiserror::Error)]
pub enum VoiceprintError {
    /// A value is NaN or infinite.
    #[error("{0} is not finite: drop the turn's voiceprint and write it as unknown")]
    NotFinite(&'static str),
    /// It has another dimension than the others.
    #[error(
        "a voiceprint of {found} values does not fit voices of {expected}: use the voiceprint \
         pack that this memory was written with"
    )]
    Dim {
        /// Values of the voiceprints in the store, or of the turn's other one.
        expected: usize,
        /// Values of this one.
        found: usize,
    },
    /// It has more values than the store keeps.
    #[error("a voiceprint has {0} values, the most is {MAX_VOICEPRINT_DIM}: use a smaller model")]
    TooLong(usize),
    /// The store's voiceprints come from another model.
    #[error(
        "the voices of this memory come from the model {:?} with {} values, not from {:?} with {}: \
         use that voiceprint pack, or begin a new memory",
        expected.name, expected.dim, found.name, found.dim
    )]
    Model {
        /// The model of the store.
        expected: VoiceprintModel,
        /// The model that was offered.
        found: VoiceprintModel,
    },
    /// The file failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Store {
    /// Says which model the voiceprints of all further turns come from. The first
    /// is remembered for good; another is refused, since its voiceprints could
    /// not be compared. Reading needs no model.
    pub fn use_voiceprint_model(&self, model: &VoiceprintModel) -> Result<(), VoiceprintError> {
        let known = self.voiceprint_model()?;
        if known.as_ref() == Some(model) {
            return Ok(());
        }
        let _writing = self.begin_writing();
        self.write(|change| bind(change, model))
    }

    /// The model that the store's voiceprints come from, where it was told.
    pub fn voiceprint_model(&self) -> Result<Option<VoiceprintModel>, StorageError> {
        self.read(|snapshot| meta(snapshot, VOICEPRINT_MODEL))
    }
}

fn bind(change: &Change<'_>, model: &VoiceprintModel) -> Result<(), VoiceprintError> {
    if let Some(expected) = meta(change, VOICEPRINT_MODEL)? {
        let found = model.clone();
        return Err(VoiceprintError::Model { expected, found });
    }
    check_dim(change, usize::from(model.dim))?;
    Ok(put_meta(change, VOICEPRINT_MODEL, model)?)
}

/// Every voiceprint of a store has the dimension of its first.
pub(crate) fn check_dim(change: &Change<'_>, found: usize) -> Result<(), VoiceprintError> {
    if found > MAX_VOICEPRINT_DIM {
        return Err(VoiceprintError::TooLong(found));
    }
    match known_dim(change)? {
        Some(expected) if expected != found => Err(VoiceprintError::Dim { expected, found }),
        _ => Ok(()),
    }
}

fn known_dim(change: &Change<'_>) -> Result<Option<usize>, StorageError> {
    let model: Option<VoiceprintModel> = meta(change, VOICEPRINT_MODEL)?;
    if let Some(model) = model {
        return Ok(Some(model.dim.into()));
    }
    if let Some(layout) = layout(change)? {
        return Ok(Some(layout.speaker.into()));
    }
    let first = change.table(SPEAKERS)?.first()?.map(|(id, _)| id.value());
    let first = first.map(|id| row::<_, SpeakerRow>(change, SPEAKERS, id));
    Ok(first.transpose()?.flatten().map(|row| row.centroid.len()))
}

pub(crate) fn check_finite(what: &'static str, values: &[f32]) -> Result<(), VoiceprintError> {
    if values.iter().all(|value| value.is_finite()) {
        Ok(())
    } else {
        Err(VoiceprintError::NotFinite(what))
    }
}
