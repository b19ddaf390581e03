//! A cheap gate: is this louder than the noise around it?
//!
//! It stands in front of a neural detector and keeps it asleep while nothing
//! happens, so it errs towards open. It costs a few multiplications a sample,
//! allocates nothing and needs no FFT. Samples pass a high-pass filter, which
//! takes away DC offset and the rumble of a car; the mean power of each 10 ms
//! is smoothed; and the noise floor is the smallest smoothed power of the last
//! two seconds (minimum statistics: R. Martin, "Noise power spectral density
//! estimation based on optimal smoothing and minimum statistics", IEEE Trans.
//! Speech and Audio Processing 9(5), 2001, without the bias correction, which
//! the margin contains).
//!
//! Limits: in loud noise the gate is open for the first two seconds, and for
//! two seconds after the noise got louder; a steady sound of more than two
//! seconds (an engine, a held note) becomes the floor. It opens some frames
//! after a soft onset: who cuts sound by it should keep the 100 ms before.
//! Samples beyond [-1, 1] are clipped and NaN counts as silence, so that no
//! input can spoil what follows it.

/// Samples that one decision is about: 10 ms at 16 kHz.
pub const VAD_FRAME: usize = 160;

/// Feedback of a high-pass stage, -3 dB at about 280 Hz: the voice's harmonics
/// and formants above it tell more than what rumbles below.
const HIGH_PASS: f32 = 0.9;
/// Weight of the newest frame in the smoothed power.
const SMOOTHING: f32 = 0.3;
/// The floor's memory: this many parts ...
const PARTS: usize = 8;
/// ... of this many frames each.
const PART_FRAMES: u32 = 25;

/// How sensitive the gate is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnergyVadOptions {
    /// How far above the noise floor speech must be, in dB.
    pub margin_db: f32,
    /// The lowest noise floor assumed, in dB relative to a power of 1 (a full
    /// scale square wave).
    pub quiet_dbfs: f32,
    /// How long the gate stays open after the last loud frame, in frames of
    /// 10 ms.
    pub hangover_frames: u32,
}

impl Default for EnergyVadOptions {
    /// 6 dB over the floor, floor of -70 dBFS or more, 500 ms of hangover.
    fn default() -> Self {
        Self {
            margin_db: 6.0,
            quiet_dbfs: -70.0,
            hangover_frames: 50,
        }
    }
}

/// The gate.
pub struct EnergyVad {
    margin: f32,
    hangover_frames: u32,
    quiet: f32,
    filters: [HighPass; 2],
    frame_energy: f32,
    frame_filled: usize,
    power: f32,
    floor: NoiseFloor,
    frames_left_open: u32,
}

impl EnergyVad {
    /// A gate that has heard nothing yet.
    pub fn new(options: EnergyVadOptions) -> Self {
        let quiet = power(options.quiet_dbfs);
        Self {
            margin: power(options.margin_db),
            hangover_frames: options.hangover_frames,
            quiet,
            filters: [HighPass::default(); 2],
            frame_energy: 0.0,
            frame_filled: 0,
            power: 0.0,
            floor: NoiseFloor::new(quiet),
            frames_left_open: 0,
        }
    }

    /// Takes samples and hands `emit` one decision for each 10 ms that they
    /// complete: whether there may be speech in them. The same input gives the
    /// same decisions however it is cut.
    pub fn push(&mut self, samples: &[f32], mut emit: impl FnMut(bool)) {
        for &sample in samples {
            let filtered = self
                .filters
                .iter_mut()
                .fold(bounded(sample), |x, filter| filter.next(x));
            self.frame_energy += filtered * filtered;
            self.frame_filled += 1;
            if self.frame_filled == VAD_FRAME {
                emit(self.decide(self.frame_energy / VAD_FRAME as f32));
                self.frame_energy = 0.0;
                self.frame_filled = 0;
            }
        }
    }

    fn decide(&mut self, frame_power: f32) -> bool {
        self.power += SMOOTHING * (frame_power - self.power);
        let floor = self.floor.update(self.power).max(self.quiet);
        if self.power > floor * self.margin {
            self.frames_left_open = self.hangover_frames;
            return true;
        }
        let open = self.frames_left_open > 0;
        self.frames_left_open = self.frames_left_open.saturating_sub(1);
        open
    }
}

/// A power from dB.
fn power(db: f32) -> f32 {
    libm::powf(10.0, db / 10.0)
}

/// Within full scale, whatever came in.
fn bounded(sample: f32) -> f32 {
    if sample.is_nan() {
        0.0
    } else {
        sample.clamp(-1.0, 1.0)
    }
}

/// One-pole high-pass: `y[n] = a (y[n-1] + x[n] - x[n-1])`.
#[derive(Clone, Copy, Default)]
struct HighPass {
    x: f32,
    y: f32,
}

impl HighPass {
    fn next(&mut self, x: f32) -> f32 {
        let y = HIGH_PASS * (self.y + x - self.x);
        // Numbers that fade out in silence must not become subnormal: those
        // are slow on many processors.
        self.y = if y.abs() < f32::MIN_POSITIVE { 0.0 } else { y };
        self.x = x;
        self.y
    }
}

/// Smallest power of the last two seconds, kept as the minima of eight parts.
struct NoiseFloor {
    minima: [f32; PARTS],
    part: usize,
    frames: u32,
}

impl NoiseFloor {
    fn new(power: f32) -> Self {
        Self {
            minima: [power; PARTS],
            part: 0,
            frames: 0,
        }
    }

    fn update(&mut self, power: f32) -> f32 {
        if self.frames == PART_FRAMES {
            self.part = (self.part + 1) % PARTS;
            self.minima[self.part] = power;
            self.frames = 0;
        }
        self.frames += 1;
        self.minima[self.part] = self.minima[self.part].min(power);
        self.minima.iter().copied().fold(f32::INFINITY, f32::min)
    }
}
