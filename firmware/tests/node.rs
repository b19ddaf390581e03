//! A node on a board that can misbehave: a microphone that loses samples, a link
//! that stalls, a hub that talks nonsense.
#![allow(clippy::unwrap_used)]

use earwitness_api::frame;
use earwitness_api::node::{
    BLOCK_SAMPLES, NodeConfig, NodeFormat, NodeMessage, NodeRequest, NodeStatus,
};
use earwitness_dsp::fixed::{DcBlocker, FixedFbank, FixedTables, LogEnergy, NODE_FBANK};
use earwitness_firmware::{Block, Board, Node};
use earwitness_node::link::{Counters, Event, NodeLink};
use std::collections::VecDeque;
use std::f32::consts::TAU;

/// A board whose microphone has recorded what is in `blocks`, and whose link takes
/// `link_room` bytes a step.
#[derive(Default)]
struct FakeBoard {
    blocks: VecDeque<Block>,
    link_room: usize,
    room_left: usize,
    sent: Vec<u8>,
    asked: VecDeque<u8>,
    ticks: u32,
}

impl Board for FakeBoard {
    fn capture(&mut self) -> Option<Block> {
        self.blocks.pop_front()
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.room_left);
        self.sent.extend(&bytes[..taken]);
        self.room_left -= taken;
        taken
    }

    fn read(&mut self) -> Option<u8> {
        self.asked.pop_front()
    }

    fn ticks(&mut self) -> u32 {
        self.ticks += 100;
        self.ticks
    }
}

impl FakeBoard {
    fn new(samples: &[i16]) -> Self {
        let blocks = samples.as_chunks().0.iter().enumerate();
        let block = |(i, &samples): (usize, &[i16; BLOCK_SAMPLES])| Block {
            sample: (i * BLOCK_SAMPLES) as u64,
            samples,
        };
        Self {
            blocks: blocks.map(block).collect(),
            link_room: 1_000,
            ..Self::default()
        }
    }

    fn ask(&mut self, request: NodeRequest) {
        let mut buffer = [0; 64];
        let bytes = frame::encode(&NodeMessage::new(request), &mut buffer).unwrap();
        self.asked.extend(bytes);
    }

    fn run(&mut self, node: &mut Node) {
        loop {
            self.room_left = self.link_room;
            if !node.step(self) {
                return;
            }
        }
    }
}

/// What the hub makes of what a board sent.
#[derive(Default)]
struct Heard {
    sound: Vec<(u64, bool, Vec<i16>)>,
    features: Vec<(u64, Vec<LogEnergy>)>,
    status: Option<NodeStatus>,
    counters: Counters,
}

impl Heard {
    fn samples(&self) -> Vec<i16> {
        self.sound
            .iter()
            .flat_map(|(_, _, samples)| samples.clone())
            .collect()
    }
}

fn heard(sent: &[u8]) -> Heard {
    let (mut link, mut heard) = (NodeLink::default(), Heard::default());
    link.feed(sent, |event| match event {
        Event::Sound {
            sample,
            speech,
            samples,
        } => {
            heard.sound.push((sample, speech, samples.to_vec()));
        }
        Event::Features {
            sample, energies, ..
        } => {
            heard.features.push((sample, energies.to_vec()));
        }
        Event::Status(status) => heard.status = Some(status),
        Event::Restarted => panic!("nobody restarted it"),
    });
    heard.counters = link.counters();
    heard
}

/// Runs a node over what its microphone recorded.
fn send(samples: &[i16], config: NodeConfig) -> (Heard, FakeBoard) {
    let (mut board, mut node) = (FakeBoard::new(samples), Node::new(7));
    board.ask(NodeRequest::Configure(config));
    board.run(&mut node);
    (heard(&board.sent), board)
}

fn config(format: NodeFormat) -> NodeConfig {
    NodeConfig {
        format,
        gated: false,
    }
}

/// A second of near silence, a second of a rich tone, two seconds of near silence.
fn call() -> Vec<i16> {
    let tone = |i: usize, harmonic: f32| (TAU * 310.0 * harmonic * i as f32 / 16e3).sin();
    let sample = |i: usize| match i / 16_000 {
        1 => (3_000.0 * (tone(i, 1.0) + tone(i, 2.0) + tone(i, 3.0))) as i16,
        _ => (i * 7_919 % 5) as i16 - 2,
    };
    (0..64_000).map(sample).collect()
}

fn filtered(mut samples: Vec<i16>) -> Vec<i16> {
    DcBlocker::default().apply(&mut samples);
    samples
}

#[test]
fn raw_samples_arrive_as_they_left_the_high_pass() {
    let (heard, _) = send(&call(), config(NodeFormat::Pcm));
    assert_eq!(heard.samples(), filtered(call()));
    let stamps = heard.sound.iter().map(|(sample, _, _)| *sample);
    assert!(stamps.eq((0..64_000).step_by(BLOCK_SAMPLES)));
    let whole = Counters {
        frames: 401,
        ..Counters::default()
    };
    assert_eq!(heard.counters, whole);
}

#[test]
fn adpcm_keeps_the_sound() {
    let (heard, _) = send(&call(), config(NodeFormat::Adpcm));
    let (sent, got) = (filtered(call()), heard.samples());
    assert_eq!(sent.len(), got.len());
    let power = |x: f32| x * x;
    let noise: f32 = sent
        .iter()
        .zip(&got)
        .map(|(&x, &y)| power(f32::from(x) - f32::from(y)))
        .sum();
    let signal: f32 = sent.iter().map(|&x| power(x.into())).sum();
    assert!(
        noise < signal / 100.0,
        "{} dB",
        10.0 * (signal / noise).log10()
    );
}

#[test]
fn features_are_those_of_the_front_end() {
    static TABLES: FixedTables = match FixedTables::new(&NODE_FBANK) {
        Ok(tables) => tables,
        Err(_) => panic!("valid options"),
    };
    let (heard, _) = send(&call(), config(NodeFormat::Fbank));
    let mut expected = Vec::new();
    FixedFbank::new(&TABLES).push(&filtered(call()), |frame| expected.push(frame.to_vec()));
    let stamps = (0..).step_by(BLOCK_SAMPLES);
    assert_eq!(heard.features, stamps.zip(expected).collect::<Vec<_>>());
}

#[test]
fn a_closed_gate_sends_nothing_but_what_came_before_it_opened() {
    let gated = NodeConfig {
        gated: true,
        ..NodeConfig::default()
    };
    let (heard, _) = send(&call(), gated);
    let first_open = heard.sound.iter().find(|(_, speech, _)| *speech).unwrap().0;
    assert_eq!(heard.sound[0].0, first_open - 1_600);
    assert!((16_000..17_600).contains(&first_open), "{first_open}");
    let last = heard.sound.last().unwrap().0;
    assert!((32_000..46_000).contains(&last), "{last}");
    assert_eq!(
        (heard.counters.lost_frames, heard.counters.lost_samples),
        (0, 0)
    );
}

#[test]
fn features_begin_anew_after_a_gap() {
    let mut board = FakeBoard::new(&call());
    board.blocks.drain(50..53);
    board.ask(NodeRequest::Configure(config(NodeFormat::Fbank)));
    board.run(&mut Node::new(7));
    let stamps: Vec<u64> = heard(&board.sent)
        .features
        .iter()
        .map(|(sample, _)| *sample)
        .collect();
    let gap = stamps
        .windows(2)
        .find(|pair| pair[1] != pair[0] + 160)
        .unwrap();
    // The last whole frame before the gap begins 400 samples before it or earlier.
    assert_eq!(gap, [7_520, 8_480]);
}

#[test]
fn lost_samples_are_counted_and_leave_a_hole() {
    let (mut board, mut node) = (FakeBoard::new(&call()), Node::new(7));
    board.blocks.drain(10..15);
    board.run(&mut node);
    board.ask(NodeRequest::Status);
    board.run(&mut node);
    let heard = heard(&board.sent);
    assert_eq!(heard.status.unwrap().lost_samples, 800);
    assert_eq!(heard.counters.unsent_samples, 800);
    assert_eq!(heard.sound[10].0, 2_400);
}

#[test]
fn a_link_that_stalls_costs_whole_frames_and_the_hub_knows_which() {
    let (mut board, mut node) = (FakeBoard::new(&call()), Node::new(7));
    board.link_room = 0;
    for _ in 0..100 {
        node.step(&mut board);
    }
    board.link_room = 1_000;
    board.run(&mut node);
    board.ask(NodeRequest::Status);
    board.run(&mut node);
    let heard = heard(&board.sent);
    let dropped = heard.status.unwrap().dropped_frames;
    assert!((70..80).contains(&dropped), "{dropped}");
    assert_eq!(heard.counters.lost_frames, u64::from(dropped));
    assert_eq!(heard.counters.lost_samples, u64::from(dropped) * 160);
    assert_eq!(heard.counters.refused, 0);
}

#[test]
fn nonsense_from_the_hub_changes_nothing_and_the_next_request_is_heard() {
    let (mut board, mut node) = (FakeBoard::default(), Node::new(7));
    board.link_room = 1_000;
    board
        .asked
        .extend((0..5_000_u32).map(|i| (i * i % 251) as u8));
    let wanted = config(NodeFormat::Adpcm);
    board.ask(NodeRequest::Configure(wanted));
    board.run(&mut node);
    assert_eq!(heard(&board.sent).status.unwrap().config, wanted);
}

#[test]
fn work_is_measured() {
    let (mut board, mut node) = (FakeBoard::new(&call()), Node::new(7));
    board.run(&mut node);
    board.ask(NodeRequest::Status);
    board.run(&mut node);
    let status = heard(&board.sent).status.unwrap();
    assert_eq!(
        (status.blocks, status.ticks, status.slowest_block_ticks),
        (400, 40_000, 100)
    );
}
