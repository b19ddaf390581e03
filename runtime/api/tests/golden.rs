//! The bytes of protocol version 1, as they were released.
//!
//! When this test breaks, a program that is already out there can no longer be
//! understood. Do not update the bytes. Undo the change of the message, or, where
//! it is meant, raise `PROTOCOL_VERSION`, keep this file for version 1, and add
//! one for the new version. Samples of new variants are added at the end.
#![allow(clippy::unwrap_used)]

use earwitness_api::message::{
    Ask, Enrol, Enrolled, Envelope, ErrorCode, NearestVoice, Partial, Question, Request, Response,
    SpeakerRef, SpokenWord, Status, Transcript, VoiceEstimate, Write,
};
use earwitness_api::types::{
    Answer, AskTimings, Attachment, Attribution, Consent, Evidence, Forgotten, Identity, Merge,
    MergeReason, PartialScores, Record, RecordFilter, RecordId, Selection, Session, SessionId,
    Speaker, SpeakerId,
};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// A name and the bytes of an envelope in hexadecimal, one sample a line.
const GOLDEN: &str = include_str!("golden_v1.txt");

fn record() -> Record {
    Record {
        id: RecordId(300),
        session: SessionId(2),
        start_ms: 1000,
        end_ms: 2500,
        unix_ms: 1_772_000_000_000,
        speaker: Attribution {
            speaker: Some(SpeakerId(7)),
            score: 0.75,
        },
        addressees: vec![Attribution {
            speaker: None,
            score: -0.5,
        }],
        text: "Grüße".into(),
        attachments: vec![Attachment {
            kind: "image".into(),
            caption: "a map".into(),
        }],
    }
}

fn speaker() -> Speaker {
    Speaker {
        id: SpeakerId(7),
        name: Some("Ada".into()),
        records: 12,
        first_heard_unix_ms: -1,
        last_heard_unix_ms: 5,
    }
}

fn answer() -> Answer {
    Answer {
        question: "when?".into(),
        asker: record().speaker,
        asker_name: Some("Ada".into()),
        text: "Monday.".into(),
        support: vec![RecordId(300)],
        evidence: vec![Evidence {
            record: record(),
            session_name: "kitchen".into(),
            speaker_name: None,
            scores: PartialScores {
                who: 0.25,
                what: 0.5,
                when: 1.0,
            },
        }],
        timings: AskTimings {
            listen_ms: 0.0,
            embed_ms: 1.5,
            score_ms: 2.0,
            answer_ms: 3.0,
        },
    }
}

fn ask(question: Question, as_speaker: SpeakerRef) -> Request {
    Request::Ask(Ask {
        question,
        as_speaker: Some(as_speaker),
        limit: 5,
    })
}

fn requests() -> Vec<(&'static str, Request)> {
    let spoken = Question::Audio(vec![0, -1, i16::MAX]);
    let filter = RecordFilter {
        session: Some(SessionId(1)),
        speaker: Some(SpeakerId(2)),
        after: Some(RecordId(9)),
        from_unix_ms: Some(-3),
        to_unix_ms: Some(4),
        limit: Some(5),
        newest_first: true,
    };
    let name = Request::NameSpeaker {
        speaker: SpeakerId(7),
        name: "Ada".into(),
    };
    let forget = Request::Forget;
    let write = Write {
        session: "call".into(),
        unix_ms: 6,
        start_ms: 1000,
        end_ms: 2500,
        text: "At seven.".into(),
        speaker: Some(SpeakerRef::Name("Ada".into())),
        audio: vec![0, -1, i16::MAX],
    };
    vec![
        ("request.hello", Request::Hello),
        ("request.status", Request::Status),
        (
            "request.ask.text",
            ask(
                Question::Text("when?".into()),
                SpeakerRef::Name("Ada".into()),
            ),
        ),
        (
            "request.ask.audio",
            ask(spoken, SpeakerRef::Id(SpeakerId(7))),
        ),
        ("request.list_records", Request::ListRecords(filter)),
        ("request.show_record", Request::ShowRecord(RecordId(300))),
        (
            "request.forget.record",
            forget(Selection::Record(RecordId(1))),
        ),
        (
            "request.forget.session",
            forget(Selection::Session(SessionId(2))),
        ),
        (
            "request.forget.speaker",
            forget(Selection::Speaker(SpeakerId(3))),
        ),
        (
            "request.forget.time_range",
            forget(Selection::TimeRange { from: -4, to: 5 }),
        ),
        ("request.list_speakers", Request::ListSpeakers),
        ("request.name_speaker", name),
        ("request.list_sessions", Request::ListSessions),
        ("request.subscribe", Request::Subscribe),
        ("request.list_identities", Request::ListIdentities),
        ("request.list_merges", Request::ListMerges),
        (
            "request.merge_speakers",
            Request::MergeSpeakers {
                into: SpeakerId(7),
                from: SpeakerId(9),
                despite_names: true,
            },
        ),
        (
            "request.undo_merge",
            Request::UndoMerge { from: SpeakerId(9) },
        ),
        (
            "request.split_speaker",
            Request::SplitSpeaker {
                speaker: SpeakerId(7),
                records: vec![RecordId(300), RecordId(2)],
            },
        ),
        (
            "request.enrol",
            Request::Enrol(Enrol {
                name: "Ada".into(),
                recordings: vec![vec![0, -1], vec![300]],
            }),
        ),
        ("request.estimate_voices", Request::EstimateVoices),
        ("request.follow", Request::Follow),
        ("request.write", Request::Write(Box::new(write))),
        (
            "request.set_consent",
            Request::SetConsent {
                speaker: SpeakerId(7),
                consent: Consent::Refused,
            },
        ),
        ("request.switch", Request::Switch { on: false }),
        ("request.compact", Request::Compact),
        ("request.prepare", Request::Prepare("Where".into())),
    ]
}

fn identity() -> Identity {
    Identity {
        speaker: speaker(),
        members: vec![SpeakerId(7), SpeakerId(9)],
        enrolled: true,
        consent: Consent::Given,
    }
}

fn merges() -> Vec<Merge> {
    let merge = |number, why| Merge {
        number,
        from: SpeakerId(9),
        into: SpeakerId(7),
        why,
    };
    let reconciled = MergeReason::Reconciled {
        similarity: 0.5,
        runner_up: Some(0.25),
        cohesion: 0.75,
    };
    vec![merge(1, MergeReason::ByHand), merge(300, reconciled)]
}

fn estimate() -> VoiceEstimate {
    VoiceEstimate {
        identity: SpeakerId(7),
        turns: 64,
        false_reject: Some(0.125),
        false_accept: None,
        nearest: Some(NearestVoice {
            identity: SpeakerId(9),
            similarity: 0.25,
            same: 0.0625,
        }),
    }
}

fn responses() -> Vec<(&'static str, Response)> {
    let program = "earwitness 0.1.0".into();
    let status = Status {
        uptime_ms: 1,
        listening: true,
        writable: false,
        sessions: 2,
        records: 3,
        speakers: 4,
        store_bytes: 500,
    };
    let forgotten = Forgotten {
        records: 1,
        voiceprints: 2,
        reclaimed: true,
    };
    let session = Session {
        id: SessionId(2),
        name: "kitchen".into(),
        started_unix_ms: 6,
    };
    let partial = Partial {
        session: SessionId(2),
        start_ms: 1000,
        stable: "At".into(),
        tentative: "seven".into(),
    };
    let said = Transcript {
        session: SessionId(2),
        start_ms: 1000,
        end_ms: 2500,
        text: "At 7:30.".into(),
        raw: "At seven thirty.".into(),
        words: vec![SpokenWord {
            text: "At".into(),
            start_ms: 1100,
            end_ms: 1200,
            probability: 0.5,
        }],
    };
    let acknowledged = Response::Acknowledged(Box::new(record()));
    let error = |code| Response::Error {
        code,
        message: "no".into(),
    };
    vec![
        ("response.hello", Response::Hello { program }),
        ("response.status", Response::Status(status)),
        ("response.answer", Response::Answer(Box::new(answer()))),
        ("response.records", Response::Records(vec![record()])),
        ("response.record", Response::Record(Box::new(record()))),
        ("response.forgotten", Response::Forgotten(forgotten)),
        ("response.speakers", Response::Speakers(vec![speaker()])),
        ("response.speaker", Response::Speaker(speaker())),
        ("response.sessions", Response::Sessions(vec![session])),
        ("response.subscribed", Response::Subscribed),
        ("response.acknowledged", acknowledged),
        ("response.error.bad_request", error(ErrorCode::BadRequest)),
        ("response.error.not_found", error(ErrorCode::NotFound)),
        ("response.error.unavailable", error(ErrorCode::Unavailable)),
        ("response.error.internal", error(ErrorCode::Internal)),
        (
            "response.identities",
            Response::Identities(vec![identity()]),
        ),
        ("response.merges", Response::Merges(merges())),
        ("response.identity", Response::Identity(identity())),
        ("response.merge", Response::Merge(merges()[1])),
        (
            "response.enrolled",
            Response::Enrolled(Enrolled {
                identity: identity(),
                speech_ms: 5000,
                quality: 0.5,
                remarks: vec!["too quiet".into()],
            }),
        ),
        (
            "response.voice_estimates",
            Response::VoiceEstimates(vec![estimate()]),
        ),
        ("response.partial", Response::Partial(partial)),
        ("response.transcript", Response::Transcript(Box::new(said))),
        ("response.done", Response::Done),
    ]
}

fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(samples: Vec<(&str, T)>) -> usize {
    let golden: BTreeMap<_, _> = GOLDEN.lines().filter_map(|l| l.split_once(' ')).collect();
    let count = samples.len();
    for (name, body) in samples {
        let envelope = Envelope::new(300, body);
        let bytes = postcard::to_allocvec(&envelope).unwrap();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(golden.get(name), Some(&hex.as_str()), "{name}");
        assert_eq!(Envelope::open(&bytes), Ok(envelope), "{name}");
    }
    count
}

#[test]
fn version_1_is_written_and_read_as_released() {
    let checked = check(requests()) + check(responses());
    assert_eq!(checked, GOLDEN.lines().count());
}
