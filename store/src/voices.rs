//! Voices as the tracker and reconciliation see them.

use crate::error::StorageError;
use crate::identity::{Aliases, Identities};
use crate::key::Block;
use crate::schema::{ENROLMENTS, VOICEPRINTS_PER_SPEAKER, decode};
use crate::store::Store;
use crate::transaction::{Snapshot, Tables};
use crate::turn::{decode_key, decode_said, each_turn};
use earwitness_api::types::{Consent, RecordId, SessionId, SpeakerId};
use redb::ReadableTable;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A voice as it was last learned. A merge leaves it as it is, so that each
/// facet of a person stays there to be recognised by.
#[derive(Clone, Debug, PartialEq)]
pub struct Voice {
    /// Whose: the speaker that a turn in this voice is written for.
    pub speaker: SpeakerId,
    /// The identity that the speaker belongs to.
    pub identity: SpeakerId,
    /// The running centroid of its embeddings.
    pub centroid: Vec<f32>,
    /// Speech it was learned from, in milliseconds: the weight of the centroid in
    /// a mean weighted by duration (PERSIST appendix C.2).
    pub speech_ms: u64,
    /// Turns it was learned from.
    pub turns: u32,
    /// Whether somebody lent it on purpose.
    pub enrolled: bool,
    /// What its person agreed to.
    pub consent: Consent,
}

/// The embedding of one turn, or of one piece of an enrolment, as it was
/// quantised to eight bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Voiceprint {
    /// Whose it was taken for when it was heard.
    pub speaker: SpeakerId,
    /// The identity that the speaker belongs to now.
    pub identity: SpeakerId,
    /// The turn and its session; `None` for an enrolment.
    pub turn: Option<(RecordId, SessionId)>,
    /// The embedding.
    pub embedding: Vec<f32>,
}

/// The voices as they were last read: every turn is compared with all of them, and
/// few turns change them. They are bounded as the speakers are.
#[derive(Debug, Default)]
pub(crate) struct VoiceCache(Mutex<Option<Arc<Vec<Voice>>>>);

impl VoiceCache {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<Vec<Voice>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called after every commit. Whoever is reading holds the lock, so
    /// nothing older than the commit comes in afterwards.
    pub fn forget(&self) {
        *self.lock() = None;
    }
}

impl Store {
    /// All voices, in the order of their speakers' ids.
    pub fn voices(&self) -> Result<Arc<Vec<Voice>>, StorageError> {
        self.check_on()?;
        let mut known = self.voices.lock();
        if let Some(voices) = &*known {
            return Ok(Arc::clone(voices));
        }
        if let Ok(voices) = self.read_committed(read_voices) {
            let voices = Arc::new(voices);
            *known = Some(Arc::clone(&voices));
            return Ok(voices);
        }
        // Recovering takes the lock of writers, which goes before this one.
        drop(known);
        self.read(read_voices).map(Arc::new)
    }

    /// What voices can be compared by: the embeddings of turns that a speaker's
    /// voice learned from and those of enrolments, grouped by speaker, oldest
    /// first. Of each speaker, the newest [`VOICEPRINTS_PER_SPEAKER`] turns.
    ///
    /// Costs a pass over all records.
    pub fn voiceprints(&self) -> Result<Vec<Voiceprint>, StorageError> {
        self.read(|snapshot| {
            let aliases = Aliases::read(snapshot)?;
            let mut all = enrolled(snapshot, &aliases)?;
            for turns in taught(snapshot, &aliases)?.into_values() {
                all.extend(turns.into_iter().rev());
            }
            all.sort_by_key(|voiceprint| voiceprint.speaker);
            Ok(all)
        })
    }
}

fn read_voices(snapshot: &Snapshot) -> Result<Vec<Voice>, StorageError> {
    let identities = Identities::read(snapshot)?;
    let consents = identities.consents();
    let voices = identities.voices().into_iter();
    let voices = voices.map(|(identity, row)| Voice {
        speaker: row.speaker.id,
        identity,
        centroid: row.centroid,
        speech_ms: row.speech_ms,
        turns: row.turns,
        enrolled: row.enrolled,
        consent: consents.get(&identity).copied().unwrap_or_default(),
    });
    Ok(voices.collect())
}

fn enrolled(snapshot: &Snapshot, aliases: &Aliases) -> Result<Vec<Voiceprint>, StorageError> {
    let mut voiceprints = Vec::new();
    for row in snapshot.table(ENROLMENTS)?.iter()? {
        let (id, bytes) = row?;
        let speaker = SpeakerId(id.value());
        for block in decode::<_, Vec<Block>>(snapshot, ENROLMENTS, speaker.0, bytes.value())? {
            voiceprints.push(Voiceprint {
                speaker,
                identity: aliases.root(speaker),
                turn: None,
                embedding: block.dequantize(),
            });
        }
    }
    Ok(voiceprints)
}

/// By speaker, newest first.
fn taught(
    snapshot: &Snapshot,
    aliases: &Aliases,
) -> Result<BTreeMap<u32, Vec<Voiceprint>>, StorageError> {
    let mut by_speaker: BTreeMap<u32, Vec<Voiceprint>> = BTreeMap::new();
    each_turn(snapshot, true, .., |_, bytes, layout| {
        let said = decode_said(bytes, layout)?;
        if let Some(speaker) = said.record.speaker.speaker.filter(|_| said.taught) {
            let kept = by_speaker.entry(speaker.0).or_default();
            if kept.len() < VOICEPRINTS_PER_SPEAKER {
                kept.push(Voiceprint {
                    speaker,
                    identity: aliases.root(speaker),
                    turn: Some((said.record.id, said.record.session)),
                    embedding: decode_key(bytes, layout)?.speaker.dequantize(),
                });
            }
        }
        Ok(true)
    })?;
    Ok(by_speaker)
}

/// The direction in which some voiceprints point together, of unit length; empty
/// where none of them is known or they point nowhere together.
pub(crate) fn mean_voice<'b>(voiceprints: impl Iterator<Item = &'b Block>) -> Vec<f32> {
    let mut mean: Vec<f32> = Vec::new();
    for embedding in voiceprints.map(Block::dequantize) {
        mean.resize(embedding.len(), 0.0);
        if let Some(unit) = unit(&embedding) {
            mean.iter_mut().zip(unit).for_each(|(sum, x)| *sum += x);
        }
    }
    unit(&mean).unwrap_or_default()
}

fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    norm.is_normal()
        .then(|| vector.iter().map(|x| x / norm).collect())
}
