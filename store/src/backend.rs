//! The storage below redb: any back end, either as it is or behind a layer that
//! keeps writes in memory.
//!
//! The layer lets redb open a file, repair it as after a crash and read it while
//! not one byte of it changes. It carries two cases: looking at a file before it
//! is known to be ours, and reading on while the disk takes no writes. It holds
//! what redb's repair writes, a few pages, and is never written through for long.

use redb::{BackendError, StorageBackend};
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::io;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

const BLOCK: usize = 4096;

/// A back end that redb may use.
pub(crate) struct Backend {
    inner: Box<dyn StorageBackend>,
    overlay: Option<Mutex<Overlay>>,
}

struct Overlay {
    blocks: BTreeMap<u64, Box<[u8; BLOCK]>>,
    len: u64,
    /// Bytes below this still come from the storage.
    inner_len: u64,
}

impl Backend {
    /// Reads and writes the storage.
    pub(crate) fn direct(inner: Box<dyn StorageBackend>) -> Self {
        Self {
            inner,
            overlay: None,
        }
    }

    /// Reads the storage, keeps writes to itself, and locks as a reader.
    pub(crate) fn untouched(inner: Box<dyn StorageBackend>) -> io::Result<Self> {
        let len = inner.len()?;
        let overlay = Overlay {
            blocks: BTreeMap::new(),
            len,
            inner_len: len,
        };
        Ok(Self {
            inner,
            overlay: Some(Mutex::new(overlay)),
        })
    }

    fn overlay(&self) -> Option<MutexGuard<'_, Overlay>> {
        let overlay = self.overlay.as_ref()?;
        Some(overlay.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Overlay {
    fn read(&self, inner: &dyn StorageBackend, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if offset.saturating_add(out.len() as u64) > self.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        out.fill(0);
        let below = self.inner_len.saturating_sub(offset).min(out.len() as u64);
        if below > 0 {
            inner.read(offset, &mut out[..below as usize])?;
        }
        for (block, within, part) in pieces(offset, out.len()) {
            if let Some(bytes) = self.blocks.get(&block) {
                let length = part.len();
                out[part].copy_from_slice(&bytes[within..within + length]);
            }
        }
        Ok(())
    }

    fn write(&mut self, inner: &dyn StorageBackend, offset: u64, data: &[u8]) -> io::Result<()> {
        self.len = self.len.max(offset + data.len() as u64);
        for (block, within, part) in pieces(offset, data.len()) {
            let length = part.len();
            let bytes = self.block(inner, block)?;
            bytes[within..within + length].copy_from_slice(&data[part]);
        }
        Ok(())
    }

    fn block(
        &mut self,
        inner: &dyn StorageBackend,
        block: u64,
    ) -> io::Result<&mut Box<[u8; BLOCK]>> {
        use std::collections::btree_map::Entry;
        match self.blocks.entry(block) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let mut bytes = Box::new([0; BLOCK]);
                let start = block * BLOCK as u64;
                let below = self.inner_len.saturating_sub(start).min(BLOCK as u64);
                if below > 0 {
                    inner.read(start, &mut bytes[..below as usize])?;
                }
                Ok(entry.insert(bytes))
            }
        }
    }

    fn set_len(&mut self, len: u64) {
        self.len = len;
        self.inner_len = self.inner_len.min(len);
        let kept = len.div_ceil(BLOCK as u64);
        drop(self.blocks.split_off(&kept));
        let tail = (len % BLOCK as u64) as usize;
        if tail > 0
            && let Some(bytes) = self.blocks.get_mut(&(kept - 1))
        {
            bytes[tail..].fill(0);
        }
    }
}

/// Cuts a range into blocks: the block, where in it, and which part of the range.
fn pieces(
    offset: u64,
    length: usize,
) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % BLOCK as u64) as usize;
        let size = (BLOCK - within).min(length - done);
        let part = done..done + size;
        done += size;
        (size > 0).then_some((at / BLOCK as u64, within, part))
    })
}

impl Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        match self.overlay() {
            Some(overlay) => Ok(overlay.len),
            None => self.inner.len(),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match self.overlay() {
            Some(overlay) => overlay.read(self.inner.as_ref(), offset, out),
            None => self.inner.read(offset, out),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        match self.overlay() {
            Some(mut overlay) => {
                overlay.set_len(len);
                Ok(())
            }
            None => self.inner.set_len(len),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        match self.overlay {
            Some(_) => Ok(()),
            None => self.inner.sync_data(),
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        match self.overlay() {
            Some(mut overlay) => overlay.write(self.inner.as_ref(), offset, data),
            None => self.inner.write(offset, data),
        }
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    /// Behind the layer every lock is shared: it excludes writers, not readers,
    /// and a file that was opened for reading has no exclusive ones to give.
    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        match self.overlay {
            Some(_) => self.inner.try_lock_shared_range(start, end),
            None => self.inner.try_lock_range(start, end),
        }
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.inner.try_lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Backend};
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;
    use redb::StorageBackend;
    use redb::backends::InMemoryBackend;

    #[derive(Clone, Debug)]
    enum Step {
        SetLen(usize),
        Write(usize, u8, usize),
    }

    const MOST: usize = 4 * BLOCK;

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..MOST).prop_map(Step::SetLen),
            (0..MOST, any::<u8>(), 0..2 * BLOCK).prop_map(|(at, b, n)| Step::Write(at, b, n)),
        ]
    }

    fn content(backend: &dyn StorageBackend) -> Vec<u8> {
        let mut bytes = vec![0xAA; backend.len().unwrap() as usize];
        backend.read(0, &mut bytes).unwrap();
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(1),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// The layer reads like storage that took every write, and nothing
        /// reaches the storage below.
        #[test]
        fn the_layer_is_like_storage_that_took_the_writes(
            length in 0..MOST,
            steps in prop::collection::vec(step(), 0..20),
        ) {
            let below = InMemoryBackend::new();
            below.set_len(length as u64).unwrap();
            below.write(0, &vec![7; length]).unwrap();
            let layer = Backend::untouched(Box::new(below)).unwrap();
            let mut twin = vec![7; length];
            for step in steps {
                match step {
                    Step::SetLen(length) => {
                        layer.set_len(length as u64).unwrap();
                        twin.resize(length, 0);
                    }
                    Step::Write(at, byte, count) => {
                        let at = at.min(twin.len());
                        let data = vec![byte; count.min(twin.len() - at)];
                        layer.write(at as u64, &data).unwrap();
                        twin[at..at + data.len()].copy_from_slice(&data);
                    }
                }
                prop_assert!(content(&layer) == twin);
            }
            prop_assert!(layer.read(twin.len() as u64, &mut [0]).is_err());
            prop_assert!(content(layer.inner.as_ref()) == vec![7; length]);
        }
    }
}
