//! Recordings: WAV (integer and float) and FLAC.
//!
//! A file is decoded block by block, so a recording of hours takes no more
//! memory than one of seconds. Damage in the middle is an error only after
//! everything before it has been handed over.

use std::{
    fs::File,
    io::{Read, Seek},
    path::{Path, PathBuf},
};

use super::{
    AudioSource, CaptureError, SAMPLE_RATE_HZ,
    convert::Converter,
    riff::{self, WavFile},
};

/// Samples of each channel decoded at a time from a WAV file.
const BLOCK_FRAMES: usize = 4096;

/// One recording.
pub struct FileSource {
    path: PathBuf,
    decoder: Decoder,
    converter: Converter,
    rate_hz: u32,
    channels: u16,
    announced: u64,
    decoded: u64,
    block: Vec<f32>,
    damage: Option<String>,
}

enum Decoder {
    Wav {
        reader: hound::WavReader<WavFile>,
        scale: f32,
    },
    Flac {
        reader: claxon::FlacReader<File>,
        scale: f32,
    },
}

impl FileSource {
    /// Opens a recording and reads its header.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let io = |source| CaptureError::Io {
            path: path.to_owned(),
            source,
        };
        let mut file = File::open(path).map_err(io)?;
        let mut magic = [0; 4];
        let read = file.read(&mut magic).map_err(io)?;
        file.rewind().map_err(io)?;
        match &magic[..read] {
            [] => Err(CaptureError::Empty(path.to_owned())),
            b"RIFF" => Self::open_wav(path, file),
            b"fLaC" => Self::open_flac(path, file),
            _ => Err(CaptureError::UnknownFormat(path.to_owned())),
        }
    }

    fn open_wav(path: &Path, file: File) -> Result<Self, CaptureError> {
        let file = riff::open(file).map_err(|error| undecodable(path, &error))?;
        let reader = hound::WavReader::new(file).map_err(|error| undecodable(path, &error))?;
        let spec = reader.spec();
        let scale = full_scale(spec.bits_per_sample.into());
        let announced = u64::from(reader.len());
        let decoder = Decoder::Wav { reader, scale };
        Self::new(path, decoder, spec.sample_rate, spec.channels, announced)
    }

    fn open_flac(path: &Path, file: File) -> Result<Self, CaptureError> {
        let reader = claxon::FlacReader::new(file).map_err(|error| undecodable(path, &error))?;
        let info = reader.streaminfo();
        let channels = info.channels as u16;
        let announced = info.samples.unwrap_or(0) * u64::from(info.channels);
        let scale = full_scale(info.bits_per_sample);
        Self::new(
            path,
            Decoder::Flac { reader, scale },
            info.sample_rate,
            channels,
            announced,
        )
    }

    fn new(
        path: &Path,
        decoder: Decoder,
        rate_hz: u32,
        channels: u16,
        announced: u64,
    ) -> Result<Self, CaptureError> {
        Ok(Self {
            converter: Converter::new(&path.display().to_string(), rate_hz, channels)?,
            path: path.to_owned(),
            decoder,
            rate_hz,
            channels,
            announced,
            decoded: 0,
            block: Vec::new(),
            damage: None,
        })
    }

    /// Decodes one block; damage is kept until what came before it is used.
    fn decode_block(&mut self) {
        self.block.clear();
        let outcome = match &mut self.decoder {
            Decoder::Wav { reader, scale } => decode_wav(reader, *scale, &mut self.block),
            Decoder::Flac { reader, scale } => decode_flac(reader, *scale, &mut self.block),
        };
        self.decoded += self.block.len() as u64;
        match outcome {
            Err(reason) => self.damage = Some(reason),
            Ok(()) if self.block.is_empty() && self.decoded < self.announced => {
                self.damage = Some("fewer samples than announced".to_owned());
            }
            Ok(()) => {}
        }
        // A file may end inside an interleaved frame; that frame is dropped.
        let whole = self.block.len() - self.block.len() % usize::from(self.channels);
        self.block.truncate(whole);
    }
}

impl AudioSource for FileSource {
    fn read(&mut self, out: &mut Vec<f32>) -> Result<bool, CaptureError> {
        if self.damage.is_none() {
            self.decode_block();
            if !self.block.is_empty() {
                self.converter.push(&mut self.block, out);
                return Ok(true);
            }
        }
        if self.converter.finish(out) {
            return Ok(true);
        }
        match self.damage.take() {
            None => Ok(false),
            Some(reason) => Err(CaptureError::Truncated {
                path: self.path.clone(),
                seconds: self.decoded as f64 / f64::from(self.channels) / f64::from(self.rate_hz),
                reason,
            }),
        }
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn expected_samples(&self) -> Option<u64> {
        let frames = self.announced / u64::from(self.channels);
        Some(frames * u64::from(SAMPLE_RATE_HZ) / u64::from(self.rate_hz))
    }
}

/// Decodes a whole recording into 16 kHz mono samples.
pub fn decode(path: &Path) -> Result<Vec<f32>, CaptureError> {
    let mut source = FileSource::open(path)?;
    let mut samples = Vec::new();
    while source.read(&mut samples)? {}
    Ok(samples)
}

fn undecodable(path: &Path, reason: &dyn std::fmt::Display) -> CaptureError {
    CaptureError::Undecodable {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

/// The value just above the largest of a signed integer of this many bits.
fn full_scale(bits: u32) -> f32 {
    2f32.powi(bits as i32 - 1)
}

fn decode_wav(
    reader: &mut hound::WavReader<WavFile>,
    scale: f32,
    block: &mut Vec<f32>,
) -> Result<(), String> {
    let spec = reader.spec();
    let wanted = BLOCK_FRAMES * usize::from(spec.channels);
    match spec.sample_format {
        hound::SampleFormat::Float => take(reader.samples::<f32>().take(wanted), block, |s| s),
        hound::SampleFormat::Int => take(reader.samples::<i32>().take(wanted), block, |s| {
            s as f32 / scale
        }),
    }
}

fn take<S>(
    samples: impl Iterator<Item = hound::Result<S>>,
    block: &mut Vec<f32>,
    convert: impl Fn(S) -> f32,
) -> Result<(), String> {
    for sample in samples {
        block.push(convert(sample.map_err(|error| error.to_string())?));
    }
    Ok(())
}

fn decode_flac(
    reader: &mut claxon::FlacReader<File>,
    scale: f32,
    block: &mut Vec<f32>,
) -> Result<(), String> {
    let frame = reader
        .blocks()
        .read_next_or_eof(Vec::new())
        .map_err(|error| error.to_string())?;
    let Some(frame) = frame else { return Ok(()) };
    for index in 0..frame.duration() {
        for channel in 0..frame.channels() {
            block.push(frame.sample(channel, index) as f32 / scale);
        }
    }
    Ok(())
}
