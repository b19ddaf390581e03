//! Enrolment: somebody lends their voice on purpose.
//!
//! The recordings are cut into pieces by voice activity. Pieces that fail the
//! quality gate are left out and named; the others have to be of one voice, enough
//! of it, and not the voice of somebody who is known under another name.

use earwitness_api::{
    message::{Enrolled, MAX_ENROLMENT_SAMPLES},
    types::SpeakerId,
};
use earwitness_dsp::dot::dot_f32;
use earwitness_store::{Enrolment, NameError, Voice};

use super::unit;
use crate::{
    attribute::{Quality, recognise},
    capture::SAMPLE_RATE_HZ,
    hub::{Hub, HubError},
    segment::{Segment, SegmentOptions, Segmenter},
};

/// Good speech that an enrolment needs, in milliseconds.
const LEAST_SPEECH_MS: u32 = 5000;
/// Good speech from which more hardly makes a voice surer, in milliseconds.
const AMPLE_SPEECH_MS: u32 = 15_000;
/// A voiceprint hears little more than this of a piece.
const LONGEST_PIECE_MS: u32 = 4000;

/// Why somebody was not enrolled.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// There is more sound than is needed.
    #[error("an enrolment lasts at most {} s; leave some of the recordings out", MAX_ENROLMENT_SAMPLES / SAMPLE_RATE_HZ as usize)]
    TooLong,
    /// Too little of the sound can be used.
    #[error(
        "{:.1} s of good speech is too little, it takes {} s; record some more sentences{}",
        f64::from(*.speech_ms) / 1000.0, LEAST_SPEECH_MS / 1000, told(.remarks)
    )]
    TooLittle {
        /// Good speech, in milliseconds.
        speech_ms: u32,
        /// What was wrong with the rest.
        remarks: Vec<String>,
    },
    /// The pieces are not of one voice.
    #[error(
        "the recordings are not of one voice (a piece has a similarity of {0:.2} to the others); \
         record one person alone, in a quiet place"
    )]
    SeveralVoices(f32),
    /// The voice is known under another name.
    #[error(
        "this sounds like {name}, speaker {}; rename that speaker with `earwitness speakers name`, \
         or record somebody else", .id.0
    )]
    SomebodyElse {
        /// Who.
        id: SpeakerId,
        /// Their name.
        name: String,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] earwitness_store::EnrolError),
    /// A name could not be given.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The hub failed.
    #[error(transparent)]
    Hub(#[from] HubError),
}

fn told(remarks: &[String]) -> String {
    remarks.iter().map(|remark| format!("; {remark}")).collect()
}

/// A piece of speech that can be used.
struct Piece {
    voiceprint: Vec<f32>,
    speech_ms: u32,
}

impl Hub {
    /// Learns somebody's voice from recordings of 16 kHz samples and gives it a
    /// name. A voice that was heard before, without a name, gets this one; a
    /// person of that name is extended.
    pub fn enrol(&self, name: &str, recordings: &[Vec<f32>]) -> Result<Enrolled, EnrolError> {
        let samples: usize = recordings.iter().map(Vec::len).sum();
        if samples > MAX_ENROLMENT_SAMPLES {
            return Err(EnrolError::TooLong);
        }
        let (pieces, remarks) = self.pieces(recordings)?;
        let speech_ms = pieces.iter().map(|piece| piece.speech_ms).sum();
        if speech_ms < LEAST_SPEECH_MS {
            return Err(EnrolError::TooLittle { speech_ms, remarks });
        }
        let agreement = agreement(&pieces);
        if agreement < self.attribute.match_at {
            return Err(EnrolError::SeveralVoices(agreement));
        }
        let centroid = mean(&pieces).ok_or(EnrolError::SeveralVoices(0.0))?;
        let enrolment = Enrolment {
            name: name.to_owned(),
            centroid: self.together_with_known(name, &centroid, speech_ms)?,
            embeddings: pieces.into_iter().map(|piece| piece.voiceprint).collect(),
            speech_ms: speech_ms.into(),
        };
        Ok(Enrolled {
            identity: self.store.enrol(&enrolment)?,
            speech_ms,
            quality: self.calibration.probability(agreement)
                * (speech_ms as f32 / AMPLE_SPEECH_MS as f32).min(1.0),
            remarks,
        })
    }

    /// Everything in some recordings that can be used, and what is wrong with the
    /// rest.
    fn pieces(&self, recordings: &[Vec<f32>]) -> Result<(Vec<Piece>, Vec<String>), HubError> {
        let mut pieces = Vec::new();
        let mut remarks = Vec::new();
        for (number, recording) in (1..).zip(recordings) {
            let segments = self.cut(recording)?;
            if segments.is_empty() {
                remarks.push(format!("recording {number}: no speech was heard in it"));
            }
            for segment in segments {
                let quality = Quality::of(&segment.samples, segment.speech_ms);
                match self.attribute.gate.flaw(&quality) {
                    None => pieces.push(Piece {
                        voiceprint: self.voiceprint(&segment.samples)?,
                        speech_ms: segment.speech_ms,
                    }),
                    Some(flaw) => {
                        let at = segment.start_ms() as f32 / 1000.0;
                        remarks.push(format!("recording {number} at {at:.1} s: {flaw}"));
                    }
                }
            }
        }
        Ok((pieces, remarks))
    }

    fn cut(&self, recording: &[f32]) -> Result<Vec<Segment>, HubError> {
        let options = SegmentOptions {
            max_ms: LONGEST_PIECE_MS,
            cut_search_ms: LONGEST_PIECE_MS / 2,
            ..self.options.segment
        };
        Ok(Segmenter::new(self.detector()?, options).all(recording)?)
    }

    /// What the voice of that name becomes. Names whoever the voice belongs to, if
    /// they have none yet.
    fn together_with_known(
        &self,
        name: &str,
        centroid: &[f32],
        speech_ms: u32,
    ) -> Result<Vec<f32>, EnrolError> {
        let store = &self.store;
        let identities = store.identities().map_err(HubError::from)?;
        let voices = store.voices().map_err(HubError::from)?;
        let name = name.trim();
        let namesake = identities
            .iter()
            .find(|known| known.speaker.name.as_deref() == Some(name));
        let (sounds_like, _) = recognise(&voices, centroid, &self.attribute);
        let similar = identities
            .iter()
            .find(|known| Some(known.speaker.id) == sounds_like);
        let extended = match similar.map(|known| (known.speaker.id, &known.speaker.name)) {
            Some((id, Some(other))) if other != name => {
                let name = other.clone();
                return Err(EnrolError::SomebodyElse { id, name });
            }
            Some((id, None)) if namesake.is_none() => {
                store.name_speaker(id, name)?;
                Some(id)
            }
            _ => namesake.map(|known| known.speaker.id),
        };
        let known = voices.iter().find(|voice| Some(voice.speaker) == extended);
        Ok(known.map_or_else(
            || centroid.to_vec(),
            |voice| extend(voice, centroid, speech_ms),
        ))
    }
}

/// The mean of a known voice and a new centroid, weighted by seconds of speech.
fn extend(voice: &Voice, centroid: &[f32], speech_ms: u32) -> Vec<f32> {
    let known = Piece {
        voiceprint: voice.centroid.clone(),
        speech_ms: u32::try_from(voice.speech_ms).unwrap_or(u32::MAX),
    };
    let new = Piece {
        voiceprint: centroid.to_vec(),
        speech_ms,
    };
    mean(&[known, new]).unwrap_or_else(|| centroid.to_vec())
}

/// The direction in which pieces point together, weighted by seconds of speech.
fn mean(pieces: &[Piece]) -> Option<Vec<f32>> {
    let mut sum = vec![0.0; pieces.first()?.voiceprint.len()];
    for piece in pieces {
        for (total, value) in sum.iter_mut().zip(&piece.voiceprint) {
            *total += piece.speech_ms as f32 * value;
        }
    }
    unit(&sum)
}

/// The lowest similarity of a piece to all the others together; 1 for one piece.
fn agreement(pieces: &[Piece]) -> f32 {
    (0..pieces.len())
        .filter_map(|i| {
            let others: Vec<Piece> = pieces
                .iter()
                .enumerate()
                .filter(|(j, _)| *j != i)
                .map(|(_, piece)| Piece {
                    voiceprint: piece.voiceprint.clone(),
                    speech_ms: piece.speech_ms,
                })
                .collect();
            Some(dot_f32(&mean(&others)?, &pieces[i].voiceprint))
        })
        .fold(1.0, f32::min)
}
