//! Opening files: what is ours, what is not, and what is in use.
#![allow(clippy::unwrap_used)]

mod common;

use common::{assert_sound, by_new, turn};
use earwitness_api::types::RecordFilter;
use earwitness_store::{OpenError, Store};
use redb::{Database, TableDefinition};
use std::fs;
use std::path::{Path, PathBuf};

const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("memory")
    }

    /// All files but the reserve, which holds nothing.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "memory.reserve")
            .collect()
    }
}

fn fill(path: &Path) {
    let store = Store::open(path).unwrap();
    let session = store.begin_session("first", 0).unwrap().id;
    store.append(by_new(session, "hello")).unwrap();
}

/// Opening fails and changes nothing.
fn refused(folder: &Folder) -> OpenError {
    let before = fs::read(folder.path()).unwrap();
    let error = Store::open(&folder.path()).unwrap_err();
    assert!(fs::read(folder.path()).unwrap() == before, "{error}");
    assert_eq!(folder.names(), ["memory"]);
    error
}

#[test]
fn no_file_or_an_empty_one_becomes_a_store() {
    let folder = Folder::new();
    fill(&folder.path());
    assert_eq!(Store::open(&folder.path()).unwrap().keys().len(), 1);
    fs::write(folder.path(), "").unwrap();
    let store = Store::open(&folder.path()).unwrap();
    assert_eq!(store.stats().unwrap().records, 0);
    assert_eq!(folder.names(), ["memory"]);
}

#[cfg(unix)]
#[test]
fn a_store_is_readable_by_its_owner_alone_and_a_link_to_it_stays_a_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    fill(&folder.path());
    let mode = fs::metadata(folder.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let link = folder.0.path().join("link");
    symlink(folder.path(), &link).unwrap();
    Store::open(&link).unwrap().compact().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn other_files_are_refused_and_left_alone() {
    let folder = Folder::new();
    let noise: Vec<u8> = (0..100_000u64).map(|i| ((i * i) >> 7) as u8).collect();
    for content in [b"Dear diary,\n".as_slice(), &noise, &[0; 5000]] {
        fs::write(folder.path(), content).unwrap();
        assert!(matches!(refused(&folder), OpenError::NotAStore { .. }));
    }
}

#[test]
fn another_programs_database_is_refused_and_left_alone() {
    let folder = Folder::new();
    let other = Database::create(folder.path()).unwrap();
    let transaction = other.begin_write().unwrap();
    transaction.open_table(META).unwrap();
    transaction.commit().unwrap();
    drop(other);
    assert!(matches!(refused(&folder), OpenError::NotAStore { .. }));
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let folder = Folder::new();
    fill(&folder.path());
    let database = Database::open(folder.path()).unwrap();
    let transaction = database.begin_write().unwrap();
    let newer = 3u32.to_le_bytes();
    transaction
        .open_table(META)
        .unwrap()
        .insert("schema", newer.as_slice())
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert!(matches!(
        refused(&folder),
        OpenError::Newer { found: 3, .. }
    ));
}

#[test]
fn a_file_that_was_cut_off_is_refused_and_left_alone() {
    let folder = Folder::new();
    fill(&folder.path());
    let whole = fs::read(folder.path()).unwrap();
    for length in (1..whole.len()).step_by(997) {
        fs::write(folder.path(), &whole[..length]).unwrap();
        refused(&folder);
    }
}

#[test]
fn a_damaged_store_is_refused_and_left_alone_or_read_as_it_was_written() {
    let (medium, store, session) = common::store();
    store.append(by_new(session, "hello")).unwrap();
    drop(store);
    let whole = medium.content();
    for at in (0..whole.len()).step_by(37) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x40;
        medium.set_content(damaged.clone());
        match Store::open_on(medium.clone()) {
            Ok(store) => assert_eq!(store.verify().unwrap(), [], "byte {at}"),
            Err(_) => assert!(medium.content() == damaged, "byte {at}"),
        }
    }
}

#[test]
fn a_store_that_was_never_closed_opens_as_it_was_acknowledged() {
    let folder = Folder::new();
    let store = Store::open(&folder.path()).unwrap();
    let session = store.begin_session("first", 0).unwrap().id;
    let records: Vec<_> = (1..20)
        .map(|i| store.append(turn(session, &"x".repeat(i))).unwrap())
        .collect();
    let copy = Folder::new();
    fs::copy(folder.path(), copy.path()).unwrap();
    let copied = Store::open(&copy.path()).unwrap();
    assert_eq!(copied.records(RecordFilter::default()).unwrap(), records);
    assert_eq!(*copied.keys(), *store.keys());
    assert_sound(&copied);
}

#[test]
fn what_an_interrupted_rewrite_left_is_removed() {
    let folder = Folder::new();
    fill(&folder.path());
    fs::write(folder.0.path().join("memory.rewrite"), "half").unwrap();
    assert_eq!(Store::open(&folder.path()).unwrap().keys().len(), 1);
    assert_eq!(folder.names(), ["memory"]);
}

/// Room for forgetting on a full disk; another opening leaves it as it is.
#[cfg(unix)]
#[test]
fn room_is_set_aside_beside_the_store() {
    use std::os::unix::fs::MetadataExt;
    let folder = Folder::new();
    let reserve = || fs::metadata(folder.0.path().join("memory.reserve")).unwrap();
    fill(&folder.path());
    let before = reserve();
    assert_eq!((before.len(), before.mode() & 0o777), (1 << 20, 0o600));
    drop(Store::open(&folder.path()).unwrap());
    assert_eq!(reserve().ino(), before.ino());
}

#[test]
fn a_folder_or_a_missing_folder_is_named() {
    let folder = Folder::new();
    for path in [folder.0.path().to_owned(), folder.path().join("deeper")] {
        let error = Store::open(&path).unwrap_err();
        assert!(matches!(error, OpenError::Failed { .. }));
        assert!(error.to_string().contains(&*path.to_string_lossy()));
    }
}

const HELD_BY_PARENT: &str = "EARWITNESS_TEST_STORE";

/// Runs itself again in a second process, which must not get the store, neither
/// before nor after the first has exchanged the file.
#[test]
fn a_second_process_is_told_that_the_store_is_in_use() {
    if let Some(path) = std::env::var_os(HELD_BY_PARENT) {
        let error = Store::open(Path::new(&path)).unwrap_err();
        assert!(matches!(error, OpenError::InUse(_)), "{error}");
        return;
    }
    let folder = Folder::new();
    let store = Store::open(&folder.path()).unwrap();
    for _ in 0..2 {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "a_second_process_is_told_that_the_store_is_in_use",
            ])
            .env(HELD_BY_PARENT, folder.path())
            .status();
        assert!(status.unwrap().success());
        store.compact().unwrap();
    }
    drop(store);
    assert!(Store::open(&folder.path()).is_ok());
}
