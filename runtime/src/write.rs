//! The other way in: turns that somebody else has transcribed (PERSIST section
//! 2.1 and appendix C.1).
//!
//! They end in the same records as what the hub has heard itself, and by the same
//! code.

use earwitness_api::{
    message::{MAX_QUESTION_SAMPLES, MAX_WRITE_TEXT, Write},
    types::{Record, Session},
};

use crate::{
    attribute::{self, Quality},
    capture::samples_to_ms,
    desk::{FindError, find, floats},
    hub::{Hub, HubError},
    remember::{By, Turn},
};

/// Why a turn from elsewhere is not remembered.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// There is nothing to remember, or too much.
    #[error("a turn has 1 to {MAX_WRITE_TEXT} bytes of text; send it in parts")]
    Text,
    /// It ends before it begins.
    #[error("the turn ends at {end_ms} ms, before it begins at {start_ms} ms")]
    Span {
        /// Its start in the session.
        start_ms: u64,
        /// Its end.
        end_ms: u64,
    },
    /// Too much sound for one turn.
    #[error("the sound of a turn lasts at most {} s; send it in parts", MAX_QUESTION_SAMPLES / 16_000)]
    Audio,
    /// Nobody is called that.
    #[error(transparent)]
    Speaker(#[from] FindError),
    /// The hub failed.
    #[error(transparent)]
    Hub(#[from] HubError),
}

impl Hub {
    /// Remembers a turn from elsewhere.
    pub fn write(&self, write: &Write) -> Result<Record, WriteError> {
        let text = write.text.trim();
        if text.is_empty() || text.len() > MAX_WRITE_TEXT {
            return Err(WriteError::Text);
        }
        let (start_ms, end_ms) = (write.start_ms, write.end_ms);
        if end_ms < start_ms {
            return Err(WriteError::Span { start_ms, end_ms });
        }
        if write.audio.len() > MAX_QUESTION_SAMPLES {
            return Err(WriteError::Audio);
        }
        let speaker = match &write.speaker {
            Some(who) => Some(find(&self.store.speakers().map_err(HubError::from)?, who)?),
            None => None,
        };
        let sound = floats(&write.audio);
        let voiceprint = match sound.as_slice() {
            [] => None,
            sound => Some(self.voiceprint(sound).map_err(HubError::from)?),
        };
        let by = match (speaker, &voiceprint) {
            (Some(speaker), _) => By::Speaker(speaker),
            (None, Some(voiceprint)) => By::Voice(attribute::Turn {
                voiceprint,
                quality: Quality::of(&sound, samples_to_ms(sound.len() as u64) as u32),
                neighbour: None,
            }),
            (None, None) => By::Nobody,
        };
        let mut session = self.session_of(write)?;
        let turn = Turn {
            start_ms,
            end_ms,
            text,
            by,
        };
        let (record, _) = self.remember(&mut session, &turn)?;
        Ok(record)
    }

    fn session_of(&self, write: &Write) -> Result<Session, HubError> {
        if let Some(session) = self.store.session_by_name(&write.session)? {
            return Ok(session);
        }
        let began = write.unix_ms.saturating_sub_unsigned(write.start_ms);
        Ok(self.store.begin_session(&write.session, began)?)
    }
}
