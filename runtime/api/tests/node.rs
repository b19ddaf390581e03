//! Frames of microphone nodes: what they are on the wire, and what a receiver makes
//! of damaged ones.
#![allow(clippy::unwrap_used)]

use earwitness_api::frame::{self, Decoder, FrameError, NODE_FRAME_BYTES};
use earwitness_api::node::{
    Adpcm, AdpcmEncoder, BLOCK_SAMPLES, MAX_SAMPLE, NODE_VERSION, NodeConfig, NodeError,
    NodeFormat, NodeFrame, NodeMessage, NodeRequest, NodeStatus, Payload,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// A name and the bytes of a whole frame in hexadecimal, one sample a line.
///
/// When a line does not fit, nodes that are out there can no longer be understood.
/// Do not update the bytes: undo the change, or raise `NODE_VERSION` and add a file
/// for it beside this one.
const GOLDEN: &str = include_str!("golden_node_v1.txt");

fn sent(payload: Payload) -> NodeFrame {
    NodeFrame {
        version: NODE_VERSION,
        node: 0x00c0_ffee,
        sequence: 300,
        sample: 48_000,
        speech: true,
        payload,
    }
}

fn status() -> NodeStatus {
    let config = NodeConfig {
        format: NodeFormat::Adpcm,
        gated: true,
    };
    NodeStatus {
        config,
        blocks: 3_000,
        lost_samples: 160,
        dropped_frames: 2,
        ticks: 1 << 33,
        slowest_block_ticks: 90_000,
        stack_bytes: 6_000,
    }
}

fn bytes<T: serde::Serialize>(message: &T) -> Vec<u8> {
    let mut buffer = [0; NODE_FRAME_BYTES];
    frame::encode(message, &mut buffer).unwrap().to_vec()
}

#[test]
fn version_1_is_written_as_released() {
    let block = Adpcm {
        predictor: -2,
        step: 88,
        codes: &[0x07, 0xf8],
    };
    let configure = |format| {
        let gated = false;
        bytes(&NodeMessage::new(NodeRequest::Configure(NodeConfig {
            format,
            gated,
        })))
    };
    let frames = [
        ("pcm", bytes(&sent(Payload::Pcm(&[0x34, 0x12, 0x00, 0x80])))),
        ("adpcm", bytes(&sent(Payload::Adpcm(block)))),
        ("fbank", bytes(&sent(Payload::Fbank(&[0x1d, 0xe0])))),
        ("status", bytes(&sent(Payload::Status(status())))),
        ("configure.pcm", configure(NodeFormat::Pcm)),
        ("configure.adpcm", configure(NodeFormat::Adpcm)),
        ("configure.fbank", configure(NodeFormat::Fbank)),
        ("ask", bytes(&NodeMessage::new(NodeRequest::Status))),
    ];
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let written: Vec<String> = frames
        .iter()
        .map(|(name, b)| format!("{name} {}", hex(b)))
        .collect();
    assert_eq!(written, GOLDEN.lines().collect::<Vec<_>>());
}

/// What a receiver makes of a stream: the sequence numbers, and how many errors.
fn received(stream: &[u8]) -> (Vec<u32>, usize) {
    let mut decoder = Decoder::new([0; NODE_FRAME_BYTES]);
    let (mut sequences, mut errors) = (Vec::new(), 0);
    let mut rest = stream;
    while !rest.is_empty() {
        let (after, payload) = decoder.feed(rest);
        rest = after;
        match payload.map(|payload| payload.map_err(NodeError::from).and_then(NodeFrame::open)) {
            Some(Ok(frame)) => sequences.push(frame.sequence),
            Some(Err(_)) => errors += 1,
            None => {}
        }
    }
    (sequences, errors)
}

fn stream(frames: u32) -> Vec<u8> {
    let frame = |sequence| {
        let samples = [sequence as u8; 2 * BLOCK_SAMPLES];
        bytes(&NodeFrame {
            sequence,
            ..sent(Payload::Pcm(&samples))
        })
    };
    (0..frames).flat_map(frame).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn garbage_between_frames_costs_no_frame(
        garbage in prop::collection::vec(any::<u8>(), 0..2_000),
    ) {
        let (first, second) = (stream(1), stream(2).split_off(stream(1).len()));
        let (sequences, _) = received(&[first, garbage, second].concat());
        prop_assert_eq!(sequences, [0, 1]);
    }

    #[test]
    fn a_hole_in_the_stream_costs_the_frames_it_touches(
        hole in (any::<prop::sample::Index>(), 1_usize..900),
    ) {
        let mut bytes = stream(10);
        let start = hole.0.index(bytes.len());
        let end = (start + hole.1).min(bytes.len());
        bytes.drain(start..end);
        let touched = |i: u32| stream(i + 1).len() > start && stream(i).len() < end;
        let (sequences, _) = received(&bytes);
        prop_assert!((0..10).all(|i| touched(i) || sequences.contains(&i)));
        prop_assert!(sequences.is_sorted());
    }

    #[test]
    fn any_payload_is_a_frame_or_an_error(payload in prop::collection::vec(any::<u8>(), 0..100)) {
        let with_version = [&[NODE_VERSION], payload.as_slice()].concat();
        for payload in [&payload, &with_version] {
            if let Ok(frame) = NodeFrame::open(payload) {
                prop_assert!(frame.sample <= MAX_SAMPLE);
            }
            let _ = NodeMessage::open(payload);
        }
    }

    #[test]
    fn any_adpcm_decodes_to_two_samples_a_byte(
        predictor: i16, step: u8, codes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let block = Adpcm { predictor, step, codes: &codes };
        prop_assert_eq!(block.decode().count(), 2 * codes.len());
    }

    #[test]
    fn each_adpcm_block_is_decoded_alone(
        samples in prop::collection::vec(any::<i16>(), BLOCK_SAMPLES * 2),
    ) {
        let mut encoder = AdpcmEncoder::default();
        let (first, second) = samples.split_at(BLOCK_SAMPLES);
        let mut codes = [[0; BLOCK_SAMPLES / 2]; 2];
        let first = encoder.encode(first, &mut codes[0]);
        let last = first.decode().last();
        let second = encoder.encode(second, &mut codes[1]);
        prop_assert_eq!(last, Some(second.predictor));
    }
}

#[test]
fn another_version_is_told_apart() {
    let newer = NodeFrame {
        version: NODE_VERSION + 1,
        ..sent(Payload::Pcm(&[]))
    };
    let mut buffer = [0; 64];
    let framed = frame::encode(&newer, &mut buffer).unwrap();
    let mut decoder = Decoder::new([0; 64]);
    let (_, payload) = decoder.feed(framed);
    let opened = NodeFrame::open(payload.unwrap().unwrap()).map(|frame| frame.sequence);
    assert_eq!(opened, Err(NodeError::Version(NODE_VERSION + 1)));
}

#[test]
fn a_stamp_beyond_any_clock_is_refused() {
    let mut frame = NodeFrame {
        sample: MAX_SAMPLE,
        ..sent(Payload::Pcm(&[]))
    };
    let mut open = |sample| {
        frame.sample = sample;
        let mut buffer = [0; 64];
        let framed = frame::encode(&frame, &mut buffer).unwrap();
        let mut decoder = Decoder::new([0; 64]);
        let (_, payload) = decoder.feed(framed);
        NodeFrame::open(payload.unwrap().unwrap()).map(|frame| frame.sample)
    };
    assert_eq!(open(MAX_SAMPLE), Ok(MAX_SAMPLE));
    assert_eq!(open(MAX_SAMPLE + 1), Err(FrameError::Payload.into()));
}
