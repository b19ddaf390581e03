//! From a question to the records that support an answer: 3W scoring
//! (PERSIST section 2.2).
//!
//! The query has the blocks of a key: what is asked about (the question's
//! sentence embedding), whose words are meant (a voice), and when. Its weights
//! say how much each block counts for this question. The temporal block stays
//! silent until a head for it has been trained.

use std::time::Instant;

use earwitness_api::types::{
    Answer, AskTimings, Attribution, Evidence, PartialScores, Record, Session, Speaker, SpeakerId,
};
use earwitness_store::{Block, Key, KeyLayout, Query, QueryError, Scored, Voice, Weights};

use crate::{
    answer::{Question, cues},
    attribute::recognise,
    hub::{Hub, HubError},
};

/// How evidence is found.
#[derive(Clone, Copy, Debug)]
pub struct RecallOptions {
    /// Weight of the semantic block.
    pub what: f32,
    /// Weight of the speaker block where the question is about one person.
    pub who: f32,
    /// Records that the answerer may choose from.
    pub candidates: usize,
}

impl Default for RecallOptions {
    fn default() -> Self {
        Self {
            what: 1.0,
            who: 0.25,
            candidates: 8,
        }
    }
}

/// Who asks, as far as the caller knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Asker<'a> {
    /// Nobody said.
    Unknown,
    /// A speaker of the store.
    Speaker(SpeakerId),
    /// The voice of a spoken question.
    Voice(&'a [f32]),
}

/// Whose words a question is about: the asker's in the first person, a named
/// person's, or anybody's. A soft preference, never a filter.
pub fn person_meant(
    question: &str,
    asker: Option<SpeakerId>,
    speakers: &[Speaker],
) -> Option<SpeakerId> {
    let named = speakers.iter().find(|speaker| {
        speaker
            .name
            .as_deref()
            .is_some_and(|name| cues::names(question, name))
    });
    match named {
        Some(speaker) => Some(speaker.id),
        None if cues::is_first_person(question) => asker,
        None => None,
    }
}

/// The query of one question; `voice` is the centroid of the person meant.
pub fn query(
    semantic: &[f32],
    voice: Option<&[f32]>,
    layout: KeyLayout,
    options: &RecallOptions,
) -> Result<Query, QueryError> {
    let key = Key {
        semantic: Block::quantize(semantic),
        speaker: voice.map_or_else(|| Block::unknown(layout.speaker), Block::quantize),
        temporal: Block::unknown(layout.temporal),
    };
    Query::new(
        key,
        Weights {
            what: options.what,
            who: options.who,
            when: 0.0,
        },
    )
}

impl Hub {
    /// The name that somebody gave a speaker.
    pub fn name_of(&self, speaker: Option<SpeakerId>) -> Result<Option<String>, HubError> {
        Ok(name_of(speaker, &self.store.speakers()?))
    }

    /// Answers a typed question.
    pub fn ask(&self, text: &str, asker: Asker<'_>) -> Result<Answer, HubError> {
        self.answer(text, asker, AskTimings::default())
    }

    /// Answers a spoken question; its voice says who asks unless `asker` does.
    pub fn ask_aloud(&self, samples: &[f32], asker: Option<SpeakerId>) -> Result<Answer, HubError> {
        let started = Instant::now();
        let text = self.transcribe(samples)?;
        if text.is_empty() {
            return Err(HubError::NoQuestion);
        }
        let voiceprint = self.voiceprint(samples)?;
        let timings = AskTimings {
            listen_ms: elapsed_ms(started),
            ..AskTimings::default()
        };
        let asker = asker.map_or(Asker::Voice(&voiceprint), Asker::Speaker);
        self.answer(&text, asker, timings)
    }

    fn answer(
        &self,
        text: &str,
        asker: Asker<'_>,
        mut timings: AskTimings,
    ) -> Result<Answer, HubError> {
        let started = Instant::now();
        let semantic = self.embed(text)?;
        timings.embed_ms = elapsed_ms(started);

        let started = Instant::now();
        let speakers = self.store.speakers()?;
        let voices = self.store.voices()?;
        let asker = self.recognise(asker, &voices);
        let meant = person_meant(text, asker.speaker, &speakers);
        let voice = voices.iter().find(|voice| Some(voice.speaker) == meant);
        let ranked = self.rank(&semantic, voice)?;
        timings.score_ms = elapsed_ms(started);

        let started = Instant::now();
        let sessions = self.store.sessions()?;
        let mut evidence = Vec::with_capacity(ranked.len());
        for scored in ranked {
            // A record that was forgotten since the snapshot is no evidence.
            if let Some(record) = self.store.record(scored.id)? {
                evidence.push(describe(record, scored.scores, &sessions, &speakers));
            }
        }
        let question = Question {
            text,
            asker: asker.speaker,
            evidence: &evidence,
        };
        let reply = self.answerer().answer(question);
        timings.answer_ms = elapsed_ms(started);
        Ok(Answer {
            question: text.to_owned(),
            asker,
            asker_name: name_of(asker.speaker, &speakers),
            text: reply.text,
            support: reply
                .support
                .iter()
                .map(|&index| evidence[index].record.id)
                .collect(),
            evidence,
            timings,
        })
    }

    /// The best keys for a question; none in an empty memory.
    fn rank(&self, semantic: &[f32], voice: Option<&Voice>) -> Result<Vec<Scored>, HubError> {
        let (keys, options) = (self.store.keys(), &self.options.recall);
        let Some(layout) = keys.layout() else {
            return Ok(Vec::new());
        };
        let voice = voice.map(|voice| voice.centroid.as_slice());
        let query = query(semantic, voice, layout, options)?;
        Ok(keys.score_top_k(&query, options.candidates)?)
    }

    /// Names the asker; a voice that matches nobody stays unknown, and nothing
    /// is learned from a question.
    fn recognise(&self, asker: Asker<'_>, voices: &[Voice]) -> Attribution {
        match asker {
            Asker::Unknown => Attribution {
                speaker: None,
                score: 0.0,
            },
            Asker::Speaker(id) => Attribution {
                speaker: Some(id),
                score: 1.0,
            },
            Asker::Voice(voiceprint) => {
                let (speaker, score) = recognise(voices, voiceprint, &self.attribute);
                Attribution { speaker, score }
            }
        }
    }
}

fn describe(
    record: Record,
    scores: PartialScores,
    sessions: &[Session],
    speakers: &[Speaker],
) -> Evidence {
    let session = sessions.iter().find(|session| session.id == record.session);
    Evidence {
        session_name: session
            .map(|session| session.name.clone())
            .unwrap_or_default(),
        speaker_name: name_of(record.speaker.speaker, speakers),
        record,
        scores,
    }
}

fn name_of(speaker: Option<SpeakerId>, speakers: &[Speaker]) -> Option<String> {
    let id = speaker?;
    speakers
        .iter()
        .find(|speaker| speaker.id == id)?
        .name
        .clone()
}

fn elapsed_ms(started: Instant) -> f32 {
    started.elapsed().as_secs_f32() * 1000.0
}
