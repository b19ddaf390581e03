//! Where sound comes from: every source yields 16 kHz mono samples in [-1, 1].
//!
//! Sources convert rate and channels themselves, so nothing behind this module
//! knows of either. A source may deliver any number of samples at a time: what
//! follows gives the same records however the sound is cut.

mod convert;
mod file;
#[cfg(any(feature = "mic", test))]
mod gap_ring;
#[cfg(feature = "mic")]
mod mic;
mod nodes;
mod pcm;
mod port;
mod riff;

use std::{io, path::PathBuf};

use earwitness_dsp::resample::ResampleError;

pub use file::{FileSource, decode};
#[cfg(feature = "mic")]
pub use mic::Microphone;
pub use nodes::NodeSource;
pub use pcm::{PcmFormat, PcmSource};

/// Samples a second of everything behind this module.
pub const SAMPLE_RATE_HZ: u32 = 16_000;

/// Milliseconds from the start of the stream to the given sample.
pub const fn samples_to_ms(samples: u64) -> u64 {
    samples * 1000 / SAMPLE_RATE_HZ as u64
}

/// A stream of 16 kHz mono samples.
pub trait AudioSource {
    /// Appends the next samples to `out`. Returns `false` at the end of the
    /// stream, when nothing was appended. May block for live sound.
    fn read(&mut self, out: &mut Vec<f32>) -> Result<bool, CaptureError>;

    /// What to call this source in messages.
    fn name(&self) -> String;

    /// Samples in all, where the source knows beforehand.
    fn expected_samples(&self) -> Option<u64> {
        None
    }
}

/// Why sound could not be had.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file or pipe could not be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// What was read.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file holds nothing at all.
    #[error("{0} is empty; record it again")]
    Empty(PathBuf),
    /// The file is of another kind.
    #[error("{0} is neither WAV nor FLAC; convert it to one of them first")]
    UnknownFormat(PathBuf),
    /// The header is damaged or uses a variant that cannot be decoded.
    #[error(
        "{path} is damaged or of a kind that cannot be decoded ({reason}); export it again as 16-bit WAV or FLAC"
    )]
    Undecodable {
        /// The file.
        path: PathBuf,
        /// What the decoder said.
        reason: String,
    },
    /// The file ends, or turns to garbage, before its announced end.
    #[error("{path} is cut short after {seconds:.1} s ({reason}); what came before was used")]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Seconds decoded before the damage.
        seconds: f64,
        /// What the decoder said.
        reason: String,
    },
    /// A raw stream ended in the middle of a sample.
    #[error(
        "the PCM stream ended inside a sample; check --channels, and that it is 16-bit little-endian"
    )]
    PartialSample,
    /// The rate or the channels cannot be converted.
    #[error("{name}: {source}")]
    Resample {
        /// What was read.
        name: String,
        /// Why not.
        source: ResampleError,
    },
    /// A microphone node cannot be reached.
    #[error("microphone node at {place}: {reason}; {advice}")]
    Node {
        /// The file of its port.
        place: PathBuf,
        /// What the system said.
        reason: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// The microphone is missing, busy, or was unplugged.
    #[error("microphone: {reason}; {advice}")]
    Microphone {
        /// What the sound system said.
        reason: String,
        /// What to do about it.
        advice: &'static str,
    },
}
