//! Requests about memory and people, answered from a store.
//!
//! The daemon answers its clients through this, and so does the command line
//! when no daemon runs: one definition of what every request means.

use earwitness_api::{
    message::{Ask, ErrorCode, MAX_QUESTION_SAMPLES, Question, Request, Response, SpeakerRef},
    types::{Answer, Record, RecordFilter, Speaker, SpeakerId},
};
use earwitness_store::{StorageError, Store};

use crate::{
    hub::{Hub, HubError},
    recall::Asker,
};

/// Records in one response at most, so that it fits into a frame; a client asks
/// again from where the last one ended.
pub const MAX_RECORDS: u32 = 200;

/// Pieces of evidence shown unless the caller asks for another number.
const DEFAULT_EVIDENCE: usize = 3;

/// Answers a request that needs no model; others are refused as such.
pub fn answer(store: &Store, request: Request) -> Response {
    match try_answer(store, request) {
        Ok(response) => response,
        Err(error) => failure(ErrorCode::Unavailable, &error),
    }
}

fn try_answer(store: &Store, request: Request) -> Result<Response, Box<dyn std::error::Error>> {
    Ok(match request {
        Request::Hello => Response::Hello {
            program: concat!("earwitness ", env!("CARGO_PKG_VERSION")).to_owned(),
        },
        Request::ListRecords(filter) => Response::Records(list(store, filter)?),
        Request::ShowRecord(id) => match store.record(id)? {
            Some(record) => Response::Record(Box::new(record)),
            None => not_found(format!(
                "there is no record {}; see `earwitness memory list`",
                id.0
            )),
        },
        Request::Forget(selection) => Response::Forgotten(store.forget(selection)?),
        Request::ListSpeakers => Response::Speakers(store.speakers()?),
        Request::NameSpeaker { speaker, name } => {
            Response::Speaker(store.name_speaker(speaker, &name)?)
        }
        Request::ListSessions => Response::Sessions(store.sessions()?),
        Request::Status | Request::Ask(_) | Request::Subscribe => failure(
            ErrorCode::BadRequest,
            &"only a running daemon answers this; start `earwitness run`",
        ),
    })
}

fn list(store: &Store, filter: RecordFilter) -> Result<Vec<Record>, StorageError> {
    let limit = filter.limit.unwrap_or(MAX_RECORDS).min(MAX_RECORDS);
    store.records(RecordFilter {
        limit: Some(limit),
        ..filter
    })
}

/// Answers a question.
pub fn ask(hub: &Hub, ask: Ask) -> Response {
    match try_ask(hub, ask) {
        Ok(response) => response,
        Err(error @ HubError::NoQuestion) => failure(ErrorCode::BadRequest, &error),
        Err(error) => failure(ErrorCode::Unavailable, &error),
    }
}

fn try_ask(hub: &Hub, ask: Ask) -> Result<Response, HubError> {
    let asker = match &ask.as_speaker {
        None => None,
        Some(who) => match find(&hub.store().speakers()?, who) {
            Some(id) => Some(id),
            None => return Ok(not_found(unknown_speaker(who))),
        },
    };
    let mut answer = match ask.question {
        Question::Text(text) => hub.ask(&text, asker.map_or(Asker::Unknown, Asker::Speaker))?,
        Question::Audio(samples) if samples.len() > MAX_QUESTION_SAMPLES => {
            let seconds = MAX_QUESTION_SAMPLES / 16_000;
            let message = format!("a spoken question lasts at most {seconds} s; ask a shorter one");
            return Ok(failure(ErrorCode::BadRequest, &message));
        }
        Question::Audio(samples) => {
            let samples: Vec<f32> = samples.iter().map(|&s| f32::from(s) / 32768.0).collect();
            hub.ask_aloud(&samples, asker)?
        }
    };
    shorten(&mut answer, ask.limit);
    Ok(Response::Answer(Box::new(answer)))
}

/// Leaves the best pieces of evidence, and any further one that the answer
/// rests on.
fn shorten(answer: &mut Answer, limit: u32) {
    let limit = if limit == 0 {
        DEFAULT_EVIDENCE
    } else {
        limit as usize
    };
    let mut rank = 0;
    answer.evidence.retain(|evidence| {
        rank += 1;
        rank <= limit || answer.support.contains(&evidence.record.id)
    });
}

/// What to say of a speaker that nobody knows.
pub fn unknown_speaker(who: &SpeakerRef) -> String {
    let who = match who {
        SpeakerRef::Id(id) => format!("number {}", id.0),
        SpeakerRef::Name(name) => format!("called {name:?}"),
    };
    format!("there is no speaker {who}; see `earwitness speakers list`")
}

/// The speaker that a person means by a number or a name.
pub fn find(speakers: &[Speaker], who: &SpeakerRef) -> Option<SpeakerId> {
    let meant = |known: &&Speaker| match who {
        SpeakerRef::Id(id) => known.id == *id,
        SpeakerRef::Name(name) => known
            .name
            .as_ref()
            .is_some_and(|known| known.eq_ignore_ascii_case(name)),
    };
    speakers.iter().find(meant).map(|known| known.id)
}

/// An error response in the words of an error.
pub fn failure(code: ErrorCode, error: &dyn std::fmt::Display) -> Response {
    Response::Error {
        code,
        message: error.to_string(),
    }
}

fn not_found(message: String) -> Response {
    Response::Error {
        code: ErrorCode::NotFound,
        message,
    }
}
