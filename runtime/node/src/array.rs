//! Several nodes on the hub's time axis, and at every moment the best of them.
//!
//! The array runs a fixed delay behind the present, so that frames which were held
//! up still find their place. Every 10 ms it takes the node with the best ratio of
//! level to noise, stays with it until another is better by [`MARGIN_DB`], and
//! fades from one to the other within a block. Where samples of a node are missing,
//! one that heard more is taken at once; where nobody heard anything the stream goes
//! on with silence.

use crate::clock::NodeClock;
use crate::link::{Counters, Event, NodeLink};
use crate::timeline::Timeline;
use earwitness_api::node::{BLOCK_SAMPLES, NodeError, NodeStatus};

/// Most nodes that one hub listens to.
pub const MAX_NODES: usize = 8;

/// How much better another microphone has to be, in dB.
pub const MARGIN_DB: f32 = 3.0;

const BLOCK_US: u64 = 10_000;
/// After a stand-still of more than this, the array goes on in the present.
const MAX_CATCH_UP_US: u64 = 1_000_000;

type Block = [i16; BLOCK_SAMPLES];

/// There are as many nodes as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{MAX_NODES} nodes are connected already: disconnect one first")]
pub struct TooManyNodes;

/// One of the nodes of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeIndex(usize);

/// One node: its link, its clock and what it heard.
#[derive(Default)]
struct Node {
    link: NodeLink,
    clock: NodeClock,
    timeline: Timeline,
    status: Option<NodeStatus>,
}

/// The nodes of a hub.
pub struct NodeArray {
    nodes: Vec<Node>,
    delay_us: u64,
    /// Where the next block begins, in the hub's time.
    next_us: Option<u64>,
    chosen: usize,
    silent_samples: u64,
}

impl NodeArray {
    /// An array without nodes that runs `delay_ms` behind the present.
    pub fn new(delay_ms: u32) -> Self {
        Self {
            nodes: Vec::new(),
            delay_us: u64::from(delay_ms) * 1_000,
            next_us: None,
            chosen: 0,
            silent_samples: 0,
        }
    }

    /// Adds a node that has said nothing yet.
    ///
    /// # Errors
    /// If there are [`MAX_NODES`] already.
    pub fn add(&mut self) -> Result<NodeIndex, TooManyNodes> {
        if self.nodes.len() == MAX_NODES {
            return Err(TooManyNodes);
        }
        self.nodes.push(Node::default());
        Ok(NodeIndex(self.nodes.len() - 1))
    }

    /// Takes bytes of a node's link that arrived at `arrival_us` of the hub's time.
    pub fn feed(&mut self, node: NodeIndex, bytes: &[u8], arrival_us: u64) {
        let Node {
            link,
            clock,
            timeline,
            status,
        } = &mut self.nodes[node.0];
        link.feed(bytes, |event| match event {
            Event::Sound {
                sample,
                speech,
                samples,
            } => {
                clock.observe(sample + samples.len() as u64, arrival_us);
                timeline.put(sample, speech, samples);
            }
            // An array is for sound: a node that sends features has none.
            Event::Features { .. } => {}
            Event::Status(said) => *status = Some(said),
            Event::Restarted => {
                clock.reset();
                *timeline = Timeline::default();
            }
        });
    }

    /// Appends the samples, in [-1, 1], of all blocks that are due at `now_us`.
    pub fn pull(&mut self, now_us: u64, out: &mut Vec<f32>) {
        let due = now_us.saturating_sub(self.delay_us);
        let mut next = self.next_us.unwrap_or(due);
        if due.saturating_sub(next) > MAX_CATCH_UP_US {
            next = due;
        }
        while next + BLOCK_US <= due {
            let block = self.block(next);
            out.extend(block.map(|sample| f32::from(sample) / 32_768.0));
            next += BLOCK_US;
        }
        self.next_us = Some(next);
    }

    /// The node that is listened to at present.
    pub fn chosen(&self) -> NodeIndex {
        NodeIndex(self.chosen)
    }

    /// What came over a node's link.
    pub fn counters(&self, node: NodeIndex) -> Counters {
        self.nodes[node.0].link.counters()
    }

    /// Why the last frame of a node that was not understood was not.
    pub fn last_error(&self, node: NodeIndex) -> Option<NodeError> {
        self.nodes[node.0].link.last_error()
    }

    /// What a node last said of itself.
    pub fn status(&self, node: NodeIndex) -> Option<NodeStatus> {
        self.nodes[node.0].status
    }

    /// How much slower a node's clock runs than the hub's, in parts per million.
    pub fn drift_ppm(&self, node: NodeIndex) -> f64 {
        self.nodes[node.0].clock.drift_ppm()
    }

    /// Samples that nobody heard.
    pub fn silent_samples(&self) -> u64 {
        self.silent_samples
    }

    fn block(&mut self, hub_us: u64) -> Block {
        let heard: Vec<Heard> = self.nodes.iter().map(|node| node.heard(hub_us)).collect();
        let Some(best) = self.best(&heard) else {
            self.silent_samples += BLOCK_SAMPLES as u64;
            return [0; BLOCK_SAMPLES];
        };
        self.silent_samples += (BLOCK_SAMPLES - heard[best].samples) as u64;
        let before = std::mem::replace(&mut self.chosen, best);
        if before == best {
            heard[best].block
        } else {
            fade(&heard[before].block, &heard[best].block)
        }
    }

    /// The best of those that heard most: the present one unless another is better by
    /// the margin.
    fn best(&self, heard: &[Heard]) -> Option<usize> {
        let snr = |i: usize| self.nodes[i].timeline.snr_db();
        let most = heard.iter().map(|heard| heard.samples).max()?;
        let candidates = (0..heard.len()).filter(|&i| heard[i].samples == most);
        let best = candidates.max_by(|&a, &b| snr(a).total_cmp(&snr(b)))?;
        let present = self.chosen;
        let stay = heard[present].samples == most && snr(best) < snr(present) + MARGIN_DB;
        Some(if stay { present } else { best })
    }
}

/// What a node heard of a block.
struct Heard {
    block: Block,
    /// How many of its samples; the others are silence.
    samples: usize,
}

impl Node {
    /// What the node heard of the block that begins at a time of the hub.
    fn heard(&self, hub_us: u64) -> Heard {
        let mut block = [0; BLOCK_SAMPLES];
        let first = self.clock.sample_at(hub_us as f64);
        let samples = first.map_or(0, |first| {
            self.timeline.get(first.round() as i64, &mut block)
        });
        Heard { block, samples }
    }
}

/// From one block to the other, in a straight line.
fn fade(from: &Block, to: &Block) -> Block {
    std::array::from_fn(|i| {
        let (done, left) = (i as i32, (BLOCK_SAMPLES - i) as i32);
        let sum = i32::from(from[i]) * left + i32::from(to[i]) * done;
        (sum / BLOCK_SAMPLES as i32) as i16
    })
}
