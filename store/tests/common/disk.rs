//! A disk of so many blocks, shared by a store's files: a block is taken when it is
//! first written to and given back when its file is cut off or gone, as in a file
//! system that keeps sparse files.

#![allow(dead_code)]

use earwitness_store::medium::{Hold, Medium};
use redb::StorageBackend;
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

const BLOCK: usize = 4096;

#[derive(Debug, Default)]
struct File {
    bytes: Vec<u8>,
    taken: BTreeSet<usize>,
}

type Shared = Arc<Mutex<File>>;

#[derive(Debug, Default)]
struct State {
    store: Option<Shared>,
    replacement: Option<Shared>,
    /// Blocks of the reserve.
    reserve: usize,
    /// Blocks of the disk.
    blocks: usize,
    /// Bytes written so far.
    written: usize,
}

impl State {
    fn taken(&self) -> usize {
        let files = self.store.iter().chain(&self.replacement);
        let taken = files.map(|file| file.lock().unwrap().taken.len());
        taken.sum::<usize>() + self.reserve
    }
}

/// Clones share one disk.
#[derive(Clone, Debug)]
pub struct Disk(Arc<Mutex<State>>);

impl Disk {
    pub fn new(blocks: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            blocks,
            ..State::default()
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Makes the disk larger or smaller.
    pub fn resize(&self, blocks: usize) {
        self.state().blocks = blocks;
    }

    /// Blocks that are taken.
    pub fn taken(&self) -> usize {
        self.state().taken()
    }

    /// Bytes written so far.
    pub fn written(&self) -> usize {
        self.state().written
    }

    pub fn content(&self) -> Vec<u8> {
        let state = self.state();
        state.store.as_ref().unwrap().lock().unwrap().bytes.clone()
    }

    fn backend(&self, file: &Shared) -> Box<dyn StorageBackend> {
        let (disk, file) = (self.clone(), Arc::clone(file));
        Box::new(Backend { disk, file })
    }
}

impl Medium for Disk {
    fn name(&self) -> String {
        "disk".into()
    }

    fn hold(&self) -> io::Result<Hold> {
        Ok(Hold::default())
    }

    fn read(&self) -> io::Result<Option<Box<dyn StorageBackend>>> {
        let store = self.state().store.clone();
        Ok(store.map(|file| self.backend(&file)))
    }

    fn size(&self) -> io::Result<u64> {
        let store = self.state().store.clone();
        let taken = store.map_or(0, |file| file.lock().unwrap().taken.len());
        Ok((taken * BLOCK) as u64)
    }

    fn write(&self) -> io::Result<Box<dyn StorageBackend>> {
        self.read()?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create_replacement(&self) -> io::Result<Box<dyn StorageBackend>> {
        let file = Shared::default();
        self.state().replacement = Some(Arc::clone(&file));
        Ok(self.backend(&file))
    }

    fn install_replacement(&self) -> io::Result<()> {
        let mut state = self.state();
        state.store = state.replacement.take();
        Ok(())
    }

    fn discard_replacement(&self) -> io::Result<()> {
        self.state().replacement = None;
        Ok(())
    }

    fn keep_reserve(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.state();
        state.reserve = 0;
        let left = state.blocks.saturating_sub(state.taken());
        state.reserve = left.min((bytes as usize).div_ceil(BLOCK));
        Ok(())
    }

    fn release_reserve(&self) -> io::Result<()> {
        self.state().reserve = 0;
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
struct Backend {
    disk: Disk,
    file: Shared,
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.lock().unwrap().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let start = offset as usize;
        let file = self.file.lock().unwrap();
        let range = file.bytes.get(start..start + out.len());
        out.copy_from_slice(range.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut file = self.file.lock().unwrap();
        file.bytes.resize(len as usize, 0);
        file.taken.split_off(&(len as usize).div_ceil(BLOCK));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let start = offset as usize;
        self.disk.state().written += data.len();
        for block in start / BLOCK..(start + data.len()).div_ceil(BLOCK) {
            let state = self.disk.state();
            let is_new = !self.file.lock().unwrap().taken.contains(&block);
            if is_new && state.taken() >= state.blocks {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.file.lock().unwrap().taken.insert(block);
        }
        self.file.lock().unwrap().bytes[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }
}
