//! The runtime's speaker tracker over voices kept in memory.

use earwitness::attribute::{
    AttributeOptions, attribute,
    reconcile::{Aliases, ReconcileOptions, Utterance, reconcile},
};
use earwitness_api::types::{SessionId, SpeakerId};
use earwitness_store::{Learned, Speaking, Voice};

use crate::speakers::{Attributor, HeardTurn};

/// Decides as the runtime does, and keeps in lists what the store would keep.
pub struct Tracker {
    options: AttributeOptions,
    reconcile: Option<ReconcileOptions>,
    voices: Vec<Voice>,
    utterances: Vec<Utterance>,
    aliases: Aliases,
}

impl Tracker {
    /// A tracker that knows nobody. Without `reconcile`, identities are never
    /// merged.
    pub fn new(options: AttributeOptions, reconcile: Option<ReconcileOptions>) -> Self {
        Self {
            options,
            reconcile,
            voices: Vec::new(),
            utterances: Vec::new(),
            aliases: Aliases::new(),
        }
    }

    fn open(&mut self, centroid: Vec<f32>) -> SpeakerId {
        let speaker = SpeakerId(self.voices.len() as u32);
        self.voices.push(Voice {
            speaker,
            centroid,
            seconds: 0.0,
            turns: 1,
        });
        speaker
    }

    fn learn(&mut self, speaker: SpeakerId, turn: &HeardTurn, learned: Learned) {
        let voice = &mut self.voices[speaker.0 as usize];
        voice.centroid = learned.centroid;
        let session = SessionId(turn.session as u32);
        self.utterances.push(Utterance {
            speaker,
            session,
            embedding: learned.embedding,
        });
    }
}

impl Attributor for Tracker {
    fn attribute(&mut self, turn: &HeardTurn) -> Option<u32> {
        let speaking = attribute(&self.voices, &turn.voiceprint, turn.audio_ms, &self.options);
        let (speaker, learned) = match speaking {
            Speaking::Unknown { .. } => return None,
            Speaking::Known { id, learned, .. } => (id, learned),
            Speaking::New { learned, .. } => (self.open(learned.centroid.clone()), Some(learned)),
        };
        if let Some(learned) = learned {
            self.learn(speaker, turn, learned);
        }
        Some(speaker.0)
    }

    fn end_session(&mut self) {
        if let Some(options) = &self.reconcile {
            self.aliases = reconcile(&self.utterances, options);
        }
    }

    fn resolve(&self, label: u32) -> u32 {
        self.aliases
            .get(&SpeakerId(label))
            .map_or(label, |speaker| speaker.0)
    }
}
