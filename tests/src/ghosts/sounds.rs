//! Sounds, made from a seed: those of a house that are not anybody speaking, and
//! speech cut and coloured anew.

use std::f32::consts::TAU;

use earwitness::capture::SAMPLE_RATE_HZ;

const RATE: f32 = SAMPLE_RATE_HZ as f32;

/// Random numbers from a seed (splitmix64), so that every run hears the same.
pub struct Dice(u64);

impl Dice {
    /// The numbers of one seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Evenly spread over a range.
    pub fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * (self.bits() >> 40) as f32 / (1 << 24) as f32
    }

    /// A whole number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }
}

/// Samples in so many seconds.
pub fn samples(seconds: f32) -> usize {
    (seconds * RATE) as usize
}

/// White noise from -1 to 1.
pub fn noise(dice: &mut Dice, count: usize) -> Vec<f32> {
    (0..count).map(|_| dice.between(-1.0, 1.0)).collect()
}

/// A burst of breath, formed by the throat, and what rings on after it.
pub fn cough(dice: &mut Dice) -> Vec<f32> {
    let length = samples(dice.between(0.25, 0.5));
    let mut burst = noise(dice, length);
    for (index, sample) in burst.iter_mut().enumerate() {
        let time = index as f32 / length as f32;
        *sample *= (time * 30.0).min(1.0) * (-5.0 * time).exp();
    }
    let throat = dice.between(400.0, 900.0);
    let mouth = dice.between(1100.0, 2200.0);
    let mut formed = resonance(&burst, throat, 150.0);
    let upper = resonance(&burst, mouth, 300.0);
    formed.iter_mut().zip(upper).for_each(|(a, b)| *a += b);
    formed
}

/// A switch, a key, a cup on a table.
pub fn click(dice: &mut Dice) -> Vec<f32> {
    let pitch = dice.between(800.0, 5000.0);
    let decay = dice.between(150.0, 900.0);
    (0..samples(0.06))
        .map(|index| {
            let time = index as f32 / RATE;
            (TAU * pitch * time).sin() * (-decay * time).exp()
        })
        .collect()
}

/// A door: a crack, and the room's low answer.
pub fn door_slam(dice: &mut Dice) -> Vec<f32> {
    let length = samples(dice.between(0.3, 0.7));
    let decay = dice.between(6.0, 14.0);
    let mut hit = noise(dice, length);
    for (index, sample) in hit.iter_mut().enumerate() {
        *sample *= (-decay * index as f32 / RATE).exp();
    }
    let mut slam = resonance(&hit, dice.between(60.0, 180.0), 60.0);
    for (sample, crack) in slam.iter_mut().zip(&hit).take(samples(0.01)) {
        *sample += 0.5 * crack;
    }
    slam
}

/// Some chords on a plucked instrument.
pub fn music(dice: &mut Dice) -> Vec<f32> {
    let beat = samples(dice.between(0.25, 0.5));
    let mut tune = Vec::new();
    for _ in 0..2 + dice.below(5) {
        let root = 110.0 * 2_f32.powf(dice.below(18) as f32 / 12.0);
        let chord = [1.0, if dice.below(2) == 0 { 1.19 } else { 1.26 }, 1.5];
        tune.extend((0..beat).map(|index| {
            let time = index as f32 / RATE;
            let note = |pitch: f32| -> f32 {
                let partial = |n: f32| (TAU * pitch * n * time).sin() / n;
                (1..6).map(|n| partial(n as f32)).sum()
            };
            let sound: f32 = chord.iter().map(|interval| note(root * interval)).sum();
            sound * (-4.0 * time).exp() * (time * 200.0).min(1.0)
        }));
    }
    tune
}

/// The sound at a level, as root mean square in dB relative to full scale.
pub fn at_level(mut sound: Vec<f32>, dbfs: f32) -> Vec<f32> {
    let power = sound.iter().map(|x| x * x).sum::<f32>() / sound.len().max(1) as f32;
    let gain = 10_f32.powf(dbfs / 20.0) / power.sqrt().max(1e-9);
    sound
        .iter_mut()
        .for_each(|sample| *sample = (*sample * gain).clamp(-1.0, 1.0));
    sound
}

/// The sound with a soft beginning and end of 5 ms, as no cut in nature clicks.
pub fn faded(mut sound: Vec<f32>) -> Vec<f32> {
    let fade = samples(0.005).min(sound.len() / 2);
    let last = sound.len().saturating_sub(1);
    for index in 0..fade {
        let gain = index as f32 / fade as f32;
        sound[index] *= gain;
        sound[last - index] *= gain;
    }
    sound
}

/// Lets through what lies around a pitch: a resonator of two poles.
fn resonance(sound: &[f32], pitch_hz: f32, width_hz: f32) -> Vec<f32> {
    let radius = (-TAU / 2.0 * width_hz / RATE).exp();
    let turn = 2.0 * radius * (TAU * pitch_hz / RATE).cos();
    let (mut last, mut before) = (0.0, 0.0);
    sound
        .iter()
        .map(|sample| {
            let out = (1.0 - radius) * sample + turn * last - radius * radius * before;
            before = last;
            last = out;
            out
        })
        .collect()
}
