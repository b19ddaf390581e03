//! `bench retrieval`: the three best of many keys, beside other indices on the same
//! vectors, and a question's evidence, with and without its embedding.
//!
//! One thread, one query at a time, processor time. Everybody takes turns, so that
//! what else the machine does meets all of them. Vectors are seeded int8 of the
//! paper's 1,152 bytes (PERSIST section 3.2): how long a search takes does not depend
//! on what they hold. The floor is a search for a byte that no vector has, in the
//! same memory.

use std::{
    collections::BTreeMap,
    fs::File,
    hint::black_box,
    io::{BufWriter, Write},
    path::Path,
};

use anyhow::{Context, Result, ensure};
use earwitness::recall::{RecallOptions, Retriever as Device};
use earwitness_dsp::scan::{Hit, Page, Query, Scanner, TopK};
use earwitness_models::{embed::TextEmbedder, manifest::Kind, pack::Pack};
use earwitness_tests::{
    connect::ThreeW,
    episodes::load_set,
    metrics::percentile,
    retrieval::{Bm25, PoolRecord, PoolSize, Retriever, SharedEmbedder, pools},
};
use serde::Deserialize;

use super::{Series, peer::Peer, thread_ms};
use crate::output::progress;

const SIZES: [usize; 3] = [384; 3];
const WIDTH: usize = 3 * 384;
const PAGE_KEYS: usize = 128;
const BEST: usize = 3;
const QUERIES: usize = 16;
/// Keys, and rounds of all who take part.
const SERIES: [(usize, usize); 3] = [(4_331, 200), (100_000, 60), (1_000_000, 30)];
/// Records of the paper's pools.
const RECORDS: usize = 4_331;
/// Times that each question is asked.
const REPEATS: usize = 5;
/// The one byte that no vector has.
const ABSENT: i8 = i8::MIN;
/// What `peer_search.py` knows.
const ENGINES: [&str; 4] = [
    "faiss flat f32",
    "faiss 8-bit",
    "usearch exact int8",
    "sqlite-vec int8",
];

/// Measures keys first, then questions to the device's own retriever.
pub fn run(packs: &Path, python: Option<&Path>) -> Result<Vec<Series>> {
    let mut series = Vec::new();
    for (keys, rounds) in SERIES {
        series.extend(search(keys, rounds, python)?);
    }
    series.extend(questions(packs)?);
    Ok(series)
}

/// The times of one who takes part, in milliseconds.
type Times = Vec<f64>;

/// Vectors, the queries first.
struct Vectors(Vec<i8>);

impl Vectors {
    fn new(keys: usize) -> Self {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let value = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state as i8).max(ABSENT + 1)
        };
        let mut values = Vec::new();
        values.resize_with((QUERIES + keys) * WIDTH, value);
        Self(values)
    }

    fn query(&self, number: usize) -> &[i8] {
        &self.0[number * WIDTH..][..WIDTH]
    }

    fn keys(&self) -> &[i8] {
        &self.0[QUERIES * WIDTH..]
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().map(|value| value.cast_unsigned()).collect()
    }
}

/// The three best of so many keys.
fn search(keys: usize, rounds: usize, python: Option<&Path>) -> Result<[Series; 2]> {
    let vectors = Vectors::new(keys);
    let bytes = vectors.bytes();
    let file = tempfile::NamedTempFile::new()?;
    let mut out = BufWriter::new(File::create(file.path())?);
    out.write_all(&bytes)?;
    out.into_inner()?;
    let mut peers: Vec<Searching> = ENGINES
        .iter()
        .filter_map(|engine| Searching::start(python?, engine, file.path()).ok())
        .collect();
    let scales = vec![[1.0; 3]; keys];
    let (mut ours, mut floor) = (Times::new(), Times::new());
    let bar = progress(&format!("{keys} keys"), rounds);
    for round in 0..rounds {
        let query = round % QUERIES;
        floor.push(timed(|| {
            Ok(memchr::memchr(ABSENT.cast_unsigned(), &bytes))
        })?);
        ours.push(timed(|| {
            Ok(best(vectors.keys(), &scales, vectors.query(query)))
        })?);
        for peer in &mut peers {
            peer.search(query)?;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let at = |percent: f64, name: &str| {
        let of_peers = peers
            .iter()
            .map(|peer| (peer.name.clone(), percentile(&peer.times, percent)));
        Series::new(
            format!("{keys} keys, {name}"),
            "ms",
            percentile(&ours, percent),
            of_peers.collect(),
            Some(percentile(&floor, percent)),
        )
    };
    Ok([at(50.0, "p50"), at(99.0, "p99")])
}

/// The rows of the best keys, as the memory finds them: page by page.
fn best(keys: &[i8], scales: &[[f32; 3]], query: &[i8]) -> [usize; BEST] {
    let scanner = Scanner::new(SIZES);
    let query = Query {
        factors: [1.0; 3],
        values: query,
        added: &[],
    };
    let mut slots = [Hit::NONE; BEST];
    let mut best = TopK::new(&mut slots);
    let pages = keys.chunks(PAGE_KEYS * WIDTH).zip(scales.chunks(PAGE_KEYS));
    for (number, (values, scales)) in pages.enumerate() {
        let page = Page {
            first_row: number * PAGE_KEYS,
            scales,
            values,
        };
        scanner.scan(&page, &[query], std::slice::from_mut(&mut best));
    }
    slots.map(|hit| hit.row)
}

/// Milliseconds of this thread.
fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<f64> {
    let started = thread_ms();
    black_box(work()?);
    Ok(thread_ms() - started)
}

/// Another index of the same vectors.
struct Searching {
    peer: Peer,
    name: String,
    times: Times,
}

#[derive(Deserialize)]
struct Hello {
    name: String,
}

#[derive(Deserialize)]
struct Found {
    ms: f64,
}

impl Searching {
    /// Fails where that Python does not have it.
    fn start(python: &Path, engine: &str, vectors: &Path) -> Result<Self> {
        let [width, queries] = [WIDTH, QUERIES].map(|number| number.to_string());
        let file = vectors.display().to_string();
        let mut peer = Peer::start(python, "peer_search.py", [engine, &file, &width, &queries])?;
        let Hello { name } = serde_json::from_str(&peer.line()?)?;
        Ok(Self {
            peer,
            name,
            times: Times::new(),
        })
    }

    fn search(&mut self, query: usize) -> Result<()> {
        let said = self.peer.ask(&query.to_string())?;
        let Found { ms } =
            serde_json::from_str(&said).with_context(|| format!("{} failed", self.name))?;
        self.times.push(ms);
        Ok(())
    }
}

/// A question's evidence among the household's turns, repeated up to the size of the
/// paper's pools: from its text, from its prepared state, and by words alone.
fn questions(packs: &Path) -> Result<Vec<Series>> {
    let set = load_set(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/household"))?;
    let pools = pools(&set.episodes, PoolSize::All);
    let pool = pools.first().context("the household is missing")?;
    ensure!(!pool.records.is_empty(), "the household says nothing");
    let records: Vec<PoolRecord<'_>> = pool.records.iter().cycle().take(RECORDS).cloned().collect();
    let embedder = TextEmbedder::load(&Pack::open(packs, Kind::Embed)?)?;
    let device = Device::load(&Pack::open(packs, Kind::Threew)?, RecallOptions::default())?;
    let mut threew = ThreeW::new(SharedEmbedder::new(Box::new(embedder)), device);
    let mut words = Bm25::default();
    threew.index(&records)?;
    words.index(&records)?;
    let bar = progress("questions", REPEATS * pool.questions.len());
    let (mut text, mut buffered, mut lexical) = (Times::new(), Times::new(), Times::new());
    for question in pool
        .questions
        .iter()
        .cycle()
        .take(REPEATS * pool.questions.len())
    {
        text.push(timed(|| threew.rank(question))?);
        let prepared = threew.prepare(question)?;
        buffered.push(timed(|| threew.rank_prepared(&prepared, question))?);
        lexical.push(timed(|| words.rank(question))?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let at = |percent: f64, name: &str, ours: &Times| {
        let peers = BTreeMap::from([("BM25".to_owned(), percentile(&lexical, percent))]);
        let ours = percentile(ours, percent);
        Series::new(
            format!("{RECORDS} records, {name}"),
            "ms",
            ours,
            peers,
            None,
        )
    };
    Ok(vec![
        at(50.0, "text-ready, p50", &text),
        at(99.0, "text-ready, p99", &text),
        at(50.0, "buffered, p50", &buffered),
        at(99.0, "buffered, p99", &buffered),
    ])
}
