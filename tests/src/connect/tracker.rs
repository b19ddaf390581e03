//! The runtime's speaker tracker over voices kept in memory.

use earwitness::attribute::{
    AttributeOptions, Floor, Turn, attribute,
    reconcile::{Apart, ReconcileOptions, Utterance, reconcile},
};
use earwitness_api::types::{Consent, SessionId, SpeakerId};
use earwitness_store::{Learned, Speaking, VOICEPRINTS_PER_SPEAKER, Voice};

use crate::speakers::{Attributor, HeardTurn};

/// Decides as the runtime does, and keeps in lists what the store would keep.
pub struct Tracker {
    options: AttributeOptions,
    reconcile: Option<ReconcileOptions>,
    voices: Vec<Voice>,
    /// The turns that each voice learned from, in the order of the voices.
    kept: Vec<Vec<(SessionId, Vec<f32>)>>,
    floor: Floor,
}

impl Tracker {
    /// A tracker that knows nobody. Without `reconcile`, identities are never
    /// merged.
    pub fn new(options: AttributeOptions, reconcile: Option<ReconcileOptions>) -> Self {
        Self {
            options,
            reconcile,
            voices: Vec::new(),
            kept: Vec::new(),
            floor: Floor::default(),
        }
    }

    fn open(&mut self) -> SpeakerId {
        let speaker = SpeakerId(self.voices.len() as u32);
        self.voices.push(Voice {
            speaker,
            identity: speaker,
            centroid: Vec::new(),
            speech_ms: 0,
            turns: 0,
            enrolled: false,
            consent: Consent::default(),
        });
        self.kept.push(Vec::new());
        speaker
    }

    fn learn(&mut self, speaker: SpeakerId, turn: &HeardTurn, learned: Learned) {
        let voice = &mut self.voices[speaker.0 as usize];
        voice.centroid = learned.centroid;
        voice.speech_ms += u64::from(learned.speech_ms);
        voice.turns += 1;
        let kept = &mut self.kept[speaker.0 as usize];
        kept.push((
            SessionId(turn.session as u32),
            turn.heard.voiceprint.clone(),
        ));
        if kept.len() > VOICEPRINTS_PER_SPEAKER {
            kept.remove(0);
        }
    }

    fn utterances(&self) -> Vec<Utterance> {
        let of_voice = |(voice, kept): (&Voice, &Vec<(SessionId, Vec<f32>)>)| {
            let identity = voice.identity;
            let utterance = |(session, embedding): &(SessionId, Vec<f32>)| Utterance {
                identity,
                session: Some(*session),
                embedding: embedding.clone(),
            };
            kept.iter().map(utterance).collect::<Vec<_>>()
        };
        self.voices
            .iter()
            .zip(&self.kept)
            .flat_map(of_voice)
            .collect()
    }
}

impl Attributor for Tracker {
    fn attribute(&mut self, turn: &HeardTurn) -> Option<u32> {
        let heard = Turn {
            voiceprint: &turn.heard.voiceprint,
            quality: turn.heard.quality,
            neighbour: self.floor.neighbour(turn.start_ms),
        };
        let found = match attribute(&self.voices, &heard, &self.options) {
            Speaking::Unknown { .. } => None,
            Speaking::Known { id, learned, .. } => Some((id, learned)),
            Speaking::New { learned, .. } => Some((self.open(), Some(learned))),
        };
        let speaker = found.map(|(speaker, learned)| {
            if let Some(learned) = learned {
                self.learn(speaker, turn, learned);
            }
            speaker
        });
        let identity = speaker.map(|speaker| self.voices[speaker.0 as usize].identity);
        self.floor.pass(identity, turn.end_ms);
        speaker.map(|speaker| speaker.0)
    }

    fn end_session(&mut self) {
        self.floor = Floor::default();
        let Some(options) = &self.reconcile else {
            return;
        };
        for merge in reconcile(&self.utterances(), &Apart::new(), options) {
            let of_source = |voice: &&mut Voice| voice.identity == merge.from;
            for voice in self.voices.iter_mut().filter(of_source) {
                voice.identity = merge.into;
            }
        }
    }

    fn resolve(&self, label: u32) -> u32 {
        self.voices[label as usize].identity.0
    }
}
