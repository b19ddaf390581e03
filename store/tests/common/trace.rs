//! A medium that writes down all that is done to it, and what such a medium may
//! hold when the power goes.
//!
//! It behaves as `DESIGN.md` assumes of the worst allowed: what was synced stays;
//! of the rest any part may have reached it, in any order, torn between sectors;
//! a file takes another's place as a whole.

use super::Random;
use earwitness_store::medium::{Hold, Medium};
use redb::StorageBackend;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// What is written whole or not at all.
const SECTOR: usize = 512;

#[derive(Clone, Debug)]
pub enum Event {
    Create(usize),
    Write(usize, u64, Vec<u8>),
    SetLen(usize, u64),
    Sync(usize),
    Install(usize),
    /// So many operations were acknowledged.
    Acknowledged(usize),
}

#[derive(Debug, Default)]
struct State {
    files: Vec<Vec<u8>>,
    current: Option<usize>,
    replacement: Option<usize>,
    events: Vec<Event>,
    /// Counts down to a write or sync that fails.
    fail_in: Option<usize>,
}

/// Clones share one medium.
#[derive(Clone, Debug, Default)]
pub struct TraceMedium(Arc<Mutex<State>>);

impl TraceMedium {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub fn acknowledge(&self, operations: usize) {
        let event = Event::Acknowledged(operations);
        self.state().events.push(event);
    }

    pub fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.state().events)
    }

    pub fn content(&self) -> Vec<u8> {
        let state = self.state();
        state.files[state.current.unwrap()].clone()
    }

    /// Makes one write or sync fail, after `calls` that work.
    pub fn fail_in(&self, calls: usize) {
        self.state().fail_in = Some(calls);
    }

    /// Makes everything work again; says whether a failure had happened.
    pub fn mend(&self) -> bool {
        self.state().fail_in.take().is_none()
    }

    fn backend(&self, file: usize) -> Box<dyn StorageBackend> {
        let medium = self.clone();
        Box::new(TraceBackend { medium, file })
    }
}

impl State {
    fn may_fail(&mut self) -> io::Result<()> {
        match self.fail_in {
            Some(0) => {
                self.fail_in = None;
                Err(io::Error::other("the medium failed"))
            }
            Some(calls) => {
                self.fail_in = Some(calls - 1);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Medium for TraceMedium {
    fn name(&self) -> String {
        "trace".into()
    }

    fn hold(&self) -> io::Result<Hold> {
        Ok(Hold::default())
    }

    fn read(&self) -> io::Result<Option<Box<dyn StorageBackend>>> {
        let current = self.state().current;
        Ok(current.map(|file| self.backend(file)))
    }

    fn size(&self) -> io::Result<u64> {
        let state = self.state();
        Ok(state.current.map_or(0, |file| state.files[file].len()) as u64)
    }

    fn write(&self) -> io::Result<Box<dyn StorageBackend>> {
        self.read()?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create_replacement(&self) -> io::Result<Box<dyn StorageBackend>> {
        let file = {
            let mut state = self.state();
            state.may_fail()?;
            let file = state.files.len();
            state.files.push(Vec::new());
            state.events.push(Event::Create(file));
            state.replacement = Some(file);
            file
        };
        Ok(self.backend(file))
    }

    fn install_replacement(&self) -> io::Result<()> {
        let mut state = self.state();
        state.may_fail()?;
        let file = state.replacement.take().unwrap();
        state.events.push(Event::Install(file));
        state.current = Some(file);
        Ok(())
    }

    fn discard_replacement(&self) -> io::Result<()> {
        self.state().replacement = None;
        Ok(())
    }

    fn keep_reserve(&self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn release_reserve(&self) -> io::Result<()> {
        Ok(())
    }

    fn back_up(&self, _version: u32) -> io::Result<()> {
        Ok(())
    }

    fn discard_backups(&self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct TraceBackend {
    medium: TraceMedium,
    file: usize,
}

impl StorageBackend for TraceBackend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.medium.state().files[self.file].len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.medium.state();
        let start = offset as usize;
        let range = state.files[self.file].get(start..start + out.len());
        out.copy_from_slice(range.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.medium.state();
        state.may_fail()?;
        state.files[self.file].resize(len as usize, 0);
        state.events.push(Event::SetLen(self.file, len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.medium.state();
        state.may_fail()?;
        state.events.push(Event::Sync(self.file));
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.medium.state();
        state.may_fail()?;
        apply(&mut state.files[self.file], offset, data);
        let event = Event::Write(self.file, offset, data.to_vec());
        state.events.push(event);
        Ok(())
    }
}

fn apply(file: &mut Vec<u8>, offset: u64, data: &[u8]) {
    let end = offset as usize + data.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[offset as usize..end].copy_from_slice(data);
}

/// The medium at one moment of a trace.
#[derive(Debug, Default)]
pub struct Replay {
    durable: BTreeMap<usize, Vec<u8>>,
    pending: BTreeMap<usize, Vec<Event>>,
    current: Option<usize>,
    pub acknowledged: usize,
}

impl Replay {
    /// Goes on by one event.
    pub fn step(&mut self, event: Event) {
        match event {
            Event::Create(file) => {
                self.durable.retain(|known, _| Some(*known) == self.current);
                self.durable.insert(file, Vec::new());
            }
            Event::Write(file, ..) | Event::SetLen(file, _) => {
                self.pending.entry(file).or_default().push(event);
            }
            Event::Sync(file) => {
                let bytes = self.durable.entry(file).or_default();
                for event in self.pending.remove(&file).unwrap_or_default() {
                    change(bytes, &event);
                }
            }
            Event::Install(file) => self.current = Some(file),
            Event::Acknowledged(operations) => self.acknowledged = operations,
        }
    }

    /// What the store's file may hold if the power goes now.
    pub fn cut(&self, random: &mut Random) -> Option<Vec<u8>> {
        let file = self.current?;
        let mut bytes = self.durable[&file].clone();
        let pending = self.pending.get(&file).map_or(&[][..], Vec::as_slice);
        // Nothing of it, all of it, or any part of it in any order.
        match random.below(4) {
            0 => {}
            1 => pending.iter().for_each(|event| change(&mut bytes, event)),
            _ => {
                let mut sectors: Vec<Event> = pending.iter().flat_map(sectors).collect();
                random.shuffle(&mut sectors);
                let kept = random.below(sectors.len() + 1);
                sectors.truncate(kept);
                sectors.iter().for_each(|event| change(&mut bytes, event));
            }
        }
        Some(bytes)
    }
}

/// A write cut where the medium may tear it.
fn sectors(event: &Event) -> Vec<Event> {
    let Event::Write(file, offset, data) = event else {
        return vec![event.clone()];
    };
    let mut pieces = Vec::new();
    let mut done = 0;
    while done < data.len() {
        let at = offset + done as u64;
        let size = SECTOR - at as usize % SECTOR;
        let end = data.len().min(done + size);
        pieces.push(Event::Write(*file, at, data[done..end].to_vec()));
        done = end;
    }
    pieces
}

fn change(bytes: &mut Vec<u8>, event: &Event) {
    match event {
        Event::Write(_, offset, data) => apply(bytes, *offset, data),
        Event::SetLen(_, len) => bytes.resize(*len as usize, 0),
        _ => {}
    }
}
