//! `earwitness ingest`: recordings into memory, each record printed when it is
//! acknowledged.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::bail;
use earwitness::{
    capture::{AudioSource, FileSource, samples_to_ms},
    hub::Hub,
    listen::{Listener, Placement},
};
use earwitness_api::types::{Record, RecordFilter, Session};
use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;

use super::{Common, print, summary::Summary};

#[derive(clap::Args)]
pub(super) struct Args {
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
    let hub = common.open_hub()?;
    let summary = Summary::new(started.elapsed());
    let mut ingest = Ingest {
        common,
        args,
        hub: &hub,
        summary,
    };
    let failed = match &args.session {
        Some(name) => ingest.one_session(name),
        None => ingest.session_each(),
    };
    ingest.summary.print(common, started.elapsed())?;
    if failed > 0 {
        bail!(
            "{failed} of {} files could not be taken in whole; see above",
            args.files.len()
        );
    }
    Ok(())
}

struct Ingest<'a> {
    common: &'a Common,
    args: &'a Args,
    hub: &'a Hub,
    summary: Summary,
}

impl Ingest<'_> {
    /// Every file is a session called like the file. Returns how many failed.
    fn session_each(&mut self) -> usize {
        let failures = self.args.files.iter().filter(|path| {
            let name = path
                .file_stem()
                .map(|stem| stem.to_string_lossy().into_owned());
            let outcome = self.file(path, &name.unwrap_or_default(), 0, false);
            outcome.inspect_err(|error| report(path, error)).is_err()
        });
        failures.count()
    }

    /// All files follow each other in one session.
    fn one_session(&mut self, name: &str) -> usize {
        let mut offset_ms = None;
        let mut failed = 0;
        for path in &self.args.files {
            let begin = match offset_ms {
                Some(offset_ms) => offset_ms,
                None if self.args.resume => 0,
                None => self.end_of(name),
            };
            match self.file(path, name, begin, true) {
                Ok(length_ms) => offset_ms = Some(begin + length_ms),
                Err(error) => {
                    report(path, &error);
                    failed += 1;
                }
            }
        }
        failed
    }

    /// Takes one file in; returns its length in milliseconds.
    fn file(
        &mut self,
        path: &Path,
        session: &str,
        offset_ms: u64,
        may_go_on: bool,
    ) -> anyhow::Result<u64> {
        let mut source = FileSource::open(path)?;
        let session = self.session(session, may_go_on)?;
        let known_until_ms = if self.args.resume {
            self.end_of(&session.name)
        } else {
            0
        };
        let mut listener = Listener::new(
            self.hub,
            session,
            Placement {
                offset_ms,
                known_until_ms,
            },
        )?;
        let progress = progress(&source);
        let outcome = self.listen(&mut source, &mut listener, &progress);
        progress.finish_and_clear();
        self.summary.add(listener.account());
        outcome
    }

    fn listen(
        &mut self,
        source: &mut FileSource,
        listener: &mut Listener<'_>,
        progress: &ProgressBar,
    ) -> anyhow::Result<u64> {
        let mut heard = 0;
        let mut block = Vec::new();
        let mut printed = Ok(());
        let mut print = |record: &Record| {
            if printed.is_ok() {
                printed = progress.suspend(|| print::acknowledged(self.common, self.hub, record));
            }
        };
        let ended = loop {
            block.clear();
            let more = source.read(&mut block);
            heard += block.len() as u64;
            progress.set_position(heard);
            listener.push(&block, &mut print)?;
            match more {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        listener.finish(&mut print)?;
        printed?;
        ended?;
        Ok(samples_to_ms(heard))
    }

    fn session(&self, name: &str, may_go_on: bool) -> anyhow::Result<Session> {
        let store = self.hub.store();
        match store.session_by_name(name)? {
            Some(session) if may_go_on || self.args.resume || self.end_of(name) == 0 => Ok(session),
            Some(_) => bail!(
                "session {name:?} is in memory already; go on with --resume, take it in again under \
                 another --session, or `earwitness memory forget --session {name:?}` first"
            ),
            None => {
                let start = self.args.start.unwrap_or_else(Timestamp::now);
                Ok(store.begin_session(name, start.as_millisecond())?)
            }
        }
    }

    /// Where the last record of a session ends; 0 without one.
    fn end_of(&self, session: &str) -> u64 {
        let store = self.hub.store();
        let Ok(Some(session)) = store.session_by_name(session) else {
            return 0;
        };
        let last = RecordFilter {
            session: Some(session.id),
            limit: Some(1),
            newest_first: true,
            ..RecordFilter::default()
        };
        store
            .records(last)
            .ok()
            .and_then(|records| records.first().map(|r| r.end_ms))
            .unwrap_or(0)
    }
}

fn report(path: &Path, error: &anyhow::Error) {
    eprintln!("earwitness: {}: {error:#}", path.display());
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
