//! The hub itself: the models and the memory that every way in shares.
//!
//! One hub serves one stream of sound and any number of questions at a time.
//! Each model has a lock of its own, held for one inference: a question waits at
//! most for the inference in progress, never for a whole segment's work.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use earwitness_api::message::VoiceEstimate;
use earwitness_models::{
    GraphError, LoadError,
    asr::{self, AsrError, Lexicon, Recognizer, Transcript},
    embed::TextEmbedder,
    manifest::Calibration,
    pack::{PackError, PackSet},
    vad::{SpeechDetector, VadError},
    voiceprint::{VoiceprintEncoder, VoiceprintError},
};
use earwitness_store::{
    AppendError, OpenError, Options, QueryError, SessionError, StorageError, Store, VoiceprintModel,
};

use crate::{
    answer::Answerer,
    attribute::{AttributeOptions, reconcile::Match},
    capture::CaptureError,
    gate::GatedDetector,
    recall::{Prepared, RecallOptions, Retriever},
    remember::Written,
    segment::SegmentOptions,
    switch,
    transcribe::{LiveOptions, written},
    voices::{estimate, reconcile_store},
};

/// Everything that can stop the way from sound to answer.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// A model pack is missing, damaged, or does not fit.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// A model could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Voice activity detection failed.
    #[error(transparent)]
    Vad(#[from] VadError),
    /// A voiceprint could not be computed.
    #[error(transparent)]
    Voiceprint(#[from] VoiceprintError),
    /// Speech could not be recognised.
    #[error(transparent)]
    Asr(#[from] AsrError),
    /// A text could not be embedded.
    #[error(transparent)]
    Embed(#[from] GraphError),
    /// The store could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A record could not be made durable.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// A session could not begin.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The store could not be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The memory was written with other models.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The voices in memory come from another voiceprint model.
    #[error(transparent)]
    OtherVoices(#[from] earwitness_store::VoiceprintError),
    /// Sound could not be had.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A resumed stream is not the one that was interrupted.
    #[error(
        "session {0:?} holds other sound than this; resume with the same files in the same order, \
         or take these in under another --session"
    )]
    OtherSound(String),
    /// A question without words.
    #[error("no words were heard in the question; speak closer to the microphone, or type it")]
    NoQuestion,
}

impl HubError {
    /// Whether it is only that the memory is switched off.
    pub fn is_off(&self) -> bool {
        matches!(
            self,
            Self::Storage(StorageError::Off)
                | Self::Append(AppendError::Storage(StorageError::Off))
                | Self::Session(SessionError::Storage(StorageError::Off))
        )
    }
}

/// How the hub works; every default is what the device runs.
#[derive(Clone, Debug, Default)]
pub struct HubOptions {
    /// Which voiceprint pack to use, where there is more than one.
    pub voiceprint: Option<String>,
    /// How speech is cut out.
    pub segment: SegmentOptions,
    /// How words are shown while they are spoken; `None` shows none.
    pub partials: Option<LiveOptions>,
    /// Names and places that are spoken of here.
    pub household: Vec<String>,
    /// How evidence is found.
    pub recall: RecallOptions,
    /// How the memory is kept.
    pub memory: Options,
}

/// The models, the memory and the answerer.
pub struct Hub {
    pub(crate) store: Store,
    path: PathBuf,
    pub(crate) options: HubOptions,
    pub(crate) attribute: AttributeOptions,
    pub(crate) calibration: Calibration,
    merge_at: f32,
    packs: PackSet,
    voiceprint: Mutex<VoiceprintEncoder>,
    recognizer: Mutex<Box<dyn Recognizer + Send>>,
    embedder: Mutex<TextEmbedder>,
    pub(crate) retriever: Retriever,
    /// The question that is being asked, as far as it was heard.
    pub(crate) prepared: Mutex<Option<Prepared>>,
    /// What was written last, which the next record of its session follows on.
    pub(crate) written: Mutex<Option<Written>>,
    answerer: Mutex<Box<dyn Answerer>>,
}

impl Hub {
    /// Verifies and loads the packs, then opens the store.
    pub fn open(
        packs: &Path,
        path: &Path,
        answerer: Box<dyn Answerer>,
        options: HubOptions,
    ) -> Result<Self, HubError> {
        let packs = PackSet::open(packs, options.voiceprint.as_deref())?;
        let voiceprint = VoiceprintEncoder::load(&packs.voiceprint)?;
        let recognizer = asr::load(&packs.asr)?;
        let embedder = TextEmbedder::load(&packs.embed)?;
        let retriever = Retriever::load(&packs.threew, options.recall)?;
        let store = Store::open_with(path, options.memory.clone())?;
        store.use_voiceprint_model(&VoiceprintModel {
            name: packs.voiceprint.manifest.name.clone(),
            dim: voiceprint.dim() as u16,
        })?;
        Ok(Self {
            store,
            path: path.to_owned(),
            options,
            attribute: AttributeOptions::new(voiceprint.thresholds()),
            calibration: voiceprint.calibration(),
            merge_at: voiceprint.thresholds().merge,
            voiceprint: Mutex::new(voiceprint),
            recognizer: Mutex::new(recognizer),
            embedder: Mutex::new(embedder),
            retriever,
            prepared: Mutex::default(),
            written: Mutex::default(),
            answerer: Mutex::new(answerer),
            packs,
        })
    }

    /// The memory.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Switches the memory on or off, also for whoever opens it next. While it is
    /// off, its file is neither read nor written.
    pub fn switch(&self, on: bool) -> io::Result<()> {
        if !on {
            self.store.switch(false);
        }
        switch::set(&self.path, on)?;
        self.store.switch(on);
        Ok(())
    }

    /// Whether words are shown while they are spoken.
    pub fn shows_partials(&self) -> bool {
        self.options.partials.is_some()
    }

    /// Merges the identities that turn out to be one voice; to be called when a
    /// session is over.
    pub fn reconcile(&self) -> Result<Vec<Match>, HubError> {
        let merged = reconcile_store(&self.store, self.merge_at)?;
        for found in &merged {
            tracing::info!(
                speaker = found.from.0,
                into = found.into.0,
                similarity = found.similarity,
                "two voices are one"
            );
        }
        Ok(merged)
    }

    /// How well the voices in memory can be told apart.
    pub fn estimate_voices(&self) -> Result<Vec<VoiceEstimate>, StorageError> {
        let kept = self.store.voiceprints()?;
        Ok(estimate(&kept, self.attribute.match_at, self.calibration))
    }

    /// A voice-activity detector at the start of a stream.
    pub(crate) fn detector(&self) -> Result<GatedDetector, LoadError> {
        SpeechDetector::load(&self.packs.vad).map(GatedDetector::new)
    }

    /// Numbers in a voiceprint.
    pub(crate) fn voiceprint_dim(&self) -> u16 {
        lock(&self.voiceprint).dim() as u16
    }

    /// The voiceprint of some speech. Where none can be had of it, the zero vector,
    /// which is like nobody and can teach nothing.
    pub(crate) fn voiceprint(&self, samples: &[f32]) -> Result<Vec<f32>, VoiceprintError> {
        let mut encoder = lock(&self.voiceprint);
        match encoder.embed(samples) {
            Err(VoiceprintError::TooShort { .. } | VoiceprintError::NotFinite(_)) => {
                Ok(vec![0.0; encoder.dim()])
            }
            outcome => outcome,
        }
    }

    /// The words in one stretch of speech that begins with the given tokens.
    pub(crate) fn transcribe_after(
        &self,
        begins: &[u32],
        samples: &[f32],
    ) -> Result<Transcript, AsrError> {
        lock(&self.recognizer).transcribe_after(begins, samples)
    }

    /// The words in one stretch of speech, in their written form.
    pub(crate) fn transcribe(&self, samples: &[f32]) -> Result<String, AsrError> {
        Ok(written::form(&self.transcribe_after(&[], samples)?.text))
    }

    /// Prefers the names of the people heard so far, and of the household, when
    /// it recognises words from now on.
    pub(crate) fn refresh_lexicon(&self) -> Result<(), StorageError> {
        let speakers = self.store.speakers()?;
        let people = speakers
            .iter()
            .filter_map(|speaker| speaker.name.as_deref());
        let household = self.options.household.iter().map(String::as_str);
        lock(&self.recognizer).prefer(Lexicon::new(household.chain(people)));
        Ok(())
    }

    pub(crate) fn embed(&self, text: &str) -> Result<Vec<f32>, GraphError> {
        lock(&self.embedder).embed(text)
    }

    pub(crate) fn answerer(&self) -> MutexGuard<'_, Box<dyn Answerer>> {
        lock(&self.answerer)
    }
}

/// A model is pure between calls, so a panic elsewhere does not spoil it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
