//! Records, answers and people, for eyes and for programs.

use std::io::{self, Write};

use earwitness::{hub::Hub, listen::Told};
use earwitness_api::{
    message::Partial,
    types::{Answer, Attribution, Evidence, Record},
};
use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;

use super::Common;

/// Writes one JSON object on a line.
pub(super) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

/// Writes one line of text.
pub(super) fn line(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// `12  00:03.2  Alice (0.81)  I plan to leave on Monday.`
pub(super) fn record(record: &Record, speaker: Option<&str>) -> String {
    format!(
        "{:>5}  {}  {:<18}  {}",
        record.id.0,
        clock(record.start_ms),
        format!(
            "{} ({:.2})",
            who(record.speaker, speaker),
            record.speaker.score
        ),
        record.text
    )
}

/// Prints a record that has just been acknowledged.
pub(super) fn acknowledged(common: &Common, hub: &Hub, record: &Record) -> anyhow::Result<()> {
    if common.json {
        return json(record);
    }
    let name = hub.name_of(record.speaker.speaker)?;
    line(&self::record(record, name.as_deref()))
}

/// Prints what a listener tells: records always, words while they are spoken
/// where the hub shows them.
pub(super) fn told(common: &Common, hub: &Hub, told: Told<'_>) -> anyhow::Result<()> {
    match told {
        Told::Record(record) => acknowledged(common, hub, record),
        Told::Partial(partial) if common.json => json(&serde_json::json!({ "partial": partial })),
        Told::Partial(partial) => line(&self::partial(partial)),
        Told::Transcript(said) if common.json && hub.shows_partials() => {
            json(&serde_json::json!({ "transcript": said }))
        }
        Told::Transcript(_) => Ok(()),
    }
}

/// `    …  00:03.2  I plan to [leave on]`
fn partial(partial: &Partial) -> String {
    let Partial {
        start_ms,
        stable,
        tentative,
        ..
    } = partial;
    format!("{:>5}  {}  {stable} [{tentative}]", "...", clock(*start_ms))
}

/// A speaker by name, by number, or as unknown.
pub(super) fn who(attribution: Attribution, name: Option<&str>) -> String {
    match (name, attribution.speaker) {
        (Some(name), _) => name.to_owned(),
        (None, Some(id)) => format!("speaker {}", id.0),
        (None, None) => "unknown".to_owned(),
    }
}

/// A moment in this device's time zone.
pub(super) fn moment(unix_ms: i64) -> String {
    Timestamp::from_millisecond(unix_ms).map_or_else(
        |_| "?".to_owned(),
        |at| {
            at.to_zoned_datetime(TimeZone::system())
                .strftime("%Y-%m-%d %H:%M:%S")
                .to_string()
        },
    )
}

/// An answer with its evidence and where the time went.
pub(super) fn answer(answer: &Answer) -> anyhow::Result<()> {
    let asker = who(answer.asker, answer.asker_name.as_deref());
    line(&format!("{asker} asks: {}", answer.question))?;
    for (rank, evidence) in answer.evidence.iter().enumerate() {
        line(&self::evidence(rank + 1, evidence))?;
    }
    line(&answer.text)?;
    let t = answer.timings;
    line(&format!(
        "listen {:.0} ms, embed {:.1} ms, score {:.2} ms, answer {:.2} ms",
        t.listen_ms, t.embed_ms, t.score_ms, t.answer_ms
    ))
}

fn evidence(rank: usize, evidence: &Evidence) -> String {
    let Evidence { record, scores, .. } = evidence;
    format!(
        "  {rank}. {:.3} (who {:.3}, what {:.3}, when {:.3})  {}  {}: {}  [record {}]",
        scores.total(),
        scores.who,
        scores.what,
        scores.when,
        moment(record.unix_ms),
        who(record.speaker, evidence.speaker_name.as_deref()),
        record.text,
        record.id.0
    )
}

/// Minutes, seconds and tenths.
fn clock(ms: u64) -> String {
    format!("{:02}:{:02}.{}", ms / 60_000, ms / 1000 % 60, ms / 100 % 10)
}
