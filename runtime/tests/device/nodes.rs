//! Microphone nodes at the device's ports: the real firmware behind Unix sockets.

use std::{
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use earwitness_api::node::BLOCK_SAMPLES;
use earwitness_firmware::{Block, Board, Node};

use crate::device::{Device, conversation, records};

const BLOCK: Duration = Duration::from_millis(10);

/// A board that hears a sound as time passes, then silence.
struct Heard {
    wire: UnixStream,
    sound: Vec<i16>,
    begun: Instant,
    blocks: u32,
}

impl Board for Heard {
    fn capture(&mut self) -> Option<Block> {
        if self.begun.elapsed() < BLOCK * (self.blocks + 1) {
            return None;
        }
        let sample = self.blocks as usize * BLOCK_SAMPLES;
        self.blocks += 1;
        let rest = self.sound.get(sample..).unwrap_or_default();
        let mut samples = [0; BLOCK_SAMPLES];
        for (to, from) in samples.iter_mut().zip(rest) {
            *to = *from;
        }
        Some(Block {
            sample: sample as u64,
            samples,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        self.wire.write(bytes).unwrap_or(0)
    }

    fn read(&mut self) -> Option<u8> {
        let mut byte = [0];
        (self.wire.read(&mut byte).ok()? == 1).then_some(byte[0])
    }

    fn ticks(&mut self) -> u32 {
        0
    }
}

/// Serves a node at `place` that hears `sound` this loud, from when it is first
/// listened to. The first wire is pulled after some blocks, if so many are named.
fn node(place: &Path, id: u32, sound: &[f32], gain: f32, pulled_after: Option<u32>) {
    let listener = UnixListener::bind(place).unwrap();
    let sound = sound.iter().map(|sample| (sample * gain * 32767.0) as i16);
    let sound: Vec<i16> = sound.collect();
    thread::spawn(move || {
        let mut board = Heard {
            wire: wire(&listener),
            sound,
            begun: Instant::now(),
            blocks: 0,
        };
        let mut node = Node::new(id);
        let mut pulled_after = pulled_after;
        loop {
            if pulled_after.is_some_and(|blocks| board.blocks >= blocks) {
                pulled_after = None;
                drop(board.wire.shutdown(std::net::Shutdown::Both));
                board.wire = wire(&listener);
            }
            if !node.step(&mut board) {
                thread::sleep(BLOCK / 5);
            }
        }
    });
}

fn wire(listener: &UnixListener) -> UnixStream {
    let (wire, _) = listener.accept().unwrap();
    wire.set_nonblocking(true).unwrap();
    wire
}

/// Words of `said` that are among those of `meant`, as a share of these.
fn found(said: &str, meant: &str) -> f32 {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric());
        words
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let (said, meant) = (words(said), words(meant));
    let hits = meant.iter().filter(|word| said.contains(word)).count();
    hits as f32 / meant.len() as f32
}

#[test]
fn the_best_of_two_nodes_is_listened_to() {
    let sound = conversation(1);
    let plain = Device::new();
    let recording = plain.recording("first.wav", &sound);
    plain.works(&["ingest", &recording]);
    let meant = plain.records();

    let device = Device::new();
    let (near, far) = (device.path("near"), device.path("far"));
    node(&far, 1, &sound, 0.02, None);
    node(&near, 2, &sound, 0.8, None);
    let ports = [&far, &near].map(|path| path.to_str().unwrap());
    let mut daemon = device.daemon(&["--node", ports[0], "--node", ports[1]]);
    let lines = daemon.lines_until("\"text\"");
    let said = records(&lines.join("\n"));
    // A machine that stands still for long loses sound, so not every word counts.
    assert!(
        found(&said[0].text, &meant[0].text) >= 0.5,
        "{:?} was heard as {:?}",
        meant[0].text,
        said[0].text
    );
}

#[test]
fn a_node_that_was_unplugged_is_heard_again() {
    let device = Device::new();
    let place = device.path("node");
    // It is pulled in the silence before the first word.
    let mut sound = vec![0.0; 48_000];
    sound.extend(conversation(1));
    node(&place, 1, &sound, 0.8, Some(20));
    let mut daemon = device.daemon(&["--node", place.to_str().unwrap()]);
    let lines = daemon.lines_until("\"text\"");
    assert!(!records(&lines.join("\n"))[0].text.is_empty());
}

#[test]
fn ports_that_are_none_are_refused() {
    let device = Device::new();
    let gone = device.path("ttyGONE");
    let error = device.fails(&["run", "--node", gone.to_str().unwrap()]);
    assert!(
        error.contains("ttyGONE") && error.contains("plug it in"),
        "{error}"
    );

    let file = device.recording("sound.wav", &[0.0; 100]);
    let error = device.fails(&["run", "--node", &file]);
    assert!(
        error.contains("neither a serial port nor a socket"),
        "{error}"
    );

    let dead = device.path("dead");
    drop(UnixListener::bind(&dead).unwrap());
    let error = device.fails(&["run", "--node", dead.to_str().unwrap()]);
    assert!(error.contains("start the program"), "{error}");
}
