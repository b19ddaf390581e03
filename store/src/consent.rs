//! Consent: what may be kept of whom, for how long, and whether anything is kept
//! at all.

use crate::error::StorageError;
use crate::identity::{Aliases, Identities, describe};
use crate::removal::Removal;
use crate::schema::{SPEAKERS, SpeakerRow, put_speaker, row};
use crate::store::Store;
use crate::transaction::{Change, Snapshot, Tables};
use earwitness_api::types::{Consent, Forgotten, Identity, SpeakerId};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long records are kept, by the consent of who spoke. What was said by people
/// who agreed is kept without end, and so is that of people who were named or lent
/// their voice, although nobody wrote down what they agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Of nobody known, and of voices without a name whose person was not asked;
    /// `None` is without end.
    pub unknown: Option<Duration>,
    /// Of guests.
    pub guest: Option<Duration>,
}

impl Default for Retention {
    /// Thirty days of unknown people, one day of guests.
    fn default() -> Self {
        let days = |days: u64| Some(Duration::from_secs(days * 24 * 60 * 60));
        Self {
            unknown: days(30),
            guest: days(1),
        }
    }
}

impl Retention {
    /// How long the records of a person are kept.
    fn of(&self, person: &Identity) -> Option<Duration> {
        match person.consent {
            Consent::Unknown if person.speaker.name.is_some() || person.enrolled => None,
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
        let result = self.write(|change| {
            let removal = select_over(change, self.retention, now_unix_ms)?;
            removal.forget(change)?;
            Ok(removal)
        });
        let result = match result {
            Err(StorageError::Failed(_)) => {
                let select =
                    |snapshot: &Snapshot| select_over(snapshot, self.retention, now_unix_ms);
                self.forget_in_parts(self.read_committed(select)?)
            }
            result => result,
        };
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

/// What is older than its retention.
fn select_over(
    tables: &impl Tables,
    retention: Retention,
    now_unix_ms: i64,
) -> Result<Removal, StorageError> {
    let kept: BTreeMap<SpeakerId, Option<Duration>> = Identities::read(tables)?
        .describe()
        .map(|person| (person.speaker.id, retention.of(&person)))
        .collect();
    Removal::of_records(tables, |record, aliases| {
        let speaker = record.speaker.speaker.map(|id| aliases.root(id));
        let kept = speaker.and_then(|id| kept.get(&id).copied());
        kept.unwrap_or(retention.unknown).is_some_and(|kept| {
            let kept = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
            record.unix_ms < now_unix_ms.saturating_sub(kept)
        })
    })
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
