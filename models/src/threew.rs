//! The 3W head: what the keys of records and the queries of questions are made of
//! (PERSIST section 2.2), for a sentence embedder and voiceprints instead of the
//! hidden states of a large model.
//!
//! `models/train/threew/README.md` has the equations and how the head is trained.
//! It knows nothing of the size of a voiceprint: a voice counts by its cosine
//! alone, so any voiceprint pack goes with it. It takes embeddings of length 1.

mod cues;

use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;

use crate::manifest::FrontEnd;
use crate::pack::{Pack, PackError};
use cues::Cues;
pub use cues::words;

/// What the manifest says beside the weights.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    context: f32,
    lexical: f32,
    glance: f32,
    gates: [String; 3],
    ceiling: [f32; 3],
    cues: Vec<String>,
    words: std::collections::BTreeMap<String, Vec<String>>,
    stop: Vec<String>,
    session_scales: Vec<f32>,
    second_scales: Vec<f32>,
}

/// The gates, in the order in which the runtime reads them.
const GATES: [&str; 3] = ["self", "named", "time"];

/// The trained head.
#[derive(Clone, Debug)]
pub struct Head {
    settings: Settings,
    cues: Cues,
    key: LowRank,
    query: LowRank,
    asking: f32,
    time_key: Matrix,
    time_query: Matrix,
    gate: Matrix,
    gate_bias: Vec<f32>,
}

/// What a question looks for, and how much each part of it counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The semantic block, of length 1.
    pub what: Vec<f32>,
    /// The temporal block, its gate included.
    pub when: Vec<f32>,
    /// How much the voice of the asker counts.
    pub asker: f32,
    /// How much the voice of each person counts who is named.
    pub named: f32,
}

impl Head {
    /// Loads the weights and settings of a pack.
    pub fn load(pack: &Pack) -> Result<Self, PackError> {
        let FrontEnd::Sentence { width, .. } = pack.manifest.front_end else {
            return Err(pack.malformed("the front end of a 3W head must be `sentence`"));
        };
        let settings: Settings = pack
            .manifest
            .settings()
            .map_err(|error| pack.malformed(error))?;
        if settings.gates != GATES {
            return Err(pack.malformed(format!("the gates must be {GATES:?}")));
        }
        let bytes = pack.read("head.safetensors")?;
        let weights = Weights::parse(pack, &bytes)?;
        let cues = Cues::new(&settings.cues, &settings.words);
        let time = settings.session_scales.len() + settings.second_scales.len() + 1;
        let state = width + settings.cues.len();
        let time_key = weights.matrix("time_key", None, time)?;
        Ok(Self {
            key: weights.low_rank("key", width)?,
            query: weights.low_rank("query", width)?,
            asking: weights.vector("asking", 1)?[0],
            time_query: weights.matrix("time_query", Some(time_key.rows), state + time)?,
            time_key,
            gate: weights.matrix("gate", Some(GATES.len()), state)?,
            gate_bias: weights.vector("gate_bias", GATES.len())?,
            cues,
            settings,
        })
    }

    /// The semantic block of a record: its embedding and that of the turn before it
    /// in its session. A record that only asks is hardly evidence and is shorter.
    pub fn semantic_key(&self, own: &[f32], before: Option<&[f32]>, only_asks: bool) -> Vec<f32> {
        let mut mixed = own.to_vec();
        for (mixed, before) in mixed.iter_mut().zip(before.unwrap_or_default()) {
            *mixed += self.settings.context * before;
        }
        let mut key = self.key.moved(&unit(mixed));
        if only_asks {
            key.iter_mut().for_each(|value| *value *= 1.0 - self.asking);
        }
        key
    }

    /// The temporal block of a record: the number of its session from 0, and its
    /// start within it.
    pub fn temporal_key(&self, session: u64, start_ms: u64) -> Vec<f32> {
        bounded(self.time_key.times(&self.time(session, start_ms)))
    }

    /// What a question looks for that is asked as a session begins: its text, the
    /// embedding of that, and how many people it names.
    pub fn asked(&self, text: &str, embedding: &[f32], people: usize, session: u64) -> Asked {
        let glance = embedding.iter().map(|value| self.settings.glance * value);
        let mut state: Vec<f32> = glance.chain(self.cues.read(text, people)).collect();
        let [asker, named, time] = self.gates(&state);
        state.extend(self.time(session, 0));
        let mut when = bounded(self.time_query.times(&state));
        when.iter_mut().for_each(|value| *value *= time);
        Asked {
            what: self.query.moved(embedding),
            when,
            asker,
            named,
        }
    }

    /// How much the words count beside the blocks: the best match of all records
    /// adds this much.
    pub fn lexical(&self) -> f32 {
        self.settings.lexical
    }

    /// Words that say nothing about what a record is about, in lower case.
    pub fn stop_words(&self) -> &[String] {
        &self.settings.stop
    }

    /// Values of the semantic and of the temporal block.
    pub fn dims(&self) -> (usize, usize) {
        (self.key.up.rows, self.time_key.rows)
    }

    fn gates(&self, state: &[f32]) -> [f32; 3] {
        let logits = self.gate.times(state);
        std::array::from_fn(|gate| {
            let logit = logits[gate] + self.gate_bias[gate];
            self.settings.ceiling[gate] / (1.0 + (-logit).exp())
        })
    }

    /// Session and time within it on several scales, each from 0 to 1.
    fn time(&self, session: u64, start_ms: u64) -> Vec<f32> {
        let (session, seconds) = (session as f32, start_ms as f32 / 1000.0);
        let sessions = self
            .settings
            .session_scales
            .iter()
            .map(|s| session / (session + s));
        let within = self
            .settings
            .second_scales
            .iter()
            .map(|s| seconds / (seconds + s));
        sessions.chain(within).chain([1.0]).collect()
    }
}

/// `unit(x + up (down x))`: a projection that begins as nothing.
#[derive(Clone, Debug)]
struct LowRank {
    down: Matrix,
    up: Matrix,
}

impl LowRank {
    fn moved(&self, x: &[f32]) -> Vec<f32> {
        let change = self.up.times(&self.down.times(x));
        unit(x.iter().zip(change).map(|(x, change)| x + change).collect())
    }
}

/// A matrix row by row.
#[derive(Clone, Debug)]
struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f32>,
}

impl Matrix {
    fn times(&self, x: &[f32]) -> Vec<f32> {
        let rows = self.values.chunks_exact(self.columns);
        rows.map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum())
            .collect()
    }
}

/// The content of `head.safetensors`.
struct Weights<'a> {
    pack: &'a Pack,
    tensors: SafeTensors<'a>,
}

impl<'a> Weights<'a> {
    fn parse(pack: &'a Pack, bytes: &'a [u8]) -> Result<Self, PackError> {
        let tensors = SafeTensors::deserialize(bytes)
            .map_err(|error| pack.malformed(format!("head.safetensors: {error}")))?;
        Ok(Self { pack, tensors })
    }

    fn low_rank(&self, name: &str, width: usize) -> Result<LowRank, PackError> {
        let down = self.matrix(&format!("{name}_down"), None, width)?;
        let up = self.matrix(&format!("{name}_up"), Some(width), down.rows)?;
        Ok(LowRank { down, up })
    }

    /// A matrix of so many columns, and rows where their number is given.
    fn matrix(&self, name: &str, rows: Option<usize>, columns: usize) -> Result<Matrix, PackError> {
        let (shape, values) = self.values(name)?;
        match shape[..] {
            [found, width] if width == columns && rows.is_none_or(|rows| rows == found) => {
                Ok(Matrix {
                    rows: found,
                    columns,
                    values,
                })
            }
            _ => Err(self.misshapen(name, &shape)),
        }
    }

    /// A vector of that length; a scalar is one of length 1.
    fn vector(&self, name: &str, length: usize) -> Result<Vec<f32>, PackError> {
        let (shape, values) = self.values(name)?;
        if values.len() == length {
            Ok(values)
        } else {
            Err(self.misshapen(name, &shape))
        }
    }

    fn values(&self, name: &str) -> Result<(Vec<usize>, Vec<f32>), PackError> {
        let broken = |reason: String| self.pack.malformed(format!("head.safetensors: {reason}"));
        let tensor = self
            .tensors
            .tensor(name)
            .map_err(|error| broken(format!("{name}: {error}")))?;
        if tensor.dtype() != Dtype::F32 {
            return Err(broken(format!("{name} is {:?}, not F32", tensor.dtype())));
        }
        let (values, _) = tensor.data().as_chunks::<4>();
        let values: Vec<f32> = values.iter().copied().map(f32::from_le_bytes).collect();
        if values.iter().any(|value| !value.is_finite()) {
            return Err(broken(format!("{name} holds what is no number")));
        }
        Ok((tensor.shape().to_vec(), values))
    }

    fn misshapen(&self, name: &str, shape: &[usize]) -> PackError {
        let reason =
            format!("head.safetensors: {name} has the shape {shape:?}, which does not fit");
        self.pack.malformed(reason)
    }
}

/// A vector of length 1 in the same direction; zero stays zero.
fn unit(mut x: Vec<f32>) -> Vec<f32> {
    let length = (x.iter().map(|x| x * x).sum::<f32>() + 1e-12).sqrt();
    x.iter_mut().for_each(|x| *x /= length);
    x
}

/// `phi(x) = x / (1 + |x|^2)`, at most 1/2 long (equation 2).
fn bounded(mut x: Vec<f32>) -> Vec<f32> {
    let divisor = 1.0 + x.iter().map(|x| x * x).sum::<f32>();
    x.iter_mut().for_each(|x| *x /= divisor);
    x
}
