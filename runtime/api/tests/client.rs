//! A client and a daemon at the two ends of a socket.
#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use earwitness_api::client::{Client, ClientError};
use earwitness_api::connection::Connection;
use earwitness_api::message::{Envelope, ErrorCode, Request, Response};
use earwitness_api::types::{Attribution, Record, RecordId, SessionId};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

fn record(id: u64) -> Record {
    Record {
        id: RecordId(id),
        session: SessionId(1),
        start_ms: 0,
        end_ms: 1,
        unix_ms: 2,
        speaker: Attribution {
            speaker: None,
            score: 0.0,
        },
        addressees: Vec::new(),
        text: "word ".repeat(10_000),
        attachments: Vec::new(),
    }
}

/// A daemon that sends these responses to the first request and hangs up.
fn client_of(responses: Vec<Response>, id_offset: u32) -> Client<UnixStream> {
    let (client, daemon) = UnixStream::pair().unwrap();
    thread::spawn(move || {
        let mut daemon = Connection::new(daemon);
        let request: Envelope<Request> = daemon.receive().unwrap().unwrap();
        for response in responses {
            let id = request.id + id_offset;
            daemon.send(&Envelope::new(id, response)).unwrap();
        }
    });
    Client::new(client)
}

#[test]
fn a_call_brings_its_response() {
    let expected = Response::Records((1..20).map(record).collect());
    let mut client = client_of(vec![expected.clone()], 0);
    assert_eq!(
        client
            .call(Request::ListRecords(Default::default()))
            .unwrap(),
        expected
    );
}

#[test]
fn a_refusal_is_an_error_in_the_daemons_words() {
    let refusal = Response::Error {
        code: ErrorCode::NotFound,
        message: "there is no record 9".into(),
    };
    let error = client_of(vec![refusal], 0)
        .call(Request::ShowRecord(RecordId(9)))
        .unwrap_err();
    assert_eq!(error.to_string(), "there is no record 9");
    assert!(matches!(
        error,
        ClientError::Refused {
            code: ErrorCode::NotFound,
            ..
        }
    ));
}

#[test]
fn a_response_to_another_request_is_not_taken_for_ones_own() {
    let error = client_of(vec![Response::Subscribed], 1)
        .call(Request::Status)
        .unwrap_err();
    assert!(matches!(error, ClientError::Unexpected));
}

#[test]
fn a_daemon_that_hangs_up_is_named() {
    let error = client_of(Vec::new(), 0).call(Request::Hello).unwrap_err();
    assert!(matches!(error, ClientError::Closed));
}

#[test]
fn a_subscription_yields_records_until_the_daemon_hangs_up() {
    let mut responses = vec![Response::Subscribed];
    responses.extend((1..4).map(|id| Response::Acknowledged(Box::new(record(id)))));
    let records: Vec<_> = client_of(responses, 0)
        .subscribe()
        .unwrap()
        .map(|record| record.unwrap().id.0)
        .collect();
    assert_eq!(records, [1, 2, 3]);
}

#[test]
fn connecting_where_nobody_listens_says_how_to_start_the_daemon() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let error = Client::connect(&path).unwrap_err().to_string();
    assert!(error.contains("earwitness run"), "{error}");

    let listener = UnixListener::bind(&path).unwrap();
    assert!(Client::connect(&path).is_ok());
    drop(listener);
}
