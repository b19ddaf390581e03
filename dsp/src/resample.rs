//! From whatever a file or a sound card delivers to 16 kHz mono.
//!
//! Channels are averaged first, so that the work is that of one channel. The
//! conversion is rubato's FFT resampler with a Blackman-Harris filter. Quality,
//! as tested in `tests/resample.rs`: at the usual rates (8 to 96 kHz), tones of
//! up to 0.9 of the lower Nyquist frequency have a signal-to-noise ratio over
//! 100 dB, and tones from 8.1 kHz on leave aliases below -130 dB; at other
//! rates it is 70 dB and more up to 0.8.
//!
//! Output is aligned with the input: a click at second t of the input is at
//! second t of the output, and an input of n frames gives exactly
//! `round(n * 16000 / input_hz)` samples, however it was cut into pieces.
//!
//! Work is done in blocks of about 20 ms, and output lags input by one and a
//! half blocks at most. A block is a whole number of periods of the two rates:
//! an odd rate such as 44,101 Hz needs blocks of two seconds. That is fine for
//! files; a microphone should run at a usual rate.

use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{Fft, FixedSync, Resampler as _, WindowFunction};

/// The sample rate of everything behind capture, in Hz.
pub const OUTPUT_HZ: u32 = 16_000;
/// Lowest input rate, in Hz.
pub const MIN_INPUT_HZ: u32 = 4_000;
/// Highest input rate, in Hz.
pub const MAX_INPUT_HZ: u32 = 192_000;
/// Most input channels.
pub const MAX_CHANNELS: usize = 8;

/// Blocks are at least as many to a second.
const BLOCKS_PER_SECOND: u32 = 50;

/// Why an input cannot be resampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResampleError {
    /// No sound has this rate.
    #[error(
        "a sample rate of {0} Hz is not supported: \
         convert the sound to one from {MIN_INPUT_HZ} to {MAX_INPUT_HZ} Hz, best {OUTPUT_HZ} Hz"
    )]
    SampleRate(u32),
    /// None, or more channels than a microphone array has.
    #[error(
        "{0} channels are not supported: convert the sound to 1 to {MAX_CHANNELS} channels, best 1"
    )]
    Channels(usize),
}

/// Converts one stream of interleaved samples to 16 kHz mono.
pub struct Resampler {
    input_hz: u32,
    downmix: Downmix,
    /// `None` where the input is at 16 kHz already and passes as it is.
    converter: Option<Converter>,
}

impl Resampler {
    /// A resampler for input of `channels` channels at `input_hz`.
    ///
    /// # Errors
    /// If no sensible sound has that rate or that number of channels.
    pub fn new(input_hz: u32, channels: usize) -> Result<Self, ResampleError> {
        if !(MIN_INPUT_HZ..=MAX_INPUT_HZ).contains(&input_hz) {
            return Err(ResampleError::SampleRate(input_hz));
        }
        if !(1..=MAX_CHANNELS).contains(&channels) {
            return Err(ResampleError::Channels(channels));
        }
        Ok(Self {
            input_hz,
            downmix: Downmix::new(channels),
            converter: (input_hz != OUTPUT_HZ).then(|| Converter::new(input_hz)),
        })
    }

    /// Takes interleaved samples, any number of them, and appends what can be
    /// computed so far to `out`. A frame that is not finite counts as silence.
    pub fn push(&mut self, interleaved: &[f32], out: &mut Vec<f32>) {
        for &sample in interleaved {
            let Some(mono) = self.downmix.push(sample) else {
                continue;
            };
            match &mut self.converter {
                Some(converter) => converter.push(mono, out),
                None => out.push(mono),
            }
        }
    }

    /// Appends the rest of the stream to `out` and begins a new stream. Samples
    /// of a frame that lacks some of its channels are dropped.
    pub fn finish(&mut self, out: &mut Vec<f32>) {
        let frames = self.downmix.finish();
        if let Some(converter) = &mut self.converter {
            converter.finish(output_len(frames, self.input_hz), out);
        }
    }
}

/// Output samples of `frames` input frames: `frames * 16000 / input_hz`,
/// rounded half up.
fn output_len(frames: u64, input_hz: u32) -> u64 {
    let input_hz = u64::from(input_hz);
    (2 * frames * u64::from(OUTPUT_HZ) + input_hz) / (2 * input_hz)
}

/// Mean of the channels of each frame.
struct Downmix {
    channels: usize,
    /// Sum of the `seen` first samples of the frame that is arriving.
    sum: f32,
    seen: usize,
    frames: u64,
}

impl Downmix {
    fn new(channels: usize) -> Self {
        Self {
            channels,
            sum: 0.0,
            seen: 0,
            frames: 0,
        }
    }

    fn push(&mut self, sample: f32) -> Option<f32> {
        self.sum += sample;
        self.seen += 1;
        if self.seen < self.channels {
            return None;
        }
        let mean = self.sum / self.channels as f32;
        self.sum = 0.0;
        self.seen = 0;
        self.frames += 1;
        Some(if mean.is_finite() { mean } else { 0.0 })
    }

    /// Frames of the stream that ends here.
    fn finish(&mut self) -> u64 {
        let frames = self.frames;
        *self = Self::new(self.channels);
        frames
    }
}

/// rubato's resampler between two blocks of fixed size.
struct Converter {
    fft: Fft<f32>,
    input: Vec<f32>,
    filled: usize,
    output: Vec<f32>,
    /// Samples of the filter's delay that are still to be dropped.
    delay: usize,
    produced: u64,
}

impl Converter {
    fn new(input_hz: u32) -> Self {
        let frames = block_frames(input_hz);
        let fft = Fft::new_custom(
            input_hz as usize,
            OUTPUT_HZ as usize,
            frames,
            1,
            1,
            WindowFunction::BlackmanHarris,
            FixedSync::Both,
        )
        .expect("rates and block size are not zero");
        Self {
            input: vec![0.0; fft.input_frames_next()],
            filled: 0,
            output: vec![0.0; fft.output_frames_next()],
            delay: fft.output_delay(),
            produced: 0,
            fft,
        }
    }

    fn push(&mut self, sample: f32, out: &mut Vec<f32>) {
        self.input[self.filled] = sample;
        self.filled += 1;
        if self.filled == self.input.len() {
            self.convert_block();
            out.extend_from_slice(&self.output[self.delay..]);
            self.produced += (self.output.len() - self.delay) as u64;
            self.delay = 0;
            self.filled = 0;
        }
    }

    /// Flushes the filter with silence until the stream has `len` samples.
    fn finish(&mut self, len: u64, out: &mut Vec<f32>) {
        while self.produced < len {
            self.push(0.0, out);
        }
        out.truncate(out.len() - (self.produced - len) as usize);
        self.fft.reset();
        self.filled = 0;
        self.delay = self.fft.output_delay();
        self.produced = 0;
    }

    fn convert_block(&mut self) {
        let (frames_in, frames_out) = (self.input.len(), self.output.len());
        let input = SequentialSlice::new(&self.input, 1, frames_in).expect("one channel");
        let mut output =
            SequentialSlice::new_mut(&mut self.output, 1, frames_out).expect("one channel");
        self.fft
            .process_into_buffer(&input, &mut output, None)
            .expect("blocks of the size that the resampler asked for");
    }
}

/// Input frames a block: whole periods of both rates, an even number of them
/// so that the filter's delay of half a block is a whole number of samples.
fn block_frames(input_hz: u32) -> usize {
    let period = input_hz / gcd(input_hz, OUTPUT_HZ);
    let pair = 2 * period;
    (pair * input_hz.div_ceil(pair * BLOCKS_PER_SECOND)) as usize
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
