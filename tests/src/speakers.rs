//! Speaker attribution: does each turn go to the right person?
//!
//! Every turn with audio is heard once, in the order of time; its voiceprint then
//! goes through each variant of the tracker, so that variants differ in tracking
//! alone (VoxPolyMem, appendix D.1). Turn boundaries are those of the data set.
//! The tracker knows neither the people nor how many there are.

use std::collections::BTreeSet;

use anyhow::Result;
use earwitness::attribute::Quality;
use serde::Serialize;

use crate::{
    episodes::{Episode, Turn},
    metrics::{Attribution, VerificationErrors, adjusted_rand_index, best_mapping},
};

/// Something that tells voices apart.
pub trait Attributor {
    /// The label of the voice that spoke a turn; `None` where it cannot tell.
    fn attribute(&mut self, turn: &HeardTurn) -> Option<u32>;

    /// A session is over: time to revise what was told apart too readily.
    fn end_session(&mut self) {}

    /// What a label given earlier stands for now.
    fn resolve(&self, label: u32) -> u32 {
        label
    }
}

/// A turn as a tracker meets it, and who really spoke.
#[derive(Clone, Debug, PartialEq)]
pub struct HeardTurn {
    /// The place of its session in the episode.
    pub session: usize,
    /// Start within the session, in milliseconds.
    pub start_ms: u64,
    /// End within the session, in milliseconds.
    pub end_ms: u64,
    /// What was heard of it.
    pub heard: Heard,
    /// The participant who spoke; not for the tracker.
    speaker: String,
}

/// What is heard of one turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// L2-normalised.
    pub voiceprint: Vec<f32>,
    /// Length of the recording, in milliseconds.
    pub audio_ms: u32,
    /// What the speech in it is like.
    pub quality: Quality,
}

/// From a turn to what is heard of it.
pub type Hear<'h> = dyn FnMut(&Episode, &Turn) -> Result<Option<Heard>> + 'h;

/// Hears an episode. Turns that `hear` has nothing for, such as written ones,
/// are left out.
pub fn listen(episode: &Episode, hear: &mut Hear<'_>) -> Result<Vec<HeardTurn>> {
    let mut turns = Vec::new();
    for (session, part) in episode.sessions.iter().enumerate() {
        for turn in &part.turns {
            if let Some(heard) = hear(episode, turn)? {
                turns.push(HeardTurn {
                    session,
                    start_ms: turn.start_ms,
                    end_ms: turn.end_ms,
                    heard,
                    speaker: turn.speaker.clone(),
                });
            }
        }
    }
    Ok(turns)
}

/// The labels that a tracker gives, as they stand after the last session.
fn track(turns: &[HeardTurn], tracker: &mut dyn Attributor) -> Vec<Option<u32>> {
    let mut labels = Vec::with_capacity(turns.len());
    for session in turns.chunk_by(|one, next| one.session == next.session) {
        labels.extend(session.iter().map(|turn| tracker.attribute(turn)));
        tracker.end_session();
    }
    labels
        .into_iter()
        .map(|label| label.map(|label| tracker.resolve(label)))
        .collect()
}

/// What one variant of the tracker achieved.
#[derive(Debug, Default, Serialize)]
pub struct SpeakersReport {
    /// Share of all turns that are right under each episode's best mapping.
    pub accuracy: f64,
    /// Mean adjusted Rand index of the episodes.
    pub ari: f64,
    /// The accuracy of turns with at least 1.6 s of sound, under the same
    /// mappings.
    pub accuracy_1600ms: f64,
    /// Turns heard.
    pub turns: usize,
    /// Turns left unknown, which count as wrong.
    pub unknown: usize,
    /// Episode by episode.
    pub episodes: Vec<EpisodeScore>,
    #[serde(skip)]
    all: Attribution,
    #[serde(skip)]
    long: Attribution,
}

/// What one variant achieved in one episode.
#[derive(Debug, Serialize)]
pub struct EpisodeScore {
    /// The episode.
    pub id: String,
    /// Share of its turns that are right.
    pub accuracy: f64,
    /// Adjusted Rand index.
    pub ari: f64,
    /// Identities that the tracker made.
    pub made: usize,
    /// People who spoke.
    #[serde(rename = "true")]
    pub people: usize,
}

/// Sound from which a voiceprint is held to be trustworthy, in milliseconds.
const LONG_MS: u32 = 1600;

impl SpeakersReport {
    /// Runs a fresh tracker over the turns of an episode and adds its score.
    /// An episode of which nothing was heard does not count.
    pub fn add(&mut self, id: &str, turns: &[HeardTurn], tracker: &mut dyn Attributor) {
        if turns.is_empty() {
            return;
        }
        let labels = track(turns, tracker);
        let people = turns.iter().map(|turn| turn.speaker.as_str());
        let pairs: Vec<(&str, Option<u32>)> = people.clone().zip(labels.iter().copied()).collect();
        let mapping = best_mapping(&pairs);
        let all = Attribution::count(&pairs, &mapping);
        let long = pairs
            .iter()
            .zip(turns)
            .filter(|(_, turn)| turn.heard.audio_ms >= LONG_MS);
        self.long += Attribution::count(long.map(|(pair, _)| pair), &mapping);
        self.all += all;
        self.unknown += labels.iter().filter(|label| label.is_none()).count();
        self.episodes.push(EpisodeScore {
            id: id.to_owned(),
            accuracy: all.accuracy(),
            ari: adjusted_rand_index(&pairs),
            made: labels.iter().flatten().collect::<BTreeSet<_>>().len(),
            people: people.collect::<BTreeSet<_>>().len(),
        });
        self.sum_up();
    }

    fn sum_up(&mut self) {
        let aris = self.episodes.iter().map(|episode| episode.ari);
        self.ari = aris.sum::<f64>() / self.episodes.len() as f64;
        self.accuracy = self.all.accuracy();
        self.accuracy_1600ms = self.long.accuracy();
        self.turns = self.all.turns;
    }
}

/// Trials of all pairs of turns of an episode, each of 1.6 s and more: are they
/// of one speaker? Over episodes nobody can tell, since participants may recur.
#[derive(Debug, Default)]
pub struct Trials {
    same: Vec<f32>,
    different: Vec<f32>,
}

impl Trials {
    /// Adds the trials of one episode.
    pub fn add(&mut self, turns: &[HeardTurn]) {
        let long: Vec<&HeardTurn> = turns
            .iter()
            .filter(|turn| turn.heard.audio_ms >= LONG_MS)
            .collect();
        for (i, one) in long.iter().enumerate() {
            for other in &long[..i] {
                let products = one.heard.voiceprint.iter().zip(&other.heard.voiceprint);
                let cosine = products.map(|(x, y)| x * y).sum();
                if one.speaker == other.speaker {
                    self.same.push(cosine);
                } else {
                    self.different.push(cosine);
                }
            }
        }
    }

    /// Trials of one speaker, and of two.
    pub fn counts(&self) -> (usize, usize) {
        (self.same.len(), self.different.len())
    }

    /// How well the cosine parts them.
    pub fn errors(&self) -> VerificationErrors {
        VerificationErrors::new(&self.same, &self.different)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Takes the first value of a voiceprint for the label; below 0 is unknown.
    /// Merges label 9 into label 1 once a session is over.
    #[derive(Default)]
    struct Reads {
        sessions: usize,
    }

    impl Attributor for Reads {
        fn attribute(&mut self, turn: &HeardTurn) -> Option<u32> {
            assert_eq!(
                turn.session, self.sessions,
                "a session began before the last one ended"
            );
            let label = turn.heard.voiceprint[0];
            (label >= 0.0).then_some(label as u32)
        }

        fn end_session(&mut self) {
            self.sessions += 1;
        }

        fn resolve(&self, label: u32) -> u32 {
            if label == 9 && self.sessions > 0 {
                1
            } else {
                label
            }
        }
    }

    fn turn(speaker: &str, session: usize, label: f32, audio_ms: u32) -> HeardTurn {
        HeardTurn {
            session,
            start_ms: 0,
            end_ms: 1,
            heard: heard(label, audio_ms),
            speaker: speaker.into(),
        }
    }

    fn heard(label: f32, audio_ms: u32) -> Heard {
        Heard {
            voiceprint: vec![label],
            audio_ms,
            quality: Quality::of(&[0.5], audio_ms),
        }
    }

    #[test]
    fn trials_are_of_long_turns_of_one_episode() {
        let mut trials = Trials::default();
        trials.add(&[
            turn("ann", 0, 2.0, 1600),
            turn("ann", 0, 3.0, 1600),
            turn("ben", 0, 1.0, 1600),
            turn("ben", 0, 1.0, 1599),
        ]);
        trials.add(&[turn("ann", 0, 2.0, 1600)]);
        assert_eq!(trials.counts(), (1, 2));
        assert_eq!((trials.same, trials.different), (vec![6.0], vec![2.0, 3.0]));
    }

    #[test]
    fn attribution_is_scored_under_the_best_mapping() {
        let turns = [
            turn("ann", 0, 1.0, 2000),
            turn("ann", 0, 9.0, 500),
            turn("ben", 0, 2.0, 1600),
            turn("ben", 1, -1.0, 1599),
            turn("ben", 1, 1.0, 3000),
        ];
        let mut report = SpeakersReport::default();
        report.add("one", &turns, &mut Reads::default());
        report.add("silent", &[], &mut Reads::default());
        assert_eq!(
            (report.turns, report.unknown, report.episodes.len()),
            (5, 1, 1)
        );
        assert!((report.accuracy - 3.0 / 5.0).abs() < 1e-12);
        assert!((report.accuracy_1600ms - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!((report.episodes[0].made, report.episodes[0].people), (2, 2));
    }

    #[test]
    fn turns_count_alike_and_episodes_have_equal_say_in_the_rand_index() {
        let mut report = SpeakersReport::default();
        let right = [turn("ann", 0, 1.0, 1), turn("ben", 0, 2.0, 1)];
        let lumped = [
            turn("ann", 0, 1.0, 1),
            turn("ann", 0, 1.0, 1),
            turn("ben", 0, 1.0, 1),
            turn("ben", 0, 1.0, 1),
        ];
        report.add("right", &right, &mut Reads::default());
        report.add("lumped", &lumped, &mut Reads::default());
        assert!((report.accuracy - 4.0 / 6.0).abs() < 1e-12);
        assert!((report.ari - 0.5).abs() < 1e-12);
    }

    #[test]
    fn written_turns_are_not_heard() {
        let turns = json!([
            {"id": "t1", "speaker": "p", "text": "a", "start_ms": 0, "end_ms": 1, "audio": "a.wav"},
            {"id": "t2", "speaker": "p", "text": "b", "start_ms": 1, "end_ms": 2}
        ]);
        let episode: Episode = serde_json::from_value(json!({
            "id": "e", "participants": [{"id": "p", "name": "P"}],
            "sessions": [{"id": "s", "start": "2026-03-02T18:00:00Z", "turns": turns}]
        }))
        .unwrap();
        let mut hear = |_: &Episode, turn: &Turn| Ok(turn.audio.as_ref().map(|_| heard(0.5, 700)));
        let heard = listen(&episode, &mut hear).unwrap();
        assert_eq!(heard, [turn("p", 0, 0.5, 700)]);
    }
}
