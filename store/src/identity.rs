//! Identities: which voices are one person.
//!
//! Every voice keeps its own id, centroid and turns for ever. A merge hangs the
//! voice of one identity under the voice of another; what hangs together is one
//! identity, and the voice at the root stands for it. So chains need no
//! rewriting, and undoing a merge is cutting one link: whatever was merged into
//! either side before or since stays where it is.

use crate::error::StorageError;
use crate::schema::{MERGES, SPEAKERS, SpeakerRow, rows};
use crate::store::Store;
use crate::transaction::Tables;
use earwitness_api::types::{Consent, Identity, Merge, Record, Speaker, SpeakerId};
use std::collections::BTreeMap;

/// The alias map: every merge that holds.
#[derive(Debug, Default)]
pub(crate) struct Aliases {
    parents: BTreeMap<u32, u32>,
}

impl Aliases {
    pub fn read(tables: &impl Tables) -> Result<Self, StorageError> {
        let merges: Vec<Merge> = rows(tables, MERGES)?;
        let links = merges.iter().map(|merge| (merge.from.0, merge.into.0));
        Ok(Self {
            parents: links.collect(),
        })
    }

    /// The voice that stands for the identity of this one.
    pub fn root(&self, id: SpeakerId) -> SpeakerId {
        let mut root = id.0;
        // A path is no longer than there are links; a damaged file may hold a
        // circle.
        for _ in 0..self.parents.len() {
            match self.parents.get(&root) {
                Some(&parent) => root = parent,
                None => break,
            }
        }
        SpeakerId(root)
    }

    /// All voices of the identity that a voice belongs to.
    pub fn family(&self, id: SpeakerId) -> Vec<SpeakerId> {
        let root = self.root(id);
        let others = self.parents.keys().map(|voice| SpeakerId(*voice));
        let others = others.filter(|voice| *voice != root && self.root(*voice) == root);
        std::iter::once(root).chain(others).collect()
    }

    /// Puts identities in the place of voices.
    pub fn resolve(&self, mut record: Record) -> Record {
        for person in record.addressees.iter_mut().chain([&mut record.speaker]) {
            person.speaker = person.speaker.map(|id| self.root(id));
        }
        record
    }
}

/// All speakers, grouped by identity.
pub(crate) struct Identities {
    pub aliases: Aliases,
    members: BTreeMap<u32, Vec<SpeakerRow>>,
}

impl Identities {
    pub fn read(tables: &impl Tables) -> Result<Self, StorageError> {
        let aliases = Aliases::read(tables)?;
        let mut members: BTreeMap<u32, Vec<SpeakerRow>> = BTreeMap::new();
        for row in rows::<_, SpeakerRow>(tables, SPEAKERS)? {
            let root = aliases.root(row.speaker.id);
            members.entry(root.0).or_default().push(row);
        }
        Ok(Self { aliases, members })
    }

    /// The voices of the identity that a voice belongs to; none if it does not
    /// exist.
    pub fn members(&self, id: SpeakerId) -> &[SpeakerRow] {
        let group = self.members.get(&self.aliases.root(id).0);
        let group = group.map_or(&[][..], Vec::as_slice);
        if group.iter().any(|row| row.speaker.id == id) {
            group
        } else {
            &[]
        }
    }

    /// All voices, in the order of their ids.
    pub fn voices(self) -> Vec<(SpeakerId, SpeakerRow)> {
        let mut voices: Vec<_> = self
            .members
            .into_iter()
            .flat_map(|(root, rows)| rows.into_iter().map(move |row| (SpeakerId(root), row)))
            .collect();
        voices.sort_by_key(|(_, row)| row.speaker.id);
        voices
    }

    /// What each person agreed to, by the voice that stands for them.
    pub fn consents(&self) -> BTreeMap<SpeakerId, Consent> {
        let each = self.iter();
        each.map(|(root, rows)| (root, consent(root, rows)))
            .collect()
    }

    /// The voice that stands for each, and all its voices.
    pub fn iter(&self) -> impl Iterator<Item = (SpeakerId, &[SpeakerRow])> {
        let groups = self.members.iter();
        groups.map(|(root, rows)| (SpeakerId(*root), rows.as_slice()))
    }

    /// What a person is told about each, in the order of their ids.
    pub fn describe(&self) -> impl Iterator<Item = Identity> {
        self.iter().map(|(root, rows)| describe(root, rows))
    }
}

/// One identity: the name and the counts of all its voices.
pub(crate) fn describe(root: SpeakerId, members: &[SpeakerRow]) -> Identity {
    let heard = || members.iter().filter(|row| row.speaker.records > 0);
    let first = heard().map(|row| row.speaker.first_heard_unix_ms).min();
    let last = heard().map(|row| row.speaker.last_heard_unix_ms).max();
    Identity {
        speaker: Speaker {
            id: root,
            name: name(root, members).map(str::to_owned),
            records: members
                .iter()
                .fold(0, |sum, row| sum.saturating_add(row.speaker.records)),
            first_heard_unix_ms: first.unwrap_or(0),
            last_heard_unix_ms: last.unwrap_or(0),
        },
        members: members.iter().map(|row| row.speaker.id).collect(),
        enrolled: members.iter().any(|row| row.enrolled),
        consent: consent(root, members),
    }
}

/// A refusal of any voice, or else what holds for the one at the root.
fn consent(root: SpeakerId, members: &[SpeakerRow]) -> Consent {
    if members.iter().any(|row| row.consent == Consent::Refused) {
        return Consent::Refused;
    }
    let root = members.iter().find(|row| row.speaker.id == root);
    root.map_or(Consent::Unknown, |row| row.consent)
}

/// The name of the voice at the root, or else of the first that has one.
pub(crate) fn name(root: SpeakerId, members: &[SpeakerRow]) -> Option<&str> {
    let named = |row: &SpeakerRow| row.speaker.id == root && row.speaker.name.is_some();
    let own = members.iter().find(|row| named(row));
    own.or_else(|| members.iter().find(|row| row.speaker.name.is_some()))
        .and_then(|row| row.speaker.name.as_deref())
}

impl Store {
    /// All identities, in the order of their ids.
    pub fn identities(&self) -> Result<Vec<Identity>, StorageError> {
        self.read(|snapshot| Ok(Identities::read(snapshot)?.describe().collect()))
    }
}
