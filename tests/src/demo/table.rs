//! What the demo tells, line by line.

use earwitness_api::types::Record;
use serde_json::{Value, json};

use super::{Outcome, score::Asked};
use crate::episodes::{Episode, Question};

/// Where the demo tells its story.
#[derive(Clone, Copy, Debug)]
pub enum Teller {
    /// On standard output.
    Output,
    /// On standard error, where standard output belongs to another program.
    Error,
}

impl Teller {
    /// Tells one line.
    pub fn tell(self, line: impl std::fmt::Display) {
        match self {
            Self::Output => println!("{line}"),
            Self::Error => eprintln!("{line}"),
        }
    }
}

/// One record as it is acknowledged.
pub fn record(record: &Record) -> String {
    let speaker = record
        .speaker
        .speaker
        .map_or("unknown".to_owned(), |id| format!("speaker {}", id.0));
    let seconds = record.start_ms as f64 / 1000.0;
    format!(
        "   {seconds:6.1} s  {speaker:<10} ({:.2})  {}",
        record.speaker.score, record.text
    )
}

/// One question, its evidence and its answer.
pub fn tell_answer(teller: Teller, episode: &Episode, question: &Question, asked: &Asked) {
    let answer = &asked.answer;
    let asker = question
        .asker
        .as_deref()
        .map_or("?", |asker| episode.name_of(asker));
    let heard_as = answer.asker_name.as_deref().unwrap_or("unknown");
    teller.tell(format_args!(
        "\n   {asker} (recognised as {heard_as}): {}",
        answer.question
    ));
    for evidence in &answer.evidence {
        let name = evidence.speaker_name.as_deref().unwrap_or("unknown");
        teller.tell(format_args!(
            "      {:.2} = who {:.2} + what {:.2} + when {:.2}   {} {name}: {}",
            evidence.scores.total(),
            evidence.scores.who,
            evidence.scores.what,
            evidence.scores.when,
            evidence.session_name,
            evidence.record.text
        ));
    }
    let verdict = if asked.right { "right" } else { "wrong" };
    teller.tell(format_args!(
        "   -> {}  [{verdict}; {:.0} ms to listen, {:.1} ms to find and answer]",
        answer.text,
        answer.timings.listen_ms,
        answer.timings.embed_ms + answer.timings.score_ms + answer.timings.answer_ms
    ));
}

/// The figures and where the time went.
pub fn tell_figures(teller: Teller, outcome: &Outcome) {
    let Outcome {
        score,
        summary,
        wall,
    } = outcome;
    teller.tell(format_args!("\n-- where the time went"));
    teller.tell(format_args!(
        "   {:<12} {:>9} {:>9} {:>8}",
        "stage", "sound s", "wall s", "rtf"
    ));
    for (name, time) in &summary.stages {
        teller.tell(format_args!(
            "   {name:<12} {:>9.1} {:>9.2} {:>8.4}",
            time.audio_s, time.wall_s, time.rtf
        ));
    }
    teller.tell(format_args!(
        "   {:.1} s of sound; {:.1} s from the first sample to the last answer; at most {:.0} MiB resident",
        summary.audio_s,
        wall.as_secs_f64(),
        summary.peak_rss_mib.unwrap_or(f64::NAN)
    ));
    teller.tell(format_args!("\n-- against what was really said"));
    teller.tell(format_args!(
        "   turns given to the right voice   {:.3} ({} of {})",
        score.attribution.accuracy(),
        score.attribution.right,
        score.attribution.turns
    ));
    teller.tell(format_args!(
        "   word error rate                  {:.3} ({} of {} words)",
        score.words.rate(),
        score.words.total(),
        score.words.words
    ));
    let supported = score
        .asked
        .iter()
        .filter(|asked| asked.evidence_found.is_some())
        .count();
    teller.tell(format_args!(
        "   evidence among the best three    {:.3} of {} questions",
        score.share(|asked| asked.evidence_found),
        supported
    ));
    teller.tell(format_args!(
        "   answers right                    {:.3}",
        score.share(|asked| Some(asked.right))
    ));
    teller.tell(format_args!(
        "   askers recognised                {:.3}",
        score.share(|asked| Some(asked.asker_known))
    ));
}

/// The figures for programs.
pub fn json(outcome: &Outcome) -> Value {
    let Outcome {
        score,
        summary,
        wall,
    } = outcome;
    json!({
        "attribution": score.attribution.accuracy(),
        "turns": score.attribution.turns,
        "wer": score.words.rate(),
        "words": score.words.words,
        "questions": score.asked.len(),
        "evidence_top3": score.share(|asked| asked.evidence_found),
        "answers_right": score.share(|asked| Some(asked.right)),
        "askers_recognised": score.share(|asked| Some(asked.asker_known)),
        "wall_s": wall.as_secs_f64(),
        "audio_s": summary.audio_s,
        "peak_rss_mib": summary.peak_rss_mib,
        "stages": summary.stages,
    })
}
