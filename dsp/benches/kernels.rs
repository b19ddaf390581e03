//! How long the best keys take to find, by kernel, number of keys and of queries,
//! beside a floor: a plain sum over the same bytes, in the same rounds.
//!
//! `cargo bench -p earwitness-dsp --bench kernels -- [--json FILE]`
//!
//! One thread, the best three keys of 1,152 bytes, in pages of 128 as the memory
//! keeps them. Floor and kernels take turns, so that what else the machine does
//! meets all of them; times are the processor's, so that waiting for it does not
//! count. Where the system gives huge pages on request only, glibc asks for them
//! with `GLIBC_TUNABLES=glibc.malloc.hugetlb=1`.

use std::{
    env, fs,
    hint::black_box,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use earwitness_dsp::scan::{Hit, Kernel, Page, Query, Scanner, TopK};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

const SIZES: [usize; 3] = [384; 3];
const STRIDE: usize = 3 * 384;
const PAGE_KEYS: usize = 128;
const BEST: usize = 3;
/// Where rows begin: at a register's width.
const ALIGNMENT: usize = 64;

/// Keys, queries, and how far keys lie off the alignment.
const SERIES: &[(usize, usize, usize)] = &[
    (4_331, 1, 0),
    (4_331, 4, 0),
    (100_000, 1, 0),
    (100_000, 1, 16),
    (100_000, 4, 0),
    (1_000_000, 1, 0),
];

/// Rounds of a series: enough for a 99th percentile, or for the patient.
const FEWEST_ROUNDS: usize = 30;
const MOST_ROUNDS: usize = 1_000;
const PATIENCE: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let file = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => None,
        ["--json", file] => Some(file),
        _ => {
            eprintln!("usage: kernels [--json FILE]");
            return ExitCode::from(2);
        }
    };
    let series: Vec<Value> = SERIES.iter().map(|&series| measure(series)).collect();
    let Some(file) = file else {
        return ExitCode::SUCCESS;
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let report = json!({
        "command": "bench kernels",
        "data": { "path": null, "episodes": 0, "questions": 0 },
        "results": { "series": series },
        "host": { "arch": env::consts::ARCH, "cpu": cpu(), "threads": threads },
    });
    match fs::write(file, format!("{report:#}\n")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write {file}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Seeded keys of any value, with scales.
struct Keys {
    values: Vec<i8>,
    start: usize,
    scales: Vec<[f32; 3]>,
}

impl Keys {
    fn new(count: usize, offset: usize) -> Self {
        let mut values = vec![0; count * STRIDE + 2 * ALIGNMENT];
        let mut state = 1_u64;
        for value in &mut values {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *value = state as i8;
        }
        let start = values.as_ptr().align_offset(ALIGNMENT) + offset;
        let scales = (0..count).map(|row| [0.01, 0.02, 0.001 * (row % 7) as f32]);
        Self {
            values,
            start,
            scales: scales.collect(),
        }
    }

    fn bytes(&self) -> &[i8] {
        &self.values[self.start..][..self.scales.len() * STRIDE]
    }

    fn pages(&self) -> impl Iterator<Item = Page<'_, 3>> {
        let values = self.bytes().chunks(PAGE_KEYS * STRIDE);
        let scales = self.scales.chunks(PAGE_KEYS);
        values
            .zip(scales)
            .enumerate()
            .map(|(number, (values, scales))| Page {
                first_row: number * PAGE_KEYS,
                scales,
                values,
            })
    }
}

/// Times floor and kernels by turns; prints what it finds.
fn measure((count, queries, offset): (usize, usize, usize)) -> Value {
    let keys = Keys::new(count, offset);
    let asked: Vec<_> = (0..queries)
        .map(|query| Query {
            factors: [1.0, 0.25, 0.1],
            values: &keys.bytes()[query * STRIDE..][..STRIDE],
            added: &[],
        })
        .collect();
    let kernels: Vec<_> = Kernel::available().collect();
    let mut floor = Vec::new();
    let mut scans = vec![Vec::new(); kernels.len()];
    let started = Instant::now();
    while floor.len() < FEWEST_ROUNDS || (floor.len() < MOST_ROUNDS && started.elapsed() < PATIENCE)
    {
        floor.push(time(|| sum(keys.bytes())));
        for (kernel, scans) in kernels.iter().zip(&mut scans) {
            let scanner = Scanner::with_kernel(SIZES, *kernel);
            scans.push(time(|| best(&scanner, &keys, &asked)));
        }
    }
    let name = format!("{count} keys, {queries} queries, {offset} bytes off the alignment");
    let floor = Percentiles::of(floor);
    let scans: Vec<_> = scans.into_iter().map(Percentiles::of).collect();
    println!("{name}: floor {floor}");
    for (kernel, scan) in kernels.iter().zip(&scans) {
        println!(
            "    {:12} {scan}, {:.2} of the floor",
            kernel.name(),
            scan.p50 / floor.p50
        );
    }
    report(&name, floor, &kernels, &scans)
}

fn report(name: &str, floor: Percentiles, kernels: &[Kernel], scans: &[Percentiles]) -> Value {
    let [peers @ .., ours] = scans else {
        return Value::Null;
    };
    let best_peer = peers.iter().map(|peer| peer.p50).reduce(f64::min);
    let peers: Map<String, Value> = kernels
        .iter()
        .zip(peers)
        .map(|(kernel, peer)| (kernel.name().to_owned(), json!(peer.p50)))
        .collect();
    json!({
        "name": name,
        "kernel": Kernel::best().name(),
        "unit": "us",
        "ours": ours.p50,
        "p99": ours.p99,
        "peers": peers,
        "floor": floor.p50,
        "ratio_best_peer": best_peer.map(|peer| ours.p50 / peer),
        "ratio_floor": ours.p50 / floor.p50,
    })
}

fn best(scanner: &Scanner<3>, keys: &Keys, queries: &[Query<'_, 3>]) -> usize {
    let mut slots = vec![[Hit::NONE; BEST]; queries.len()];
    let mut best: Vec<_> = slots.iter_mut().map(|slots| TopK::new(slots)).collect();
    for page in keys.pages() {
        scanner.scan(&page, queries, &mut best);
    }
    best[0].hits()[0].row
}

/// The sum of all bytes, eight in a word: as fast as memory can be read.
fn sum(bytes: &[i8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        #[target_feature(enable = "avx512f")]
        fn wide(bytes: &[i8]) -> u64 {
            sum_words(bytes)
        }
        // SAFETY: the processor has the instructions.
        #[allow(unsafe_code)]
        return unsafe { wide(bytes) };
    }
    sum_words(bytes)
}

#[inline(always)]
fn sum_words(bytes: &[i8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    let words = words
        .iter()
        .map(|word| u64::from_ne_bytes(word.map(|byte| byte as u8)));
    words.fold(0, u64::wrapping_add)
}

/// Runs it, and tells how many microseconds this thread needed.
fn time<T>(work: impl FnOnce() -> T) -> f64 {
    let now = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
    };
    let started = now();
    black_box(work());
    now() - started
}

/// Of durations, in microseconds.
#[derive(Clone, Copy)]
struct Percentiles {
    p50: f64,
    p99: f64,
}

impl Percentiles {
    fn of(mut durations: Vec<f64>) -> Self {
        durations.sort_by(f64::total_cmp);
        let at = |share: f64| durations[((durations.len() - 1) as f64 * share).round() as usize];
        Self {
            p50: at(0.5),
            p99: at(0.99),
        }
    }
}

impl std::fmt::Display for Percentiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p50 {:.0} us, p99 {:.0} us", self.p50, self.p99)
    }
}

/// The processor's name, where Linux tells it.
fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(": "));
    name.map_or("unknown", |(_, name)| name).to_owned()
}
