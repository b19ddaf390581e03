//! The microphone of this device, through the system's sound library.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use cpal::{
    ErrorKind, FromSample, SampleFormat, SizedSample, StreamConfig,
    traits::{DeviceTrait, HostTrait, StreamTrait},
};

use super::{
    AudioSource, CaptureError,
    convert::Converter,
    gap_ring::{Reader, Writer, ring},
};

/// Sound that may wait for the pipeline before it is lost.
const RING_SECONDS: usize = 8;
/// How often the ring is looked at.
const POLL: Duration = Duration::from_millis(20);

/// Live sound from the default input device.
pub struct Microphone {
    // Capture goes on for as long as the stream lives.
    _stream: cpal::Stream,
    name: String,
    ring: Reader,
    converter: Converter,
    unplugged: Arc<AtomicBool>,
    captured: Vec<f32>,
    lost: u64,
}

impl Microphone {
    /// Opens the default input device in its own format.
    pub fn open() -> Result<Self, CaptureError> {
        let device = cpal::default_host().default_input_device().ok_or_else(|| {
            CaptureError::Microphone {
                reason: "this device has none, or the sound system does not show it".to_owned(),
                advice: "plug one in, or use --wav or --pcm",
            }
        })?;
        let supported = device.default_input_config().map_err(failed)?;
        let format = supported.sample_format();
        let config: StreamConfig = supported.into();
        let channels = config.channels;
        let rate_hz = config.sample_rate;
        let (writer, reader) = ring(RING_SECONDS * rate_hz as usize * usize::from(channels));
        let unplugged = Arc::new(AtomicBool::new(false));
        let stream = build(&device, config, format, writer, Arc::clone(&unplugged))?;
        stream.play().map_err(failed)?;
        let name = format!("microphone {device}");
        Ok(Self {
            _stream: stream,
            converter: Converter::new(&name, rate_hz, channels)?,
            name,
            ring: reader,
            unplugged,
            captured: Vec::new(),
            lost: 0,
        })
    }

    fn report_loss(&mut self) {
        let lost = self.ring.lost();
        if lost > self.lost {
            tracing::warn!(
                samples = lost - self.lost,
                "sound was lost; silence stands in its place"
            );
            self.lost = lost;
        }
    }
}

impl AudioSource for Microphone {
    fn read(&mut self, out: &mut Vec<f32>) -> Result<bool, CaptureError> {
        loop {
            let unplugged = self.unplugged.load(Ordering::Relaxed);
            self.captured.clear();
            self.ring.read(&mut self.captured);
            self.report_loss();
            if !self.captured.is_empty() {
                self.converter.push(&mut self.captured, out);
                return Ok(true);
            }
            if unplugged {
                return Err(CaptureError::Microphone {
                    reason: "it was unplugged or taken away".to_owned(),
                    advice: "plug it in and start again",
                });
            }
            thread::sleep(POLL);
        }
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

fn build(
    device: &cpal::Device,
    config: StreamConfig,
    format: SampleFormat,
    writer: Writer,
    unplugged: Arc<AtomicBool>,
) -> Result<cpal::Stream, CaptureError> {
    match format {
        SampleFormat::I8 => stream::<i8>(device, config, writer, unplugged),
        SampleFormat::I16 => stream::<i16>(device, config, writer, unplugged),
        SampleFormat::I32 => stream::<i32>(device, config, writer, unplugged),
        SampleFormat::U8 => stream::<u8>(device, config, writer, unplugged),
        SampleFormat::U16 => stream::<u16>(device, config, writer, unplugged),
        SampleFormat::F32 => stream::<f32>(device, config, writer, unplugged),
        other => Err(CaptureError::Microphone {
            reason: format!("it delivers {other} samples, which are not supported"),
            advice: "choose another input device",
        }),
    }
}

fn stream<T>(
    device: &cpal::Device,
    config: StreamConfig,
    mut writer: Writer,
    unplugged: Arc<AtomicBool>,
) -> Result<cpal::Stream, CaptureError>
where
    T: SizedSample,
    f32: FromSample<T>,
{
    device
        .build_input_stream(
            config,
            move |data: &[T], _: &_| writer.write(data.iter().map(|&s| f32::from_sample_(s))),
            // This runs on the audio thread too: it sets a flag and nothing else.
            move |error: cpal::Error| {
                let harmless = matches!(
                    error.kind(),
                    ErrorKind::Xrun | ErrorKind::DeviceChanged | ErrorKind::RealtimeDenied
                );
                if !harmless {
                    unplugged.store(true, Ordering::Relaxed);
                }
            },
            None,
        )
        .map_err(failed)
}

fn failed(error: cpal::Error) -> CaptureError {
    let advice = match error.kind() {
        ErrorKind::DeviceBusy => "close the program that uses it",
        ErrorKind::PermissionDenied => "add this user to the group `audio`",
        _ => "check that it is plugged in, and see `arecord -l`",
    };
    CaptureError::Microphone {
        reason: error.to_string(),
        advice,
    }
}
