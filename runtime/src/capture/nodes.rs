//! Sound of microphone nodes, at every moment of the one that hears best.
//!
//! Each node has a thread that reads its port, and opens it again where it was
//! unplugged; what came goes, with the time of its arrival, to a
//! [`NodeArray`]. A node that was switched off and on, or does not send what the hub
//! can listen to, is told again. The stream never ends by itself: where no node is
//! heard it goes on with silence, so a session keeps its time.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    thread,
    time::{Duration, Instant},
};

use earwitness_api::{
    frame,
    node::{NodeConfig, NodeFormat, NodeMessage, NodeRequest},
};
use earwitness_node::{
    array::{NodeArray, NodeIndex},
    link::Counters,
};

use super::{
    AudioSource, CaptureError,
    port::{self, Port},
};

/// How far the stream runs behind the present, for frames that are held up.
const DELAY_MS: u32 = 100;
/// How often the array is asked for sound, at least.
const POLL: Duration = Duration::from_millis(10);
/// Reads that may wait for the source; a port behind a full queue is not read.
const ARRIVALS: usize = 256;
/// Most bytes of one read.
const READ_BYTES: usize = 4096;
/// How often nodes are looked after, and a port that failed is opened again.
const CARE_EVERY: Duration = Duration::from_secs(1);
/// Below this rate a link has no room for raw samples (35 kB a second).
const RAW_BAUD: u32 = 400_000;

/// Bytes of a node.
struct Arrival {
    node: NodeIndex,
    bytes: Vec<u8>,
    at: Instant,
}

/// What the source keeps of a node, beside what the array knows.
struct Wired {
    node: NodeIndex,
    place: PathBuf,
    /// Set where the node is to be told again what to send.
    tell: Arc<AtomicBool>,
    counters: Counters,
}

/// Live sound of one or several nodes.
pub struct NodeSource {
    array: NodeArray,
    wired: Vec<Wired>,
    config: NodeConfig,
    arrivals: Receiver<Arrival>,
    begun: Instant,
    cared: Instant,
}

impl NodeSource {
    /// Opens the ports of all nodes, serial ones at `baud`.
    ///
    /// # Errors
    /// If one of them cannot be opened, or there are more than the hub can listen to.
    pub fn open(places: &[PathBuf], baud: u32) -> Result<Self, CaptureError> {
        let config = NodeConfig {
            format: if baud < RAW_BAUD {
                NodeFormat::Adpcm
            } else {
                NodeFormat::Pcm
            },
            gated: false,
        };
        let mut array = NodeArray::new(DELAY_MS);
        let (sender, arrivals) = mpsc::sync_channel(ARRIVALS);
        let mut wired = Vec::new();
        for place in places {
            let node = array.add().map_err(|full| CaptureError::Node {
                place: place.clone(),
                reason: full.to_string(),
                advice: "name fewer",
            })?;
            let tell = Arc::new(AtomicBool::new(true));
            let wire = Wire {
                node,
                place: place.clone(),
                baud,
                config,
                tell: Arc::clone(&tell),
                arrivals: sender.clone(),
            };
            let port = port::open(place, baud)?;
            thread::Builder::new()
                .name(format!("node {}", wired.len() + 1))
                .spawn(move || wire.run(port))
                .map_err(|source| CaptureError::Io {
                    path: place.clone(),
                    source,
                })?;
            wired.push(Wired {
                node,
                place: place.clone(),
                tell,
                counters: Counters::default(),
            });
        }
        let begun = Instant::now();
        Ok(Self {
            array,
            wired,
            config,
            arrivals,
            begun,
            cared: begun,
        })
    }

    fn take(&mut self, arrival: &Arrival) {
        let at_us = micros(arrival.at.saturating_duration_since(self.begun));
        self.array.feed(arrival.node, &arrival.bytes, at_us);
    }

    /// Tells nodes again that do not send what they should, and logs what was missed.
    fn care(&mut self) {
        for wired in &mut self.wired {
            let counters = self.array.counters(wired.node);
            let sends = self.array.status(wired.node).map(|status| status.config);
            if counters.restarts > wired.counters.restarts || sends != Some(self.config) {
                wired.tell.store(true, Ordering::Relaxed);
            }
            let frames = counters.lost_frames - wired.counters.lost_frames;
            let refused = counters.refused - wired.counters.refused;
            if frames + refused > 0 {
                let node = wired.place.display();
                let error = self.array.last_error(wired.node);
                let why = error.map(|error| error.to_string()).unwrap_or_default();
                tracing::warn!(%node, frames, refused, why, "frames of a node were lost");
            }
            wired.counters = counters;
        }
        self.cared = Instant::now();
    }
}

impl AudioSource for NodeSource {
    fn read(&mut self, out: &mut Vec<f32>) -> Result<bool, CaptureError> {
        let before = out.len();
        while out.len() == before {
            match self.arrivals.recv_timeout(POLL) {
                Ok(arrival) => self.take(&arrival),
                Err(RecvTimeoutError::Timeout) => {}
                // Its threads end after it does; they are gone if they panicked.
                Err(RecvTimeoutError::Disconnected) => return Ok(false),
            }
            while let Ok(arrival) = self.arrivals.try_recv() {
                self.take(&arrival);
            }
            self.array.pull(micros(self.begun.elapsed()), out);
            if self.cared.elapsed() >= CARE_EVERY {
                self.care();
            }
        }
        Ok(true)
    }

    fn name(&self) -> String {
        let places = self
            .wired
            .iter()
            .map(|wired| wired.place.display().to_string());
        format!(
            "microphone node at {}",
            places.collect::<Vec<_>>().join(", ")
        )
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The thread behind a node's port.
struct Wire {
    node: NodeIndex,
    place: PathBuf,
    baud: u32,
    config: NodeConfig,
    tell: Arc<AtomicBool>,
    arrivals: SyncSender<Arrival>,
}

impl Wire {
    /// Reads until the source is gone.
    fn run(&self, mut port: Box<dyn Port>) {
        while let Err(error) = self.read_all(&mut *port) {
            tracing::warn!(node = %self.place.display(), %error, "a node was unplugged");
            match self.reopen() {
                Some(opened) => port = opened,
                None => return,
            }
            tracing::info!(node = %self.place.display(), "the node is back");
            self.tell.store(true, Ordering::Relaxed);
        }
    }

    /// Reads a port until it fails; `Ok` once nobody listens any more.
    fn read_all(&self, port: &mut dyn Port) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES];
        loop {
            if self.tell.swap(false, Ordering::Relaxed) {
                configure(port, self.config)?;
            }
            let bytes = match port.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => buffer[..count].to_vec(),
                Err(error) if is_patience(&error) => Vec::new(),
                Err(error) => return Err(error),
            };
            // Also where nothing came: it tells whether the source is still there.
            if !self.hand_on(bytes) {
                return Ok(());
            }
        }
    }

    fn reopen(&self) -> Option<Box<dyn Port>> {
        loop {
            thread::sleep(CARE_EVERY);
            if let Ok(port) = port::open(&self.place, self.baud) {
                return Some(port);
            }
            if !self.hand_on(Vec::new()) {
                return None;
            }
        }
    }

    fn hand_on(&self, bytes: Vec<u8>) -> bool {
        let arrival = Arrival {
            node: self.node,
            bytes,
            at: Instant::now(),
        };
        self.arrivals.send(arrival).is_ok()
    }
}

fn is_patience(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), TimedOut | WouldBlock | Interrupted)
}

fn configure(port: &mut dyn Port, config: NodeConfig) -> io::Result<()> {
    let message = NodeMessage::new(NodeRequest::Configure(config));
    let mut buffer = [0; 64];
    let bytes = frame::encode(&message, &mut buffer).map_err(io::Error::other)?;
    port.write_all(bytes)
}
