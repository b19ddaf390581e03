//! From a turn to a record: attributed, keyed, and made durable.

use std::time::{Duration, Instant};

use earwitness_api::types::{
    Consent, Record, RecordFilter, RecordId, Session, SessionId, SpeakerId,
};
use earwitness_store::{AppendError, Block, Key, NewRecord, Speaking, StorageError, Voice};

use crate::{
    attribute::{self, attribute},
    hub::{Hub, HubError, lock},
    recall::{Said, document, said},
};

/// A turn whose words are known.
pub(crate) struct Turn<'t> {
    /// Start within the session, in milliseconds.
    pub(crate) start_ms: u64,
    /// End within the session, in milliseconds.
    pub(crate) end_ms: u64,
    /// The words.
    pub(crate) text: &'t str,
    /// Who spoke.
    pub(crate) by: By<'t>,
}

/// A record that was written, and the embedding of its document.
pub(crate) struct Written {
    record: RecordId,
    embedding: Vec<f32>,
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
    ///
    /// Also says how long the embedding of the text took, for the account.
    pub(crate) fn remember(
        &self,
        session: &mut Session,
        turn: &Turn<'_>,
    ) -> Result<(Record, Duration), HubError> {
        let store = &self.store;
        let mut embedding_took = Duration::ZERO;
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
            key: Key::default(),
        };
        loop {
            new.speaker = self.speaking(turn.by)?;
            let started = Instant::now();
            let embedding = self.embed_document(&new)?;
            embedding_took += started.elapsed();
            new.key = self.key(&new, &embedding, turn.by)?;
            match store.append(new.clone()) {
                Err(AppendError::NoSuchSpeaker(_)) if matches!(turn.by, By::Voice(_)) => {}
                Err(AppendError::NoSuchSession(_)) => {
                    *session = store.begin_session(&session.name, session.started_unix_ms)?;
                    new.session = session.id;
                }
                outcome => {
                    let record = outcome?;
                    *lock(&self.written) = Some(Written {
                        record: record.id,
                        embedding,
                    });
                    return Ok((record, embedding_took));
                }
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

    fn key(&self, new: &NewRecord, embedding: &[f32], by: By<'_>) -> Result<Key, HubError> {
        let before = self.embedding_before(new.session)?;
        let said = Said {
            text: &new.text,
            own: embedding,
            before: before.as_deref(),
            session: new.session.0.saturating_sub(1).into(),
            start_ms: new.start_ms,
        };
        Ok(self.retriever.key(&said, self.voice_block(by)?))
    }

    fn embed_document(&self, new: &NewRecord) -> Result<Vec<f32>, HubError> {
        let speaker = match new.speaker {
            Speaking::Known { id, .. } => Some(id),
            _ => None,
        };
        let voices = self.store.voices()?;
        let known = voices.iter().find(|voice| Some(voice.speaker) == speaker);
        let name = self.name_of(known.map_or(speaker, |voice| Some(voice.identity)))?;
        let text = said(&new.text, &new.attachments);
        Ok(self.embed(&document(name.as_deref(), new.unix_ms, &text))?)
    }

    /// The embedding of the record before the next one, where it is of that session.
    fn embedding_before(&self, session: SessionId) -> Result<Option<Vec<f32>>, HubError> {
        let newest = self.store.records(RecordFilter {
            newest_first: true,
            limit: Some(1),
            ..RecordFilter::default()
        })?;
        let Some(before) = newest.first().filter(|record| record.session == session) else {
            return Ok(None);
        };
        if let Some(written) = &*lock(&self.written)
            && written.record == before.id
        {
            return Ok(Some(written.embedding.clone()));
        }
        let name = self.name_of(before.speaker.speaker)?;
        let text = said(&before.text, &before.attachments);
        let text = document(name.as_deref(), before.unix_ms, &text);
        Ok(Some(self.embed(&text)?))
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
