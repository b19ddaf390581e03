//! Splitting: some turns of one identity were somebody else.

use crate::error::StorageError;
use crate::identity::Identities;
use crate::merge::take_apart;
use crate::schema::{MERGES, SPEAKERS, SpeakerRow, next_id, open, put};
use crate::store::Store;
use crate::turn::{Turn, each_said, find_turn, put_turn};
use crate::voices::mean_voice;
use earwitness_api::types::{RecordId, Speaker, SpeakerId};
use redb::WriteTransaction;
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
        self.write(|transaction| split(transaction, from, records))
    }
}

fn split(
    transaction: &WriteTransaction,
    from: SpeakerId,
    records: &[RecordId],
) -> Result<Speaker, SplitError> {
    let identities = Identities::read(&open(transaction, SPEAKERS)?, &open(transaction, MERGES)?)?;
    let members = identities.members(from);
    if members.is_empty() {
        return Err(SplitError::NoSuchSpeaker(from));
    }
    let mut turns = their_turns(transaction, &identities, from, records)?;
    check_rest(members, &turns, from)?;
    let new = SpeakerId(next_id(transaction, |last| &mut last.speaker)?);
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
            row.learn(record.end_ms - record.start_ms);
        }
        put_turn(transaction, turn)?;
    }
    put(&mut open(transaction, SPEAKERS)?, new.0, &row)?;
    recount(transaction, members)?;
    for member in members {
        take_apart(transaction, member.speaker.id, new)?;
    }
    Ok(row.speaker)
}

fn their_turns(
    transaction: &WriteTransaction,
    identities: &Identities,
    from: SpeakerId,
    records: &[RecordId],
) -> Result<Vec<Turn>, SplitError> {
    let root = identities.aliases.root(from);
    let mut turns = Vec::new();
    for id in records.iter().collect::<BTreeSet<_>>() {
        let turn = find_turn(transaction, *id)?;
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
    let all: u64 = members.iter().map(|row| row.speaker.records).sum();
    let is_kept = members.iter().any(SpeakerRow::is_kept_without_records);
    match turns.len() as u64 {
        0 => Err(SplitError::Nothing),
        most if most == all && !is_kept => Err(SplitError::Everything(from)),
        _ => Ok(()),
    }
}

/// Counts anew what is left of some speakers.
fn recount(transaction: &WriteTransaction, speakers: &[SpeakerRow]) -> Result<(), StorageError> {
    let mut rows: BTreeMap<u32, SpeakerRow> = BTreeMap::new();
    for row in speakers {
        let mut row = row.clone();
        row.forget_records();
        rows.insert(row.speaker.id.0, row);
    }
    each_said(transaction, |said| {
        let speaker = said.record.speaker.speaker;
        if let Some(row) = speaker.and_then(|id| rows.get_mut(&id.0)) {
            row.hear(&said.record);
        }
    })?;
    let mut table = open(transaction, SPEAKERS)?;
    for (id, row) in &rows {
        put(&mut table, *id, row)?;
    }
    Ok(())
}
