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
    /// Score of meaning and words below which a record supports nothing. In the
    /// household of the demo, what answers a question has 0.82 and more, and the best
    /// of what does not, 0.56.
    pub min_what: f32,
    /// How far below the best a record may score and still be about the same
    /// matter, when an earlier or later state of it is asked for.
    pub same_matter: f32,
    /// How far apart two records may score and still fit equally well: of those,
    /// the later one holds.
    pub same_fit: f32,
    /// The time zone in which dates are worded.
    pub zone: TimeZone,
}

impl Extractive {
    /// An answerer that words dates in the given time zone.
    pub fn new(zone: TimeZone) -> Self {
        Self {
            min_what: 0.7,
            same_matter: 0.2,
            same_fit: 0.05,
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

    /// Evidence that states something, is strong enough, and scores within
    /// `margin` of the best such.
    fn supporting(&self, evidence: &[Evidence], margin: f32) -> Vec<usize> {
        let strong =
            |e: &Evidence| e.scores.what >= self.min_what && !cues::only_asks(&e.record.text);
        let Some(best) = evidence
            .iter()
            .filter(|e| strong(e))
            .map(|e| e.scores.total())
            .reduce(f32::max)
        else {
            return Vec::new();
        };
        (0..evidence.len())
            .filter(|&i| strong(&evidence[i]) && evidence[i].scores.total() >= best - margin)
            .collect()
    }
}

impl Answerer for Extractive {
    fn answer(&mut self, question: Question<'_>) -> Reply {
        let state = cues::state(question.text);
        let margin = if state == State::Any {
            self.same_fit
        } else {
            self.same_matter
        };
        let matter = self.supporting(question.evidence, margin);
        let said_at = |&i: &usize| question.evidence[i].record.unix_ms;
        let earliest = matter.iter().copied().min_by_key(said_at);
        let latest = matter.iter().copied().max_by_key(said_at);
        let support: Vec<usize> = match state {
            State::Earliest => earliest.into_iter().collect(),
            State::Any | State::Latest => latest.into_iter().collect(),
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

#[cfg(test)]
mod tests {
    use earwitness_api::types::{
        Attribution, PartialScores, Record, RecordId, SessionId, SpeakerId,
    };

    use super::*;

    const DAY_MS: i64 = 86_400_000;

    /// What speaker 1 said on a day of January 1970, and how well it fits.
    fn said(day: i64, text: &str, what: f32) -> Evidence {
        let speaker = Attribution {
            speaker: Some(SpeakerId(1)),
            score: 0.8,
        };
        Evidence {
            record: Record {
                id: RecordId(day as u64),
                session: SessionId(1),
                start_ms: 0,
                end_ms: 1000,
                unix_ms: (day - 1) * DAY_MS,
                speaker,
                addressees: Vec::new(),
                text: text.to_owned(),
                attachments: Vec::new(),
            },
            session_name: String::new(),
            speaker_name: Some("Ada".to_owned()),
            scores: PartialScores {
                who: 0.0,
                what,
                when: 0.0,
            },
        }
    }

    fn reply(question: &str, evidence: &[Evidence]) -> Reply {
        let asker = Some(SpeakerId(1));
        Extractive::new(TimeZone::UTC).answer(Question {
            text: question,
            asker,
            evidence,
        })
    }

    fn plans() -> [Evidence; 3] {
        [
            said(5, "I leave on Thursday.", 0.9),
            said(2, "I leave on Monday.", 0.88),
            said(9, "The cat is out.", 0.1),
        ]
    }

    #[test]
    fn the_state_that_is_asked_for_is_quoted() {
        let quoted = |question| reply(question, &plans()).support;
        assert_eq!(quoted("When did I originally want to leave?"), [1]);
        assert_eq!(quoted("When do I leave now?"), [0]);
        assert_eq!(quoted("When do I leave?"), [0]);
        assert_eq!(quoted("How did my plan change?"), [1, 0]);
    }

    #[test]
    fn the_asker_is_spoken_to_and_the_day_is_named() {
        let reply = reply("When do I leave now?", &plans());
        assert_eq!(
            reply.text,
            "You said on Monday 5 January at 00:00: \u{201c}I leave on Thursday.\u{201d}"
        );
    }

    #[test]
    fn weak_evidence_and_mere_questions_support_nothing() {
        let nothing = Reply {
            text: NO_RECORD.to_owned(),
            support: Vec::new(),
        };
        assert_eq!(reply("Where is the cat?", &[]), nothing);
        assert_eq!(
            reply("Where is the dog?", &[said(1, "The cat is out.", 0.6)]),
            nothing
        );
        assert_eq!(
            reply("Where is the cat?", &[said(1, "Where is the cat?", 0.9)]),
            nothing
        );
    }
}
