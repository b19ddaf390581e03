//! The turns that every store writes: made from a number, of the sizes that a hub
//! writes.

use earwitness_api::types::SessionId;
use earwitness_store::{Block, Key, Learned, NewRecord, Speaking};

/// Values of the blocks: MiniLM's, ECAPA-TDNN's, and the time features'.
const DIMS: [usize; 3] = [384, 192, 6];
/// Voices in the room.
const SPEAKERS: u64 = 6;

const WORDS: [&str; 16] = [
    "leave", "monday", "the", "garden", "kettle", "before", "market", "again", "window", "never",
    "blue", "paper", "seven", "would", "listen", "home",
];

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 31)).wrapping_mul(0x7fb5_d329_728e_a185);
    let x = (x ^ (x >> 27)).wrapping_mul(0x81da_def4_bc2d_d44d);
    x ^ (x >> 33)
}

fn block(n: u64, dim: usize) -> Block {
    let values = (0..dim as u64).map(|i| (mix(n * 1009 + i) % 255) as u8 as i8);
    Block {
        scale: 1.0 / 127.0,
        values: values.collect(),
    }
}

pub fn key(n: u64) -> Key {
    Key {
        semantic: block(n, DIMS[0]),
        speaker: block(n % SPEAKERS + 1_000_000_007, DIMS[1]),
        temporal: block(n, DIMS[2]),
    }
}

/// About 80 bytes of words.
pub fn text(n: u64) -> String {
    let words = (0..12 + n % 5).map(|i| WORDS[(mix(n + (i << 32)) % 16) as usize]);
    words.collect::<Vec<_>>().join(" ")
}

/// Turn `n`, counted from 0; the first turn of each voice makes its speaker.
pub fn turn(n: u64, session: SessionId) -> NewRecord {
    let learned = Learned {
        centroid: vec![0.1; DIMS[1]],
        speech_ms: 2000,
    };
    let speaker = if n < SPEAKERS {
        Speaking::New {
            score: 0.1,
            learned,
        }
    } else {
        Speaking::Known {
            id: earwitness_api::types::SpeakerId((n % SPEAKERS) as u32 + 1),
            score: 0.7,
            learned: Some(learned),
        }
    };
    NewRecord {
        session,
        start_ms: n * 4000,
        end_ms: n * 4000 + 2000,
        unix_ms: 1_772_000_000_000 + n as i64 * 4000,
        speaker,
        addressees: Vec::new(),
        text: text(n),
        attachments: Vec::new(),
        key: key(n),
    }
}
