//! `eval retrieval`.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use earwitness::recall::{RecallOptions, Retriever as Device};
use earwitness_models::{embed::TextEmbedder, manifest::Kind, pack::Pack};
use earwitness_tests::{
    connect::ThreeW,
    episodes::EpisodeSet,
    report::table,
    retrieval::{
        Bm25, Counterfactual, Dense, MinMax, Pool, PoolSize, Retriever, RetrieverReport, Rrf,
        SharedEmbedder, counterfactual, evaluate, pools,
    },
};
use serde::Serialize;

use crate::output::{Common, Packs, progress};

/// Evaluates the retrievers side by side.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    packs: Packs,
    /// What a question is asked of: one `episode`, `all` of them, or groups of
    /// about so many records
    #[arg(long, default_value = "episode", value_name = "episode|all|N")]
    pool: PoolSize,
    /// Which retrievers to run; all of them if not said
    #[arg(long = "retriever", value_delimiter = ',', value_name = "NAME,...")]
    retrievers: Vec<Name>,
    /// Also whether supporting records are preferred to the same in another voice,
    /// each episode by itself
    #[arg(long)]
    counterfactual: bool,
    /// Also how many of the best three by unrounded keys are the best three by the
    /// store's, words aside
    #[arg(long)]
    rounding: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    /// Words
    Bm25,
    /// Text embeddings
    Dense,
    /// Both, joined by rank
    Rrf,
    /// Both, joined by score
    Fusion,
    /// Who, what and when, as the device does it
    Threew,
    /// The same without the temporal block
    ThreewNoTime,
    /// The same without the speaker block
    ThreewNoSpeaker,
}

#[derive(Serialize)]
struct Results {
    #[serde(flatten)]
    retrievers: BTreeMap<String, RetrieverReport>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    counterfactual: BTreeMap<String, Counterfactual>,
    #[serde(skip_serializing_if = "Option::is_none")]
    same_best_three: Option<f64>,
    skipped: usize,
}

impl Arguments {
    /// Runs, prints and writes.
    pub fn run(&self) -> Result<()> {
        let set = self.common.load()?;
        let pools = pools(&set.episodes, self.pool);
        let mut opener = Opener {
            packs: self.packs.dir(),
            embedder: None,
        };
        let mut rows = Vec::new();
        let mut retrievers = BTreeMap::new();
        let mut counterfactuals = BTreeMap::new();
        for name in self.names() {
            let mut retriever = opener.open(*name)?;
            let bar = progress(&name.label(), pools.len());
            let report = evaluate(&pools, &mut *retriever, || bar.inc(1))?;
            bar.finish_and_clear();
            rows.push(row(&name.label(), &report));
            if self.counterfactual {
                let result = other_voices(&set, &name.label(), &mut *retriever)?;
                counterfactuals.insert(name.label(), result);
            }
            retrievers.insert(name.label(), report);
        }
        let same_best_three = if self.rounding {
            Some(same_best_three(&pools, &mut opener)?)
        } else {
            None
        };
        let skipped = retrievers
            .values()
            .map(|report| report.skipped)
            .max()
            .unwrap_or(0);
        let table = table(&HEADINGS, &rows);
        self.common.finish(
            "eval retrieval",
            &set,
            Results {
                retrievers,
                counterfactual: counterfactuals,
                same_best_three,
                skipped,
            },
            &table,
        )
    }

    fn names(&self) -> &[Name] {
        if self.retrievers.is_empty() {
            Name::value_variants()
        } else {
            &self.retrievers
        }
    }
}

/// Of the three records that fit each question best by unrounded keys, the mean share
/// that is among the three best of the store's int8 keys.
fn same_best_three(pools: &[Pool<'_>], opener: &mut Opener) -> Result<f64> {
    const BEST: usize = 3;
    let mut threew = opener.device(RecallOptions {
        words: 0.0,
        ..RecallOptions::default()
    })?;
    let bar = progress("rounding", pools.len());
    let (mut same, mut all) = (0, 0);
    for pool in pools {
        threew.index(&pool.records)?;
        for asked in &pool.questions {
            let exact = threew.rank_exact(asked, BEST)?;
            let rounded = threew.rank(asked)?;
            let rounded: Vec<usize> = rounded.iter().take(BEST).map(|best| best.0).collect();
            same += exact.iter().filter(|place| rounded.contains(place)).count();
            all += exact.len();
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let share = same as f64 / all.max(1) as f64;
    eprintln!("int8 keys find {share:.4} of the best three of unrounded ones");
    Ok(share)
}

fn other_voices(
    set: &EpisodeSet,
    name: &str,
    retriever: &mut dyn Retriever,
) -> Result<Counterfactual> {
    let pools = pools(&set.episodes, PoolSize::Episode);
    let bar = progress(&format!("{name} in other voices"), pools.len());
    let result = counterfactual(&pools, retriever, || bar.inc(1))?;
    bar.finish_and_clear();
    if let Some(share) = result.share() {
        let Counterfactual { pairs, .. } = result;
        eprintln!("{name}: the right voice is preferred in {share:.3} of {pairs} pairs");
    }
    Ok(result)
}

impl Name {
    fn label(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }
}

/// Opens retrievers, and the embedder once one of them needs it.
struct Opener {
    packs: PathBuf,
    embedder: Option<SharedEmbedder>,
}

impl Opener {
    fn open(&mut self, name: Name) -> Result<Box<dyn Retriever>> {
        let device = RecallOptions::default();
        Ok(match name {
            Name::Bm25 => Box::new(Bm25::default()),
            Name::Dense => Box::new(Dense::new(self.embedder()?)),
            Name::Rrf => Box::new(Rrf::new(self.words_and_meaning()?)),
            Name::Fusion => Box::new(MinMax::new(self.words_and_meaning()?)),
            Name::Threew => self.threew(device)?,
            Name::ThreewNoTime => self.threew(RecallOptions {
                when: 0.0,
                ..device
            })?,
            Name::ThreewNoSpeaker => self.threew(RecallOptions { who: 0.0, ..device })?,
        })
    }

    fn embedder(&mut self) -> Result<SharedEmbedder> {
        if let Some(embedder) = &self.embedder {
            return Ok(embedder.clone());
        }
        let pack = Pack::open(&self.packs, Kind::Embed)?;
        let embedder = SharedEmbedder::new(Box::new(TextEmbedder::load(&pack)?));
        Ok(self.embedder.insert(embedder).clone())
    }

    fn words_and_meaning(&mut self) -> Result<Vec<Box<dyn Retriever>>> {
        Ok(vec![
            Box::new(Bm25::default()),
            Box::new(Dense::new(self.embedder()?)),
        ])
    }

    fn threew(&mut self, options: RecallOptions) -> Result<Box<dyn Retriever>> {
        Ok(Box::new(self.device(options)?))
    }

    fn device(&mut self, options: RecallOptions) -> Result<ThreeW> {
        let pack = Pack::open(&self.packs, Kind::Threew)?;
        let device = Device::load(&pack, options)?;
        Ok(ThreeW::new(self.embedder()?, device))
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
