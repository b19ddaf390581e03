//! Merging identities, and undoing it.

use crate::error::StorageError;
use crate::identity::{Identities, describe, name};
use crate::schema::{APART, MERGES, next_id, put, row, rows};
use crate::store::Store;
use crate::transaction::{Change, Tables};
use earwitness_api::types::{Identity, Merge, MergeReason, SpeakerId};
use redb::ReadableTable;
use std::collections::BTreeSet;

/// Two identities to be made one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewMerge {
    /// The one that stays, by any of its voices.
    pub into: SpeakerId,
    /// The one that is given up, by any of its voices.
    pub from: SpeakerId,
    /// Why they are one.
    pub why: MergeReason,
    /// Merge even where both have a name and the names differ; the name of
    /// `into` holds until the merge is undone.
    pub despite_names: bool,
}

/// Why two identities were not merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// One of them does not exist.
    #[error("there is no speaker {}: `earwitness speakers list` shows them", .0.0)]
    NoSuchSpeaker(SpeakerId),
    /// They are one already.
    #[error("speakers {} and {} are one already", .0.0, .1.0)]
    Same(SpeakerId, SpeakerId),
    /// Both have a name, and not the same.
    #[error(
        "speaker {} is {:?} and speaker {} is {:?}: rename one, or force the merge",
        into.0, into_name, from.0, from_name
    )]
    Names {
        /// The one that would stay.
        into: SpeakerId,
        /// Its name.
        into_name: String,
        /// The one that would be given up.
        from: SpeakerId,
        /// Its name.
        from_name: String,
    },
    /// Somebody has taken them apart; only a merge by hand overrules that.
    #[error(
        "speakers {} and {} were taken apart by hand: merge them by hand if they are one",
        .0.0, .1.0
    )]
    Apart(SpeakerId, SpeakerId),
    /// A score is NaN or infinite.
    #[error("a score of the merge is not finite: leave the two apart")]
    NotFinite,
    /// The file failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why a merge was not undone.
#[derive(Debug, thiserror::Error)]
pub enum UnmergeError {
    /// That voice was not merged into another.
    #[error(
        "speaker {} was not merged into another: `earwitness speakers list` shows the merges",
        .0.0
    )]
    NotMerged(SpeakerId),
    /// The file failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Store {
    /// Makes two identities one, named as `into` or else as `from`. Records,
    /// centroids and voiceprints stay as they are.
    pub fn merge(&self, new: NewMerge) -> Result<Identity, MergeError> {
        if !is_finite(new.why) {
            return Err(MergeError::NotFinite);
        }
        let _writing = self.begin_writing();
        self.write(|change| merge(change, new))
    }

    /// Undoes the merge in which the voice `from` gave up its identity, and
    /// remembers that the two are not one. Merges before and since stay.
    pub fn unmerge(&self, from: SpeakerId) -> Result<Merge, UnmergeError> {
        let _writing = self.begin_writing();
        self.write(|change| unmerge(change, from))
    }

    /// Every merge that holds, in the order in which they were made.
    pub fn merges(&self) -> Result<Vec<Merge>, StorageError> {
        self.read(|snapshot| {
            let mut merges: Vec<Merge> = rows(snapshot, MERGES)?;
            merges.sort_by_key(|merge| merge.number);
            Ok(merges)
        })
    }

    /// Pairs of voices that were taken apart, the lower id first: whatever the
    /// voices sound like, the identities of the two are not one.
    pub fn apart(&self) -> Result<Vec<(SpeakerId, SpeakerId)>, StorageError> {
        self.read(|snapshot| {
            let pairs = pairs(&snapshot.table(APART)?)?.into_iter();
            Ok(pairs
                .map(|(low, high)| (SpeakerId(low), SpeakerId(high)))
                .collect())
        })
    }
}

fn pairs(apart: &impl ReadableTable<(u32, u32), ()>) -> Result<Vec<(u32, u32)>, StorageError> {
    apart.iter()?.map(|row| Ok(row?.0.value())).collect()
}

fn is_finite(why: MergeReason) -> bool {
    match why {
        MergeReason::ByHand => true,
        MergeReason::Reconciled {
            similarity,
            runner_up,
            cohesion,
        } => [similarity, runner_up.unwrap_or(0.0), cohesion]
            .iter()
            .all(|score| score.is_finite()),
    }
}

fn merge(change: &Change<'_>, new: NewMerge) -> Result<Identity, MergeError> {
    let identities = Identities::read(change)?;
    let (into, from) = roots(&identities, new)?;
    check_names(&identities, into, from, new.despite_names)?;
    overrule_or_obey_apart(change, &identities, into, from, new.why)?;
    let merge = Merge {
        number: next_id(change, |last| &mut last.merge)?,
        from,
        into,
        why: new.why,
    };
    put(change, MERGES, from.0, from.0, &merge)?;
    let mut members = identities.members(into).to_vec();
    members.extend_from_slice(identities.members(from));
    members.sort_by_key(|row| row.speaker.id);
    Ok(describe(into, &members))
}

/// The voices that stand for the two.
fn roots(identities: &Identities, new: NewMerge) -> Result<(SpeakerId, SpeakerId), MergeError> {
    for id in [new.into, new.from] {
        if identities.members(id).is_empty() {
            return Err(MergeError::NoSuchSpeaker(id));
        }
    }
    let into = identities.aliases.root(new.into);
    let from = identities.aliases.root(new.from);
    if into == from {
        return Err(MergeError::Same(new.into, new.from));
    }
    Ok((into, from))
}

fn check_names(
    identities: &Identities,
    into: SpeakerId,
    from: SpeakerId,
    despite_names: bool,
) -> Result<(), MergeError> {
    let name = |root| name(root, identities.members(root));
    match (name(into), name(from)) {
        (Some(into_name), Some(from_name)) if into_name != from_name && !despite_names => {
            Err(MergeError::Names {
                into,
                into_name: into_name.to_owned(),
                from,
                from_name: from_name.to_owned(),
            })
        }
        _ => Ok(()),
    }
}

fn overrule_or_obey_apart(
    change: &Change<'_>,
    identities: &Identities,
    into: SpeakerId,
    from: SpeakerId,
    why: MergeReason,
) -> Result<(), MergeError> {
    let ids = |root: SpeakerId| -> BTreeSet<u32> {
        let members = identities.members(root).iter();
        members.map(|row| row.speaker.id.0).collect()
    };
    let (into, from) = (ids(into), ids(from));
    let between = |(a, b): (u32, u32)| {
        into.contains(&a) && from.contains(&b) || into.contains(&b) && from.contains(&a)
    };
    let mut apart = change.open(APART)?;
    if why == MergeReason::ByHand {
        apart
            .retain(|pair, ()| !between(pair))
            .map_err(StorageError::from)?;
        return Ok(());
    }
    let pair = pairs(&apart)?.into_iter().find(|pair| between(*pair));
    pair.map_or(Ok(()), |(low, high)| {
        Err(MergeError::Apart(SpeakerId(low), SpeakerId(high)))
    })
}

fn unmerge(change: &Change<'_>, from: SpeakerId) -> Result<Merge, UnmergeError> {
    let merge: Option<Merge> = row(change, MERGES, from.0)?;
    let merge = merge.ok_or(UnmergeError::NotMerged(from))?;
    let mut merges = change.open(MERGES)?;
    merges.remove(from.0).map_err(StorageError::from)?;
    take_apart(change, merge.from, merge.into)?;
    Ok(merge)
}

/// Remembers that two voices are not one person.
pub(crate) fn take_apart(
    change: &Change<'_>,
    a: SpeakerId,
    b: SpeakerId,
) -> Result<(), StorageError> {
    change
        .open(APART)?
        .insert((a.0.min(b.0), a.0.max(b.0)), ())?;
    Ok(())
}
