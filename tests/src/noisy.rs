//! The same conversation in a worse place: a room that echoes, and other people
//! talking or a car around it, 10 dB below the speech. And sounds without a word.
//!
//! Everything follows from a seed and the recordings themselves, so the noisy
//! copy of a data set need not be kept.

use std::f32::consts::TAU;

use earwitness::capture::SAMPLE_RATE_HZ;

/// How far the noise lies below the speech, in dB.
const SNR_DB: f32 = 10.0;
/// Time in which an echo falls by 60 dB, in seconds.
const REVERBERATION_S: f32 = 0.3;
/// Echoes of a sound.
const ECHOES: usize = 150;
/// Energy of all echoes together, as a part of the direct sound's.
const ECHO_ENERGY: f32 = 0.25;
/// Voices that talk at once in a babble.
const VOICES: usize = 6;

/// A worse place.
pub struct Surroundings {
    seed: u64,
    babble: Vec<f32>,
}

impl Surroundings {
    /// Surroundings in which the speakers of these recordings babble.
    pub fn new(seed: u64, recordings: &[Vec<f32>]) -> Self {
        let length = recordings.iter().map(Vec::len).max().unwrap_or(0) * 2;
        let mut babble = vec![0.0; length];
        let mut chance = Chance::new(seed, 0);
        for _ in 0..VOICES {
            let mut at = 0;
            while at < length && !recordings.is_empty() {
                let voice = &recordings[chance.below(recordings.len())];
                add(&mut babble[at..], voice, 1.0 / level(voice).max(1e-6));
                at += voice.len().max(1);
            }
        }
        Self { seed, babble }
    }

    /// Recording number `index` as it sounds there: babble around every other one,
    /// a car around the rest, echoes in all.
    pub fn around(&self, index: usize, speech: &[f32]) -> Vec<f32> {
        let mut chance = Chance::new(self.seed, index as u64 + 1);
        let mut sound = with_echoes(speech, &mut chance);
        let noise = if index.is_multiple_of(2) && !self.babble.is_empty() {
            let start = chance.below(self.babble.len());
            let endless = self.babble.iter().cycle().skip(start);
            endless.take(speech.len()).copied().collect()
        } else {
            car(speech.len(), &mut chance)
        };
        let gain = level(&sound) / level(&noise).max(1e-6) * 10_f32.powf(-SNR_DB / 20.0);
        add(&mut sound, &noise, gain);
        let peak = sound
            .iter()
            .fold(1.0_f32, |peak, sample| peak.max(sample.abs()));
        sound.iter_mut().for_each(|sample| *sample /= peak);
        sound
    }
}

/// A sound as a function of time in seconds and of chance.
type Wave = Box<dyn FnMut(f32, &mut Chance) -> f32>;

/// Sounds of so many seconds in which nobody speaks, each with its name.
pub fn wordless(seed: u64, seconds: usize) -> Vec<(&'static str, Vec<f32>)> {
    let length = seconds * SAMPLE_RATE_HZ as usize;
    let mut chance = Chance::new(seed, 0);
    let mut at_level = |level: f32, mut value: Wave| {
        let sound = (0..length).map(|at| value(at as f32 / SAMPLE_RATE_HZ as f32, &mut chance));
        let sound: Vec<f32> = sound.collect();
        let peak = sound
            .iter()
            .fold(1e-6_f32, |peak, sample| peak.max(sample.abs()));
        sound.iter().map(|sample| sample * level / peak).collect()
    };
    let tone = |hertz: f32| move |time: f32, _: &mut Chance| (TAU * hertz * time).sin();
    let hum = |time: f32, _: &mut Chance| {
        (1..12)
            .map(|k| (TAU * 50.0 * k as f32 * time).sin() / k as f32)
            .sum::<f32>()
    };
    let chord = |time: f32, _: &mut Chance| {
        let sway = time + 0.002 * (TAU * 5.0 * time).sin() / TAU;
        let voices = [220.0, 277.0, 330.0_f32];
        voices
            .iter()
            .map(|hertz| (TAU * hertz * sway).sin())
            .sum::<f32>()
    };
    let tune = |time: f32, _: &mut Chance| {
        let hertz = [262.0, 330.0, 392.0, 523.0, 440.0, 349.0][(time * 2.0) as usize % 6];
        let fade = (-(time * 2.0).fract() * 3.0).exp();
        (1..5)
            .map(|k| (TAU * hertz * k as f32 * time).sin() / k as f32)
            .sum::<f32>()
            * fade
    };
    let siren = |time: f32, _: &mut Chance| (TAU * 600.0 * time + 200.0 * (3.0 * time).sin()).sin();
    let gusts = |time: f32, chance: &mut Chance| chance.normal() * (1.0 + (TAU * time).sin());
    let knocks =
        |time: f32, chance: &mut Chance| chance.normal() * (-(time * 1.3).fract() * 60.0).exp();
    let mut sounds = vec![
        ("silence", vec![0.0; length]),
        (
            "faint hiss",
            at_level(0.01, Box::new(|_, chance| chance.normal())),
        ),
        (
            "loud hiss",
            at_level(0.5, Box::new(|_, chance| chance.normal())),
        ),
        ("tone", at_level(0.3, Box::new(tone(440.0)))),
        ("low tone", at_level(0.3, Box::new(tone(110.0)))),
        ("hum", at_level(0.2, Box::new(hum))),
        ("chord", at_level(0.4, Box::new(chord))),
        ("tune", at_level(0.4, Box::new(tune))),
        ("siren", at_level(0.3, Box::new(siren))),
        ("gusts", at_level(0.4, Box::new(gusts))),
        ("knocks", at_level(0.8, Box::new(knocks))),
    ];
    let mut drive = car(length, &mut chance);
    drive.iter_mut().for_each(|sample| *sample *= 0.2);
    sounds.push(("car", drive));
    sounds
}

/// Root mean square.
fn level(sound: &[f32]) -> f32 {
    let energy: f32 = sound.iter().map(|sample| sample * sample).sum();
    (energy / sound.len().max(1) as f32).sqrt()
}

fn add(sum: &mut [f32], sound: &[f32], gain: f32) {
    for (sum, sample) in sum.iter_mut().zip(sound) {
        *sum += gain * sample;
    }
}

/// The direct sound and echoes that come at random and fade exponentially.
fn with_echoes(sound: &[f32], chance: &mut Chance) -> Vec<f32> {
    let tail = (REVERBERATION_S * SAMPLE_RATE_HZ as f32) as usize;
    let decay = -(1000_f32.ln()) / tail as f32;
    let echoes: Vec<(usize, f32)> = (0..ECHOES)
        .map(|_| {
            let delay = 1 + chance.below(tail);
            (delay, chance.normal() * (decay * delay as f32).exp())
        })
        .collect();
    let energy: f32 = echoes.iter().map(|(_, gain)| gain * gain).sum();
    let scale = (ECHO_ENERGY / energy.max(1e-9)).sqrt();
    let mut heard = sound.to_vec();
    for (delay, gain) in echoes {
        if delay < sound.len() {
            add(&mut heard[delay..], sound, gain * scale);
        }
    }
    heard
}

/// The inside of a moving car: a rumble that falls with frequency, and the
/// engine's harmonics.
fn car(length: usize, chance: &mut Chance) -> Vec<f32> {
    let turns = 35.0 + 15.0 * chance.unit();
    let mut rumble = 0.0;
    (0..length)
        .map(|at| {
            rumble = 0.98 * rumble + 0.1 * chance.normal();
            let time = at as f32 / SAMPLE_RATE_HZ as f32;
            let harmonics = (1..=6).map(|k| (TAU * turns * k as f32 * time).sin() / k as f32);
            rumble + 0.1 * harmonics.sum::<f32>() + 0.05 * chance.normal()
        })
        .collect()
}

/// Chance that a seed decides (SplitMix64).
struct Chance(u64);

impl Chance {
    fn new(seed: u64, stream: u64) -> Self {
        Self(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1.
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 24) as f32
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    /// About normal: the sum of twelve uniform numbers less six.
    fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.unit()).sum::<f32>() - 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speech() -> Vec<f32> {
        (0..16_000)
            .map(|at| 0.3 * (at as f32 * 0.2).sin())
            .collect()
    }

    #[test]
    fn the_seed_and_the_place_decide() {
        let here = Surroundings::new(1, &[speech()]);
        let again = Surroundings::new(1, &[speech()]);
        let there = Surroundings::new(2, &[speech()]);
        for index in 0..2 {
            let sound = here.around(index, &speech());
            assert_eq!(sound, again.around(index, &speech()));
            assert_ne!(sound, there.around(index, &speech()));
            assert_ne!(sound, here.around(index + 2, &speech()));
        }
    }

    #[test]
    fn the_noise_is_as_loud_as_stated() {
        let place = Surroundings::new(3, &[]);
        let noise = place.around(1, &speech());
        let echoed = with_echoes(&speech(), &mut Chance::new(3, 2));
        let rest: Vec<f32> = noise.iter().zip(&echoed).map(|(a, b)| a - b).collect();
        let decibels = 20.0 * (level(&echoed) / level(&rest)).log10();
        assert!((decibels - SNR_DB).abs() < 0.5, "{decibels} dB");
    }

    #[test]
    fn silence_and_nothing_do_no_harm() {
        let place = Surroundings::new(4, &[vec![], vec![0.0; 10]]);
        assert!(place.around(0, &[]).is_empty());
        assert!(
            place
                .around(1, &[0.0; 100])
                .iter()
                .all(|sample| sample.is_finite())
        );
    }
}
