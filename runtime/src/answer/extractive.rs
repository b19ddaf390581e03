//! The built-in answerer: quotes what was said, by whom and when.

use earwitness_api::types::Evidence;
use jiff::{Timestamp, tz::TimeZone};

use super::{
    Answerer, Question, Reply,
    cues::{self, State},
};

/// What is said when nothing supports an answer.
pub const NO_RECORD: &str = "I have no record of that.";

/// Quotes the record that fits the question best.
#[derive(Clone, Debug)]
pub struct Extractive {
    /// Semantic score (the weighted dot product of the semantic blocks) below
    /// which a record supports nothing.
    pub min_what: f32,
    /// How far below the best a record may score and still be about the same
    /// matter, when an earlier or later state of it is asked for.
    pub same_matter: f32,
    /// The time zone in which dates are worded.
    pub zone: TimeZone,
}

impl Extractive {
    /// An answerer that words dates in the given time zone.
    pub fn new(zone: TimeZone) -> Self {
        Self {
            min_what: 0.38,
            same_matter: 0.2,
            zone,
        }
    }

    fn quote(&self, question: &Question<'_>, evidence: &Evidence) -> String {
        let record = &evidence.record;
        let speaker = match (record.speaker.speaker, &evidence.speaker_name) {
            (Some(id), _) if Some(id) == question.asker => "You".to_owned(),
            (_, Some(name)) => name.clone(),
            (Some(id), None) => format!("Speaker {}", id.0),
            (None, None) => "Someone".to_owned(),
        };
        format!(
            "{speaker} said{}: \u{201c}{}\u{201d}",
            self.date(record.unix_ms),
            record.text
        )
    }

    fn date(&self, unix_ms: i64) -> String {
        Timestamp::from_millisecond(unix_ms)
            .map(|at| at.to_zoned_datetime(self.zone.clone()))
            .map(|at| at.strftime(" on %A %-d %B at %H:%M").to_string())
            .unwrap_or_default()
    }

    /// Evidence that is strong enough and about the same matter as the best.
    fn about_the_matter(&self, evidence: &[Evidence]) -> Vec<usize> {
        let strong = |e: &Evidence| e.scores.what >= self.min_what;
        let Some(best) = evidence
            .iter()
            .filter(|e| strong(e))
            .map(|e| e.scores.total())
            .reduce(f32::max)
        else {
            return Vec::new();
        };
        (0..evidence.len())
            .filter(|&i| {
                strong(&evidence[i]) && evidence[i].scores.total() >= best - self.same_matter
            })
            .collect()
    }
}

impl Answerer for Extractive {
    fn answer(&mut self, question: Question<'_>) -> Reply {
        let matter = self.about_the_matter(question.evidence);
        let said_at = |&i: &usize| question.evidence[i].record.unix_ms;
        let earliest = matter.iter().copied().min_by_key(said_at);
        let latest = matter.iter().copied().max_by_key(said_at);
        let support: Vec<usize> = match cues::state(question.text) {
            State::Any => matter.first().copied().into_iter().collect(),
            State::Earliest => earliest.into_iter().collect(),
            State::Latest => latest.into_iter().collect(),
            State::Change if earliest == latest => earliest.into_iter().collect(),
            State::Change => earliest.into_iter().chain(latest).collect(),
        };
        let quotes: Vec<String> = support
            .iter()
            .map(|&i| self.quote(&question, &question.evidence[i]))
            .collect();
        let text = if quotes.is_empty() {
            NO_RECORD.to_owned()
        } else {
            quotes.join(" Later: ")
        };
        Reply { text, support }
    }
}
