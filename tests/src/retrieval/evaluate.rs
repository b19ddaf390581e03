//! One retriever over all pools.

use std::{collections::BTreeMap, time::Instant};

use anyhow::Result;
use serde::Serialize;

use super::{Pool, Retriever};
use crate::metrics::{RetrievalScore, percentile};

/// What one retriever achieved.
#[derive(Debug, Default, Serialize)]
pub struct RetrieverReport {
    /// Over all questions with evidence.
    pub overall: RetrievalScore,
    /// By the question's task.
    pub by_task: BTreeMap<String, RetrievalScore>,
    /// By how the question refers to people, where the data says so.
    pub by_speaker_query: BTreeMap<String, RetrievalScore>,
    /// From a question's text to its ranking.
    pub latency_ms: Latency,
    /// Questions left out because they have no evidence.
    pub skipped: usize,
}

/// Percentiles of a latency, in milliseconds.
#[derive(Debug, Default, Serialize)]
pub struct Latency {
    /// The median.
    pub p50: f64,
    /// Exceeded by one in a hundred.
    pub p99: f64,
}

/// Asks `retriever` every question of every pool; `done` is told after each pool.
pub fn evaluate(
    pools: &[Pool<'_>],
    retriever: &mut dyn Retriever,
    mut done: impl FnMut(),
) -> Result<RetrieverReport> {
    let mut report = RetrieverReport::default();
    let mut latencies = Vec::new();
    for pool in pools {
        retriever.index(&pool.records)?;
        ask_all(pool, retriever, &mut report, &mut latencies)?;
        done();
    }
    report.latency_ms = Latency {
        p50: percentile(&latencies, 50.0),
        p99: percentile(&latencies, 99.0),
    };
    Ok(report)
}

fn ask_all(
    pool: &Pool<'_>,
    retriever: &mut dyn Retriever,
    report: &mut RetrieverReport,
    latencies: &mut Vec<f64>,
) -> Result<()> {
    for asked in &pool.questions {
        if asked.support.is_empty() {
            report.skipped += 1;
            continue;
        }
        let start = Instant::now();
        let ranked = retriever.rank(asked)?;
        latencies.push(start.elapsed().as_secs_f64() * 1e3);
        let best: Vec<usize> = ranked
            .into_iter()
            .map(|(record, _)| record)
            .filter(|&record| asked.may_draw_on(&pool.records[record]))
            .take(RetrievalScore::DEPTH)
            .collect();
        report.overall.add(&best, &asked.support);
        report
            .by_task
            .entry(asked.question.task.clone())
            .or_default()
            .add(&best, &asked.support);
        if let Some(kind) = &asked.question.speaker_query {
            report
                .by_speaker_query
                .entry(kind.clone())
                .or_default()
                .add(&best, &asked.support);
        }
    }
    Ok(())
}
