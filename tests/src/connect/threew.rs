//! The runtime's 3W scoring over a real store.
//!
//! Voices are ideal: each participant of an episode has a voiceprint of their
//! own, fixed by a seed and nearly orthogonal to all others, as if every turn
//! had been attributed rightly. So this measures retrieval and not the tracker.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use anyhow::{Context, Result};
use earwitness::recall::{RecallOptions, person_meant, query};
use earwitness_api::types::{Attachment, RecordId, SessionId, SpeakerId};
use earwitness_store::{Block, Key, Learned, NewRecord, Speaking, Store};
use tempfile::TempDir;

use crate::retrieval::{Asked, PoolRecord, Ranked, Retriever, SharedEmbedder};

/// Who, what and when, as the device scores them.
pub struct ThreeW {
    embedder: SharedEmbedder,
    options: RecallOptions,
    memory: Option<Memory>,
}

impl ThreeW {
    /// Scores with `options`.
    pub fn new(embedder: SharedEmbedder, options: RecallOptions) -> Self {
        Self {
            embedder,
            options,
            memory: None,
        }
    }
}

impl Retriever for ThreeW {
    fn index(&mut self, records: &[PoolRecord<'_>]) -> Result<()> {
        let mut memory = Memory::empty()?;
        for (place, record) in records.iter().enumerate() {
            let text = record.turn.text.as_deref().unwrap_or_default();
            let semantic = Block::quantize(&self.embedder.document(text)?);
            memory.remember(place, record, semantic).with_context(|| {
                format!("turn {} of episode {}", record.turn.id, record.episode.id)
            })?;
        }
        self.memory = Some(memory);
        Ok(())
    }

    fn rank(&mut self, question: &Asked<'_>) -> Result<Vec<Ranked>> {
        let Some(memory) = &self.memory else {
            return Ok(Vec::new());
        };
        let text = &question.question.text;
        let semantic = self.embedder.question(text)?;
        let keys = memory.store.keys();
        let Some(layout) = keys.layout() else {
            return Ok(Vec::new());
        };
        let asker = question.question.asker.as_deref();
        let asker =
            asker.and_then(|asker| memory.speakers.get(&voice_of(&question.episode.id, asker)));
        let meant = person_meant(text, asker.copied(), &memory.store.speakers()?);
        let voices = memory.store.voices()?;
        let voice = voices.iter().find(|voice| Some(voice.speaker) == meant);
        let voice = voice.map(|voice| voice.centroid.as_slice());
        let query = query(&semantic, voice, layout, &self.options)?;
        let scored = keys.score_top_k(&query, keys.len())?;
        let ranked = scored
            .iter()
            .filter_map(|scored| Some((*memory.places.get(&scored.id)?, scored.scores.total())));
        Ok(ranked.collect())
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

    fn remember(&mut self, place: usize, record: &PoolRecord<'_>, semantic: Block) -> Result<()> {
        let turn = record.turn;
        let identity = voice_of(&record.episode.id, &turn.speaker);
        let voice = voiceprint(identity);
        let known = self.speakers.get(&identity).copied();
        let session = self.session(record)?;
        let written = self.store.append(NewRecord {
            session,
            start_ms: turn.start_ms,
            end_ms: turn.end_ms,
            unix_ms: record.said_at.as_millisecond(),
            key: Key {
                semantic,
                speaker: Block::quantize(&voice),
                temporal: Block::default(),
            },
            speaker: speaking(known, voice),
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

/// A unit vector of the size of a voiceprint, its signs drawn by splitmix64.
fn voiceprint(mut seed: u64) -> Vec<f32> {
    const DIM: usize = 192;
    let mut draw = || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let size = (DIM as f32).sqrt().recip();
    (0..DIM)
        .map(|_| if draw() & 1 == 0 { size } else { -size })
        .collect()
}
