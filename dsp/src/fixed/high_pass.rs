//! Takes away what a microphone adds below hearing.

/// One-pole high-pass at 20 Hz (16 kHz sampling): no DC offset of a MEMS
/// microphone, no rumble, and speech as it was.
///
/// `y[n] = x[n] - x[n-1] + (1 - 2^-7) y[n-1]`, saturating.
#[derive(Clone, Default)]
pub struct DcBlocker {
    previous: i16,
    /// The last output, with [`DcBlocker::BITS`] fractional bits.
    output: i32,
}

impl DcBlocker {
    const BITS: u32 = 12;
    const POLE_SHIFT: u32 = 7;

    /// Filters in place.
    pub fn apply(&mut self, samples: &mut [i16]) {
        for sample in samples {
            let step = i32::from(*sample) - i32::from(self.previous);
            self.previous = *sample;
            // Twice full scale at most, for any input: 18 bits and the fraction.
            self.output += (step << Self::BITS) - (self.output >> Self::POLE_SHIFT);
            let rounded = (self.output + (1 << (Self::BITS - 1))) >> Self::BITS;
            *sample = rounded.clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        }
    }
}
