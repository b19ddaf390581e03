//! The way in: samples to segments to turns to acknowledged records.
//!
//! Streaming equals batch: the records depend on the samples and on nothing
//! else. A segment without words (a cough, a slammed door) makes no record and
//! teaches no voice.

use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

use earwitness_api::types::{Record, Session};
use earwitness_models::{asr::AsrError, vad::SpeechDetector, voiceprint::VoiceprintError};
use earwitness_store::{AppendError, Block, Key, NewRecord, Speaking};

use crate::{
    attribute::{Floor, Quality, Turn, attribute},
    capture::SAMPLE_RATE_HZ,
    hub::{Hub, HubError},
    meter::{Meter, Stage},
    segment::{Segment, Segmenter},
};

/// Turns one stream of sound into records of one session.
pub struct Listener<'h> {
    hub: &'h Hub,
    session: Session,
    segmenter: Segmenter<SpeechDetector>,
    offset_ms: u64,
    known: Known,
    floor: Floor,
    account: Account,
}

/// What one stream came to so far.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Records acknowledged.
    pub records: u64,
    /// Segments in which no word was recognised.
    pub wordless: u64,
    /// Sound listened to.
    pub audio: Duration,
    /// Where the time went.
    pub stages: Meter,
}

/// Where on a session's timeline a stream begins, and what of it is known.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// Session time of the stream's first sample, in milliseconds.
    pub offset_ms: u64,
    /// What an interrupted run over the same sound has acknowledged already.
    pub known: Known,
}

/// Records that are in memory already, by their start and end in the session.
///
/// The same sound gives the same segments, so each of these has to turn up again,
/// and is passed over when it does. One that does not turn up before the first
/// new segment shows that the sound is another.
#[derive(Clone, Debug, Default)]
pub struct Known {
    spans: BTreeSet<(u64, u64)>,
    floor: Floor,
}

impl Known {
    /// The given records, in the order of time.
    pub fn new(records: &[Record]) -> Self {
        let mut known = Self::default();
        for record in records {
            known.spans.insert((record.start_ms, record.end_ms));
            known.floor.pass(record.speaker.speaker, record.end_ms);
        }
        known
    }

    /// Refuses a session of which something has not turned up again.
    pub fn check_all_found(&self, session: &str) -> Result<(), HubError> {
        if self.spans.is_empty() {
            Ok(())
        } else {
            Err(HubError::OtherSound(session.to_owned()))
        }
    }

    /// Whether a segment comes before the end of what is known, so that it is one
    /// of these or had no words.
    fn covers(&mut self, start_ms: u64, end_ms: u64) -> bool {
        let covered = self
            .spans
            .last()
            .is_some_and(|&(last_start, _)| start_ms <= last_start);
        self.spans.remove(&(start_ms, end_ms));
        covered
    }
}

impl<'h> Listener<'h> {
    /// A listener at the start of a stream.
    pub fn new(hub: &'h Hub, session: Session, placement: Placement) -> Result<Self, HubError> {
        Ok(Self {
            segmenter: Segmenter::new(hub.detector()?, hub.options.segment),
            hub,
            session,
            offset_ms: placement.offset_ms,
            floor: placement.known.floor,
            known: placement.known,
            account: Account::default(),
        })
    }

    /// Takes the next 16 kHz samples; hands over each record once it is durable.
    pub fn push(
        &mut self,
        samples: &[f32],
        acknowledged: &mut dyn FnMut(&Record),
    ) -> Result<(), HubError> {
        let started = Instant::now();
        let mut segments = Vec::new();
        self.segmenter
            .push(samples, |segment| collect(&mut segments, segment))?;
        let audio = duration(samples.len());
        self.account.audio += audio;
        self.account.stages.book(Stage::Segment, audio, started);
        self.remember_all(segments, acknowledged)
    }

    /// Ends the stream: what is still being spoken becomes the last record.
    pub fn finish(&mut self, acknowledged: &mut dyn FnMut(&Record)) -> Result<(), HubError> {
        let mut segments = Vec::new();
        self.segmenter
            .finish(|segment| collect(&mut segments, segment))?;
        self.remember_all(segments, acknowledged)
    }

    /// What is known and has not turned up again; for the stream that follows.
    pub fn known(self) -> Known {
        self.known
    }

    /// What the stream came to so far.
    pub fn account(&self) -> &Account {
        &self.account
    }

    fn remember_all(
        &mut self,
        segments: Vec<Segment>,
        acknowledged: &mut dyn FnMut(&Record),
    ) -> Result<(), HubError> {
        for segment in segments {
            let start_ms = self.offset_ms + segment.start_ms();
            if self
                .known
                .covers(start_ms, self.offset_ms + segment.end_ms())
            {
                continue;
            }
            self.known.check_all_found(&self.session.name)?;
            if let Some(record) = self.remember(&segment)? {
                self.account.records += 1;
                acknowledged(&record);
            }
        }
        Ok(())
    }

    fn remember(&mut self, segment: &Segment) -> Result<Option<Record>, HubError> {
        let (voiceprint, text) = self.understand(segment)?;
        if text.is_empty() {
            self.account.wordless += 1;
            return Ok(None);
        }
        let audio = duration(segment.samples.len());
        let started = Instant::now();
        let semantic = self.hub.embed(&text)?;
        self.account.stages.book(Stage::Embed, audio, started);

        let started = Instant::now();
        let key = Key {
            semantic: Block::quantize(&semantic),
            speaker: Block::quantize(&voiceprint),
            temporal: Block::default(),
        };
        let record = self.append(segment, &voiceprint, text, key)?;
        self.floor.pass(record.speaker.speaker, record.end_ms);
        self.account.stages.book(Stage::Write, audio, started);
        Ok(Some(record))
    }

    /// Attributes a turn and makes it durable. Somebody may ask to forget at any
    /// moment: the speaker that the turn was just given to, or the very session
    /// that is going on, which then begins anew with this turn.
    fn append(
        &mut self,
        segment: &Segment,
        voiceprint: &[f32],
        text: String,
        key: Key,
    ) -> Result<Record, HubError> {
        let store = &self.hub.store;
        let start_ms = self.offset_ms + segment.start_ms();
        let unix_ms = self
            .session
            .started_unix_ms
            .saturating_add_unsigned(start_ms);
        let mut new = NewRecord {
            session: self.session.id,
            start_ms,
            end_ms: self.offset_ms + segment.end_ms(),
            unix_ms,
            speaker: Speaking::Unknown { score: 0.0 },
            addressees: Vec::new(),
            text,
            attachments: Vec::new(),
            key,
        };
        let turn = Turn {
            voiceprint,
            quality: Quality::of(&segment.samples, segment.speech_ms),
            neighbour: self.floor.neighbour(start_ms),
        };
        loop {
            let voices = store.voices()?;
            new.speaker = attribute(&voices, &turn, &self.hub.attribute);
            match store.append(new.clone()) {
                Err(AppendError::NoSuchSpeaker(_)) => {}
                Err(AppendError::NoSuchSession(_)) => {
                    let Session {
                        name,
                        started_unix_ms,
                        ..
                    } = &self.session;
                    self.session = store.begin_session(name, *started_unix_ms)?;
                    new.session = self.session.id;
                }
                outcome => return Ok(outcome?),
            }
        }
    }

    /// Voiceprint and words, worked out side by side from the same sound.
    fn understand(&mut self, segment: &Segment) -> Result<(Vec<f32>, String), HubError> {
        let hub = self.hub;
        let samples = &segment.samples;
        let timed = |started: Instant| started.elapsed();
        let (voiceprint, words) = thread::scope(|scope| {
            let voiceprint = scope.spawn(move || {
                let started = Instant::now();
                (hub.voiceprint(samples), timed(started))
            });
            let started = Instant::now();
            let words = (hub.transcribe(samples), timed(started));
            (voiceprint.join(), words)
        });
        let (voiceprint, attribute_wall): (Result<_, VoiceprintError>, Duration) =
            voiceprint.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (text, transcribe_wall): (Result<_, AsrError>, Duration) = words;
        let audio = duration(samples.len());
        self.account
            .stages
            .add(Stage::Attribute, audio, attribute_wall);
        self.account
            .stages
            .add(Stage::Transcribe, audio, transcribe_wall);
        Ok((voiceprint?, text?))
    }
}

fn collect(segments: &mut Vec<Segment>, segment: Segment) -> Result<(), HubError> {
    segments.push(segment);
    Ok(())
}

fn duration(samples: usize) -> Duration {
    Duration::from_secs_f64(samples as f64 / f64::from(SAMPLE_RATE_HZ))
}
