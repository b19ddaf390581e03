//! Raw 16-bit little-endian samples from a pipe.

use std::{io::Read, path::PathBuf};

use super::{AudioSource, CaptureError, convert::Converter};

/// Bytes taken from the pipe at a time: 64 ms of 16 kHz mono.
const BLOCK_BYTES: usize = 2048;

/// How a headerless stream is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcmFormat {
    /// Samples a second.
    pub rate_hz: u32,
    /// Interleaved channels.
    pub channels: u16,
}

/// Sound from anything that yields bytes.
pub struct PcmSource<R> {
    name: String,
    input: R,
    converter: Converter,
    frame_bytes: usize,
    pending: Vec<u8>,
}

impl<R: Read> PcmSource<R> {
    /// Reads `input`, called `name` in messages.
    pub fn new(name: &str, input: R, format: PcmFormat) -> Result<Self, CaptureError> {
        Ok(Self {
            name: name.to_owned(),
            input,
            converter: Converter::new(name, format.rate_hz, format.channels)?,
            frame_bytes: 2 * usize::from(format.channels),
            pending: Vec::with_capacity(BLOCK_BYTES * 2),
        })
    }

    fn fill(&mut self) -> Result<usize, CaptureError> {
        let mut block = [0; BLOCK_BYTES];
        loop {
            match self.input.read(&mut block) {
                Ok(read) => {
                    self.pending.extend_from_slice(&block[..read]);
                    return Ok(read);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(CaptureError::Io {
                        path: PathBuf::from(&self.name),
                        source,
                    });
                }
            }
        }
    }
}

impl<R: Read> AudioSource for PcmSource<R> {
    fn read(&mut self, out: &mut Vec<f32>) -> Result<bool, CaptureError> {
        if self.fill()? == 0 {
            return match (self.converter.finish(out), self.pending.is_empty()) {
                (true, _) => Ok(true),
                (false, true) => Ok(false),
                (false, false) => Err(CaptureError::PartialSample),
            };
        }
        let whole = self.pending.len() / self.frame_bytes * self.frame_bytes;
        let mut samples: Vec<f32> = self.pending[..whole]
            .chunks_exact(2)
            .map(|bytes| f32::from(i16::from_le_bytes([bytes[0], bytes[1]])) / 32768.0)
            .collect();
        self.pending.drain(..whole);
        self.converter.push(&mut samples, out);
        Ok(true)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}
