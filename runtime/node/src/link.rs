//! Frames of one node, and what is missing between them.

use earwitness_api::frame::{Decoder, NODE_FRAME_BYTES};
use earwitness_api::node::{BLOCK_SAMPLES, NodeError, NodeFrame, NodeStatus, Payload};
use earwitness_dsp::fixed::LogEnergy;

/// What a node said.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// Sound.
    Sound {
        /// Samples from the node's power-on to the first of these.
        sample: u64,
        /// Whether the node's gate was open.
        speech: bool,
        /// 16-bit samples.
        samples: &'a [i16],
    },
    /// One frame of features.
    Features {
        /// Samples from the node's power-on to the first of the frame.
        sample: u64,
        /// Whether the node's gate was open.
        speech: bool,
        /// Log energies, one a band.
        energies: &'a [LogEnergy],
    },
    /// How the node is.
    Status(NodeStatus),
    /// The node began to count anew: it was switched off and on.
    Restarted,
}

/// What came over a link, and what did not. Counts since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames understood.
    pub frames: u64,
    /// Frames that were damaged, too long or no node's.
    pub refused: u64,
    /// Frames that were sent, or dropped by the node, and did not arrive.
    pub lost_frames: u64,
    /// Samples that were in lost frames.
    pub lost_samples: u64,
    /// Samples that no frame was made of: silence behind a closed gate, or lost by
    /// the microphone.
    pub unsent_samples: u64,
    /// How often the node began to count anew.
    pub restarts: u64,
}

/// The receiving end of one node's link.
pub struct NodeLink {
    decoder: Decoder<Box<[u8]>>,
    frames: Frames,
}

impl Default for NodeLink {
    fn default() -> Self {
        Self {
            decoder: Decoder::new(vec![0; NODE_FRAME_BYTES].into()),
            frames: Frames::default(),
        }
    }
}

impl NodeLink {
    /// Takes bytes, cut anywhere, and hands on what they say. A frame that is not
    /// understood is counted, and the last such error kept.
    pub fn feed(&mut self, mut bytes: &[u8], mut emit: impl FnMut(Event)) {
        while !bytes.is_empty() {
            let (rest, payload) = self.decoder.feed(bytes);
            bytes = rest;
            let Some(payload) = payload else { continue };
            let opened = payload.map_err(NodeError::from);
            match opened.and_then(NodeFrame::open) {
                Ok(frame) => self.frames.take(&frame, &mut emit),
                Err(error) => self.frames.refuse(error),
            }
        }
    }

    /// What came so far.
    pub fn counters(&self) -> Counters {
        self.frames.counters
    }

    /// Why the last frame that was refused was.
    pub fn last_error(&self) -> Option<NodeError> {
        self.frames.last_error
    }
}

/// Where the next frame should be.
#[derive(Clone, Copy)]
struct Expected {
    sequence: u32,
    /// The first sample that the next frame with sound or features should bring.
    sample: Option<u64>,
}

#[derive(Default)]
struct Frames {
    expected: Option<Expected>,
    counters: Counters,
    last_error: Option<NodeError>,
}

impl Frames {
    fn refuse(&mut self, error: NodeError) {
        self.counters.refused += 1;
        self.last_error = Some(error);
    }

    fn take(&mut self, frame: &NodeFrame, emit: &mut impl FnMut(Event)) {
        self.counters.frames += 1;
        let lost = self.lost_before(frame.sequence);
        let sample = self.expected.and_then(|expected| expected.sample);
        if lost.is_none() {
            self.counters.restarts += 1;
            emit(Event::Restarted);
        }
        let expected_sample = lost.and(sample);
        let lost = lost.unwrap_or(0);
        self.counters.lost_frames += u64::from(lost);
        let advanced = hand_on(frame, emit);
        if advanced > 0 {
            let missing = expected_sample.map_or(0, |sample| frame.sample.saturating_sub(sample));
            if lost > 0 {
                self.counters.lost_samples += missing;
            } else {
                self.counters.unsent_samples += missing;
            }
        }
        self.expected = Some(Expected {
            sequence: frame.sequence.wrapping_add(1),
            sample: match advanced {
                0 => expected_sample,
                _ => Some(frame.sample + advanced),
            },
        });
    }

    /// Frames lost before this one; `None` if it counts backwards.
    fn lost_before(&self, sequence: u32) -> Option<u32> {
        let expected = self.expected.map_or(sequence, |expected| expected.sequence);
        let ahead = sequence.wrapping_sub(expected);
        (ahead <= u32::MAX / 2).then_some(ahead)
    }
}

/// Decodes a frame; returns how many samples the next one should be further on.
fn hand_on(frame: &NodeFrame, emit: &mut impl FnMut(Event)) -> u64 {
    let &NodeFrame { sample, speech, .. } = frame;
    let mut sound = |samples: &[i16]| {
        emit(Event::Sound {
            sample,
            speech,
            samples,
        });
        samples.len() as u64
    };
    match frame.payload {
        Payload::Pcm(bytes) => {
            let samples: Vec<i16> = words(bytes).map(i16::from_le_bytes).collect();
            sound(&samples)
        }
        Payload::Adpcm(block) => {
            let samples: Vec<i16> = block.decode().collect();
            sound(&samples)
        }
        Payload::Fbank(bytes) => {
            let energies: Vec<LogEnergy> = words(bytes).map(LogEnergy::from_le_bytes).collect();
            emit(Event::Features {
                sample,
                speech,
                energies: &energies,
            });
            BLOCK_SAMPLES as u64
        }
        Payload::Status(status) => {
            emit(Event::Status(status));
            0
        }
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = [u8; 2]> {
    bytes.as_chunks().0.iter().copied()
}
