//! From a source's own rate and channels to 16 kHz mono.

use earwitness_dsp::resample::Resampler;

use super::CaptureError;

/// Converts interleaved samples block by block, and once to its end.
pub(super) struct Converter {
    resampler: Resampler,
    finished: bool,
}

impl Converter {
    pub(super) fn new(name: &str, rate_hz: u32, channels: u16) -> Result<Self, CaptureError> {
        let resampler = Resampler::new(rate_hz, usize::from(channels)).map_err(|source| {
            CaptureError::Resample {
                name: name.to_owned(),
                source,
            }
        })?;
        Ok(Self {
            resampler,
            finished: false,
        })
    }

    /// Appends what comes out for one block. A float file may hold anything: what
    /// is too loud is clipped, and what is no number the resampler silences.
    pub(super) fn push(&mut self, interleaved: &mut [f32], out: &mut Vec<f32>) {
        interleaved
            .iter_mut()
            .for_each(|sample| *sample = sample.clamp(-1.0, 1.0));
        self.resampler.push(interleaved, out);
    }

    /// Appends what the filter still holds; returns whether that was anything.
    pub(super) fn finish(&mut self, out: &mut Vec<f32>) -> bool {
        let before = out.len();
        if !self.finished {
            self.finished = true;
            self.resampler.finish(out);
        }
        out.len() > before
    }
}
