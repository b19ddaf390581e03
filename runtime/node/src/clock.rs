//! A node's clock in the hub's time.
//!
//! A node stamps its frames with its own count of samples; the hub knows when they
//! arrived. The lag between the two is the offset of the clocks plus a delay that
//! is never below that of an idle link, so the smallest lag of each second tells
//! the offset, and how those change from second to second tells the drift (a line
//! through the minima of a minute, by least squares).
//!
//! Limits: the idle link's delay itself (a block and its bytes on the wire, some
//! 10 ms) cannot be told from the offset; it is nearly the same for nodes on equal
//! links, so it hardly matters among them.

use earwitness_api::node::NODE_RATE_HZ;
use std::collections::VecDeque;

/// Seconds that the line is fitted to.
const WINDOWS: usize = 60;
/// Seconds from which on a drift is told at all.
const MIN_WINDOWS: usize = 10;
/// A crystal is within 100 ppm; nothing is believed beyond this.
const MAX_DRIFT: f64 = 1e-3;

const US_PER_SAMPLE: f64 = 1e6 / NODE_RATE_HZ as f64;

/// The smallest lag of one second of the node's time.
#[derive(Clone, Copy)]
struct Window {
    second: u64,
    node_us: f64,
    lag_us: f64,
}

/// Offset and drift of one node's clock.
#[derive(Default)]
pub struct NodeClock {
    windows: VecDeque<Window>,
    /// The line of lags: its value at `origin_us` of the node's time, and its slope.
    origin_us: f64,
    lag_us: f64,
    drift: f64,
}

impl NodeClock {
    /// Takes notice that the hub got everything before `sample` at `arrival_us`.
    pub fn observe(&mut self, sample: u64, arrival_us: u64) {
        let node_us = sample as f64 * US_PER_SAMPLE;
        let seen = Window {
            second: sample / u64::from(NODE_RATE_HZ),
            node_us,
            lag_us: arrival_us as f64 - node_us,
        };
        match self.windows.back_mut() {
            Some(window) if window.second == seen.second => {
                if seen.lag_us >= window.lag_us {
                    return;
                }
                *window = seen;
            }
            _ => {
                if self.windows.len() == WINDOWS {
                    self.windows.pop_front();
                }
                self.windows.push_back(seen);
            }
        }
        self.fit();
    }

    /// The hub's time, in microseconds, at which the node heard `sample`; `None`
    /// before anything was observed.
    pub fn hub_us(&self, sample: f64) -> Option<f64> {
        self.windows.front()?;
        let node_us = sample * US_PER_SAMPLE;
        Some(node_us + self.lag_us + self.drift * (node_us - self.origin_us))
    }

    /// The node's sample at a time of the hub; `None` before anything was observed.
    pub fn sample_at(&self, hub_us: f64) -> Option<f64> {
        self.windows.front()?;
        let since_origin = (hub_us - self.lag_us - self.origin_us) / (1.0 + self.drift);
        Some((self.origin_us + since_origin) / US_PER_SAMPLE)
    }

    /// How much slower the node's clock runs than the hub's, in parts per million.
    pub fn drift_ppm(&self) -> f64 {
        self.drift * 1e6
    }

    /// Forgets everything: the node began to count anew.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    fn fit(&mut self) {
        let count = self.windows.len() as f64;
        let mean = |of: fn(&Window) -> f64| self.windows.iter().map(of).sum::<f64>() / count;
        if self.windows.len() < MIN_WINDOWS {
            // Too short for a slope: the luckiest frame of all tells the offset.
            let lags = self.windows.iter().map(|window| window.lag_us);
            self.lag_us = lags.fold(f64::INFINITY, f64::min);
            self.drift = 0.0;
            return;
        }
        let (origin, lag) = (mean(|w| w.node_us), mean(|w| w.lag_us));
        let (mut covariance, mut variance) = (0.0, 0.0);
        for window in &self.windows {
            let x = window.node_us - origin;
            covariance += x * (window.lag_us - lag);
            variance += x * x;
        }
        self.origin_us = origin;
        self.lag_us = lag;
        self.drift = (covariance / variance).clamp(-MAX_DRIFT, MAX_DRIFT);
    }
}
