//! `eval retrieval`.

use anyhow::Result;
use clap::{Args, ValueEnum};
use earwitness_tests::{
    report::table,
    retrieval::{Bm25, PoolSize, Retriever, RetrieverReport, evaluate, pools},
};
use serde::Serialize;
use std::collections::BTreeMap;

use crate::output::{Common, progress};

/// Evaluates the retrievers side by side.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    common: Common,
    /// What a question is asked of: one `episode`, `all` of them, or groups of
    /// about so many records
    #[arg(long, default_value = "episode", value_name = "episode|all|N")]
    pool: PoolSize,
    /// Which retrievers to run; all of them if not said
    #[arg(long = "retriever", value_delimiter = ',', value_name = "NAME,...")]
    retrievers: Vec<Name>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    Bm25,
}

#[derive(Serialize)]
struct Results {
    #[serde(flatten)]
    retrievers: BTreeMap<String, RetrieverReport>,
    skipped: usize,
}

impl Arguments {
    /// Runs, prints and writes.
    pub fn run(&self) -> Result<()> {
        let set = self.common.load()?;
        let pools = pools(&set.episodes, self.pool);
        let names = if self.retrievers.is_empty() {
            Name::value_variants()
        } else {
            &self.retrievers
        };
        let mut rows = Vec::new();
        let mut retrievers = BTreeMap::new();
        for name in names {
            let label = name
                .to_possible_value()
                .map_or_else(String::new, |value| value.get_name().to_owned());
            let bar = progress(&label, pools.len());
            let report = evaluate(&pools, &mut *self.open(*name)?, || bar.inc(1))?;
            bar.finish_and_clear();
            rows.push(row(&label, &report));
            retrievers.insert(label, report);
        }
        let skipped = retrievers
            .values()
            .next()
            .map_or(0, |report: &RetrieverReport| report.skipped);
        let table = table(&HEADINGS, &rows);
        self.common.finish(
            "eval retrieval",
            &set,
            Results {
                retrievers,
                skipped,
            },
            &table,
        )
    }

    fn open(&self, name: Name) -> Result<Box<dyn Retriever>> {
        Ok(match name {
            Name::Bm25 => Box::new(Bm25::default()),
        })
    }
}

const HEADINGS: [&str; 11] = [
    "retriever",
    "n",
    "R@1",
    "R@3",
    "R@5",
    "R@15",
    "EM@3",
    "EM@5",
    "EM@15",
    "p50 ms",
    "p99 ms",
];

fn row(name: &str, report: &RetrieverReport) -> Vec<String> {
    let means = report.overall.means();
    let mut row = vec![name.to_owned(), means.n.to_string()];
    let rates = [
        means.r1, means.r3, means.r5, means.r15, means.em3, means.em5, means.em15,
    ];
    row.extend(rates.iter().map(|rate| format!("{rate:.3}")));
    row.extend([report.latency_ms.p50, report.latency_ms.p99].map(|ms| format!("{ms:.2}")));
    row
}
