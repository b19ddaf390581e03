//! From a question to the records that support an answer: 3W scoring
//! (PERSIST section 2.2).
//!
//! A question looks for what was said, by whom and when; the trained head reads
//! from its words how much each of these counts. Words that a record shares with
//! the question count as well. What can be worked out while a question is still
//! being spoken is ([`Hub::prepare`]); then only scoring is left.

mod document;
mod retriever;
mod words;

use std::time::Instant;

use earwitness_api::types::{
    Answer, AskTimings, Attribution, Evidence, PartialScores, Record, Session, Speaker, SpeakerId,
};
use earwitness_store::{StorageError, Voice};

pub(crate) use document::{document, said};
pub use retriever::{Prepared, Retriever, Said, Setting};

use crate::{
    answer::Question,
    attribute::recognise,
    hub::{Hub, HubError, lock},
};

/// How evidence is found. The head knows how much each part counts; the weights
/// here are factors to that.
#[derive(Clone, Copy, Debug)]
pub struct RecallOptions {
    /// Of the semantic block.
    pub what: f32,
    /// Of the speaker block.
    pub who: f32,
    /// Of the temporal block.
    pub when: f32,
    /// Of the words.
    pub words: f32,
    /// Records that the answerer may choose from.
    pub candidates: usize,
}

impl Default for RecallOptions {
    fn default() -> Self {
        Self {
            what: 1.0,
            who: 1.0,
            when: 1.0,
            words: 1.0,
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

impl Hub {
    /// The name that somebody gave a speaker.
    pub fn name_of(&self, speaker: Option<SpeakerId>) -> Result<Option<String>, HubError> {
        Ok(name_of(speaker, &self.store.speakers()?))
    }

    /// Reads the words of new records ahead of the next question, and lets go of
    /// those that were forgotten.
    pub fn follow_store(&self) {
        match self.retriever.follow(&self.store) {
            Ok(()) | Err(HubError::Storage(StorageError::Off)) => {}
            Err(error) => tracing::error!(%error, "the words of new records cannot be read"),
        }
    }

    /// Takes in the words of a question so far, while it is still being asked: to
    /// answer a question of the same words, only scoring is left then.
    pub fn prepare(&self, text: &str) -> Result<(), HubError> {
        let question = self.prepared(text)?;
        *lock(&self.prepared) = Some(question);
        Ok(())
    }

    fn prepared(&self, text: &str) -> Result<Prepared, HubError> {
        if let Some(question) = lock(&self.prepared).take_if(|question| question.text == text) {
            return Ok(question);
        }
        Ok(self.retriever.prepare(text, self.embed(text)?))
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
        let question = self.prepared(text)?;
        timings.embed_ms = elapsed_ms(started);

        let started = Instant::now();
        let speakers = self.store.speakers()?;
        let sessions = self.store.sessions()?;
        let asker = self.recognise(asker, &self.store.voices()?);
        let setting = Setting {
            asker: asker.speaker,
            speakers: &speakers,
            // The next one: a question is asked after all that is remembered.
            session: sessions.last().map_or(0, |session| session.id.0.into()),
        };
        let count = self.retriever.options().candidates;
        let ranked = self
            .retriever
            .rank(&self.store, &question, &setting, count)?;
        timings.score_ms = elapsed_ms(started);

        let started = Instant::now();
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
