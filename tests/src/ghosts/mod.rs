//! Ghosts: does the device open an identity for what is nobody, or two for one?
//!
//! Two streams go through the whole pipeline, from samples to store. The first holds
//! coughs, clicks, slammed doors, music and words of 0.1 to 0.6 seconds: nobody
//! should come of it. The second holds many turns of a few voices, at many levels
//! and in more or less noise: as many identities should come of it as there are
//! voices. Everything comes out of a seed and the speech of an episode.

mod sounds;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use earwitness::{
    capture::decode,
    hub::Hub,
    listen::{Listener, Placement},
};
use earwitness_api::types::Record;
use serde::Serialize;

use crate::{
    episodes::Episode,
    metrics::{Attribution, best_mapping},
};
use sounds::{Dice, at_level, click, cough, door_slam, faded, music, noise, samples as samples_in};

/// How much is heard.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    /// Sounds that are nobody.
    pub ghosts: usize,
    /// Voices that speak after them.
    pub voices: usize,
    /// Turns of each.
    pub turns: usize,
    /// What everything is drawn from.
    pub seed: u64,
}

/// What became of it.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// Sounds that are nobody.
    pub ghosts: usize,
    /// Identities that came of them.
    pub ghost_identities: usize,
    /// Voices that spoke.
    pub voices: usize,
    /// Turns of each.
    pub turns: usize,
    /// Identities that came of them.
    pub identities: usize,
    /// Records of the turns.
    pub records: usize,
    /// Share of the records with the right speaker, under the best mapping.
    pub accuracy: f64,
}

/// The level of an empty room, in dB relative to full scale.
const ROOM_DBFS: f32 = -65.0;

/// Listens to both streams. The hub's memory has to be empty.
pub fn listen(hub: &Hub, episode: &Episode, amount: Amount) -> Result<Outcome> {
    let speech = Speech::of(episode)?;
    ensure!(
        amount.voices <= speech.0.len(),
        "{} voices are asked for, the episode has {}",
        amount.voices,
        speech.0.len()
    );
    let mut dice = Dice::new(amount.seed);
    let ghosts = (0..amount.ghosts).map(|_| (None, ghost(&mut dice, &speech)));
    let ghosts = Stream::new(amount.seed, ghosts.collect());
    ghosts.hear(hub, "ghosts")?;
    let ghost_identities = hub.store().identities()?.len();

    let turns = (0..amount.turns * amount.voices)
        .map(|index| {
            let voice = index % amount.voices;
            (Some(voice), turn(&mut dice, &speech.0[voice]))
        })
        .collect();
    let turns = Stream::new(amount.seed, shuffled(&mut dice, turns));
    let heard = turns.hear(hub, "voices")?;
    let labels: Vec<(usize, Option<u32>)> = heard
        .iter()
        .filter_map(|record| {
            let voice = turns.voice_at(record.start_ms.midpoint(record.end_ms))?;
            Some((voice, record.speaker.speaker.map(|id| id.0)))
        })
        .collect();
    Ok(Outcome {
        ghosts: amount.ghosts,
        ghost_identities,
        voices: amount.voices,
        turns: amount.turns,
        identities: hub.store().identities()?.len() - ghost_identities,
        records: heard.len(),
        accuracy: Attribution::count(&labels, &best_mapping(&labels)).accuracy(),
    })
}

/// The clips of each participant of an episode.
struct Speech(Vec<Vec<Vec<f32>>>);

impl Speech {
    fn of(episode: &Episode) -> Result<Self> {
        let mut clips: BTreeMap<&str, Vec<Vec<f32>>> = BTreeMap::new();
        for turn in episode.sessions.iter().flat_map(|session| &session.turns) {
            if let Some(audio) = &turn.audio {
                let clip = decode(&episode.audio_path(audio))
                    .with_context(|| format!("turn {}", turn.id))?;
                clips.entry(&turn.speaker).or_default().push(clip);
            }
        }
        Ok(Self(clips.into_values().collect()))
    }
}

/// A sound that is nobody, or too short to be anybody.
fn ghost(dice: &mut Dice, speech: &Speech) -> Vec<f32> {
    let sound = match dice.below(5) {
        0 => cough(dice),
        1 => click(dice),
        2 => door_slam(dice),
        3 => music(dice),
        _ => {
            let voice = &speech.0[dice.below(speech.0.len())];
            let seconds = dice.between(0.1, 0.6);
            cut(dice, voice, seconds)
        }
    };
    let level = dice.between(-35.0, -15.0);
    at_level(sound, level)
}

/// A turn of a voice, at some level and in some noise.
fn turn(dice: &mut Dice, voice: &[Vec<f32>]) -> Vec<f32> {
    let seconds = dice.between(1.6, 3.2);
    let level = dice.between(-35.0, -15.0);
    let mut sound = at_level(cut(dice, voice, seconds), level);
    let signal_to_noise = dice.between(15.0, 40.0);
    let hiss = at_level(noise(dice, sound.len()), level - signal_to_noise);
    sound.iter_mut().zip(hiss).for_each(|(a, b)| *a += b);
    sound
}

/// A piece out of the middle of a clip, never from the silence at its ends.
fn cut(dice: &mut Dice, voice: &[Vec<f32>], seconds: f32) -> Vec<f32> {
    let clip = &voice[dice.below(voice.len())];
    let edge = samples_in(0.15).min(clip.len() / 4);
    let inner = &clip[edge..clip.len() - edge];
    let length = samples_in(seconds).min(inner.len());
    let start = dice.below(inner.len() - length + 1);
    faded(inner[start..start + length].to_vec())
}

fn shuffled<T>(dice: &mut Dice, mut items: Vec<T>) -> Vec<T> {
    for last in (1..items.len()).rev() {
        items.swap(last, dice.below(last + 1));
    }
    items
}

/// Sounds one after the other in a room.
struct Stream {
    samples: Vec<f32>,
    /// Start and end of each voice's turn, in milliseconds.
    turns: Vec<(u64, u64, usize)>,
}

impl Stream {
    fn new(seed: u64, sounds: Vec<(Option<usize>, Vec<f32>)>) -> Self {
        let mut dice = Dice::new(seed ^ 1);
        let mut samples = vec![0.0; samples_in(1.0)];
        let mut turns = Vec::new();
        let to_ms = |count: usize| count as u64 / 16;
        for (voice, sound) in sounds {
            let start = to_ms(samples.len());
            samples.extend(sound);
            turns.extend(voice.map(|voice| (start, to_ms(samples.len()), voice)));
            let pause = samples_in(dice.between(0.9, 1.6));
            samples.resize(samples.len() + pause, 0.0);
        }
        let room = at_level(noise(&mut dice, samples.len()), ROOM_DBFS);
        samples.iter_mut().zip(room).for_each(|(a, b)| *a += b);
        Self { samples, turns }
    }

    /// Everything goes through the pipeline as one session.
    fn hear(&self, hub: &Hub, name: &str) -> Result<Vec<Record>> {
        let session = hub.store().begin_session(name, 0)?;
        let mut listener = Listener::new(hub, session.clone(), Placement::default())?;
        listener.push(&self.samples, &mut |_| {})?;
        listener.finish(&mut |_| {})?;
        hub.reconcile()?;
        let all = earwitness_api::types::RecordFilter {
            session: Some(session.id),
            ..Default::default()
        };
        Ok(hub.store().records(all)?)
    }

    /// Whose turn holds a moment.
    fn voice_at(&self, ms: u64) -> Option<usize> {
        let turn = self
            .turns
            .iter()
            .find(|(start, end, _)| (*start..*end).contains(&ms));
        turn.map(|(.., voice)| *voice)
    }
}
