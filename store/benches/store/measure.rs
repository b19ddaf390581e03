//! What is measured.

use crate::Outcome;
use crate::peers::{PlainFile, Sqlite, key_bytes};
use crate::workload::{key, text, turn};
use earwitness_api::types::SessionId;
use earwitness_store::{Limits, MasterKey, NewRecord, Options, Query, Store, Weights};
use serde_json::{Value, json};
use std::fmt::{self, Display};
use std::fs;
use std::hint::black_box;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Whether the store is sealed; SQLite is not, in either case.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Plain,
    Sealed,
}

impl Form {
    fn options(self) -> Options {
        let sealed = self == Self::Sealed;
        Options {
            key: sealed.then(|| MasterKey::new([7; 32])),
            limits: Limits {
                records: 1_000_000,
                disk_bytes: u64::MAX,
                memory_bytes: u64::MAX,
                ..Limits::default()
            },
            ..Options::default()
        }
    }

    fn name(self, what: &str) -> String {
        match self {
            Self::Plain => what.to_owned(),
            Self::Sealed => format!("sealed {what}"),
        }
    }
}

/// One cost: ours, SQLite's, and what cannot be gone below.
pub struct Series {
    name: String,
    unit: &'static str,
    ours: f64,
    sqlite: Option<f64>,
    floor: Option<f64>,
}

impl Series {
    pub fn json(&self) -> Value {
        let ratio = |peer: Option<f64>| peer.map(|peer| self.ours / peer);
        let peers = match self.sqlite {
            Some(sqlite) => json!({"sqlite": sqlite}),
            None => json!({}),
        };
        json!({
            "name": self.name, "ours": self.ours, "unit": self.unit, "peers": peers,
            "floor": self.floor, "ratio_best_peer": ratio(self.sqlite),
            "ratio_floor": ratio(self.floor),
        })
    }
}

impl Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_none = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.2}"));
        write!(
            f,
            "{:40} {:>10.2} {:12} sqlite {:>10}  floor {:>10}",
            self.name,
            self.ours,
            self.unit,
            or_none(self.sqlite),
            or_none(self.floor)
        )
    }
}

/// One part of the benchmark, in a folder of the medium that is measured.
pub type Part = Box<dyn FnOnce(&Path) -> Outcome<Vec<Series>>>;

/// The whole benchmark, a part at a time.
pub fn parts(small: bool) -> Vec<Part> {
    let (plain, sealed) = (Form::Plain, Form::Sealed);
    let mut parts: Vec<Part> = Vec::new();
    for (count, group, form) in [
        (400, 1, plain),
        (400, 1, sealed),
        (64 * 16, 16, plain),
        (64 * 64, 64, plain),
        (64 * 64, 64, sealed),
        (64 * 256, 256, plain),
        (64 * 256, 256, sealed),
    ] {
        parts.push(Box::new(move |folder| appends(folder, count, group, form)));
    }
    let sizes = [1000, 50_000, 500_000];
    for count in &sizes[..if small { 2 } else { 3 }] {
        for form in [plain, sealed] {
            let count = *count;
            parts.push(Box::new(move |folder| opening(folder, count, form)));
        }
    }
    parts.push(Box::new(query_while_writing));
    parts
}

fn turns(range: std::ops::Range<u64>, session: SessionId) -> Vec<NewRecord> {
    range.map(|n| turn(n, session)).collect()
}

/// The turns of a run, cut into groups.
fn groups(count: u64, group: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    let starts = (0..count).step_by(group as usize);
    starts.map(move |start| start..(start + group).min(count))
}

/// Time and bytes handed to the system, each for one record.
fn cost(count: u64, work: impl FnOnce() -> Outcome<()>) -> Outcome<(f64, f64)> {
    let before = written()?;
    let started = Instant::now();
    work()?;
    let micros = started.elapsed().as_secs_f64() * 1e6;
    let bytes = written()? - before;
    Ok((micros / count as f64, bytes as f64 / count as f64))
}

/// Bytes that this process has given to write calls.
fn written() -> Outcome<u64> {
    let io = fs::read_to_string("/proc/self/io")?;
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    Ok(line
        .ok_or("this system does not count written bytes")?
        .parse()?)
}

fn fill(path: &Path, count: u64, form: Form) -> Outcome<Store> {
    let store = Store::open_with(path, form.options())?;
    let session = store.begin_session("bench", 0)?.id;
    for range in groups(count, 1024) {
        store.append_all(&turns(range, session))?;
    }
    Ok(store)
}

fn appends(folder: &Path, count: u64, group: u64, form: Form) -> Outcome<Vec<Series>> {
    let name = &form.name(&format!("append, {group} a transaction"));
    // In the middle of a life: with records to find a place after.
    let store = fill(&folder.join(name), 2048, form)?;
    let session = store.sessions()?[0].id;
    let batches: Vec<_> = groups(count, group)
        .map(|range| turns(range.start + 2048..range.end + 2048, session))
        .collect();
    let ours = cost(count, || {
        for batch in &batches {
            store.append_all(batch)?;
        }
        Ok(())
    })?;
    let mut sqlite = Sqlite::open(&folder.join(format!("{name}.sqlite")))?;
    sqlite.append(0..2048)?;
    let theirs = cost(count, || {
        groups(count, group).try_for_each(|range| {
            sqlite.append(range.start + 2048..range.end + 2048)?;
            Ok(())
        })
    })?;
    let mut file = PlainFile::open(&folder.join(format!("{name}.plain")))?;
    let floor = cost(count, || {
        groups(count, group).try_for_each(|range| {
            file.append(range)?;
            Ok(())
        })
    })?;
    let series = |what, unit, pick: fn((f64, f64)) -> f64| Series {
        name: format!("{name}: {what}"),
        unit,
        ours: pick(ours),
        sqlite: Some(pick(theirs)),
        floor: Some(pick(floor)),
    };
    Ok(vec![
        series("time", "us/record", |cost| cost.0),
        series("written", "bytes/record", |cost| cost.1),
    ])
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// Bytes of the medium that a file takes: those blocks of it that were written to.
fn taken(path: &Path) -> Outcome<f64> {
    Ok(fs::metadata(path)?.blocks() as f64 * 512.0)
}

/// Opening a store until its keys are ready, and what they take in memory.
fn opening(folder: &Path, count: u64, form: Form) -> Outcome<Vec<Series>> {
    let path = folder.join("opening");
    drop(fill(&path, count, form)?);
    let started = Instant::now();
    let mut opened = None;
    let resident =
        allocation_counter::measure(|| opened = Some(Store::open_with(&path, form.options())));
    let ours = milliseconds(started);
    let store = opened.ok_or("not opened")??;
    let keys = store.keys().len();
    drop(store);
    let bytes_on_disk = taken(&path)? / count as f64;
    let sqlite_path = folder.join("opening.sqlite");
    let mut sqlite = Sqlite::open(&sqlite_path)?;
    groups(count, 1024).try_for_each(|range| sqlite.append(range))?;
    drop(sqlite);
    let started = Instant::now();
    let loaded = Sqlite::open(&sqlite_path)?.load_keys()?;
    let theirs = milliseconds(started);
    assert_eq!(loaded.len(), keys);
    drop(loaded);
    let sqlite_on_disk = taken(&sqlite_path)? / count as f64;
    let bare = folder.join("opening.plain");
    fs::write(&bare, vec![7; count as usize * key_bytes(0).len()])?;
    let started = Instant::now();
    black_box(fs::read(&bare)?);
    let floor = milliseconds(started);
    let payload = (key_bytes(0).len() + text(0).len()) as f64;
    for path in [path, sqlite_path, bare] {
        fs::remove_file(path)?;
    }
    let series = |what: &str, unit, ours, sqlite, floor| Series {
        name: form.name(&format!("{count} records: {what}")),
        unit,
        ours,
        sqlite,
        floor: Some(floor),
    };
    let resident = resident.bytes_current as f64 / count as f64;
    Ok(vec![
        series("open", "ms", ours, Some(theirs), floor),
        series(
            "on disk",
            "bytes/record",
            bytes_on_disk,
            Some(sqlite_on_disk),
            payload,
        ),
        series(
            "resident",
            "bytes/record",
            resident,
            None,
            key_bytes(0).len() as f64,
        ),
    ])
}

/// The median time of a question over 20,000 keys, scored in memory by both,
/// whose best 15 records are read while another thread writes.
fn query_while_writing(folder: &Path) -> Outcome<Vec<Series>> {
    const KEYS: u64 = 20_000;
    let query = Query::new(
        key(77),
        Weights {
            who: 0.5,
            what: 1.0,
            when: 0.0,
        },
    )?;
    let store = fill(&folder.join("query"), KEYS, Form::Plain)?;
    let session = store.sessions()?[0].id;
    let score = || store.keys().score_top_k(&query, &[], 15);
    let best: Vec<i64> = score()?.iter().map(|scored| scored.id.0 as i64).collect();
    let scan = median(|| {
        black_box(score()?);
        Ok(())
    })?;
    let ours = beside(
        |n| {
            store.append(turn(KEYS + n, session))?;
            Ok(())
        },
        || {
            for scored in score()? {
                black_box(store.record(scored.id)?);
            }
            Ok(())
        },
    )?;
    let path = folder.join("query.sqlite");
    let mut sqlite = Sqlite::open(&path)?;
    groups(KEYS, 1024).try_for_each(|range| sqlite.append(range))?;
    let reader = Sqlite::open(&path)?;
    let theirs = beside_sqlite(sqlite, KEYS, || {
        black_box(score()?);
        black_box(reader.texts(&best)?);
        Ok(())
    })?;
    Ok(vec![Series {
        name: "query while writing".into(),
        unit: "ms",
        ours,
        sqlite: Some(theirs),
        floor: Some(scan),
    }])
}

fn median(mut work: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let mut times = Vec::new();
    for _ in 0..200 {
        let started = Instant::now();
        work()?;
        times.push(milliseconds(started));
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// The median of `read` while another thread calls `write`.
fn beside(
    write: impl Fn(u64) -> Outcome<()> + Sync,
    read: impl FnMut() -> Outcome<()>,
) -> Outcome<f64> {
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let writer = threads.spawn(|| {
            let mut n = 0;
            while !done.load(Ordering::Relaxed) && write(n).is_ok() {
                n += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let result = median(read);
        done.store(true, Ordering::Relaxed);
        writer.join().map_err(|_| "the writer failed")?;
        result
    })
}

fn beside_sqlite(sqlite: Sqlite, from: u64, read: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let sqlite = std::sync::Mutex::new(sqlite);
    beside(
        |n| {
            let mut sqlite = sqlite.lock().map_err(|_| "the writer failed")?;
            sqlite.append(from + n..from + n + 1)?;
            Ok(())
        },
        read,
    )
}
