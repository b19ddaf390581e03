//! `earwitness doctor`: what is missing or wrong on this device, and the fix;
//! with `--voices`, how well this household's voices can be told apart.

use anyhow::bail;
use earwitness::{describe, switch, voices};
use earwitness_api::{
    message::{Request, Response, VoiceEstimate},
    types::{Identity, SpeakerId},
};
use earwitness_models::{manifest::Kind, pack::Pack, parity};
use serde::Serialize;

use super::{Common, backend, print, speakers};

#[derive(clap::Args)]
pub(super) struct Args {
    /// Estimate from the turns in memory how well voices are told apart
    #[arg(long)]
    voices: bool,
}

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

pub(super) fn run(common: &Common, args: &Args) -> anyhow::Result<()> {
    if args.voices {
        return voices(common);
    }
    let mut findings: Vec<Finding> = Kind::ALL
        .into_iter()
        .map(|kind| pack(common, kind))
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
fn pack(common: &Common, kind: Kind) -> Finding {
    let variant = common.variant(kind);
    let pack = Pack::open_variant(&common.packs(), kind, variant);
    let checked = pack.map_err(say).and_then(|pack| {
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
    } else if !switch::is_on(&path) {
        Ok(says("switched off; `earwitness memory on`".to_owned()))
    } else {
        check_store(common).map(&says)
    };
    Finding::new("memory", outcome)
}

fn check_store(common: &Common) -> Result<String, String> {
    let store = common.open_store().map_err(describe)?;
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
                let limits = common.keeping.limits();
                format!(
                    "{} of at most {} records, {} speakers, {:.1} of at most {} MiB, {} evicted, \
                     all agrees",
                    stats.records,
                    limits.records,
                    stats.speakers,
                    mib(stats.bytes),
                    mib(limits.disk_bytes),
                    stats.evicted
                )
            })
            .map_err(say),
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
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

/// Two voices are called alike from this probability of being one person.
const ALIKE: f32 = 0.5;

/// How well the people in memory can be told apart by their voices.
fn voices(common: &Common) -> anyhow::Result<()> {
    let (people, estimates) = match backend::daemon(&common.store()) {
        Some(mut daemon) => {
            let people = daemon.call(Request::ListIdentities)?;
            let estimates = daemon.call(Request::EstimateVoices)?;
            match (people, estimates) {
                (Response::Identities(people), Response::VoiceEstimates(estimates)) => {
                    (people, estimates)
                }
                (other, _) => return backend::unexpected(&other),
            }
        }
        None => estimate_here(common)?,
    };
    if common.json {
        return print::json(&serde_json::json!({ "voices": estimates }));
    }
    for estimate in &estimates {
        show_estimate(&people, estimate)?;
    }
    print::line(&format!(
        "{} people, judged by the turns that their voices learned from; no replayed or synthetic \
         voice is told from a real one",
        estimates.len()
    ))
}

/// Without a daemon: the thresholds of the pack are enough, no model is loaded.
fn estimate_here(common: &Common) -> anyhow::Result<(Vec<Identity>, Vec<VoiceEstimate>)> {
    let kind = Kind::Voiceprint;
    let pack = Pack::open_variant(&common.packs(), kind, common.variant(kind))?;
    let (Some(thresholds), Some(calibration)) =
        (pack.manifest.thresholds, pack.manifest.calibration)
    else {
        bail!(
            "{}: the manifest holds no thresholds or no calibration; rebuild the pack",
            pack.dir.display()
        );
    };
    let store = common.open_store()?;
    let kept = store.voiceprints()?;
    let estimates = voices::estimate(&kept, thresholds.match_, calibration);
    Ok((store.identities()?, estimates))
}

fn show_estimate(people: &[Identity], estimate: &VoiceEstimate) -> anyhow::Result<()> {
    let who = |id: SpeakerId| {
        let known = people.iter().find(|person| person.speaker.id == id);
        let name = known.map_or("(no name)", |person| speakers::name(&person.speaker));
        format!("{} {name}", id.0)
    };
    let rate = |share: Option<f32>| {
        share.map_or("   -".to_owned(), |share| {
            format!("{:3.0} %", 100.0 * share)
        })
    };
    let mut line = format!(
        "{:<24} {:>3} turns  missed {}  others taken for them {}",
        who(estimate.identity),
        estimate.turns,
        rate(estimate.false_reject),
        rate(estimate.false_accept)
    );
    if let Some(nearest) = estimate.nearest.filter(|nearest| nearest.same >= ALIKE) {
        line += &format!(
            "  perhaps one person with {} ({:.0} %): `earwitness speakers merge` if so",
            who(nearest.identity),
            100.0 * nearest.same
        );
    }
    print::line(&line)
}
