//! The way in: samples to segments to turns to acknowledged records.
//!
//! While a segment grows its words are shown, where that is asked for. Words of
//! somebody who refused to be recorded go nowhere: once there is such a person,
//! none are shown before it is known who speaks.
//!
//! Streaming equals batch: the records depend on the samples and on nothing
//! else. A segment without words (a cough, a slammed door) makes no record and
//! teaches no voice.

use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

use earwitness_api::{
    message::{Partial, SpokenWord, Transcript},
    types::{Record, Session},
};
use earwitness_models::{asr, asr::AsrError, voiceprint::VoiceprintError};
use earwitness_store::AppendError;

use crate::{
    attribute::{self, Floor, Quality},
    capture::{SAMPLE_RATE_HZ, samples_to_ms},
    gate::GatedDetector,
    hub::{Hub, HubError},
    meter::{Meter, Stage},
    remember::{By, Turn},
    segment::{self, Segment, Segmenter},
    transcribe::{Live, Shown, written},
};

/// Turns one stream of sound into records of one session.
pub struct Listener<'h> {
    hub: &'h Hub,
    session: Session,
    segmenter: Segmenter<GatedDetector>,
    live: Option<Live>,
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
    /// Turns dropped, since whoever spoke refused to be recorded.
    pub refused: u64,
    /// Sound listened to.
    pub audio: Duration,
    /// Where the time went.
    pub stages: Meter,
}

/// What a listener tells while it listens.
#[derive(Clone, Copy, Debug)]
pub enum Told<'t> {
    /// Words while they are spoken.
    Partial(&'t Partial),
    /// What was said in a turn that is over.
    Transcript(&'t Transcript),
    /// A record that is durable.
    Record(&'t Record),
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
        hub.refresh_lexicon()?;
        Ok(Self {
            segmenter: Segmenter::new(hub.detector()?, hub.options.segment),
            live: hub.options.partials.map(Live::new),
            hub,
            session,
            offset_ms: placement.offset_ms,
            floor: placement.known.floor,
            known: placement.known,
            account: Account::default(),
        })
    }

    /// Takes the next 16 kHz samples; tells what becomes of them.
    ///
    /// All samples are taken in even where a record cannot be written; the first
    /// such error is handed back.
    pub fn push(
        &mut self,
        mut samples: &[f32],
        tell: &mut dyn FnMut(Told<'_>),
    ) -> Result<(), HubError> {
        let mut outcome = Ok(());
        loop {
            let (started, before) = (Instant::now(), samples.len());
            let event = self.segmenter.advance(&mut samples)?;
            let audio = duration(before - samples.len());
            self.account.audio += audio;
            self.account.stages.book(Stage::Segment, audio, started);
            let done = match event {
                None => return outcome,
                Some(segment::Event::Grown) => self.look(tell),
                Some(segment::Event::Over(segment)) => self.take_in(&segment, tell),
                Some(segment::Event::Dropped) => {
                    self.end_of_look(0);
                    Ok(())
                }
            };
            outcome = outcome.and(done);
        }
    }

    /// Ends the stream: what is still being spoken becomes the last record.
    pub fn finish(&mut self, tell: &mut dyn FnMut(Told<'_>)) -> Result<(), HubError> {
        let mut outcome = Ok(());
        for segment in self.segmenter.finish()? {
            outcome = outcome.and(self.take_in(&segment, tell));
        }
        outcome
    }

    /// What is known and has not turned up again; for the stream that follows.
    pub fn known(self) -> Known {
        self.known
    }

    /// What the stream came to so far.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Shows the words of the growing segment, if it is time to.
    fn look(&mut self, tell: &mut dyn FnMut(Told<'_>)) -> Result<(), HubError> {
        let (Some(live), Some(growing)) = (&mut self.live, self.segmenter.open()) else {
            return Ok(());
        };
        let (hub, started) = (self.hub, Instant::now());
        let transcribe = |known: &[u32], samples: &[f32]| hub.transcribe_after(known, samples);
        if let Some(Shown { stable, tentative }) = live.look(growing.samples, transcribe)?
            && !hub.somebody_refused()?
        {
            tell(Told::Partial(&Partial {
                session: self.session.id,
                start_ms: self.offset_ms + samples_to_ms(growing.start),
                stable: stable.clone(),
                tentative: tentative.clone(),
            }));
        }
        // The sound is booked when the segment is over.
        self.account
            .stages
            .book(Stage::Partials, Duration::ZERO, started);
        Ok(())
    }

    /// The tokens that the text of a segment begins with, which is over.
    fn end_of_look(&mut self, length: usize) -> Vec<u32> {
        self.live
            .as_mut()
            .map_or(Vec::new(), |live| live.end(length))
    }

    fn take_in(
        &mut self,
        segment: &Segment,
        tell: &mut dyn FnMut(Told<'_>),
    ) -> Result<(), HubError> {
        let begins = self.end_of_look(segment.samples.len());
        let start_ms = self.offset_ms + segment.start_ms();
        if self
            .known
            .covers(start_ms, self.offset_ms + segment.end_ms())
        {
            return Ok(());
        }
        self.known.check_all_found(&self.session.name)?;
        let (voiceprint, words) = self.understand(segment, &begins)?;
        let transcript = self.transcript(segment, words);
        let by = By::Voice(attribute::Turn {
            voiceprint: &voiceprint,
            quality: Quality::of(&segment.samples, segment.speech_ms),
            neighbour: self.floor.neighbour(start_ms),
        });
        let is_wordless = transcript.text.is_empty();
        if !is_wordless && self.hub.is_refused(by)? {
            self.leave_out(&transcript);
            return Ok(());
        }
        tell(Told::Transcript(&transcript));
        if is_wordless {
            self.account.wordless += 1;
            return Ok(());
        }
        match self.remember(segment, by, &transcript) {
            Ok(record) => {
                self.account.records += 1;
                tell(Told::Record(&record));
                Ok(())
            }
            // They refused in this very moment.
            Err(HubError::Append(AppendError::NoConsent(_))) => {
                self.leave_out(&transcript);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Drops what somebody said who refused to be recorded.
    fn leave_out(&mut self, said: &Transcript) {
        self.floor.pass(None, said.end_ms);
        self.account.refused += 1;
    }

    fn transcript(&self, segment: &Segment, words: asr::Transcript) -> Transcript {
        let start_ms = self.offset_ms + segment.start_ms();
        let at = |sample: usize| start_ms + samples_to_ms(sample as u64);
        Transcript {
            session: self.session.id,
            start_ms,
            end_ms: self.offset_ms + segment.end_ms(),
            text: written::form(&words.text),
            raw: words.text,
            words: words
                .words
                .into_iter()
                .map(|word| SpokenWord {
                    text: word.text,
                    start_ms: at(word.samples.start),
                    end_ms: at(word.samples.end),
                    probability: word.probability,
                })
                .collect(),
        }
    }

    fn remember(
        &mut self,
        segment: &Segment,
        by: By<'_>,
        said: &Transcript,
    ) -> Result<Record, HubError> {
        let audio = duration(segment.samples.len());
        let started = Instant::now();
        let turn = Turn {
            start_ms: said.start_ms,
            end_ms: said.end_ms,
            text: &said.text,
            by,
        };
        let (record, embedding) = self.hub.remember(&mut self.session, &turn)?;
        let stages = &mut self.account.stages;
        stages.add(Stage::Embed, audio, embedding);
        stages.add(Stage::Write, audio, started.elapsed() - embedding);
        self.floor.pass(record.speaker.speaker, record.end_ms);
        Ok(record)
    }

    /// Voiceprint and words, worked out side by side from the same sound.
    fn understand(
        &mut self,
        segment: &Segment,
        begins: &[u32],
    ) -> Result<(Vec<f32>, asr::Transcript), HubError> {
        let hub = self.hub;
        let samples = &segment.samples;
        let timed = |started: Instant| started.elapsed();
        let (voiceprint, words) = thread::scope(|scope| {
            let voiceprint = scope.spawn(move || {
                let started = Instant::now();
                (hub.voiceprint(samples), timed(started))
            });
            let started = Instant::now();
            let words = (hub.transcribe_after(begins, samples), timed(started));
            (voiceprint.join(), words)
        });
        let (voiceprint, attribute_wall): (Result<_, VoiceprintError>, Duration) =
            voiceprint.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (words, transcribe_wall): (Result<_, AsrError>, Duration) = words;
        let audio = duration(samples.len());
        self.account
            .stages
            .add(Stage::Attribute, audio, attribute_wall);
        self.account
            .stages
            .add(Stage::Transcribe, audio, transcribe_wall);
        if self.live.is_some() {
            self.account
                .stages
                .add(Stage::Partials, audio, Duration::ZERO);
        }
        Ok((voiceprint?, words?))
    }
}

fn duration(samples: usize) -> Duration {
    Duration::from_secs_f64(samples as f64 / f64::from(SAMPLE_RATE_HZ))
}
