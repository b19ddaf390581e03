//! Whole messages over a blocking byte stream; both ends use it.

use crate::frame::{self, Decoder, EncodeError, HUB_FRAME_BYTES};
use crate::message::{Envelope, EnvelopeError};
use serde::{Serialize, de::DeserializeOwned};
use std::io::{self, Read, Write};
use std::vec::Vec;

/// How much is read from the stream at once.
const READ_BYTES: usize = 16 * 1024;

/// Why a message was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The message does not fit into a frame.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The stream failed.
    #[error("the connection broke while sending ({0}): connect again")]
    Io(#[from] io::Error),
}

/// Why no message was received.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// A frame was refused. The connection is still good for the next one.
    #[error(transparent)]
    Refused(#[from] EnvelopeError),
    /// The stream failed.
    #[error("the connection broke while receiving ({0}): connect again")]
    Io(#[from] io::Error),
}

/// A byte stream that carries frames of at most [`HUB_FRAME_BYTES`].
#[derive(Debug)]
pub struct Connection<S> {
    stream: S,
    decoder: Decoder<Vec<u8>>,
    /// Bytes read but not yet fed: `unread[from..]`.
    unread: Vec<u8>,
    from: usize,
}

impl<S> Connection<S> {
    /// Wraps a stream that is positioned anywhere.
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            decoder: Decoder::new(vec![0; HUB_FRAME_BYTES]),
            unread: Vec::new(),
            from: 0,
        }
    }

    /// The stream, for its timeouts and its shutdown.
    pub fn stream(&self) -> &S {
        &self.stream
    }
}

impl<S: Write> Connection<S> {
    /// Sends one message and flushes the stream.
    pub fn send<T: Serialize>(&mut self, message: &Envelope<T>) -> Result<(), SendError> {
        send(&mut self.stream, message)
    }
}

/// Sends one message on a bare stream, for a writer that never reads.
pub fn send<T: Serialize>(stream: &mut impl Write, message: &Envelope<T>) -> Result<(), SendError> {
    let mut buffer = vec![0; HUB_FRAME_BYTES];
    stream.write_all(frame::encode(message, &mut buffer)?)?;
    Ok(stream.flush()?)
}

impl<S: Read> Connection<S> {
    /// Waits for the next message; `None` when the peer has closed the stream.
    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<Envelope<T>>, ReceiveError> {
        loop {
            let input = &self.unread[self.from..];
            let (rest, frame) = self.decoder.feed(input);
            self.from = self.unread.len() - rest.len();
            if let Some(frame) = frame {
                let payload = frame.map_err(EnvelopeError::from)?;
                return Ok(Some(Envelope::open(payload)?));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    fn fill(&mut self) -> io::Result<bool> {
        self.unread.resize(READ_BYTES, 0);
        self.from = 0;
        let result = read_some(&mut self.stream, &mut self.unread);
        self.unread.truncate(*result.as_ref().unwrap_or(&0));
        Ok(result? > 0)
    }
}

fn read_some(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
