//! From a turn to a record: attributed, keyed, and made durable.

use earwitness_api::types::{Consent, Record, Session, SpeakerId};
use earwitness_store::{AppendError, Block, Key, NewRecord, Speaking, StorageError, Voice};

use crate::{
    attribute::{self, attribute},
    hub::{Hub, HubError},
};

/// A turn whose words are known.
pub(crate) struct Turn<'t> {
    /// Start within the session, in milliseconds.
    pub(crate) start_ms: u64,
    /// End within the session, in milliseconds.
    pub(crate) end_ms: u64,
    /// The words.
    pub(crate) text: &'t str,
    /// Their embedding.
    pub(crate) semantic: &'t [f32],
    /// Who spoke.
    pub(crate) by: By<'t>,
}

/// What is known of who spoke.
#[derive(Clone, Copy)]
pub(crate) enum By<'t> {
    /// How they sound.
    Voice(attribute::Turn<'t>),
    /// Who they are.
    Speaker(SpeakerId),
    /// Nothing.
    Nobody,
}

impl Hub {
    /// Attributes a turn and makes it durable. Somebody may ask to forget at any
    /// moment: the speaker that the turn was just given to, or the very session
    /// that is going on, which then begins anew with this turn.
    pub(crate) fn remember(
        &self,
        session: &mut Session,
        turn: &Turn<'_>,
    ) -> Result<Record, HubError> {
        let store = &self.store;
        let mut new = NewRecord {
            session: session.id,
            start_ms: turn.start_ms,
            end_ms: turn.end_ms,
            unix_ms: session
                .started_unix_ms
                .saturating_add_unsigned(turn.start_ms),
            speaker: Speaking::Unknown { score: 0.0 },
            addressees: Vec::new(),
            text: turn.text.to_owned(),
            attachments: Vec::new(),
            key: Key {
                semantic: Block::quantize(turn.semantic),
                speaker: self.voice_block(turn.by)?,
                temporal: Block::default(),
            },
        };
        loop {
            new.speaker = self.speaking(turn.by)?;
            match store.append(new.clone()) {
                Err(AppendError::NoSuchSpeaker(_)) if matches!(turn.by, By::Voice(_)) => {}
                Err(AppendError::NoSuchSession(_)) => {
                    *session = store.begin_session(&session.name, session.started_unix_ms)?;
                    new.session = session.id;
                }
                outcome => return Ok(outcome?),
            }
        }
    }

    /// Whether whoever spoke refused to be recorded.
    pub(crate) fn is_refused(&self, by: By<'_>) -> Result<bool, StorageError> {
        let Speaking::Known { id, .. } = self.speaking(by)? else {
            return Ok(false);
        };
        let voices = self.store.voices()?;
        let theirs = voices.iter().find(|voice| voice.speaker == id);
        Ok(theirs.is_some_and(|voice| voice.consent == Consent::Refused))
    }

    /// Whether anybody refused to be recorded.
    pub(crate) fn somebody_refused(&self) -> Result<bool, StorageError> {
        let voices = self.store.voices()?;
        Ok(voices.iter().any(|voice| voice.consent == Consent::Refused))
    }

    fn speaking(&self, by: By<'_>) -> Result<Speaking, StorageError> {
        Ok(match by {
            By::Voice(turn) => attribute(&self.store.voices()?, &turn, &self.attribute),
            By::Speaker(id) => Speaking::Known {
                id,
                score: 1.0,
                learned: None,
            },
            By::Nobody => Speaking::Unknown { score: 0.0 },
        })
    }

    /// The speaker block of a turn's key: its own voice, or that of whoever spoke.
    fn voice_block(&self, by: By<'_>) -> Result<Block, StorageError> {
        let id = match by {
            By::Voice(turn) => return Ok(Block::quantize(turn.voiceprint)),
            By::Speaker(id) => Some(id),
            By::Nobody => None,
        };
        let voices = self.store.voices()?;
        let theirs = voices
            .iter()
            .find(|voice: &&Voice| Some(voice.identity) == id);
        Ok(match theirs {
            Some(voice) => Block::quantize(&voice.centroid),
            None => Block::unknown(self.voiceprint_dim()),
        })
    }
}
