//! Taking a memory along: an archive of JSON lines, the first of which says what
//! it is.
//!
//! An archive is in plain, whether or not the store is sealed. Unless they are
//! asked for, no voiceprint is in it: neither centroids nor enrolments nor the
//! speaker blocks of keys. Who is imported without one is known by name and by
//! what they said, and matches no voice.

use crate::append::{check_texts, finite};
use crate::error::StorageError;
use crate::key::{Block, Key, KeyLayout};
use crate::limits::Limits;
use crate::open::load_keys;
use crate::schema::{
    APART, COUNTERS, Counters, ENROLMENTS, LAYOUT, MERGES, RECORDS, SESSIONS, SPEAKERS, SpeakerRow,
    VOICEPRINT_MODEL, counters, layout, meta, put, put_meta, put_speaker, rows,
};
use crate::speakers::is_name;
use crate::store::Store;
use crate::transaction::{Change, NOBODY, Snapshot, Tables};
use crate::turn::{Said, Turn, each_turn, put_turn};
use crate::verify::{Finding, audit};
use crate::voiceprint::VoiceprintModel;
use earwitness_api::types::{Merge, Session};
use redb::{ReadableTable, ReadableTableMetadata};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Read, Write};

/// Version of the archive.
const ARCHIVE: u32 = 1;

/// The longest line of an archive, in bytes.
pub const MAX_LINE_BYTES: u64 = 1024 * 1024;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Earwitness(Header),
    Session(Session),
    Speaker(SpeakerRow),
    Enrolment(u32, Vec<Block>),
    Merge(Merge),
    Apart(u32, u32),
    Turn(Box<TurnLine>),
    /// The last, with the number of lines before it.
    End(usize),
}

#[derive(Serialize, Deserialize)]
struct Header {
    archive: u32,
    counters: Counters,
    layout: Option<KeyLayout>,
    voiceprint_model: Option<VoiceprintModel>,
    voiceprints: bool,
}

#[derive(Serialize, Deserialize)]
struct TurnLine {
    #[serde(flatten)]
    said: Said,
    semantic: Block,
    speaker: Option<Block>,
    temporal: Block,
}

/// Why there is no whole archive.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// It cannot be written.
    #[error("the archive cannot be written ({0}): check its disk, then export again")]
    Write(String),
    /// The file of the memory failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// There is something in the store.
    #[error("this memory is not empty: import into a new one")]
    NotEmpty,
    /// It cannot be read.
    #[error("the archive cannot be read ({0}): check its disk")]
    Read(String),
    /// It is something else, or of a newer program.
    #[error("this is no Earwitness archive of version {ARCHIVE}: name another file")]
    NotAnArchive,
    /// A line is wrong.
    #[error("line {line} of the archive is wrong ({reason}): export it again")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The lines do not fit together.
    #[error(
        "the archive contradicts itself ({}: {}): export it again",
        .0.invariant, .0.detail
    )]
    Contradiction(Finding),
    /// It holds more than the limits allow.
    #[error("the archive holds more {0} than this memory may: raise the limit")]
    TooMuch(&'static str),
    /// The file of the memory failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Store {
    /// Writes everything into an archive, as of one moment.
    pub fn export(&self, out: &mut impl Write, voiceprints: bool) -> Result<(), ExportError> {
        let mut failure = None;
        let exported = self.read_committed(|snapshot| {
            let mut lines = 0;
            let mut write = |line: &Line| {
                lines += 1;
                write_line(out, line)
            };
            let result = export(snapshot, voiceprints, &mut write);
            let result = result.and_then(|()| write_line(out, &Line::End(lines)));
            result.or_else(|error| match error {
                ExportError::Storage(error) => Err(error),
                ExportError::Write(_) => {
                    failure = Some(error);
                    Ok(())
                }
            })
        });
        exported?;
        failure.map_or(Ok(()), Err)
    }

    /// Restores an archive into an empty store, as a whole or not at all. Ids stay
    /// as they were.
    pub fn import(&self, archive: &mut impl BufRead) -> Result<(), ImportError> {
        let _writing = self.begin_writing();
        self.write(|change| import(change, archive, &self.limits))?;
        let keys = self.read_committed(load_keys)?;
        self.set_keys(keys);
        Ok(())
    }
}

fn write_line(out: &mut impl Write, line: &Line) -> Result<(), ExportError> {
    let failed = |error: io::Error| ExportError::Write(error.to_string());
    serde_json::to_writer(&mut *out, line).map_err(|error| failed(error.into()))?;
    out.write_all(b"\n").map_err(failed)
}

fn export(
    snapshot: &Snapshot,
    voiceprints: bool,
    write: &mut impl FnMut(&Line) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    write(&Line::Earwitness(Header {
        archive: ARCHIVE,
        counters: counters(snapshot)?,
        layout: layout(snapshot)?,
        voiceprint_model: meta(snapshot, VOICEPRINT_MODEL)?,
        voiceprints,
    }))?;
    for session in rows(snapshot, SESSIONS)? {
        write(&Line::Session(session))?;
    }
    for mut speaker in rows::<_, SpeakerRow>(snapshot, SPEAKERS)? {
        if voiceprints {
            let id = speaker.speaker.id.0;
            if let Some(blocks) = crate::schema::row(snapshot, ENROLMENTS, id)? {
                write(&Line::Enrolment(id, blocks))?;
            }
        } else {
            speaker.unlearn();
        }
        write(&Line::Speaker(speaker))?;
    }
    for merge in rows(snapshot, MERGES)? {
        write(&Line::Merge(merge))?;
    }
    let apart = snapshot.table(APART)?;
    for row in apart.iter().map_err(StorageError::from)? {
        let (low, high) = row.map_err(StorageError::from)?.0.value();
        write(&Line::Apart(low, high))?;
    }
    let mut failure = Ok(());
    each_turn(snapshot, false, .., |_, bytes, layout| {
        let Turn { key, mut said } = Turn::decode(bytes, layout)?;
        said.taught &= voiceprints;
        failure = write(&Line::Turn(Box::new(TurnLine {
            said,
            semantic: key.semantic,
            speaker: voiceprints.then_some(key.speaker),
            temporal: key.temporal,
        })));
        Ok(failure.is_ok())
    })?;
    failure
}

impl SpeakerRow {
    /// Lets go of the voice.
    fn unlearn(&mut self) {
        self.centroid.clear();
        self.speech_ms = 0;
        self.turns = 0;
        self.enrolled = false;
    }
}

fn import(
    change: &Change<'_>,
    archive: &mut impl BufRead,
    limits: &Limits,
) -> Result<(), ImportError> {
    if counters(change)? != Counters::default() {
        return Err(ImportError::NotEmpty);
    }
    let mut lines = Lines { archive, line: 0 };
    let header = match lines.next()? {
        Some(Line::Earwitness(header)) if header.archive == ARCHIVE => header,
        _ => return Err(ImportError::NotAnArchive),
    };
    put_meta(change, COUNTERS, &header.counters)?;
    if let Some(layout) = header.layout {
        put_meta(change, LAYOUT, &layout)?;
    }
    if let Some(model) = &header.voiceprint_model {
        put_meta(change, VOICEPRINT_MODEL, model)?;
    }
    loop {
        match lines.next()? {
            Some(Line::End(before)) if before + 1 == lines.line => break,
            Some(line) => {
                let restored = restore(change, &header, line);
                restored.map_err(|refusal| refusal.at(lines.line))?;
            }
            None => return Err(wrong("its end is missing").at(lines.line)),
        }
    }
    check_room(change, limits)?;
    match audit(change)?.into_iter().next() {
        Some(finding) => Err(ImportError::Contradiction(finding)),
        None => Ok(()),
    }
}

/// The lines of an archive, each of bounded length.
struct Lines<'a, R> {
    archive: &'a mut R,
    line: usize,
}

impl<R: BufRead> Lines<'_, R> {
    fn next(&mut self) -> Result<Option<Line>, ImportError> {
        let mut bytes = Vec::new();
        let mut line = self.archive.by_ref().take(MAX_LINE_BYTES);
        let read = line.read_until(b'\n', &mut bytes);
        if read.map_err(|error| ImportError::Read(error.to_string()))? == 0 {
            return Ok(None);
        }
        self.line += 1;
        match serde_json::from_slice(&bytes) {
            Ok(line) => Ok(Some(line)),
            Err(_) if self.line == 1 => Err(ImportError::NotAnArchive),
            Err(error) => Err(Refusal::Wrong(error.to_string()).at(self.line)),
        }
    }
}

/// Why a line is not restored.
enum Refusal {
    Wrong(String),
    Storage(StorageError),
}

impl Refusal {
    fn at(self, line: usize) -> ImportError {
        match self {
            Self::Wrong(reason) => ImportError::Line { line, reason },
            Self::Storage(error) => error.into(),
        }
    }
}

impl From<StorageError> for Refusal {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

fn wrong(error: impl ToString) -> Refusal {
    Refusal::Wrong(error.to_string())
}

fn restore(change: &Change<'_>, header: &Header, line: Line) -> Result<(), Refusal> {
    match line {
        Line::Earwitness(_) => Err(wrong("a second beginning")),
        Line::End(_) => Err(wrong("lines are missing before it")),
        Line::Session(session) if !is_name(&session.name) => Err(wrong("a name")),
        Line::Session(session) => Ok(put(change, SESSIONS, session.id.0, NOBODY, &session)?),
        Line::Speaker(speaker) => restore_speaker(change, header, speaker),
        Line::Enrolment(id, blocks) => Ok(put(change, ENROLMENTS, id, id, &blocks)?),
        Line::Merge(merge) => Ok(put(change, MERGES, merge.from.0, merge.from.0, &merge)?),
        Line::Apart(low, high) => {
            let mut apart = change.open(APART)?;
            apart.insert((low, high), ()).map_err(StorageError::from)?;
            Ok(())
        }
        Line::Turn(turn) => restore_turn(change, header, *turn),
    }
}

fn restore_speaker(
    change: &Change<'_>,
    header: &Header,
    mut speaker: SpeakerRow,
) -> Result<(), Refusal> {
    if speaker
        .speaker
        .name
        .as_deref()
        .is_some_and(|name| !is_name(name))
    {
        return Err(wrong("a name"));
    }
    if speaker.centroid.is_empty() {
        // Of a dimension that fits, and like no voice.
        let model = header.voiceprint_model.as_ref();
        let model = model.map(|model| usize::from(model.dim));
        let keys = header.layout.map(|layout| usize::from(layout.speaker));
        speaker.centroid = vec![0.0; model.or(keys).unwrap_or(0)];
    }
    Ok(put_speaker(change, &speaker)?)
}

fn restore_turn(change: &Change<'_>, header: &Header, line: TurnLine) -> Result<(), Refusal> {
    let layout = header.layout.ok_or_else(|| wrong("no layout of keys"))?;
    let key = Key {
        semantic: line.semantic,
        speaker: line
            .speaker
            .unwrap_or_else(|| Block::unknown(layout.speaker)),
        temporal: line.temporal,
    };
    key.check(Some(layout)).map_err(wrong)?;
    let record = &line.said.record;
    check_texts(&record.text, &record.addressees, &record.attachments).map_err(wrong)?;
    finite("the speaker's score", record.speaker.score).map_err(wrong)?;
    if record.end_ms < record.start_ms {
        return Err(wrong("a turn ends before it starts"));
    }
    let said = line.said;
    Ok(put_turn(change, &Turn { key, said })?)
}

fn check_room(change: &Change<'_>, limits: &Limits) -> Result<(), ImportError> {
    let count = |rows: Result<u64, redb::StorageError>| rows.map_err(StorageError::from);
    let records = count(change.open(RECORDS)?.len())?;
    let speakers = count(change.open(SPEAKERS)?.len())?;
    let sessions = count(change.open(SESSIONS)?.len())?;
    for (what, there, most) in [
        ("records", records, limits.records),
        ("speakers", speakers, limits.speakers.into()),
        ("sessions", sessions, limits.sessions.into()),
    ] {
        if there > most {
            return Err(ImportError::TooMuch(what));
        }
    }
    Ok(())
}
