//! What the suites share: a medium in memory that can run out of space, and
//! short ways to write turns.
#![allow(dead_code, clippy::unwrap_used)]

use earwitness_api::types::{Attribution, SessionId, SpeakerId};
use earwitness_store::medium::{Hold, Medium};
use earwitness_store::{Block, Key, Learned, NewRecord, Speaking, Store};
use redb::StorageBackend;
use std::io;
use std::sync::{Arc, Mutex};

/// A store's bytes and its replacement's, shared by clones, which outlive every
/// store on them.
#[derive(Clone, Debug, Default)]
pub struct MemoryMedium {
    bytes: Arc<Mutex<Option<Bytes>>>,
    replacement: Arc<Mutex<Option<Bytes>>>,
    backup: Arc<Mutex<Option<Bytes>>>,
    faults: Arc<Mutex<Faults>>,
}

type Bytes = Arc<Mutex<Vec<u8>>>;

#[derive(Debug, Default)]
struct Faults {
    /// Writing fails once so many bytes have been written.
    space: Option<usize>,
    /// Reading fails.
    unreadable: bool,
}

impl MemoryMedium {
    pub fn limit(&self, space: Option<usize>) {
        self.faults.lock().unwrap().space = space;
    }

    pub fn fail_reads(&self, fail: bool) {
        self.faults.lock().unwrap().unreadable = fail;
    }

    pub fn content(&self) -> Vec<u8> {
        let bytes = self.bytes.lock().unwrap();
        bytes.as_ref().unwrap().lock().unwrap().clone()
    }

    pub fn set_content(&self, content: Vec<u8>) {
        *self.bytes.lock().unwrap() = Some(Arc::new(Mutex::new(content)));
    }

    /// The bytes for redb itself.
    pub fn raw(&self) -> impl StorageBackend {
        let bytes = self.bytes.lock().unwrap();
        self.over(bytes.as_ref().unwrap())
    }

    fn over(&self, bytes: &Bytes) -> MemoryBackend {
        MemoryBackend {
            bytes: Arc::clone(bytes),
            faults: Arc::clone(&self.faults),
        }
    }

    fn backend(&self, bytes: &Bytes) -> Box<dyn StorageBackend> {
        Box::new(self.over(bytes))
    }
}

impl Medium for MemoryMedium {
    fn name(&self) -> String {
        "memory".into()
    }

    fn hold(&self) -> io::Result<Hold> {
        Ok(Hold::default())
    }

    fn read(&self) -> io::Result<Option<Box<dyn StorageBackend>>> {
        let bytes = self.bytes.lock().unwrap();
        Ok(bytes.as_ref().map(|bytes| self.backend(bytes)))
    }

    fn size(&self) -> io::Result<u64> {
        let bytes = self.bytes.lock().unwrap();
        Ok(bytes.as_ref().map_or(0, |b| b.lock().unwrap().len()) as u64)
    }

    fn write(&self) -> io::Result<Box<dyn StorageBackend>> {
        self.read()?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create_replacement(&self) -> io::Result<Box<dyn StorageBackend>> {
        let bytes = Bytes::default();
        *self.replacement.lock().unwrap() = Some(Arc::clone(&bytes));
        Ok(self.backend(&bytes))
    }

    fn install_replacement(&self) -> io::Result<()> {
        *self.bytes.lock().unwrap() = self.replacement.lock().unwrap().take();
        Ok(())
    }

    fn discard_replacement(&self) -> io::Result<()> {
        *self.replacement.lock().unwrap() = None;
        Ok(())
    }

    fn keep_reserve(&self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn release_reserve(&self) -> io::Result<()> {
        Ok(())
    }

    fn back_up(&self, _version: u32) -> io::Result<()> {
        *self.backup.lock().unwrap() = self.bytes.lock().unwrap().clone();
        Ok(())
    }

    fn discard_backups(&self) -> io::Result<()> {
        *self.backup.lock().unwrap() = None;
        Ok(())
    }
}

#[derive(Debug)]
struct MemoryBackend {
    bytes: Bytes,
    faults: Arc<Mutex<Faults>>,
}

impl StorageBackend for MemoryBackend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.faults.lock().unwrap().unreadable {
            return Err(io::Error::other("the card does not answer"));
        }
        let bytes = self.bytes.lock().unwrap();
        let start = offset as usize;
        let range = bytes.get(start..start + out.len());
        out.copy_from_slice(range.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.bytes.lock().unwrap().resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if let Some(space) = &mut self.faults.lock().unwrap().space {
            let left = space.checked_sub(data.len());
            *space = left.ok_or(io::ErrorKind::StorageFull)?;
        }
        let start = offset as usize;
        self.bytes.lock().unwrap()[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }
}

/// A key whose values are told apart by `seed`.
pub fn key(seed: u64) -> Key {
    let block = |dim: usize, salt: u64| Block {
        scale: 1.0 / 127.0,
        values: (0..dim as u64)
            .map(|i| (seed.wrapping_mul(31).wrapping_add(i * salt) % 255) as u8 as i8)
            .collect(),
    };
    Key {
        semantic: block(8, 7),
        speaker: block(4, 13),
        temporal: block(2, 29),
    }
}

pub fn voice(seed: u64) -> Learned {
    Learned {
        centroid: vec![seed as f32, 1.0, 0.0, 0.0],
        speech_ms: 1000,
    }
}

/// A turn of one second by nobody known.
pub fn turn(session: SessionId, text: &str) -> NewRecord {
    NewRecord {
        session,
        start_ms: 0,
        end_ms: 1000,
        unix_ms: 1_772_000_000_000,
        speaker: Speaking::Unknown { score: 0.1 },
        addressees: Vec::new(),
        text: text.into(),
        attachments: Vec::new(),
        key: key(text.len() as u64),
    }
}

pub fn by_new(session: SessionId, text: &str) -> NewRecord {
    NewRecord {
        speaker: Speaking::New {
            score: 0.2,
            learned: voice(text.len() as u64),
        },
        ..turn(session, text)
    }
}

pub fn by(speaker: SpeakerId, session: SessionId, text: &str) -> NewRecord {
    NewRecord {
        speaker: Speaking::Known {
            id: speaker,
            score: 0.9,
            learned: Some(voice(text.len() as u64)),
        },
        ..turn(session, text)
    }
}

pub fn to(speaker: SpeakerId) -> Attribution {
    Attribution {
        speaker: Some(speaker),
        score: 0.7,
    }
}

/// A store in memory with one session.
pub fn store() -> (MemoryMedium, Store, SessionId) {
    let medium = MemoryMedium::default();
    let store = Store::open_on(medium.clone()).unwrap();
    let session = store.begin_session("first", 0).unwrap().id;
    (medium, store, session)
}

/// The store says nothing against itself.
pub fn assert_sound(store: &Store) {
    assert_eq!(store.verify().unwrap(), []);
}

pub fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|part| part == needle)
}

/// Numbers that depend on a seed alone (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}
