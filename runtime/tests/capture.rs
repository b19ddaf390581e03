//! Recordings of every kind become 16 kHz mono, and bad ones clear errors.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    io::Cursor,
    path::{Path, PathBuf},
};

use earwitness::capture::{AudioSource, CaptureError, FileSource, PcmFormat, PcmSource, decode};
use hound::{SampleFormat, WavSpec, WavWriter};
use tempfile::TempDir;

const TONE_HZ: f32 = 440.0;

fn tone(rate_hz: u32, seconds: f32) -> Vec<f32> {
    let count = (rate_hz as f32 * seconds) as usize;
    let step = std::f32::consts::TAU * TONE_HZ / rate_hz as f32;
    (0..count).map(|i| 0.5 * (step * i as f32).sin()).collect()
}

fn wav(folder: &TempDir, spec: WavSpec, mono: &[f32]) -> PathBuf {
    let path = folder
        .path()
        .join(format!("{}-{}.wav", spec.sample_rate, spec.bits_per_sample));
    let mut writer = WavWriter::create(&path, spec).unwrap();
    for &sample in mono {
        for _ in 0..spec.channels {
            match spec.sample_format {
                SampleFormat::Float => writer.write_sample(sample).unwrap(),
                SampleFormat::Int => {
                    let full = ((1i64 << (spec.bits_per_sample - 1)) - 1) as f32;
                    writer.write_sample((sample * full) as i32).unwrap();
                }
            }
        }
    }
    writer.finalize().unwrap();
    path
}

fn int16(sample_rate: u32, channels: u16) -> WavSpec {
    WavSpec {
        channels,
        sample_rate,
        bits_per_sample: 16,
        sample_format: SampleFormat::Int,
    }
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max)
}

#[test]
fn every_rate_and_layout_gives_the_same_tone() {
    let folder = TempDir::new().unwrap();
    let expected = tone(16_000, 1.0);
    for (rate, channels) in [
        (16_000, 1),
        (8_000, 1),
        (22_050, 1),
        (44_100, 2),
        (48_000, 2),
    ] {
        let path = wav(&folder, int16(rate, channels), &tone(rate, 1.0));
        let samples = decode(&path).unwrap();
        // The resampling filter rings at the ends of the recording.
        let inner = 800..15_200;
        let off = largest_difference(&samples[inner.clone()], &expected[inner]);
        assert_eq!(samples.len(), expected.len(), "{rate} Hz");
        assert!(off < 2e-3, "{rate} Hz, {channels} channels: {off}");
    }
}

#[test]
fn every_sample_format_is_read() {
    let folder = TempDir::new().unwrap();
    let expected = tone(16_000, 0.2);
    for (bits, format, bound) in [
        (8, SampleFormat::Int, 2e-2),
        (16, SampleFormat::Int, 1e-4),
        (24, SampleFormat::Int, 1e-6),
        (32, SampleFormat::Int, 1e-6),
        (32, SampleFormat::Float, 1e-7),
    ] {
        let spec = WavSpec {
            channels: 1,
            sample_rate: 16_000,
            bits_per_sample: bits,
            sample_format: format,
        };
        let samples = decode(&wav(&folder, spec, &expected)).unwrap();
        assert!(
            largest_difference(&samples, &expected) < bound,
            "{bits} bits"
        );
    }
}

/// A WAV file of 16-bit samples with these chunks between format and samples, and
/// these lengths in its header.
fn odd_wav(folder: &TempDir, between: &[u8], lengths: [u32; 2], mono: &[f32]) -> PathBuf {
    let bytes = fs::read(wav(folder, int16(16_000, 1), mono)).unwrap();
    let (format, samples) = (&bytes[12..36], &bytes[44..]);
    let [whole, data] = lengths.map(u32::to_le_bytes);
    let odd = [
        b"RIFF",
        &whole[..],
        b"WAVE",
        format,
        between,
        b"data",
        &data,
        samples,
    ]
    .concat();
    let path = folder.path().join("odd.wav");
    fs::write(&path, odd).unwrap();
    path
}

#[test]
fn headers_are_read_as_programs_write_them() {
    let folder = TempDir::new().unwrap();
    let expected = tone(16_000, 0.1);
    let plain = decode(&wav(&folder, int16(16_000, 1), &expected)).unwrap();
    let length = 3_200;
    let odd_chunk = b"LIST\x03\0\0\0abc\0";
    for (case, between, lengths) in [
        (
            "a chunk of odd length",
            &odd_chunk[..],
            [36 + 12 + length, length],
        ),
        ("a stream of ffmpeg", b"", [u32::MAX, u32::MAX]),
        ("a stream of sox", b"", [0x7fff_f024, 0x7fff_f000]),
        ("a stream of arecord", b"", [0x8000_0024, 0x8000_0000]),
        ("a recording that was never finished", b"", [0, 0]),
    ] {
        let path = odd_wav(&folder, between, lengths, &expected);
        assert_eq!(decode(&path).unwrap(), plain, "{case}");
    }
    let path = odd_wav(&folder, b"", [u32::MAX, u32::MAX], &expected);
    let mut bytes = fs::read(&path).unwrap();
    bytes.pop();
    fs::write(&path, bytes).unwrap();
    assert_eq!(
        decode(&path).unwrap(),
        plain[..plain.len() - 1],
        "half a sample"
    );
}

#[test]
fn an_empty_recording_with_something_behind_it_is_empty() {
    let folder = TempDir::new().unwrap();
    let path = odd_wav(&folder, b"", [36 + 8 + 4, 0], &[]);
    let behind = [&fs::read(&path).unwrap()[..], b"LIST\x04\0\0\0abcd"].concat();
    fs::write(&path, behind).unwrap();
    assert!(decode(&path).unwrap().is_empty());
}

#[test]
fn one_sample_is_a_recording() {
    let folder = TempDir::new().unwrap();
    assert_eq!(
        decode(&wav(&folder, int16(16_000, 1), &[0.25]))
            .unwrap()
            .len(),
        1
    );
    assert!(
        decode(&wav(&folder, int16(16_000, 1), &[]))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_float_that_is_no_number_becomes_silence() {
    let folder = TempDir::new().unwrap();
    let spec = WavSpec {
        channels: 1,
        sample_rate: 16_000,
        bits_per_sample: 32,
        sample_format: SampleFormat::Float,
    };
    let samples = decode(&wav(&folder, spec, &[0.5, f32::NAN, 7.0, -0.5])).unwrap();
    assert_eq!(samples, [0.5, 0.0, 1.0, -0.5]);
}

fn refused(path: &Path) -> CaptureError {
    decode(path).expect_err("a bad file was taken")
}

#[test]
fn what_is_no_recording_is_refused_by_name() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("thing");
    assert!(matches!(refused(&path), CaptureError::Io { .. }));
    for (bytes, kind) in [
        (&b""[..], "empty"),
        (b"hello, I am a text", "neither WAV nor FLAC"),
        (b"RIFF\x00\x00\x00\x00JUNKJUNK", "damaged"),
        (b"RIFF\x04\0\0\0WAVE", "before its samples"),
        (b"RIFF\x0c\0\0\0WAVEdata\0\0\0\0", "format chunk"),
        (b"RIFF\x0c\0\0\0WAVEfmt \xff\xff\xff\xff", "format chunk"),
        (
            b"RIFF\x0c\0\0\0WAVEJUNK\xff\xff\xff\xff",
            "before its samples",
        ),
        (b"fLaC\xff\xff\xff", "damaged"),
        (b"RI", "neither WAV nor FLAC"),
    ] {
        fs::write(&path, bytes).unwrap();
        let message = refused(&path).to_string();
        assert!(
            message.contains(kind) && message.contains("thing"),
            "{message}"
        );
    }
}

#[test]
fn a_truncated_recording_gives_what_there_is_and_then_an_error() {
    let folder = TempDir::new().unwrap();
    let path = wav(&folder, int16(16_000, 1), &tone(16_000, 1.0));
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let mut source = FileSource::open(&path).unwrap();
    let mut samples = Vec::new();
    let error = loop {
        match source.read(&mut samples) {
            Ok(true) => {}
            Ok(false) => panic!("the damage was not noticed"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, CaptureError::Truncated { .. }), "{error}");
    assert!(samples.len() > 7_900, "{} samples", samples.len());
}

#[test]
fn raw_samples_come_through_whatever_the_pipe_does() {
    /// A pipe that gives a few odd bytes at a time.
    struct Drip(Cursor<Vec<u8>>, usize);
    impl std::io::Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.1 = self.1 % 7 + 1;
            let most = self.1.min(buffer.len());
            self.0.read(&mut buffer[..most])
        }
    }
    let bytes: Vec<u8> = (0..2000i16).flat_map(|i| (i * 16).to_le_bytes()).collect();
    let read = |bytes: Vec<u8>| {
        let format = PcmFormat {
            rate_hz: 16_000,
            channels: 1,
        };
        let mut source = PcmSource::new("pipe", Drip(Cursor::new(bytes), 0), format).unwrap();
        let mut samples = Vec::new();
        while source.read(&mut samples)? {}
        Ok::<_, CaptureError>(samples)
    };
    let expected: Vec<f32> = (0..2000i16).map(|i| f32::from(i * 16) / 32768.0).collect();
    assert_eq!(read(bytes.clone()).unwrap(), expected);
    assert!(matches!(
        read(bytes[..3999].to_vec()),
        Err(CaptureError::PartialSample)
    ));
}
