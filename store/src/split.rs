//! Splitting: some turns of one identity were somebody else.

use crate::error::StorageError;
use crate::identity::Identities;
use crate::merge::take_apart;
use crate::schema::{SpeakerRow, next_id, put_speaker};
use crate::store::Store;
use crate::transaction::Change;
use crate::turn::{Turn, each_said, find_turn, put_turn};
use crate::voices::mean_voice;
use earwitness_api::types::{RecordId, Speaker, SpeakerId};
use std::collections::{BTreeMap, BTreeSet};

/// Why an identity was not split.
#[derive(Debug, thiserror::Error)]
pub enum SplitError {
    /// The speaker does not exist.
    #[error("there is no speaker {}: `earwitness speakers list` shows them", .0.0)]
    NoSuchSpeaker(SpeakerId),
    /// A record is not theirs.
    #[error("record {} was not said by speaker {}: leave it out", .0.0, .1.0)]
    NotTheirs(RecordId, SpeakerId),
    /// No record was named.
    #[error("no record was named: say which ones were somebody else")]
    Nothing,
    /// The records are all that is known of the speaker.
    #[error("these are all records of speaker {}: give that speaker another name instead", .0.0)]
    Everything(SpeakerId),
    /// There are as many voices as the limits allow.
    #[error("there is no room for another voice: forget somebody, or raise the limit")]
    Full,
    /// The records have no voiceprint.
    #[error("none of these records has a voiceprint: a new voice needs one that has")]
    NoVoice,
    /// The file failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Store {
    /// Gives some records of one identity to a new speaker, whose centroid is
    /// the mean of the voiceprints of those records. The two stay apart.
    ///
    /// The centroid of the old identity is not unlearned. A merge by hand undoes
    /// a split.
    pub fn split(&self, from: SpeakerId, records: &[RecordId]) -> Result<Speaker, SplitError> {
        let _writing = self.begin_writing();
        self.write(|change| {
            if !self.limits.has_room_for_voice(change)? {
                return Err(SplitError::Full);
            }
            split(change, from, records)
        })
    }
}

fn split(
    change: &Change<'_>,
    from: SpeakerId,
    records: &[RecordId],
) -> Result<Speaker, SplitError> {
    let identities = Identities::read(change)?;
    let members = identities.members(from);
    if members.is_empty() {
        return Err(SplitError::NoSuchSpeaker(from));
    }
    let mut turns = their_turns(change, &identities, from, records)?;
    check_rest(members, &turns, from)?;
    let new = SpeakerId(next_id(change, |last| &mut last.speaker)?);
    let mut row = SpeakerRow::new(new);
    row.centroid = mean_voice(turns.iter().map(|turn| &turn.key.speaker));
    if row.centroid.is_empty() {
        return Err(SplitError::NoVoice);
    }
    for turn in &mut turns {
        let record = &mut turn.said.record;
        record.speaker.speaker = Some(new);
        row.hear(record);
        turn.said.taught = turn.key.speaker.scale > 0.0;
        if turn.said.taught {
            row.learn(record.end_ms.saturating_sub(record.start_ms));
        }
        put_turn(change, turn)?;
    }
    put_speaker(change, &row)?;
    recount(change, members)?;
    for member in members {
        take_apart(change, member.speaker.id, new)?;
    }
    // Older copies of the records are sealed for those who do not own them now.
    let owners = members.iter().map(|row| row.speaker.id.0);
    change.renew_keys(&owners.collect())?;
    Ok(row.speaker)
}

fn their_turns(
    change: &Change<'_>,
    identities: &Identities,
    from: SpeakerId,
    records: &[RecordId],
) -> Result<Vec<Turn>, SplitError> {
    let root = identities.aliases.root(from);
    let mut turns = Vec::new();
    for id in records.iter().collect::<BTreeSet<_>>() {
        let turn = find_turn(change, *id)?;
        let turn = turn.ok_or(SplitError::NotTheirs(*id, from))?;
        let by = turn.said.record.speaker.speaker;
        if by.map(|id| identities.aliases.root(id)) != Some(root) {
            return Err(SplitError::NotTheirs(*id, from));
        }
        turns.push(turn);
    }
    Ok(turns)
}

/// Something has to be split off, and something has to be left.
fn check_rest(members: &[SpeakerRow], turns: &[Turn], from: SpeakerId) -> Result<(), SplitError> {
    let all = members.iter().map(|row| row.speaker.records);
    let all = all.fold(0, u64::saturating_add);
    let is_kept = members.iter().any(SpeakerRow::is_kept_without_records);
    match turns.len() as u64 {
        0 => Err(SplitError::Nothing),
        most if most == all && !is_kept => Err(SplitError::Everything(from)),
        _ => Ok(()),
    }
}

/// Counts anew what is left of some speakers.
fn recount(change: &Change<'_>, speakers: &[SpeakerRow]) -> Result<(), StorageError> {
    let mut rows: BTreeMap<u32, SpeakerRow> = BTreeMap::new();
    for row in speakers {
        let mut row = row.clone();
        row.forget_records();
        rows.insert(row.speaker.id.0, row);
    }
    each_said(change, |said| {
        let speaker = said.record.speaker.speaker;
        if let Some(row) = speaker.and_then(|id| rows.get_mut(&id.0)) {
            row.hear(&said.record);
        }
    })?;
    rows.values().try_for_each(|row| put_speaker(change, row))
}
