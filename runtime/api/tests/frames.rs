//! Frames survive any cut, and no noise gets past them or breaks the reader.
#![allow(clippy::unwrap_used)]

use earwitness_api::frame::{self, Decoder, EncodeError, FrameError};
use earwitness_api::message::{Ask, Envelope, EnvelopeError, PROTOCOL_VERSION, Question, Request};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

type Message = Envelope<Request>;

fn message(id: u32, text: &str) -> Message {
    let question = Question::Text(text.into());
    let ask = Ask {
        question,
        as_speaker: None,
        limit: 3,
    };
    Envelope::new(id, Request::Ask(ask))
}

fn framed(message: &Message) -> Vec<u8> {
    let mut buffer = [0; 4096];
    frame::encode(message, &mut buffer).unwrap().to_vec()
}

/// Everything a decoder makes of a stream that arrives in these pieces.
fn decoded(pieces: &[&[u8]], room: usize) -> Vec<Result<Message, EnvelopeError>> {
    let mut decoder = Decoder::new(vec![0; room]);
    let mut found = Vec::new();
    for mut input in pieces.iter().copied() {
        while !input.is_empty() {
            let (rest, frame) = decoder.feed(input);
            input = rest;
            if let Some(frame) = frame {
                found.push(frame.map_err(EnvelopeError::from).and_then(Envelope::open));
            }
        }
    }
    found
}

fn any_message() -> impl Strategy<Value = Message> {
    let question = prop_oneof![
        ".{0,200}".prop_map(Question::Text),
        prop::collection::vec(any::<i16>(), 0..400).prop_map(Question::Audio),
    ];
    (any::<u32>(), question, any::<u32>()).prop_map(|(id, question, limit)| {
        let ask = Ask {
            question,
            as_speaker: None,
            limit,
        };
        Envelope::new(id, Request::Ask(ask))
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_messages_arrive_however_the_stream_is_cut(
        messages in prop::collection::vec(any_message(), 1..5),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let stream: Vec<u8> = messages.iter().flat_map(framed).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut start = 0;
        for cut in cuts.into_iter().chain([stream.len()]) {
            pieces.push(&stream[start..cut]);
            start = cut;
        }
        let expected: Vec<_> = messages.into_iter().map(Ok).collect();
        prop_assert_eq!(decoded(&pieces, 4096), expected);
    }

    #[test]
    fn noise_costs_no_message_but_itself(noise in prop::collection::vec(any::<u8>(), 0..3000)) {
        let message = message(1, "after the noise");
        let found = decoded(&[&noise, &framed(&message)], 1024);
        prop_assert_eq!(found.last(), Some(&Ok(message)));
        let others = &found[..found.len() - 1];
        prop_assert!(others.iter().all(Result::is_err));
    }

    #[test]
    fn one_flipped_bit_is_noticed(at in any::<prop::sample::Index>(), bit in 0u32..8) {
        let sent = message(1, "turn left at the church");
        let mut stream = framed(&sent);
        let at = at.index(stream.len());
        stream[at] ^= 1u8 << bit;
        let next = message(2, "next");
        stream.extend(framed(&next));
        let found = decoded(&[&stream], 1024);
        prop_assert_eq!(found.last(), Some(&Ok(next)));
        // The delimiters alone may be damaged without the message being lost.
        let inner = 1..framed(&sent).len() - 1;
        if inner.contains(&at) {
            prop_assert!(!found.contains(&Ok(sent)));
        }
    }
}

#[test]
fn a_wrong_checksum_is_an_error_and_the_next_frame_is_read() {
    let mut stream = framed(&message(1, "aaaa"));
    let letter = stream.iter().position(|&byte| byte == b'a').unwrap();
    stream[letter] = b'b';
    stream.extend(framed(&message(2, "next")));
    let found = decoded(&[&stream], 1024);
    assert_eq!(
        found,
        [Err(FrameError::Checksum.into()), Ok(message(2, "next"))]
    );
}

#[test]
fn a_frame_that_is_too_long_is_an_error_and_the_next_is_read() {
    let long = framed(&message(1, &"long ".repeat(100)));
    let found = decoded(&[&long, &framed(&message(2, "short"))], 64);
    assert_eq!(
        found,
        [Err(FrameError::TooLong(64).into()), Ok(message(2, "short"))]
    );
}

#[test]
fn a_message_needs_a_buffer_that_holds_it() {
    let message = message(1, "twelve bytes");
    let whole = framed(&message).len();
    for room in 0..whole {
        let mut buffer = vec![0; room];
        let result = frame::encode(&message, &mut buffer);
        assert_eq!(result.map(<[u8]>::len), Err(EncodeError::TooLong(room)));
    }
    assert!(frame::encode(&message, &mut vec![0; whole]).is_ok());
}

#[test]
fn a_peer_of_another_version_is_recognised_by_its_first_field() {
    let newer = (PROTOCOL_VERSION + 1, "whatever that version has here");
    let mut buffer = [0; 128];
    let stream = frame::encode(&newer, &mut buffer).unwrap();
    let expected = EnvelopeError::Version(PROTOCOL_VERSION + 1);
    assert_eq!(decoded(&[stream], 128), [Err(expected)]);
}

#[test]
fn a_message_with_bytes_left_over_is_refused() {
    let mut buffer = [0; 128];
    let stream = frame::encode(&(message(1, "a"), 0u8), &mut buffer).unwrap();
    let expected = EnvelopeError::Frame(FrameError::Payload);
    assert_eq!(decoded(&[stream], 128), [Err(expected)]);
}
