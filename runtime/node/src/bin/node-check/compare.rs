//! What has to arrive, worked out on this machine by the same code and by float code.

use earwitness_api::node::{AdpcmEncoder, BLOCK_SAMPLES, NodeFormat};
use earwitness_dsp::fbank;
use earwitness_dsp::fixed::{DcBlocker, FixedFbank, FixedTables, LogEnergy, NODE_FBANK};
use earwitness_node::link::Event;

static TABLES: FixedTables = match FixedTables::new(&NODE_FBANK) {
    Ok(tables) => tables,
    Err(_) => panic!("the front end of nodes can be computed"),
};

/// Bands this far below the loudest of their frame (80 dB) are not compared with
/// float ones: there, both are made of rounding errors.
const RANGE: f32 = 18.4;

/// What arrived: time stamps, and sound or features.
#[derive(Default, PartialEq)]
pub struct Received {
    sound: Vec<(u64, Vec<i16>)>,
    features: Vec<(u64, Vec<LogEnergy>)>,
}

impl Received {
    /// Takes note of what the node said.
    pub fn take(&mut self, event: Event) {
        match event {
            Event::Sound {
                sample, samples, ..
            } => self.sound.push((sample, samples.to_vec())),
            Event::Features {
                sample, energies, ..
            } => self.features.push((sample, energies.to_vec())),
            Event::Status(_) | Event::Restarted => {}
        }
    }

    /// Blocks and frames.
    pub fn len(&self) -> usize {
        self.sound.len() + self.features.len()
    }

    /// The largest difference of these features from float ones of the same sound.
    pub fn feature_difference(&self, filtered: &[f32]) -> f32 {
        if self.features.is_empty() {
            return 0.0;
        }
        let float = fbank::compute(NODE_FBANK, filtered).expect("the options of nodes are valid");
        let frames = float.data.chunks(float.bins).zip(&self.features);
        frames
            .map(|(float, (_, fixed))| difference(float, fixed))
            .fold(0.0, f32::max)
    }
}

fn difference(float: &[f32], fixed: &[LogEnergy]) -> f32 {
    let loudest = float.iter().copied().fold(f32::MIN, f32::max);
    let bands = float.iter().zip(fixed);
    bands
        .filter(|(float, _)| **float > loudest - RANGE)
        .map(|(float, fixed)| (float - fixed.to_num::<f32>()).abs())
        .fold(0.0, f32::max)
}

/// A node's state as it should be.
#[derive(Default)]
pub struct Expected {
    high_pass: DcBlocker,
    adpcm: AdpcmEncoder,
    /// Samples heard so far.
    heard: u64,
}

impl Expected {
    /// What the next part of the sound should arrive as, and the sound itself as
    /// float code takes it.
    pub fn next(&mut self, part: &[i16], format: NodeFormat) -> (Received, Vec<f32>) {
        let mut samples = part.to_vec();
        self.high_pass.apply(&mut samples);
        let mut received = Received::default();
        let stamps = (self.heard..).step_by(BLOCK_SAMPLES);
        match format {
            NodeFormat::Pcm => {
                let blocks = samples.chunks(BLOCK_SAMPLES).map(<[i16]>::to_vec);
                received.sound = stamps.zip(blocks).collect();
            }
            NodeFormat::Adpcm => {
                let mut codes = [0; BLOCK_SAMPLES / 2];
                let blocks = samples.chunks(BLOCK_SAMPLES);
                let decoded =
                    blocks.map(|block| self.adpcm.encode(block, &mut codes).decode().collect());
                received.sound = stamps.zip(decoded).collect();
            }
            NodeFormat::Fbank => {
                let mut frames = Vec::new();
                FixedFbank::new(&TABLES).push(&samples, |frame| frames.push(frame.to_vec()));
                received.features = stamps.zip(frames).collect();
            }
        }
        self.heard += part.len() as u64;
        let unit = samples.iter().map(|&sample| f32::from(sample) / 32_768.0);
        (received, unit.collect())
    }
}
