//! Several nodes with clocks of their own, on links that delay and lose.
#![allow(clippy::unwrap_used)]

use earwitness_api::frame;
use earwitness_api::node::{BLOCK_SAMPLES, NODE_VERSION, NodeFrame, Payload};
use earwitness_node::array::{MAX_NODES, NodeArray, NodeIndex, TooManyNodes};
use earwitness_node::clock::NodeClock;
use earwitness_node::timeline::Timeline;
use std::f32::consts::TAU;

const SECOND_US: u64 = 1_000_000;

/// Numbers that look random, the same every time.
struct Dice(u64);

impl Dice {
    /// A number below `bound`.
    fn roll(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// A node in the world: when it was switched on, how fast its clock runs, how loud
/// the speaker is where it stands.
struct World {
    on_us: u64,
    ppm: f64,
    level: f32,
    noise: u64,
    sequence: u32,
    dice: Dice,
}

impl World {
    fn new(seed: u64, on_us: u64, ppm: f64, level: f32, noise: u64) -> Self {
        Self {
            on_us,
            ppm,
            level,
            noise,
            sequence: 0,
            dice: Dice(seed),
        }
    }

    /// True time, in microseconds, of a sample.
    fn time_us(&self, sample: u64) -> f64 {
        self.on_us as f64 + sample as f64 * 62.5 / (1.0 + self.ppm * 1e-6)
    }

    /// The next block as a frame, with the time at which its last sample was heard.
    fn frame(&mut self, speech: bool) -> (Vec<u8>, u64) {
        let first = u64::from(self.sequence) * BLOCK_SAMPLES as u64;
        let sample = |i| {
            let noise = self.dice.roll(2 * self.noise + 1) as f32 - self.noise as f32;
            let said = if speech {
                self.level * voice(self.time_us(i))
            } else {
                0.0
            };
            (said + noise) as i16
        };
        let samples: Vec<i16> = (first..first + BLOCK_SAMPLES as u64).map(sample).collect();
        let pcm: Vec<u8> = samples
            .iter()
            .flat_map(|sample| sample.to_le_bytes())
            .collect();
        let frame = NodeFrame {
            version: NODE_VERSION,
            node: 1,
            sequence: self.sequence,
            sample: first,
            speech,
            payload: Payload::Pcm(&pcm),
        };
        self.sequence += 1;
        let mut buffer = [0; 1024];
        let bytes = frame::encode(&frame, &mut buffer).unwrap().to_vec();
        (bytes, self.time_us(first + BLOCK_SAMPLES as u64) as u64)
    }
}

/// What is said at a time: a tone whose pitch never repeats within seconds.
fn voice(time_us: f64) -> f32 {
    let seconds = (time_us * 1e-6) as f32;
    (TAU * 200.0 * seconds).sin() + (TAU * 271.0 * seconds).sin()
}

/// Plays `seconds` of the world to an array; `speech` says when somebody speaks.
/// Frames are held up for up to 30 ms, one in `loss` is lost.
fn play(worlds: &mut [World], seconds: u64, loss: u64, speech: fn(u64) -> bool) -> Played {
    let mut array = NodeArray::new(200);
    let nodes: Vec<NodeIndex> = worlds.iter().map(|_| array.add().unwrap()).collect();
    let mut arrivals = Vec::new();
    for (world, &node) in worlds.iter_mut().zip(&nodes) {
        let (mut last, mut arrival) = (0, 0);
        while last < seconds * SECOND_US {
            let (bytes, heard) = world.frame(speech(last));
            last = heard;
            // A link is a queue: nothing overtakes what was held up.
            arrival = arrival.max(heard + 2_000 + world.dice.roll(30_000));
            if loss == 0 || world.dice.roll(loss) > 0 {
                arrivals.push((arrival, node, bytes));
            }
        }
    }
    arrivals.sort_by_key(|(time, ..)| *time);
    let mut played = Played {
        array,
        nodes,
        samples: Vec::new(),
        chosen: Vec::new(),
    };
    for (time, node, bytes) in arrivals {
        played.array.feed(node, &bytes, time);
        let before = played.samples.len();
        played.array.pull(time, &mut played.samples);
        let blocks = (played.samples.len() - before) / BLOCK_SAMPLES;
        let chosen = played.array.chosen();
        played.chosen.extend(std::iter::repeat_n(chosen, blocks));
    }
    played
}

struct Played {
    array: NodeArray,
    nodes: Vec<NodeIndex>,
    samples: Vec<f32>,
    chosen: Vec<NodeIndex>,
}

fn always(_: u64) -> bool {
    true
}

#[test]
fn offset_and_drift_are_found_under_jitter() {
    for ppm in [-80.0, 0.0, 35.0] {
        let world = World::new(1, 3_210_000, ppm, 0.0, 0);
        let (mut clock, mut dice) = (NodeClock::default(), Dice(2));
        for block in 1..6_000 {
            let sample = block * BLOCK_SAMPLES as u64;
            clock.observe(
                sample,
                world.time_us(sample) as u64 + 3_000 + dice.roll(20_000),
            );
        }
        assert!(
            (clock.drift_ppm() + ppm).abs() < 5.0,
            "{} for {ppm}",
            clock.drift_ppm()
        );
        let sample = 950_000;
        let error = clock.hub_us(sample as f64).unwrap() - world.time_us(sample) - 3_000.0;
        assert!(error.abs() < 1_000.0, "{error} us at {ppm} ppm");
        let back = clock.sample_at(clock.hub_us(1_234.5).unwrap()).unwrap();
        assert!((back - 1_234.5).abs() < 1e-3);
    }
}

#[test]
fn a_clock_that_heard_nothing_tells_nothing() {
    let clock = NodeClock::default();
    assert_eq!((clock.hub_us(1.0), clock.sample_at(1.0)), (None, None));
}

#[test]
fn nodes_that_were_switched_on_at_different_times_come_to_one_time_axis() {
    let mut worlds = [
        World::new(1, 0, 40.0, 4_000.0, 5),
        World::new(2, 1_700_000, -40.0, 4_000.0, 5),
    ];
    let played = play(&mut worlds, 30, 0, always);
    // Where both are heard, either says the same: what comes out of the array is what
    // was said, wherever it came from, some milliseconds late.
    let begins = played.samples.len() - 16_000;
    let tail = &played.samples[begins..];
    let said = |late_us: f64| -> f32 {
        let time = |i: usize| (begins + i) as f64 * 62.5 - late_us;
        let products = tail.iter().enumerate().map(|(i, x)| x * voice(time(i)));
        products.sum()
    };
    let best = (0..60)
        .map(|step| said(f64::from(step) * 250.0))
        .fold(0.0, f32::max);
    let energy: f32 = tail.iter().map(|x| x * x).sum();
    // The voice's own power is one.
    let correlation = best / (energy * tail.len() as f32).sqrt();
    assert!(correlation > 0.9, "{correlation}");
    let drifts = played
        .nodes
        .iter()
        .map(|&node| played.array.drift_ppm(node));
    for (found, ppm) in drifts.zip([40.0, -40.0]) {
        assert!((found + ppm).abs() < 15.0, "{found} for {ppm}");
    }
}

#[test]
fn the_closer_microphone_is_chosen_and_kept() {
    // The first is louder, but so is its noise.
    let mut worlds = [
        World::new(1, 0, 0.0, 6_000.0, 3_000),
        World::new(2, 0, 0.0, 2_000.0, 20),
    ];
    let speaks = |time: u64| time / SECOND_US % 2 == 1;
    let played = play(&mut worlds, 10, 0, speaks);
    let settled = &played.chosen[200..];
    assert!(settled.iter().all(|&chosen| chosen == played.nodes[1]));
}

#[test]
fn a_lost_frame_of_one_node_is_filled_from_another() {
    let quiet = || {
        [
            World::new(1, 0, 0.0, 4_000.0, 5),
            World::new(2, 0, 0.0, 4_000.0, 5),
        ]
    };
    let alone = play(&mut quiet()[..1], 10, 20, always);
    let both = play(&mut quiet(), 10, 20, always);
    assert!(alone.array.counters(alone.nodes[0]).lost_frames > 20);
    assert!(alone.array.silent_samples() > 1_600);
    assert!(both.array.silent_samples() < alone.array.silent_samples() / 4);
    assert_eq!(both.array.counters(both.nodes[0]).refused, 0);
}

#[test]
fn a_node_that_restarts_is_heard_again() {
    let mut array = NodeArray::new(50);
    let node = array.add().unwrap();
    let mut samples = Vec::new();
    for on_us in [0, 7 * SECOND_US] {
        let mut world = World::new(1, on_us, 0.0, 4_000.0, 5);
        for _ in 0..300 {
            let (bytes, heard) = world.frame(true);
            array.feed(node, &bytes, heard + 2_000);
            samples.clear();
            array.pull(heard + 2_000, &mut samples);
        }
        assert!(
            samples.iter().any(|x| x.abs() > 0.01),
            "switched on at {on_us}"
        );
    }
    assert_eq!(array.counters(node).restarts, 1);
}

#[test]
fn without_nodes_there_is_silence() {
    let mut array = NodeArray::new(100);
    let mut samples = Vec::new();
    for now in (0..=SECOND_US).step_by(20_000) {
        array.pull(now, &mut samples);
    }
    assert!(samples.iter().all(|&x| x == 0.0));
    assert_eq!(samples.len(), 90 * BLOCK_SAMPLES);
}

#[test]
fn only_so_many_nodes_are_taken() {
    let mut array = NodeArray::new(100);
    for _ in 0..MAX_NODES {
        array.add().unwrap();
    }
    assert_eq!(array.add(), Err(TooManyNodes));
}

#[test]
fn a_timeline_forgets_after_two_seconds_and_shows_no_old_sound() {
    let mut timeline = Timeline::default();
    let mut block = [0; BLOCK_SAMPLES];
    timeline.put(0, true, &[7; BLOCK_SAMPLES]);
    assert_eq!(timeline.get(0, &mut block), 160);
    assert_eq!(block, [7; BLOCK_SAMPLES]);
    // Two seconds on, in the same place of the ring, the second half of a block.
    timeline.put(32_080, true, &[9; 80]);
    assert_eq!(timeline.get(0, &mut block), 0);
    timeline.get(32_000, &mut block);
    assert_eq!((block[0], block[79], block[80]), (0, 0, 9));
    // Too old to be kept.
    timeline.put(10, true, &[5; 8]);
    assert_eq!(timeline.get(10, &mut [0; 8]), 0);
}
