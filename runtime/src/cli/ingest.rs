//! `earwitness ingest`: recordings into memory, each record printed when it is
//! acknowledged.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, bail};
use earwitness::{
    capture::{AudioSource, FileSource, samples_to_ms},
    describe,
    hub::Hub,
    listen::{Known, Listener, Placement, Told},
};
use earwitness_api::types::{RecordFilter, Session};
use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;

use super::{Common, Hearing, print, summary::Summary};

#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    hearing: Hearing,
    /// Put all files into one session of this name, one after the other; an
    /// existing session goes on
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// When the session began (RFC 3339) [default: now]
    #[arg(long, value_name = "TIME")]
    start: Option<Timestamp>,
    /// Go on where an interrupted ingest of the same files stopped
    #[arg(long)]
    resume: bool,
    /// Recordings: WAV or FLAC
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn run(common: &Common, args: &Args) -> anyhow::Result<()> {
    let started = Instant::now();
    let hub = common.open_hub(&args.hearing)?;
    let summary = Summary::new(started.elapsed());
    let mut ingest = Ingest {
        common,
        args,
        hub: &hub,
        summary,
        failures: Vec::new(),
    };
    match &args.session {
        Some(name) => ingest.one_session(name)?,
        None => ingest.session_each(),
    }
    ingest.summary.print(common, started.elapsed())?;
    match ingest.failures.as_slice() {
        [] => Ok(()),
        [failure] => bail!("{failure}"),
        [first, ..] => bail!(
            "{} of {} files could not be taken in whole; the first: {first}",
            ingest.failures.len(),
            args.files.len()
        ),
    }
}

struct Ingest<'a> {
    common: &'a Common,
    args: &'a Args,
    hub: &'a Hub,
    summary: Summary,
    failures: Vec<String>,
}

/// How a file went: how long it was, or how much of it could be used and why not
/// all of it.
struct Taken {
    length_ms: u64,
    outcome: anyhow::Result<()>,
}

impl Ingest<'_> {
    /// Every file is a session called like the file.
    fn session_each(&mut self) {
        for path in &self.args.files {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let taken = self.session(&stem, false).and_then(|session| {
                let known = self.known(&session)?;
                let placement = Placement {
                    offset_ms: 0,
                    known,
                };
                let (taken, left) = self.file(path, session, placement)?;
                self.hub.reconcile()?;
                left.check_all_found(&stem)?;
                Ok(taken)
            });
            if let Err(error) = taken.and_then(|taken| taken.outcome) {
                self.failed(path, &error);
            }
        }
    }

    /// All files follow each other in one session.
    fn one_session(&mut self, name: &str) -> anyhow::Result<()> {
        let session = self.session(name, true)?;
        let mut known = self.known(&session)?;
        let mut offset_ms = if self.args.resume {
            0
        } else {
            self.end_of(&session)?
        };
        for path in &self.args.files {
            let placement = Placement {
                offset_ms,
                known: known.clone(),
            };
            let outcome = match self.file(path, session.clone(), placement) {
                Ok((taken, left)) => {
                    known = left;
                    offset_ms += taken.length_ms;
                    taken.outcome
                }
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                self.failed(path, &error);
            }
        }
        self.hub.reconcile()?;
        // After a file that failed, its own reason says more.
        if self.failures.is_empty() {
            known.check_all_found(name)?;
        }
        Ok(())
    }

    /// Takes one file in; gives back what is known and was not in it.
    fn file(
        &mut self,
        path: &Path,
        session: Session,
        placement: Placement,
    ) -> anyhow::Result<(Taken, Known)> {
        let mut source = FileSource::open(path)?;
        let mut listener = Listener::new(self.hub, session, placement)?;
        let progress = progress(&source);
        let taken = self.listen(&mut source, &mut listener, &progress);
        progress.finish_and_clear();
        self.summary.add(listener.account());
        Ok((taken?, listener.known()))
    }

    fn listen(
        &self,
        source: &mut FileSource,
        listener: &mut Listener<'_>,
        progress: &ProgressBar,
    ) -> anyhow::Result<Taken> {
        let mut heard = 0;
        let mut block = Vec::new();
        let mut printed = Ok(());
        let mut print = |told: Told<'_>| {
            if printed.is_ok() {
                printed = progress.suspend(|| print::told(self.common, self.hub, told));
            }
        };
        let outcome = loop {
            block.clear();
            let more = source.read(&mut block);
            heard += block.len() as u64;
            progress.set_position(heard);
            listener.push(&block, &mut print)?;
            match more {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error.into()),
            }
        };
        listener.finish(&mut print)?;
        printed?;
        Ok(Taken {
            length_ms: samples_to_ms(heard),
            outcome,
        })
    }

    fn session(&self, name: &str, may_go_on: bool) -> anyhow::Result<Session> {
        let store = self.hub.store();
        let Some(session) = store.session_by_name(name)? else {
            let start = self.args.start.unwrap_or_else(Timestamp::now);
            return store
                .begin_session(name, start.as_millisecond())
                .with_context(|| {
                    format!("a session cannot be called {name:?}; name it with --session")
                });
        };
        if may_go_on || self.args.resume || self.end_of(&session)? == 0 {
            return Ok(session);
        }
        bail!(
            "session {name:?} is in memory already; go on with --resume, take it in again under \
             another --session, or `earwitness memory forget --session {name:?}` first"
        )
    }

    /// What an interrupted run left in the session, if this run goes on from it.
    fn known(&self, session: &Session) -> anyhow::Result<Known> {
        if !self.args.resume {
            return Ok(Known::default());
        }
        let all = RecordFilter {
            session: Some(session.id),
            ..RecordFilter::default()
        };
        Ok(Known::new(&self.hub.store().records(all)?))
    }

    /// Where the last record of a session ends; 0 without one.
    fn end_of(&self, session: &Session) -> anyhow::Result<u64> {
        let last = RecordFilter {
            session: Some(session.id),
            limit: Some(1),
            newest_first: true,
            ..RecordFilter::default()
        };
        let records = self.hub.store().records(last)?;
        Ok(records.first().map_or(0, |record| record.end_ms))
    }

    fn failed(&mut self, path: &Path, error: &anyhow::Error) {
        let said = describe(error);
        let path = path.display().to_string();
        let said = if said.contains(&path) {
            said
        } else {
            format!("{path}: {said}")
        };
        eprintln!("earwitness: {said}");
        self.failures.push(said);
    }
}

/// A bar on a terminal, nothing elsewhere.
fn progress(source: &FileSource) -> ProgressBar {
    let Some(length) = source
        .expected_samples()
        .filter(|_| io::stderr().is_terminal())
    else {
        return ProgressBar::hidden();
    };
    let style = ProgressStyle::with_template("{msg} [{bar:30}] {percent}% {eta} left");
    let bar = ProgressBar::new(length).with_message(source.name());
    style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style))
}
