//! Consent: what may be kept of whom, for how long, and whether anything is kept
//! at all.

use crate::error::StorageError;
use crate::identity::{Aliases, Identities, describe};
use crate::removal::Removal;
use crate::schema::{SPEAKERS, SpeakerRow, put_speaker, row};
use crate::store::Store;
use crate::transaction::Change;
use earwitness_api::types::{Consent, Forgotten, Identity, Record, SpeakerId};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long records are kept, by the consent of who spoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Of nobody known, and of who was not asked; `None` is without end.
    pub unknown: Option<Duration>,
    /// Of guests.
    pub guest: Option<Duration>,
}

impl Default for Retention {
    /// Thirty days of who was not asked, one day of guests.
    fn default() -> Self {
        let days = |days: u64| Some(Duration::from_secs(days * 24 * 60 * 60));
        Self {
            unknown: days(30),
            guest: days(1),
        }
    }
}

impl Retention {
    fn of(&self, consent: Consent) -> Option<Duration> {
        match consent {
            Consent::Unknown => self.unknown,
            Consent::Guest => self.guest,
            Consent::Given => None,
            Consent::Refused => Some(Duration::ZERO),
        }
    }
}

/// Why a consent was not written down.
#[derive(Debug, thiserror::Error)]
pub enum ConsentError {
    /// The speaker does not exist.
    #[error("there is no speaker {}: `earwitness speakers list` shows them", .0.0)]
    NoSuchSpeaker(SpeakerId),
    /// The file failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Store {
    /// Writes down what the person of a voice agreed to, for every voice of
    /// theirs. A refusal forgets all records of theirs at once; their voices are
    /// kept, and their name, so that they are recognised and left out.
    pub fn set_consent(&self, id: SpeakerId, consent: Consent) -> Result<Identity, ConsentError> {
        let _writing = self.begin_writing();
        let result = self.write(|change| {
            let removal = write_down(change, id, consent)?;
            let identities = Identities::read(change)?;
            let root = identities.aliases.root(id);
            Ok::<_, ConsentError>((describe(root, identities.members(id)), removal))
        });
        self.vault.forget();
        let (identity, removal) = result?;
        self.finish_forgetting(&removal);
        Ok(identity)
    }

    /// Forgets what is older than its retention at this moment, in milliseconds
    /// since the Unix epoch.
    pub fn expire(&self, now_unix_ms: i64) -> Result<Forgotten, StorageError> {
        let _writing = self.begin_writing();
        let result = self.write(|change| expire(change, self.retention, now_unix_ms));
        self.vault.forget();
        Ok(self.finish_forgetting(&result?))
    }

    /// Switches the memory off, or on again. While it is off, every call that
    /// would read or write the medium is refused, and the medium is left alone. A
    /// write that goes on is waited for.
    pub fn switch(&self, on: bool) {
        let _writing = self.begin_writing();
        self.off.store(!on, Ordering::Release);
    }

    /// Whether the memory is switched on, as it is when it is opened.
    pub fn is_on(&self) -> bool {
        self.check_on().is_ok()
    }
}

fn write_down(
    change: &Change<'_>,
    id: SpeakerId,
    consent: Consent,
) -> Result<Removal, ConsentError> {
    let identities = Identities::read(change)?;
    let members = identities.members(id);
    if members.is_empty() {
        return Err(ConsentError::NoSuchSpeaker(id));
    }
    for member in members {
        let row = SpeakerRow {
            consent,
            ..member.clone()
        };
        put_speaker(change, &row)?;
    }
    if consent != Consent::Refused {
        return Ok(Removal::default());
    }
    let root = identities.aliases.root(id);
    let removal = Removal::of_records(change, |record, aliases| {
        let speaker = record.speaker.speaker;
        speaker.is_some_and(|speaker| aliases.root(speaker) == root)
    })?;
    removal.forget(change)?;
    Ok(removal)
}

fn expire(
    change: &Change<'_>,
    retention: Retention,
    now_unix_ms: i64,
) -> Result<Removal, StorageError> {
    let voices = Identities::read(change)?.voices();
    let consents: BTreeMap<SpeakerId, Consent> = voices
        .into_iter()
        .map(|(_, row)| (row.speaker.id, row.consent))
        .collect();
    let is_over = |record: &Record| {
        let speaker = record.speaker.speaker;
        let consent = speaker.and_then(|id| consents.get(&id).copied());
        let kept = retention.of(consent.unwrap_or_default());
        kept.is_some_and(|kept| {
            let kept = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
            record.unix_ms < now_unix_ms.saturating_sub(kept)
        })
    };
    let removal = Removal::of_records(change, |record, _| is_over(record))?;
    removal.forget(change)?;
    Ok(removal)
}

/// Whether nothing may be written of what a voice says.
pub(crate) fn is_refused(change: &Change<'_>, id: SpeakerId) -> Result<bool, StorageError> {
    for voice in Aliases::read(change)?.family(id) {
        let row: Option<SpeakerRow> = row(change, SPEAKERS, voice.0)?;
        if row.is_some_and(|row| row.consent == Consent::Refused) {
            return Ok(true);
        }
    }
    Ok(false)
}
