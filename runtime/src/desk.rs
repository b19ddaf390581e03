//! Requests about memory and people, answered from a store.
//!
//! The daemon answers its clients through this, and so does the command line
//! when no daemon runs: one definition of what every request means.

use earwitness_api::{
    message::{
        Ask, Enrol, ErrorCode, MAX_QUESTION_SAMPLES, Question, Request, Response, SpeakerRef, Write,
    },
    types::{Answer, MergeReason, Record, RecordFilter, Speaker, SpeakerId},
};
use earwitness_store::{
    ConsentError, MergeError, NameError, NewMerge, SplitError, StorageError, Store, UnmergeError,
};

use crate::{
    hub::{Hub, HubError},
    recall::Asker,
    voices::EnrolError,
    write::WriteError,
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
        Err(error) => failure(code_of(&*error), &error),
    }
}

/// Whether the store cannot do it now, or never would.
fn code_of(error: &(dyn std::error::Error + 'static)) -> ErrorCode {
    let refused = [
        error
            .downcast_ref()
            .map(|error| !matches!(error, NameError::Storage(_))),
        error
            .downcast_ref()
            .map(|error| !matches!(error, MergeError::Storage(_))),
        error
            .downcast_ref()
            .map(|error| !matches!(error, UnmergeError::Storage(_))),
        error
            .downcast_ref()
            .map(|error| !matches!(error, SplitError::Storage(_))),
        error
            .downcast_ref()
            .map(|error| !matches!(error, ConsentError::Storage(_))),
    ]
    .contains(&Some(true));
    if refused {
        ErrorCode::BadRequest
    } else {
        ErrorCode::Unavailable
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
        Request::ListIdentities => Response::Identities(store.identities()?),
        Request::ListMerges => Response::Merges(store.merges()?),
        Request::MergeSpeakers {
            into,
            from,
            despite_names,
        } => Response::Identity(store.merge(NewMerge {
            into,
            from,
            why: MergeReason::ByHand,
            despite_names,
        })?),
        Request::UndoMerge { from } => Response::Merge(store.unmerge(from)?),
        Request::SplitSpeaker { speaker, records } => {
            Response::Speaker(store.split(speaker, &records)?)
        }
        Request::SetConsent { speaker, consent } => {
            Response::Identity(store.set_consent(speaker, consent)?)
        }
        Request::Compact => {
            store.compact()?;
            Response::Done
        }
        Request::Enrol(_) | Request::EstimateVoices => failure(
            ErrorCode::BadRequest,
            &"this takes the models; ask a running daemon, or use the program itself",
        ),
        Request::Status
        | Request::Ask(_)
        | Request::Prepare(_)
        | Request::Subscribe
        | Request::Follow
        | Request::Write(_)
        | Request::Switch { .. } => failure(
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
            Ok(id) => Some(id),
            Err(error) => return Ok(not_found(error.to_string())),
        },
    };
    let mut answer = match ask.question {
        Question::Text(text) => hub.ask(&text, asker.map_or(Asker::Unknown, Asker::Speaker))?,
        Question::Audio(samples) if samples.len() > MAX_QUESTION_SAMPLES => {
            let seconds = MAX_QUESTION_SAMPLES / 16_000;
            let message = format!("a spoken question lasts at most {seconds} s; ask a shorter one");
            return Ok(failure(ErrorCode::BadRequest, &message));
        }
        Question::Audio(samples) => hub.ask_aloud(&floats(&samples), asker)?,
    };
    shorten(&mut answer, ask.limit);
    Ok(Response::Answer(Box::new(answer)))
}

/// Takes in the words so far of a question that is still being asked.
pub fn prepare(hub: &Hub, text: &str) -> Response {
    match hub.prepare(text) {
        Ok(()) => Response::Done,
        Err(error) => failure(ErrorCode::Unavailable, &error),
    }
}

/// Remembers a turn that was transcribed elsewhere.
pub fn write(hub: &Hub, write: &Write) -> Response {
    match hub.write(write) {
        Ok(record) => Response::Record(Box::new(record)),
        Err(WriteError::Hub(error)) => failure(ErrorCode::Unavailable, &error),
        Err(error @ WriteError::Speaker(_)) => not_found(error.to_string()),
        Err(error) => failure(ErrorCode::BadRequest, &error),
    }
}

/// Learns a voice that somebody lends on purpose.
pub fn enrol(hub: &Hub, enrol: &Enrol) -> Response {
    let recordings: Vec<Vec<f32>> = enrol.recordings.iter().map(|pcm| floats(pcm)).collect();
    match hub.enrol(&enrol.name, &recordings) {
        Ok(enrolled) => Response::Enrolled(enrolled),
        Err(error @ EnrolError::Hub(_)) => failure(ErrorCode::Unavailable, &error),
        Err(error) => failure(ErrorCode::BadRequest, &error),
    }
}

/// Switches the memory on or off.
pub fn switch(hub: &Hub, on: bool) -> Response {
    match hub.switch(on) {
        Ok(()) => Response::Done,
        Err(error) => failure(
            ErrorCode::Internal,
            &format!(
                "the switch beside the memory cannot be set ({error}): check that its folder may be \
                 written, or stop the daemon"
            ),
        ),
    }
}

/// Says how well the hub's voices can be told apart.
pub fn estimate_voices(hub: &Hub) -> Response {
    match hub.estimate_voices() {
        Ok(estimates) => Response::VoiceEstimates(estimates),
        Err(error) => failure(ErrorCode::Unavailable, &error),
    }
}

/// Samples from -1 to 1.
pub(crate) fn floats(pcm: &[i16]) -> Vec<f32> {
    pcm.iter()
        .map(|&sample| f32::from(sample) / 32768.0)
        .collect()
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

/// Why a number or a name leads to no speaker.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// Nobody has it.
    #[error("there is no speaker {0}; see `earwitness speakers list`")]
    Unknown(String),
    /// Several have it.
    #[error("speakers {0} share that name; say which one by its number")]
    Ambiguous(String),
}

/// The speaker that a person means by a number or a name. A name spelt exactly
/// goes before one that differs in case.
pub fn find(speakers: &[Speaker], who: &SpeakerRef) -> Result<SpeakerId, FindError> {
    let called = |same: &dyn Fn(&str) -> bool| -> Vec<SpeakerId> {
        let named = speakers
            .iter()
            .filter(|known| known.name.as_deref().is_some_and(same));
        named.map(|known| known.id).collect()
    };
    let (meant, shown) = match who {
        SpeakerRef::Id(id) => {
            let known = speakers
                .iter()
                .map(|known| known.id)
                .filter(|known| known == id);
            (known.collect(), format!("number {}", id.0))
        }
        SpeakerRef::Name(name) => {
            let name = name.trim();
            let exact = called(&|known| known == name);
            let folded = || called(&|known| known.to_lowercase() == name.to_lowercase());
            let meant = if exact.is_empty() { folded() } else { exact };
            (meant, format!("called {name:?}"))
        }
    };
    match meant.as_slice() {
        [] => Err(FindError::Unknown(shown)),
        [id] => Ok(*id),
        several => {
            let ids: Vec<String> = several.iter().map(|id| id.0.to_string()).collect();
            Err(FindError::Ambiguous(ids.join(" and ")))
        }
    }
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
