//! The retriever: who, what and when by one pass over the keys, and the words
//! beside them, weighed by the trained head (`models/train/threew/README.md` has
//! the equations).

use std::sync::{Mutex, PoisonError};

use earwitness_api::types::{Speaker, SpeakerId};
use earwitness_models::{
    pack::{Pack, PackError},
    threew::{Head, words},
};
use earwitness_store::{Block, Key, KeyLayout, Query, Scored, Store, Voice, Weights};

use super::{
    RecallOptions,
    words::{Terms, Words},
};
use crate::{answer::cues, hub::HubError};

/// Makes keys of records, and finds records for questions.
pub struct Retriever {
    head: Head,
    options: RecallOptions,
    terms: Terms,
    words: Mutex<Words>,
}

/// All of a question that can be worked out while it is still being asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// The words so far.
    pub text: String,
    embedding: Vec<f32>,
    stems: Vec<String>,
}

/// Where and by whom a question is asked.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// Who asks, where known.
    pub asker: Option<SpeakerId>,
    /// Everybody who may be named.
    pub speakers: &'a [Speaker],
    /// The number of the session that begins with the question, from 0.
    pub session: u64,
}

/// What the blocks of a key are made of, beside the voice.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// The text.
    pub text: &'a str,
    /// Embedding of the record's document.
    pub own: &'a [f32],
    /// Embedding of the document before it, where that is of the same session.
    pub before: Option<&'a [f32]>,
    /// The number of the session, from 0.
    pub session: u64,
    /// Start in the session, in milliseconds.
    pub start_ms: u64,
}

impl Retriever {
    /// Loads the head of a pack.
    pub fn load(pack: &Pack, options: RecallOptions) -> Result<Self, PackError> {
        let head = Head::load(pack)?;
        Ok(Self {
            terms: Terms::new(head.stop_words()),
            head,
            options,
            words: Mutex::default(),
        })
    }

    /// How evidence is found.
    pub fn options(&self) -> &RecallOptions {
        &self.options
    }

    /// The key of a record; `voice` is how it sounds.
    pub fn key(&self, said: &Said<'_>, voice: Block) -> Key {
        let [semantic, temporal] = self.key_vectors(said);
        Key {
            semantic: Block::quantize(&semantic),
            speaker: voice,
            temporal: Block::quantize(&temporal),
        }
    }

    /// The semantic and the temporal block of a record's key, not yet rounded.
    pub fn key_vectors(&self, said: &Said<'_>) -> [Vec<f32>; 2] {
        let only_asks = cues::only_asks(said.text);
        [
            self.head.semantic_key(said.own, said.before, only_asks),
            self.head.temporal_key(said.session, said.start_ms),
        ]
    }

    /// Takes in a question; `embedding` is that of its text.
    pub fn prepare(&self, text: &str, embedding: Vec<f32>) -> Prepared {
        Prepared {
            text: text.to_owned(),
            embedding,
            stems: self.terms.of(text),
        }
    }

    /// Reads the words of what a store has written since, so that the next question
    /// need not.
    pub fn follow(&self, store: &Store) -> Result<(), HubError> {
        let mut index = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(index.follow(store, &store.keys(), &self.terms)?)
    }

    /// The records that fit best, at most `count`, best first; none in an empty
    /// memory.
    pub fn rank(
        &self,
        store: &Store,
        question: &Prepared,
        setting: &Setting<'_>,
        count: usize,
    ) -> Result<Vec<Scored>, HubError> {
        let keys = store.keys();
        let Some(layout) = keys.layout() else {
            return Ok(Vec::new());
        };
        let query = self.query(question, setting, &store.voices()?, layout)?;
        let mut index = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        index.follow(store, &keys, &self.terms)?;
        let mut words = index.scores(&question.stems);
        drop(index);
        let weight = self.options.words * self.head.lexical();
        words.iter_mut().for_each(|words| *words *= weight);
        Ok(keys.score_top_k(&query, &words, count)?)
    }

    fn query(
        &self,
        question: &Prepared,
        setting: &Setting<'_>,
        voices: &[Voice],
        layout: KeyLayout,
    ) -> Result<Query, HubError> {
        let [what, who, when] =
            self.query_vectors(question, setting, voices, usize::from(layout.speaker));
        let key = Key {
            semantic: Block::quantize(&what),
            speaker: Block::quantize(&who),
            temporal: Block::quantize(&when),
        };
        let weights = Weights {
            what: self.options.what,
            who: self.options.who,
            when: self.options.when,
        };
        Ok(Query::new(key, weights)?)
    }

    /// The blocks of a question (what, who, when), not yet rounded; `voice_size` is the
    /// length of a voiceprint.
    pub fn query_vectors(
        &self,
        question: &Prepared,
        setting: &Setting<'_>,
        voices: &[Voice],
        voice_size: usize,
    ) -> [Vec<f32>; 3] {
        let named = named(&question.text, setting.speakers);
        let asked = self.head.asked(
            &question.text,
            &question.embedding,
            named.len(),
            setting.session,
        );
        let mut who = vec![0.0; voice_size];
        let askers = setting.asker.iter().map(|asker| (asker, asked.asker));
        for (person, gate) in askers.chain(named.iter().map(|person| (person, asked.named))) {
            add_voice(&mut who, *person, gate, voices);
        }
        [asked.what, who, asked.when]
    }
}

/// Adds a person's voice so much: of several facets the best known one.
fn add_voice(sum: &mut [f32], person: SpeakerId, gate: f32, voices: &[Voice]) {
    let facets = voices.iter().filter(|voice| voice.identity == person);
    let Some(voice) = facets.max_by_key(|voice| voice.speech_ms) else {
        return;
    };
    let length = voice.centroid.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        for (sum, value) in sum.iter_mut().zip(&voice.centroid) {
            *sum += gate * value / length;
        }
    }
}

/// The people of whom a name stands in a text, all its words in a row. Who has
/// several names stands several times among the speakers, one after the other.
fn named(text: &str, speakers: &[Speaker]) -> Vec<SpeakerId> {
    let spoken: Vec<String> = words(text).collect();
    let is_named = |name: &str| {
        let name: Vec<String> = words(name).collect();
        !name.is_empty() && spoken.windows(name.len()).any(|window| window == name)
    };
    let named = speakers
        .iter()
        .filter(|speaker| speaker.name.as_deref().is_some_and(is_named));
    let mut named: Vec<SpeakerId> = named.map(|speaker| speaker.id).collect();
    named.dedup();
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaker(id: u32, name: &str) -> Speaker {
        Speaker {
            id: SpeakerId(id),
            name: Some(name.to_owned()),
            records: 1,
            first_heard_unix_ms: 0,
            last_heard_unix_ms: 0,
        }
    }

    #[test]
    fn people_are_named_by_whole_words() {
        let people = [speaker(1, "Ben"), speaker(2, "Aunt May"), speaker(3, "")];
        let ids = |text| {
            named(text, &people)
                .iter()
                .map(|id| id.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(ids("What is Ben's plan?"), [1]);
        assert_eq!(ids("did aunt may call ben"), [1, 2]);
        assert_eq!(ids("When is the bench painted in May?"), [0; 0]);
    }
}
