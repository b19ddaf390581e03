//! One message as one frame on a byte stream.
//!
//! A frame is `00 COBS(payload, crc) 00`: the payload is the message in
//! postcard, `crc` its CRC-32 (ISO-HDLC, as in zlib) in little-endian order, and
//! COBS (Cheshire and Baker, "Consistent Overhead Byte Stuffing", 1999) keeps
//! the zero byte out of both. Zero therefore means "a frame ends here" and
//! nothing else, so a reader that joins late or has read garbage is back in step
//! at the next zero. The leading zero closes whatever noise came before, so that
//! noise costs no frame but itself.
//!
//! Nothing here allocates. The longest frame is the caller's buffer.

use crc::{CRC_32_ISO_HDLC, Crc};
use postcard::ser_flavors::{Cobs, Slice, crc::CrcModifier};
use serde::{Deserialize, Serialize};

/// Buffer size of the hub and its clients: 30 s of spoken question, encoded,
/// fit with room to spare.
pub const HUB_FRAME_BYTES: usize = 2 * 1024 * 1024;

/// Buffer size of a microphone node.
pub const NODE_FRAME_BYTES: usize = 1024;

const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);
const CRC_BYTES: usize = 4;
const DELIMITER: u8 = 0;

/// Why a message could not be put into a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The buffer is too short.
    #[error("the message does not fit into a frame of {0} bytes: send less at once")]
    TooLong(usize),
    /// The message's type cannot be written as postcard.
    #[error("the message cannot be encoded: its type has no postcard form")]
    Unsupported,
}

/// Why a frame was refused. The stream goes on with the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// More bytes than the buffer holds came without an end of frame.
    #[error("a frame is longer than {0} bytes and was dropped: send less at once")]
    TooLong(usize),
    /// The bytes are not COBS, or too few to hold a checksum.
    #[error("a frame is malformed and was dropped: send it again")]
    Malformed,
    /// The checksum does not fit the payload.
    #[error("a frame has a wrong checksum and was dropped: send it again")]
    Checksum,
    /// The payload is intact but not the expected message.
    #[error("a frame holds another message than expected: the peer speaks another version")]
    Payload,
}

/// Writes `message` as one frame to the front of `buffer` and returns it.
pub fn encode<'a, T: Serialize + ?Sized>(
    message: &T,
    buffer: &'a mut [u8],
) -> Result<&'a [u8], EncodeError> {
    let too_long = EncodeError::TooLong(buffer.len());
    let used = {
        let (first, rest) = buffer.split_first_mut().ok_or(too_long)?;
        *first = DELIMITER;
        let cobs = Cobs::try_new(Slice::new(rest)).map_err(|_| too_long)?;
        let body = postcard::serialize_with_flavor(message, CrcModifier::new(cobs, CRC.digest()))
            .map_err(|error| match error {
            postcard::Error::SerializeBufferFull => too_long,
            _ => EncodeError::Unsupported,
        })?;
        1 + body.len()
    };
    Ok(&buffer[..used])
}

/// Reads a message from the payload of one frame; every byte has to belong to it.
/// What it borrows, it borrows from there.
pub fn decode<'a, T: Deserialize<'a>>(payload: &'a [u8]) -> Result<T, FrameError> {
    match postcard::take_from_bytes(payload) {
        Ok((message, [])) => Ok(message),
        _ => Err(FrameError::Payload),
    }
}

/// Finds frames in a byte stream that is cut anywhere, over the caller's buffer
/// (`&mut [u8]`, an array, a `Vec`).
#[derive(Debug)]
pub struct Decoder<B> {
    buffer: B,
    held: usize,
    overflowed: bool,
}

impl<B: AsMut<[u8]>> Decoder<B> {
    /// A decoder that accepts frames of at most as many bytes as `buffer` has.
    pub fn new(buffer: B) -> Self {
        Self {
            buffer,
            held: 0,
            overflowed: false,
        }
    }

    /// Takes bytes up to the end of the first frame in `input`. Returns what is
    /// left of `input`, to be fed next, and the frame's payload or why it was
    /// refused; `None` when `input` ran out before a frame ended.
    pub fn feed<'i>(
        &mut self,
        mut input: &'i [u8],
    ) -> (&'i [u8], Option<Result<&[u8], FrameError>>) {
        while let Some(end) = input.iter().position(|&byte| byte == DELIMITER) {
            self.hold(&input[..end]);
            input = &input[end + 1..];
            if self.held > 0 || self.overflowed {
                return (input, Some(self.finish()));
            }
        }
        self.hold(input);
        (&[], None)
    }

    fn hold(&mut self, bytes: &[u8]) {
        let end = self.held + bytes.len();
        match self.buffer.as_mut().get_mut(self.held..end) {
            Some(place) if !self.overflowed => {
                place.copy_from_slice(bytes);
                self.held = end;
            }
            _ => self.overflowed = true,
        }
    }

    fn finish(&mut self) -> Result<&[u8], FrameError> {
        let held = core::mem::take(&mut self.held);
        let overflowed = core::mem::take(&mut self.overflowed);
        let buffer = self.buffer.as_mut();
        if overflowed {
            return Err(FrameError::TooLong(buffer.len()));
        }
        let length =
            cobs::decode_in_place(&mut buffer[..held]).map_err(|_| FrameError::Malformed)?;
        let (payload, crc) = buffer[..length]
            .split_last_chunk::<CRC_BYTES>()
            .ok_or(FrameError::Malformed)?;
        if CRC.checksum(payload) != u32::from_le_bytes(*crc) {
            return Err(FrameError::Checksum);
        }
        Ok(payload)
    }
}
