//! The runtime's retriever over a real store.
//!
//! Attribution is ideal: each turn is known to be its participant's. Voices are as
//! real ones are: drawn by seed, 0.1 alike between people, 0.8 to 0.9 between a turn
//! and its speaker. So this measures retrieval and not the tracker.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use anyhow::{Context, Result};
use earwitness::recall::{self, Prepared, Said, Setting};
use earwitness_api::types::{Attachment, RecordId, SessionId, Speaker, SpeakerId};
use earwitness_store::{Block, Key, Learned, NewRecord, Speaking, Store};
use tempfile::TempDir;

use crate::retrieval::{Asked, PoolRecord, Ranked, Retriever, SharedEmbedder, best_first};

/// Records that are ranked for a question: more than what does not count as history
/// in any episode, and the deepest that is measured.
const DEPTH: usize = 200;

/// Values of a voiceprint.
const VOICE_DIM: usize = 256;

/// Who, what and when, as the device scores them.
pub struct ThreeW {
    embedder: SharedEmbedder,
    retriever: recall::Retriever,
    memory: Option<Memory>,
    /// The keys of the records before they are rounded.
    exact: Vec<[Vec<f32>; 3]>,
}

impl ThreeW {
    /// Measures a retriever of the runtime.
    pub fn new(embedder: SharedEmbedder, retriever: recall::Retriever) -> Self {
        Self {
            embedder,
            retriever,
            memory: None,
            exact: Vec::new(),
        }
    }

    /// What can be done before a question is over: all but the scoring.
    pub fn prepare(&self, question: &Asked<'_>) -> Result<Prepared> {
        let text = &question.question.text;
        Ok(self.retriever.prepare(text, self.embedder.question(text)?))
    }

    /// What is left to do then.
    pub fn rank_prepared(&self, prepared: &Prepared, question: &Asked<'_>) -> Result<Vec<Ranked>> {
        match &self.memory {
            Some(memory) => memory.rank(&self.retriever, prepared, question),
            None => Ok(Vec::new()),
        }
    }

    /// The places of the `count` records that fit best where nothing is rounded; words
    /// do not count.
    pub fn rank_exact(&self, question: &Asked<'_>, count: usize) -> Result<Vec<usize>> {
        let Some(memory) = &self.memory else {
            return Ok(Vec::new());
        };
        let prepared = self.prepare(question)?;
        let (voices, names) = (memory.store.voices()?, memory.names(question));
        let setting = memory.setting(question, &names);
        let wanted = self
            .retriever
            .query_vectors(&prepared, &setting, &voices, VOICE_DIM);
        let score = |key: &[Vec<f32>; 3]| {
            let blocks = key.iter().zip(&wanted);
            blocks.map(|(key, wanted)| dot(key, wanted)).sum::<f32>()
        };
        let mut ranked: Vec<Ranked> = self.exact.iter().map(score).enumerate().collect();
        best_first(&mut ranked);
        Ok(ranked
            .into_iter()
            .map(|(place, _)| place)
            .take(count)
            .collect())
    }

    fn key(&mut self, record: &PoolRecord<'_>, before: Option<&PoolRecord<'_>>) -> Result<Key> {
        let embed = |record: &PoolRecord<'_>| self.embedder.document(&record.document());
        let before = before.map(embed).transpose()?;
        let turn = record.turn;
        let said = Said {
            text: turn.text.as_deref().unwrap_or_default(),
            own: &embed(record)?,
            before: before.as_deref(),
            session: record.session as u64,
            start_ms: turn.start_ms,
        };
        let voice = voice_of(&record.episode.id, &turn.speaker);
        let heard = heard(voice, &format!("{}/{}", record.episode.id, turn.id));
        let key = self.retriever.key(&said, Block::quantize(&heard));
        let [what, when] = self.retriever.key_vectors(&said);
        self.exact.push([what, heard, when]);
        Ok(key)
    }
}

impl Retriever for ThreeW {
    fn index(&mut self, records: &[PoolRecord<'_>]) -> Result<()> {
        let mut memory = Memory::empty()?;
        // Another memory with the same ids: what was known of the last one has to go.
        self.retriever.follow(&memory.store)?;
        self.exact.clear();
        for (place, record) in records.iter().enumerate() {
            let before = place.checked_sub(1).map(|before| &records[before]);
            let before = before.filter(|before| {
                before.session == record.session && before.episode.id == record.episode.id
            });
            let key = self.key(record, before)?;
            memory.remember(place, record, key).with_context(|| {
                format!("turn {} of episode {}", record.turn.id, record.episode.id)
            })?;
        }
        // The first question must not pay for reading what is there already.
        self.retriever.follow(&memory.store)?;
        self.memory = Some(memory);
        Ok(())
    }

    fn rank(&mut self, question: &Asked<'_>) -> Result<Vec<Ranked>> {
        let prepared = self.prepare(question)?;
        self.rank_prepared(&prepared, question)
    }
}

/// A store that lasts as long as a pool.
struct Memory {
    store: Store,
    sessions: HashMap<(String, usize), SessionId>,
    speakers: HashMap<u64, SpeakerId>,
    places: HashMap<RecordId, usize>,
    _folder: TempDir,
}

impl Memory {
    fn empty() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        Ok(Self {
            store: Store::open(&folder.path().join("memory.redb"))?,
            sessions: HashMap::new(),
            speakers: HashMap::new(),
            places: HashMap::new(),
            _folder: folder,
        })
    }

    fn rank(
        &self,
        retriever: &recall::Retriever,
        prepared: &Prepared,
        question: &Asked<'_>,
    ) -> Result<Vec<Ranked>> {
        let names = self.names(question);
        let setting = self.setting(question, &names);
        let scored = retriever.rank(&self.store, prepared, &setting, DEPTH)?;
        let ranked = scored
            .iter()
            .filter_map(|scored| Some((*self.places.get(&scored.id)?, scored.scores.total())));
        Ok(ranked.collect())
    }

    fn setting<'a>(&self, question: &Asked<'_>, speakers: &'a [Speaker]) -> Setting<'a> {
        let asker = question.question.asker.as_deref();
        Setting {
            asker: asker.and_then(|asker| self.known(question, asker)),
            speakers,
            session: question.session as u64,
        }
    }

    /// Everybody who may be named, once for each name.
    fn names(&self, question: &Asked<'_>) -> Vec<Speaker> {
        let people = question.episode.participants.iter();
        let names = people.flat_map(|person| {
            let names = std::iter::once(&person.name).chain(&person.aliases);
            names.filter_map(|name| Some(speaker(self.known(question, &person.id)?, name)))
        });
        names.collect()
    }

    fn known(&self, question: &Asked<'_>, participant: &str) -> Option<SpeakerId> {
        let voice = voice_of(&question.episode.id, participant);
        self.speakers.get(&voice).copied()
    }

    fn remember(&mut self, place: usize, record: &PoolRecord<'_>, key: Key) -> Result<()> {
        let turn = record.turn;
        let identity = voice_of(&record.episode.id, &turn.speaker);
        let known = self.speakers.get(&identity).copied();
        let session = self.session(record)?;
        let written = self.store.append(NewRecord {
            session,
            start_ms: turn.start_ms,
            end_ms: turn.end_ms,
            unix_ms: record.said_at.as_millisecond(),
            key,
            speaker: speaking(known, voiceprint(identity)),
            addressees: Vec::new(),
            text: turn.text.clone().unwrap_or_default(),
            attachments: attachments(record),
        })?;
        self.places.insert(written.id, place);
        if let (None, Some(speaker)) = (known, written.speaker.speaker) {
            self.store
                .name_speaker(speaker, record.episode.name_of(&turn.speaker))?;
            self.speakers.insert(identity, speaker);
        }
        Ok(())
    }

    fn session(&mut self, record: &PoolRecord<'_>) -> Result<SessionId> {
        let key = (record.episode.id.clone(), record.session);
        if let Some(session) = self.sessions.get(&key) {
            return Ok(*session);
        }
        let session = &record.episode.sessions[record.session];
        let name = format!("{}/{}", record.episode.id, session.id);
        let begun = self
            .store
            .begin_session(&name, session.start.as_millisecond())?
            .id;
        self.sessions.insert(key, begun);
        Ok(begun)
    }
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

fn speaking(known: Option<SpeakerId>, voice: Vec<f32>) -> Speaking {
    match known {
        Some(id) => Speaking::Known {
            id,
            score: 1.0,
            learned: None,
        },
        None => {
            let learned = Learned {
                centroid: voice,
                speech_ms: 1000,
            };
            Speaking::New {
                score: 0.0,
                learned,
            }
        }
    }
}

fn attachments(record: &PoolRecord<'_>) -> Vec<Attachment> {
    let shown = record.turn.attachments.iter();
    shown
        .map(|shown| Attachment {
            kind: shown.kind.clone(),
            caption: shown.caption.clone().unwrap_or_default(),
        })
        .collect()
}

/// Tells the people of all episodes apart; the standard hasher's keys are fixed.
fn voice_of(episode: &str, participant: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (episode, participant).hash(&mut hasher);
    hasher.finish()
}

/// How a person sounds: a unit vector of the size of a voiceprint, of which a part
/// is common to all.
fn voiceprint(identity: u64) -> Vec<f32> {
    const COMMON: f32 = 0.33;
    let own = (1.0 - COMMON * COMMON).sqrt();
    let pairs = signs(0).zip(signs(identity));
    pairs.map(|(all, one)| COMMON * all + own * one).collect()
}

/// The same in one turn.
fn heard(identity: u64, turn: &str) -> Vec<f32> {
    const NOISE: f32 = 0.65;
    let mut hasher = DefaultHasher::new();
    turn.hash(&mut hasher);
    let pairs = voiceprint(identity).into_iter().zip(signs(hasher.finish()));
    let heard: Vec<f32> = pairs.map(|(voice, noise)| voice + NOISE * noise).collect();
    let length = heard.iter().map(|value| value * value).sum::<f32>().sqrt();
    heard.iter().map(|value| value / length).collect()
}

/// A unit vector whose signs are drawn by splitmix64.
fn signs(mut seed: u64) -> impl Iterator<Item = f32> {
    let size = (VOICE_DIM as f32).sqrt().recip();
    (0..VOICE_DIM).map(move |_| {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let drawn = mixed ^ (mixed >> 31);
        if drawn & 1 == 0 { size } else { -size }
    })
}

fn speaker(id: SpeakerId, name: &str) -> Speaker {
    Speaker {
        id,
        name: Some(name.to_owned()),
        records: 0,
        first_heard_unix_ms: 0,
        last_heard_unix_ms: 0,
    }
}
