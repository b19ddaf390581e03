//! `earwitness doctor`: what is missing or wrong on this device, and the fix.

use std::path::Path;

use anyhow::bail;
use earwitness::describe;
use earwitness_models::{manifest::Kind, pack::Pack, parity};
use earwitness_store::Store;
use serde::Serialize;

use super::{Common, backend, print};

/// One thing that was looked at.
#[derive(Serialize)]
struct Finding {
    what: String,
    ok: bool,
    says: String,
}

impl Finding {
    fn new(what: impl Into<String>, outcome: Result<String, String>) -> Self {
        let (ok, says) = match outcome {
            Ok(says) => (true, says),
            Err(says) => (false, says),
        };
        Self {
            what: what.into(),
            ok,
            says,
        }
    }
}

pub(super) fn run(common: &Common) -> anyhow::Result<()> {
    let mut findings: Vec<Finding> = Kind::ALL
        .into_iter()
        .map(|kind| pack(&common.packs(), kind))
        .collect();
    findings.push(memory(common));
    findings.push(microphone());
    let wrong = findings.iter().filter(|finding| !finding.ok).count();
    if common.json {
        print::json(&serde_json::json!({ "findings": findings }))?;
    } else {
        for finding in &findings {
            let mark = if finding.ok { "ok   " } else { "WRONG" };
            print::line(&format!("{mark}  {:<16} {}", finding.what, finding.says))?;
        }
    }
    if wrong > 0 {
        bail!(
            "{wrong} of {} checks failed; each line marked WRONG says what to do",
            findings.len()
        );
    }
    Ok(())
}

/// A pack is intact and computes here what it computed where it was built.
fn pack(packs: &Path, kind: Kind) -> Finding {
    let checked = Pack::open(packs, kind).map_err(say).and_then(|pack| {
        let report = parity::check(&pack).map_err(say)?;
        Ok(format!(
            "{} {} ({}), {} {:.5} against the original over {} cases",
            pack.manifest.name,
            pack.manifest.version,
            pack.manifest.license,
            report.metric.name(),
            report.worst,
            report.cases.len()
        ))
    });
    Finding::new(format!("pack {kind}"), checked)
}

/// An error on one line.
fn say(error: impl std::error::Error + 'static) -> String {
    describe(Box::<dyn std::error::Error>::from(error))
}

fn memory(common: &Common) -> Finding {
    let path = common.store();
    let says = |what: String| format!("{}: {what}", path.display());
    let outcome = if backend::daemon(&path).is_some() {
        Ok(says("in use by a running daemon".to_owned()))
    } else if !path.exists() {
        Ok(says(
            "not there yet; the first recording makes it".to_owned(),
        ))
    } else {
        check_store(&path).map(&says)
    };
    Finding::new("memory", outcome)
}

fn check_store(path: &Path) -> Result<String, String> {
    let store = Store::open(path).map_err(say)?;
    let findings = store.verify().map_err(say)?;
    match findings.first() {
        Some(first) => Err(format!(
            "{} findings, the first: {}; see `earwitness memory verify`",
            findings.len(),
            first.detail
        )),
        None => store
            .stats()
            .map(|stats| {
                format!(
                    "{} records of {} speakers, all agrees",
                    stats.records, stats.speakers
                )
            })
            .map_err(say),
    }
}

/// A hub that is fed by a pipe or a node needs no microphone of its own, so
/// having none is not wrong.
#[cfg(feature = "mic")]
fn microphone() -> Finding {
    use earwitness::capture::{AudioSource, Microphone};
    let says = match Microphone::open() {
        Ok(microphone) => microphone.name(),
        Err(error) => format!("none ({error})"),
    };
    Finding::new("microphone", Ok(says))
}

#[cfg(not(feature = "mic"))]
fn microphone() -> Finding {
    Finding::new(
        "microphone",
        Ok("this program was built without microphone input".to_owned()),
    )
}
