//! The demo: a household's three sessions through the real program.
//!
//! Two sessions are recordings that `earwitness ingest` takes in, each in a
//! process of its own, so what the second knows of the first it knows from the
//! store. The third is live: the daemon listens to it and is then asked the
//! questions aloud. What is heard is compared with what was really said; nothing
//! of the episode but its sound and the names of its people reaches the program.

mod program;
mod recording;
mod score;
mod table;

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use earwitness_api::types::{Answer, Record, SpeakerId};

use crate::episodes::{Episode, Question, Session};

use program::{Daemon, Earwitness, Summary};
use score::{Asked, Score};
pub use table::{Teller, json};

/// How the demo runs.
#[derive(Debug)]
pub struct Options {
    /// The program of the device.
    pub earwitness: PathBuf,
    /// Where to tell what happens.
    pub teller: Teller,
    /// Keep the recordings and the store here instead of throwing them away.
    pub keep: Option<PathBuf>,
}

/// What the demo measured.
#[derive(Debug)]
pub struct Outcome {
    /// Against what was really said.
    pub score: Score,
    /// Where the time went, over all sessions.
    pub summary: Summary,
    /// From the first sample to the last answer, processes started included.
    pub wall: Duration,
}

/// Runs the demo on a household's episode and tells what happens.
pub fn run(options: &Options, episode: &Episode) -> Result<Outcome> {
    let scratch = tempfile::tempdir().context("cannot make a scratch folder")?;
    let folder = options.keep.as_deref().unwrap_or(scratch.path());
    fs::create_dir_all(folder)?;
    Household::new(options, episode, folder)?.live(episode)
}

/// The household's hub and what it has heard.
struct Household {
    program: Earwitness,
    teller: Teller,
    folder: PathBuf,
    heard: Vec<Vec<Record>>,
    summary: Summary,
}

impl Household {
    fn new(options: &Options, episode: &Episode, folder: &Path) -> Result<Self> {
        let store = folder.join("memory.redb");
        ensure!(
            !store.exists(),
            "{} is there already; choose an empty folder",
            store.display()
        );
        options.teller.tell(format_args!(
            "{}: {} people, {} sessions",
            episode.id,
            episode.participants.len(),
            episode.sessions.len()
        ));
        Ok(Self {
            program: Earwitness::new(&options.earwitness, &store, options.teller),
            teller: options.teller,
            folder: folder.to_owned(),
            heard: Vec::new(),
            summary: Summary::default(),
        })
    }

    fn live(mut self, episode: &Episode) -> Result<Outcome> {
        let started = Instant::now();
        let (now, history) = episode
            .sessions
            .split_last()
            .context("the episode has no sessions")?;
        for session in history {
            self.record(episode, session)?;
        }
        let names = self.introduce(episode)?;
        let asked = self.converse(episode, now, &names)?;
        let score = Score::new(episode, &self.heard, asked);
        let outcome = Outcome {
            score,
            summary: self.summary,
            wall: started.elapsed(),
        };
        table::tell_figures(self.teller, &outcome);
        Ok(outcome)
    }

    /// A session is recorded, and taken in afterwards.
    fn record(&mut self, episode: &Episode, session: &Session) -> Result<()> {
        let recording = recording::write(episode, session, &self.folder)?;
        self.teller.tell(format_args!(
            "\n-- session {}, {}",
            session.id, session.start
        ));
        let (records, summary) = self.program.ingest(&recording, session)?;
        self.heard.push(records);
        self.summary.add(&summary);
        Ok(())
    }

    /// The household tells the hub who is who: each voice gets the name of the
    /// person who is mostly behind it.
    fn introduce(&self, episode: &Episode) -> Result<HashMap<SpeakerId, String>> {
        let people = score::people_behind(episode, &self.heard);
        self.teller
            .tell("\n-- the hub is started anew, and told the names of the voices it heard");
        for (speaker, person) in &people {
            self.program.name(*speaker, episode.name_of(person))?;
        }
        Ok(people)
    }

    /// The daemon listens to the last session, and is asked aloud.
    fn converse(
        &mut self,
        episode: &Episode,
        session: &Session,
        people: &HashMap<SpeakerId, String>,
    ) -> Result<Vec<Asked>> {
        let recording = recording::write(episode, session, &self.folder)?;
        self.teller.tell(format_args!(
            "\n-- session {}, {}: live",
            session.id, session.start
        ));
        let mut daemon = Daemon::start(&self.program, &recording, session)?;
        let (records, summary) = daemon.wait_until_heard()?;
        self.heard.push(records);
        self.summary.add(&summary);
        let asked = episode
            .questions
            .iter()
            .filter(|question| question.audio.is_some())
            .map(|question| self.ask(episode, question, people))
            .collect();
        daemon.stop()?;
        asked
    }

    fn ask(
        &self,
        episode: &Episode,
        question: &Question,
        people: &HashMap<SpeakerId, String>,
    ) -> Result<Asked> {
        let audio = question
            .audio
            .as_deref()
            .context("a question of the demo has no sound")?;
        let answer: Answer = self.program.ask(&episode.audio_path(audio))?;
        let asked = Asked::new(episode, question, answer, &self.heard, people);
        table::tell_answer(self.teller, episode, question, &asked);
        Ok(asked)
    }
}
