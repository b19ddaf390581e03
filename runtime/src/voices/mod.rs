//! What the hub does with all its voices at once: reconciling them after a
//! session, enrolling somebody on purpose, and judging how well they can be told
//! apart.

mod enrol;
mod estimate;

use std::collections::BTreeMap;

use earwitness_api::types::{Identity, MergeReason, SpeakerId};
use earwitness_store::{MergeError, NewMerge, StorageError, Store, Voiceprint};

use crate::attribute::reconcile::{Apart, Match, ReconcileOptions, Utterance, pair, reconcile};

pub use enrol::EnrolError;
pub use estimate::estimate;

/// Merges the identities of a store that turn out to be one voice; to be called
/// when a session is over. Returns what was merged, each with what spoke for it.
pub fn reconcile_store(store: &Store, merge_at: f32) -> Result<Vec<Match>, StorageError> {
    let identities = store.identities()?;
    let apart = set_apart(&identities, store.apart()?);
    let utterances: Vec<Utterance> = store.voiceprints()?.iter().filter_map(utterance).collect();
    let options = ReconcileOptions::new(merge_at);
    let mut merged = Vec::new();
    for found in reconcile(&utterances, &apart, &options) {
        let merge = NewMerge {
            into: found.into,
            from: found.from,
            why: MergeReason::Reconciled {
                similarity: found.similarity,
                runner_up: found.runner_up,
                cohesion: found.cohesion,
            },
            despite_names: false,
        };
        match store.merge(merge) {
            Ok(_) => merged.push(found),
            Err(MergeError::Storage(error)) => return Err(error),
            // Somebody has named, forgotten or set apart one of them meanwhile.
            Err(error) => tracing::info!(%error, "two voices were not merged"),
        }
    }
    Ok(merged)
}

/// Identities that are not to be merged: those that somebody set apart, and those
/// that bear different names.
fn set_apart(identities: &[Identity], voices: Vec<(SpeakerId, SpeakerId)>) -> Apart {
    let identity_of: BTreeMap<SpeakerId, SpeakerId> = identities
        .iter()
        .flat_map(|identity| {
            let members = identity.members.iter();
            members.map(|&member| (member, identity.speaker.id))
        })
        .collect();
    let by_hand = voices
        .iter()
        .filter_map(|(a, b)| Some(pair(*identity_of.get(a)?, *identity_of.get(b)?)));
    let named: Vec<(SpeakerId, &str)> = identities
        .iter()
        .filter_map(|identity| Some((identity.speaker.id, identity.speaker.name.as_deref()?)))
        .collect();
    let by_name = named.iter().enumerate().flat_map(|(i, (a, name))| {
        let others = named[..i].iter().filter(move |(_, other)| other != name);
        others.map(|(b, _)| pair(*a, *b))
    });
    by_hand.chain(by_name).collect()
}

/// A kept voiceprint as reconciliation sees it; quantised, it is not quite of unit
/// length any more.
fn utterance(kept: &Voiceprint) -> Option<Utterance> {
    Some(Utterance {
        identity: kept.identity,
        session: kept.turn.map(|(_, session)| session),
        embedding: unit(&kept.embedding)?,
    })
}

/// A vector divided by its length; `None` where it points nowhere.
fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    norm.is_normal()
        .then(|| vector.iter().map(|x| x / norm).collect())
}
