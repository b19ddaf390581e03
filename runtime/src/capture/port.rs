//! The hub's end of a wire to a microphone node: a serial port, or the Unix socket of
//! a program that stands in for one.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::{fs::FileTypeExt, net::UnixStream},
    path::Path,
    time::Duration,
};

use serial2::SerialPort;

use super::CaptureError;

/// How long a read waits for the next byte.
const READ_PATIENCE: Duration = Duration::from_millis(100);

/// Bytes in both directions. A read that finds nothing fails with
/// [`io::ErrorKind::TimedOut`] or [`io::ErrorKind::WouldBlock`].
pub(super) trait Port: Read + Write + Send {}

impl<T: Read + Write + Send> Port for T {}

/// Opens the port at `place`; `baud` is what a serial port is set to.
pub(super) fn open(place: &Path, baud: u32) -> Result<Box<dyn Port>, CaptureError> {
    let failed = |reason: String, advice| CaptureError::Node {
        place: place.to_owned(),
        reason,
        advice,
    };
    let kind = fs::metadata(place)
        .map_err(|error| failed(error.to_string(), "plug it in, or name another port"))?
        .file_type();
    if kind.is_socket() {
        return socket(place)
            .map_err(|error| failed(error.to_string(), "start the program that serves it first"));
    }
    if !kind.is_char_device() {
        return Err(failed(
            "it is neither a serial port nor a socket".to_owned(),
            "name the port that the node is plugged into, /dev/ttyACM0 for example",
        ));
    }
    serial(place, baud).map_err(|error| {
        failed(
            error.to_string(),
            "end the program that uses it, or join the group that may (`dialout`)",
        )
    })
}

fn serial(place: &Path, baud: u32) -> io::Result<Box<dyn Port>> {
    let mut port = SerialPort::open(place, baud)?;
    port.set_read_timeout(READ_PATIENCE)?;
    Ok(Box::new(port))
}

fn socket(place: &Path) -> io::Result<Box<dyn Port>> {
    let stream = UnixStream::connect(place)?;
    stream.set_read_timeout(Some(READ_PATIENCE))?;
    Ok(Box::new(stream))
}
