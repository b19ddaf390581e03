//! The last two seconds of one node by its own clock, and how loud it is over its
//! noise.

use earwitness_api::node::{BLOCK_SAMPLES, NODE_RATE_HZ};

/// Samples kept: two seconds.
const KEPT: usize = 2 * NODE_RATE_HZ as usize;
/// Weight of the newest block in the level.
const LEVEL_WEIGHT: f32 = 0.1;
/// Weight of the newest block in the noise: it changes slowly.
const NOISE_WEIGHT: f32 = 0.01;
/// Power of rounding to 16 bits: no microphone is quieter.
const QUIETEST: f32 = 1.0 / 12.0;

/// What one node heard lately.
pub struct Timeline {
    /// Sample n is at n modulo the length; what was not heard is silence.
    ring: Box<[i16]>,
    /// One more than the last sample that was heard.
    end: u64,
    /// Which of the kept blocks were heard, also in part, by their number modulo the
    /// length. Nodes send whole blocks.
    heard: Box<[u64]>,
    level: f32,
    noise: Option<f32>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            ring: vec![0; KEPT].into(),
            end: 0,
            heard: vec![u64::MAX; KEPT / BLOCK_SAMPLES].into(),
            level: QUIETEST,
            noise: None,
        }
    }
}

impl Timeline {
    /// Puts samples in their place. Those before the kept two seconds are dropped.
    pub fn put(&mut self, sample: u64, speech: bool, samples: &[i16]) {
        let samples = &samples[..samples.len().min(KEPT)];
        let end = sample + samples.len() as u64;
        if end + KEPT as u64 <= self.end {
            return;
        }
        self.silence_up_to(sample);
        for (n, &value) in (sample..).zip(samples) {
            self.ring[(n % KEPT as u64) as usize] = value;
            self.mark(n / BLOCK_SAMPLES as u64);
        }
        self.end = self.end.max(end);
        self.measure(speech, samples);
    }

    /// Writes the samples from `sample` on into `out`, silence where nothing was
    /// heard. Returns how many were heard.
    pub fn get(&self, sample: i64, out: &mut [i16]) -> usize {
        let mut heard = 0;
        for (n, out) in (sample..).zip(out) {
            let kept = u64::try_from(n).ok().filter(|&n| self.is_heard(n));
            heard += usize::from(kept.is_some());
            *out = kept.map_or(0, |n| self.ring[(n % KEPT as u64) as usize]);
        }
        heard
    }

    /// How far the level of the last 100 ms is above the noise, in dB.
    pub fn snr_db(&self) -> f32 {
        10.0 * (self.level / self.noise.unwrap_or(self.level)).log10()
    }

    fn is_heard(&self, n: u64) -> bool {
        let block = n / BLOCK_SAMPLES as u64;
        n < self.end && self.heard[self.slot(block)] == block
    }

    fn mark(&mut self, block: u64) {
        let slot = self.slot(block);
        self.heard[slot] = block;
    }

    fn slot(&self, block: u64) -> usize {
        (block % self.heard.len() as u64) as usize
    }

    /// What lies between the end and `sample` must not show what was there two
    /// seconds ago.
    fn silence_up_to(&mut self, sample: u64) {
        let from = self.end.max(sample.saturating_sub(KEPT as u64));
        for n in from..sample {
            self.ring[(n % KEPT as u64) as usize] = 0;
        }
    }

    fn measure(&mut self, speech: bool, samples: &[i16]) {
        let square = |&x: &i16| f32::from(x) * f32::from(x);
        let power = samples.iter().map(square).sum::<f32>() / samples.len().max(1) as f32;
        let power = power.max(QUIETEST);
        self.level += LEVEL_WEIGHT * (power - self.level);
        if !speech {
            let noise = self.noise.get_or_insert(power);
            *noise += NOISE_WEIGHT * (power - *noise);
        }
    }
}
