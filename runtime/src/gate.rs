//! Keeps the voice-activity model asleep while nothing happens.
//!
//! In front of the model stands an energy detector that costs a few
//! multiplications a sample. When it has heard nothing above the background, and
//! the model no speech, for half a second, the model is no longer asked: its
//! score is taken for 0. At the first sound above the background it hears the
//! last windows that it missed, so that its state is what the moment asks for,
//! and then goes on. While the model hears speech, it is never put to sleep.

use std::collections::VecDeque;

use earwitness_dsp::vad::{EnergyVad, EnergyVadOptions};
use earwitness_models::vad::SpeechDetector;

use crate::segment::SpeechScorer;

/// A score below which the model hears no speech.
const NO_SPEECH: f32 = 0.2;
/// Windows without sound or speech before the model sleeps.
const AWAKE: u32 = 16;
/// Missed windows that it hears when it wakes.
const MISSED: usize = 16;

/// Sensitive rather than economical: what is not let through is not heard.
const OPTIONS: EnergyVadOptions = EnergyVadOptions {
    margin_db: 3.0,
    quiet_dbfs: -70.0,
    hangover_frames: 50,
};

/// The speech detector behind its gate.
pub type GatedDetector = Gated<SpeechDetector>;

/// A scorer that sleeps while nothing happens.
pub struct Gated<S> {
    scorer: S,
    gate: EnergyVad,
    idle: u32,
    missed: VecDeque<Vec<f32>>,
}

impl<S> Gated<S> {
    /// At the start of a stream.
    pub fn new(scorer: S) -> Self {
        Self {
            scorer,
            gate: EnergyVad::new(OPTIONS),
            idle: 0,
            missed: VecDeque::with_capacity(MISSED + 1),
        }
    }
}

impl<S: SpeechScorer> SpeechScorer for Gated<S> {
    type Error = S::Error;

    fn score(&mut self, window: &[f32]) -> Result<f32, S::Error> {
        let mut sound = false;
        self.gate.push(window, |open| sound |= open);
        if !sound && self.idle >= AWAKE {
            self.missed.push_back(window.to_vec());
            if self.missed.len() > MISSED {
                self.missed.pop_front();
            }
            return Ok(0.0);
        }
        for window in self.missed.drain(..) {
            self.scorer.score(&window)?;
        }
        let score = self.scorer.score(window)?;
        let idle = !sound && score < NO_SPEECH;
        self.idle = if idle { self.idle + 1 } else { 0 };
        Ok(score)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const WINDOW: usize = SpeechDetector::WINDOW;

    /// Notes the first sample of each window that it is asked about.
    #[derive(Default)]
    struct Asked(Vec<f32>);

    impl SpeechScorer for Asked {
        type Error = Infallible;

        fn score(&mut self, window: &[f32]) -> Result<f32, Infallible> {
            self.0.push(window[0].abs());
            Ok(if window[0].abs() > 0.1 { 0.9 } else { 0.0 })
        }
    }

    fn asked(levels: impl IntoIterator<Item = f32>) -> Vec<f32> {
        let mut gated = Gated::new(Asked::default());
        for level in levels {
            let window: Vec<f32> = (0..WINDOW)
                .map(|at| if at % 2 == 0 { level } else { -level })
                .collect();
            gated.score(&window).unwrap();
        }
        gated.scorer.0
    }

    #[test]
    fn silence_puts_the_model_to_sleep() {
        assert_eq!(asked([0.0; 1000]).len(), AWAKE as usize);
    }

    #[test]
    fn sound_wakes_it_with_what_it_missed_last() {
        let levels = [0.0; 100].into_iter().chain([0.5; 3]);
        let asked = asked(levels);
        assert_eq!(asked.len(), AWAKE as usize + MISSED + 3);
        assert!(asked[asked.len() - 3..].iter().all(|&level| level == 0.5));
    }

    #[test]
    fn a_steady_noise_becomes_the_background() {
        let mut gated = Gated::new(Asked::default());
        let mut state = 1_u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            0.05 * ((state >> 8) as f32 / (1 << 23) as f32 - 1.0)
        };
        let mut asked = || {
            let window: Vec<f32> = (0..WINDOW).map(|_| noise()).collect();
            let before = gated.scorer.0.len();
            gated.score(&window).unwrap();
            gated.scorer.0.len() - before
        };
        // The floor is known after two seconds, the model asleep a second later.
        let first: usize = (0..100).map(|_| asked()).sum();
        let later: usize = (0..1000).map(|_| asked()).sum();
        assert!(first > 60 && later == 0, "{first}, then {later}");
    }

    #[test]
    fn a_steady_voice_is_never_put_to_sleep() {
        assert_eq!(asked([0.5; 500]).len(), 500);
    }
}
