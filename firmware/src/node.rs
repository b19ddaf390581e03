//! The node itself: from a block of samples to frames, and what the hub asks.

use crate::gate::Gate;
use crate::outbox::Outbox;
use crate::{Block, Board};
use earwitness_api::frame::Decoder;
use earwitness_api::node::{
    AdpcmEncoder, BLOCK_SAMPLES, NODE_VERSION, NodeFormat, NodeFrame, NodeMessage, NodeRequest,
    NodeStatus, Payload,
};
use earwitness_dsp::fbank::MAX_MEL_BINS;
use earwitness_dsp::fixed::{DcBlocker, FixedFbank, FixedTables, NODE_FBANK};

/// The longest request.
const REQUEST_BYTES: usize = 32;

static TABLES: FixedTables = match FixedTables::new(&NODE_FBANK) {
    Ok(tables) => tables,
    Err(_) => panic!("the front end of nodes can be computed"),
};

/// A microphone node.
pub struct Node {
    requests: Decoder<[u8; REQUEST_BYTES]>,
    high_pass: DcBlocker,
    gate: Gate,
    encoder: Encoder,
    sender: Sender,
    status: NodeStatus,
    /// The sample after the last block.
    next_sample: u64,
}

impl Node {
    /// A node that was just switched on; `id` tells it from others.
    ///
    /// Inlined, as the parts it is made of, so that it is built where it will live and
    /// not on the stack.
    #[inline(always)]
    pub fn new(id: u32) -> Self {
        Self {
            requests: Decoder::new([0; REQUEST_BYTES]),
            high_pass: DcBlocker::default(),
            gate: Gate::new(),
            encoder: Encoder::new(),
            sender: Sender {
                id,
                sequence: 0,
                dropped: 0,
                outbox: Outbox::new(),
            },
            status: NodeStatus::default(),
            next_sample: 0,
        }
    }

    /// Does what there is to do: answers the hub, works on one block, sends. Returns
    /// `false` if there was nothing, and the board may sleep until an interrupt.
    pub fn step(&mut self, board: &mut impl Board) -> bool {
        let asked = self.listen(board);
        let block = board.capture();
        let heard = block.is_some();
        if let Some(block) = block {
            self.hear(block, board);
        }
        let sent = self.sender.outbox.flush(board);
        asked || heard || sent
    }

    fn listen(&mut self, board: &mut impl Board) -> bool {
        let mut any = false;
        while let Some(byte) = board.read() {
            any = true;
            let (_, payload) = self.requests.feed(&[byte]);
            let message = payload.and_then(Result::ok).map(NodeMessage::open);
            // The link checks itself, and a hub that gets no answer asks again.
            if let Some(Ok(NodeMessage { request, .. })) = message {
                self.answer(request, board);
            }
        }
        any
    }

    fn answer(&mut self, request: NodeRequest, board: &impl Board) {
        match request {
            NodeRequest::Configure(config) => self.status.config = config,
            NodeRequest::Status => {}
        }
        let status = NodeStatus {
            dropped_frames: self.sender.dropped,
            stack_bytes: board.stack_bytes(),
            ..self.status
        };
        let payload = Payload::Status(status);
        self.sender.send(self.next_sample, false, payload);
    }

    fn hear(&mut self, mut block: Block, board: &mut impl Board) {
        let begun = board.ticks();
        self.count_lost(&block);
        self.high_pass.apply(&mut block.samples);
        let speech = self.gate.judge(&block);
        if speech || !self.status.config.gated {
            while let Some(earlier) = self.gate.release() {
                self.send(&earlier, false);
            }
            self.send(&block, speech);
        } else {
            self.gate.keep(block);
        }
        self.count_work(board.ticks().wrapping_sub(begun));
    }

    fn send(&mut self, block: &Block, speech: bool) {
        let format = self.status.config.format;
        let sender = &mut self.sender;
        self.encoder.encode(block, format, |sample, payload| {
            sender.send(sample, speech, payload);
        });
    }

    fn count_lost(&mut self, block: &Block) {
        let lost = block.sample.saturating_sub(self.next_sample);
        self.status.lost_samples = self.status.lost_samples.wrapping_add(lost as u32);
        self.next_sample = block.sample + BLOCK_SAMPLES as u64;
    }

    fn count_work(&mut self, ticks: u32) {
        let status = &mut self.status;
        status.blocks = status.blocks.wrapping_add(1);
        status.ticks = status.ticks.wrapping_add(ticks.into());
        status.slowest_block_ticks = status.slowest_block_ticks.max(ticks);
    }
}

/// Numbers frames and puts them into the outbox.
struct Sender {
    id: u32,
    sequence: u32,
    dropped: u32,
    outbox: Outbox,
}

impl Sender {
    fn send(&mut self, sample: u64, speech: bool, payload: Payload) {
        let frame = NodeFrame {
            version: NODE_VERSION,
            node: self.id,
            sequence: self.sequence,
            sample,
            speech,
            payload,
        };
        // Also a frame that was dropped has its number, so that the hub misses it.
        self.sequence = self.sequence.wrapping_add(1);
        if !self.outbox.put(&frame) {
            self.dropped = self.dropped.wrapping_add(1);
        }
    }
}

/// Puts blocks into the form that the hub asked for.
struct Encoder {
    adpcm: AdpcmEncoder,
    fbank: FixedFbank,
    /// The sample after the last block, which the next one has to begin with for
    /// features to go on; and the first sample of the next frame of features.
    next_sample: u64,
    next_frame: u64,
    bytes: [u8; 2 * BLOCK_SAMPLES],
}

const _: () = assert!(
    MAX_MEL_BINS <= BLOCK_SAMPLES,
    "features fit where samples do"
);

impl Encoder {
    #[inline(always)]
    fn new() -> Self {
        Self {
            adpcm: AdpcmEncoder::default(),
            fbank: FixedFbank::new(&TABLES),
            next_sample: 0,
            next_frame: 0,
            bytes: [0; 2 * BLOCK_SAMPLES],
        }
    }

    fn encode(&mut self, block: &Block, format: NodeFormat, mut emit: impl FnMut(u64, Payload)) {
        match format {
            NodeFormat::Pcm => {
                let words = block.samples.iter().map(|sample| sample.to_le_bytes());
                emit(block.sample, Payload::Pcm(fill(&mut self.bytes, words)));
            }
            NodeFormat::Adpcm => {
                let codes = &mut self.bytes[..BLOCK_SAMPLES / 2];
                let encoded = self.adpcm.encode(&block.samples, codes);
                emit(block.sample, Payload::Adpcm(encoded));
            }
            NodeFormat::Fbank => self.features(block, emit),
        }
    }

    fn features(&mut self, block: &Block, mut emit: impl FnMut(u64, Payload)) {
        if block.sample != self.next_sample {
            self.fbank.reset();
            self.next_frame = block.sample;
        }
        self.next_sample = block.sample + BLOCK_SAMPLES as u64;
        let (next_frame, bytes) = (&mut self.next_frame, &mut self.bytes);
        self.fbank.push(&block.samples, |energies| {
            let words = energies.iter().map(|energy| energy.to_le_bytes());
            emit(*next_frame, Payload::Fbank(fill(bytes, words)));
            *next_frame += BLOCK_SAMPLES as u64;
        });
    }
}

/// Writes words to the front of `bytes` and returns them.
fn fill(bytes: &mut [u8], words: impl Iterator<Item = [u8; 2]>) -> &[u8] {
    let mut used = 0;
    for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *place = word;
        used += word.len();
    }
    &bytes[..used]
}
