//! What a microphone node sends to its hub, and what it can be told.
//!
//! A node sends one [`NodeFrame`] for every block of 10 ms, framed as every other
//! message ([`frame`]). Frames are numbered as they are made, also
//! those that the node had to drop, so a hub knows a lost frame from silence that
//! was not sent. Their time stamps count samples of the node's own clock from
//! power-on: what is missing between two stamps was not recorded, or not sent.
//!
//! Version 1 of the node protocol; the rules of
//! [`message`](../message/index.html) hold here too: variants are appended,
//! everything else is a new version, and golden bytes hold us to it. Borrows from
//! the frame and allocates nothing.

use crate::frame::{self, FrameError};
use audio_codec_algorithms::{AdpcmImaState, decode_adpcm_ima, encode_adpcm_ima};
use serde::{Deserialize, Serialize};

/// The version of the node protocol that this crate speaks.
pub const NODE_VERSION: u8 = 1;

/// Samples a second of a node's clock, and of what it sends.
pub const NODE_RATE_HZ: u32 = 16_000;

/// Samples a block: 10 ms.
pub const BLOCK_SAMPLES: usize = 160;

/// No node reaches this time stamp; 140,000 years after power-on. Whoever adds to
/// a stamp need not fear an overflow.
pub const MAX_SAMPLE: u64 = 1 << 56;

/// One message of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFrame<'a> {
    /// [`NODE_VERSION`] of the node.
    pub version: u8,
    /// Which node: a number of the chip's own, the same after every start.
    pub node: u32,
    /// Number of this frame since power-on; goes round.
    pub sequence: u32,
    /// Time stamp: samples from power-on to the first that the payload is about.
    pub sample: u64,
    /// Whether the node's gate was open: there may be speech in this block.
    pub speech: bool,
    /// What it brings.
    #[serde(borrow)]
    pub payload: Payload<'a>,
}

/// What a frame brings. Append-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Payload<'a> {
    /// Samples: 16 bits, little-endian.
    Pcm(&'a [u8]),
    /// Samples in four bits each.
    #[serde(borrow)]
    Adpcm(Adpcm<'a>),
    /// Log mel energies of one frame of the front end that begins at the time
    /// stamp: 16 bits, little-endian, 9 of them fractional, in neper.
    Fbank(&'a [u8]),
    /// How the node is.
    Status(NodeStatus),
}

/// A block of samples as IMA ADPCM (IMA Digital Audio Focus Group, "Recommended
/// Practices for Enhancing Digital Audio Compatibility in Multimedia Systems",
/// 1992), the earlier sample in the low half of a byte. It carries the decoder's
/// state, so that a lost block costs itself only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adpcm<'a> {
    /// What the decoder predicts for the first sample.
    pub predictor: i16,
    /// Its position in the table of steps.
    pub step: u8,
    /// Two samples a byte.
    pub codes: &'a [u8],
}

/// In which form a node sends what it hears. Append-only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeFormat {
    /// [`Payload::Pcm`]: 35 kB a second.
    #[default]
    Pcm,
    /// [`Payload::Adpcm`]: 11 kB a second.
    Adpcm,
    /// [`Payload::Fbank`]: 18 kB a second, and nothing that can be listened to.
    Fbank,
}

/// What a node is to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeConfig {
    /// In which form.
    pub format: NodeFormat,
    /// Whether to send only while the gate is open, and the 100 ms before.
    pub gated: bool,
}

/// What a hub can tell a node. Answered by [`Payload::Status`]. Append-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeRequest {
    /// Send like this from now on.
    Configure(NodeConfig),
    /// How are you?
    Status,
}

/// How a node is. Counts are since power-on and go round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// What it sends.
    pub config: NodeConfig,
    /// Blocks that it worked on.
    pub blocks: u32,
    /// Samples that the microphone lost.
    pub lost_samples: u32,
    /// Frames that it made and could not send, since the link was too slow.
    pub dropped_frames: u32,
    /// Clock ticks of work, in all and for the slowest block.
    pub ticks: u64,
    /// See [`ticks`](Self::ticks).
    pub slowest_block_ticks: u32,
    /// Bytes of stack that were ever in use, as far as it is known.
    pub stack_bytes: u32,
}

/// A request with the version it is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeMessage {
    /// [`NODE_VERSION`] of the hub.
    pub version: u8,
    /// What is asked.
    pub request: NodeRequest,
}

/// Why a node's frame, or a message to it, was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// The peer speaks another version.
    #[error(
        "the peer speaks version {0} of the node protocol, this program speaks {NODE_VERSION}: \
         flash the node again, or update the hub"
    )]
    Version(u8),
    /// The payload is not such a message.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

impl<'a> NodeFrame<'a> {
    /// Opens the payload of one frame.
    ///
    /// # Errors
    /// If it is of another version, or no such message.
    pub fn open(payload: &'a [u8]) -> Result<Self, NodeError> {
        let frame: Self = open(payload)?;
        if frame.sample > MAX_SAMPLE {
            return Err(FrameError::Payload.into());
        }
        Ok(frame)
    }
}

impl NodeMessage {
    /// A request in this crate's version.
    pub const fn new(request: NodeRequest) -> Self {
        Self {
            version: NODE_VERSION,
            request,
        }
    }

    /// Opens the payload of one frame.
    ///
    /// # Errors
    /// If it is of another version, or no such message.
    pub fn open(payload: &[u8]) -> Result<Self, NodeError> {
        open(payload)
    }
}

/// Looks at the version, which is the first byte of either, before all else.
fn open<'a, T: Deserialize<'a>>(payload: &'a [u8]) -> Result<T, NodeError> {
    match payload.first() {
        Some(&NODE_VERSION) => Ok(frame::decode(payload)?),
        Some(&other) => Err(NodeError::Version(other)),
        None => Err(FrameError::Payload.into()),
    }
}

/// The encoder of a stream of blocks.
#[derive(Default)]
pub struct AdpcmEncoder {
    state: AdpcmImaState,
}

impl AdpcmEncoder {
    /// Encodes as many pairs of samples as fit into `codes`.
    pub fn encode<'a>(&mut self, samples: &[i16], codes: &'a mut [u8]) -> Adpcm<'a> {
        let AdpcmImaState {
            predictor,
            step_index,
        } = self.state;
        let (pairs, _) = samples.as_chunks();
        for (byte, pair) in codes.iter_mut().zip(pairs) {
            let [low, high] = pair.map(|sample| encode_adpcm_ima(sample, &mut self.state));
            *byte = low | (high << 4);
        }
        let used = pairs.len().min(codes.len());
        Adpcm {
            predictor,
            step: step_index,
            codes: &codes[..used],
        }
    }
}

impl Adpcm<'_> {
    /// The samples.
    pub fn decode(&self) -> impl Iterator<Item = i16> {
        let mut state = AdpcmImaState {
            predictor: self.predictor,
            step_index: self.step,
        };
        let codes = self.codes.iter().flat_map(|byte| [byte & 0x0f, byte >> 4]);
        codes.map(move |code| decode_adpcm_ima(code, &mut state))
    }
}
