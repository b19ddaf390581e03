//! [`fbank`](crate::fbank) in whole numbers, for microcontrollers: the same
//! front end from 16-bit samples, without a single float on the way.
//!
//! Where float code keeps an exponent for every number, this keeps one for every
//! frame (block floating point): a frame is shifted up as far as it goes, the FFT
//! halves its values at every stage, and the logarithm adds the shifts up again.
//! So quiet frames are as exact as loud ones.
//!
//! Bit for bit the same on every target, and within the bounds stated in
//! `tests/fixed_fbank.rs` of the float front end. Frames must fill an FFT of 512
//! points (257 to 512 samples). A frame takes about 5 KiB of stack.

mod fft;
mod high_pass;
mod log2;
mod tables;

pub use high_pass::DcBlocker;
pub use tables::FixedTables;

use crate::fbank::{FbankOptions, MAX_MEL_BINS, Window};
use crate::fft::MAX_FFT;
use fft::Spectrum;

/// One log energy in neper, as in float features: from -64 to 64 in steps of
/// 1/512.
pub type LogEnergy = fixed::types::I7F9;

/// The front end of microphone nodes. A hub uses a node's features only for
/// models whose pack asks for exactly these.
pub const NODE_FBANK: FbankOptions = FbankOptions {
    window: Window::Hamming,
    ..FbankOptions::kaldi()
};

/// Computes features of a stream of 16-bit samples, frame by frame.
pub struct FixedFbank {
    tables: &'static FixedTables,
    /// The frame being filled; its first `filled` samples are there.
    frame: [i16; MAX_FFT],
    filled: usize,
}

impl FixedFbank {
    /// A front end that has heard nothing yet.
    pub const fn new(tables: &'static FixedTables) -> Self {
        Self {
            tables,
            frame: [0; MAX_FFT],
            filled: 0,
        }
    }

    /// Takes samples and hands `emit` the `mel_bins` log energies of each frame
    /// that they complete. Gives the same bits however its input is cut.
    pub fn push(&mut self, mut samples: &[i16], mut emit: impl FnMut(&[LogEnergy])) {
        let (length, shift) = (self.tables.length, self.tables.shift);
        while !samples.is_empty() {
            let (head, rest) = samples.split_at(samples.len().min(length - self.filled));
            self.frame[self.filled..][..head.len()].copy_from_slice(head);
            self.filled += head.len();
            samples = rest;
            if self.filled == length {
                let mut features = [LogEnergy::ZERO; MAX_MEL_BINS];
                emit(self.tables.features(&self.frame[..length], &mut features));
                self.frame.copy_within(shift..length, 0);
                self.filled = length - shift;
            }
        }
    }

    /// Forgets the samples of the frame being filled; the next sample is the
    /// first of a new stream.
    pub fn reset(&mut self) {
        self.filled = 0;
    }
}

impl FixedTables {
    /// Features of one frame. A function of its own in the machine code, so that
    /// whoever reads a program's disassembly finds all of this path in it.
    #[inline(never)]
    fn features<'a>(
        &self,
        frame: &[i16],
        features: &'a mut [LogEnergy; MAX_MEL_BINS],
    ) -> &'a [LogEnergy] {
        let mut work = [0; MAX_FFT];
        self.centre(frame, &mut work);
        let shift = fill_up(&mut work);
        self.pre_emphasise(&mut work);
        self.apply_window(&mut work);
        let spectrum = Spectrum::new(&mut work, &self.twiddles);
        let exponent = Spectrum::EXPONENT - 2 * shift as i32;
        for (feature, band) in features.iter_mut().zip(self.bands()) {
            *feature = self.log_energy(self.energy(band, &spectrum), exponent);
        }
        &features[..self.bands().len()]
    }

    /// Takes the mean away. Everything is multiplied by the frame's length, so that
    /// nothing is rounded; the logarithm takes that into account.
    fn centre(&self, frame: &[i16], work: &mut [i32; MAX_FFT]) {
        let length = frame.len() as i32;
        let sum = if self.remove_dc_offset {
            frame.iter().copied().map(i32::from).sum()
        } else {
            0
        };
        for (x, &sample) in work.iter_mut().zip(frame) {
            *x = i32::from(sample) * length - sum;
        }
    }

    fn pre_emphasise(&self, work: &mut [i32; MAX_FFT]) {
        let mut previous = work[0];
        for x in work {
            let current = *x;
            *x = current - scaled(previous, self.preemphasis);
            previous = current;
        }
    }

    /// Beyond the frame the window is zero, which pads the frame to the size of
    /// the FFT.
    fn apply_window(&self, work: &mut [i32; MAX_FFT]) {
        for (x, &weight) in work.iter_mut().zip(&self.window) {
            *x = scaled(*x, weight);
        }
    }
}

/// `x` times a factor with 30 fractional bits.
fn scaled(x: i32, factor: i32) -> i32 {
    ((i64::from(x) * i64::from(factor)) >> 30) as i32
}

/// Shifts a frame up until its largest value is just below 2^28: pre-emphasis may
/// double it, and the FFT needs what is below 2^29. Returns by how many bits.
fn fill_up(work: &mut [i32; MAX_FFT]) -> u32 {
    let used = work.iter().fold(0, |bits, x| bits | x.unsigned_abs());
    let shift = used.leading_zeros() - 4;
    work.iter_mut().for_each(|x| *x <<= shift);
    shift
}
