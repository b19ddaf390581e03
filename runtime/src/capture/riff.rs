//! The header of a WAV file as programs really write it.
//!
//! A chunk of odd length is followed by a byte that does not count. A stream
//! (`ffmpeg ... -f wav -`, `arecord | ...`) announces a placeholder for its length,
//! and so does a recording whose program never came to write the length it has. The
//! decoder takes every header at its word, so it is given one that is right.
//!
//! A length that is merely greater than the file stays as it is: sound is missing
//! then, which whoever decodes it must hear of.

use std::{
    fs::File,
    io::{BufReader, Cursor, Read, Seek},
};

/// A WAV file whose header says what its samples are.
pub(super) type WavFile = std::io::Chain<Cursor<Vec<u8>>, BufReader<File>>;

/// Longest description of a format; those in use have 40 bytes at most.
const LONGEST_FORMAT: u32 = 64;
/// Lengths from here on, short of 2 GiB by what a header and a buffer take, are
/// placeholders unless the file is as long.
const PLACEHOLDER: u32 = 0x7fff_0000;

/// Why a file has no samples.
#[derive(Debug, thiserror::Error)]
pub(super) enum RiffError {
    #[error("it is RIFF, but not WAVE")]
    NotWave,
    #[error("its format chunk is missing or malformed")]
    Format,
    #[error("it ends before its samples begin")]
    Ends(#[from] std::io::Error),
}

/// Reads up to the samples, and goes on with a header that is right.
pub(super) fn open(file: File) -> Result<WavFile, RiffError> {
    let size = file.metadata()?.len();
    let mut file = BufReader::new(file);
    let [riff, whole, kind] = words(&mut file)?;
    if (&riff, &kind) != (b"RIFF", b"WAVE") {
        return Err(RiffError::NotWave);
    }
    let mut format: Option<Vec<u8>> = None;
    loop {
        let [kind, length] = words(&mut file)?;
        let length = u32::from_le_bytes(length);
        match &kind {
            b"data" => {
                let format = format.ok_or(RiffError::Format)?;
                let start = file.stream_position()?;
                let there = u32::try_from(size.saturating_sub(start)).unwrap_or(u32::MAX);
                let ends_here = u64::from(u32::from_le_bytes(whole)) + 8 <= start;
                let unknown = length == 0 && ends_here || length >= PLACEHOLDER && length > there;
                let header = header(&format, if unknown { there } else { length });
                return Ok(Cursor::new(header).chain(file));
            }
            b"fmt " if length <= LONGEST_FORMAT => {
                let mut bytes = vec![0; length as usize];
                file.read_exact(&mut bytes)?;
                file.seek_relative(i64::from(length % 2))?;
                format = Some(bytes);
            }
            b"fmt " => return Err(RiffError::Format),
            _ => file.seek_relative(i64::from(length) + i64::from(length % 2))?,
        }
    }
}

/// So many groups of four bytes.
fn words<const N: usize>(file: &mut impl Read) -> std::io::Result<[[u8; 4]; N]> {
    let mut words = [[0; 4]; N];
    file.read_exact(words.as_flattened_mut())?;
    Ok(words)
}

/// The header of a file with nothing but a format and so many bytes of samples, less
/// those of a last one that is not whole.
fn header(format: &[u8], length: u32) -> Vec<u8> {
    // Bytes in a sample of all channels; the decoder judges the rest.
    let frame = format
        .get(12..14)
        .map_or(1, |two| u32::from(two[0]) + 256 * u32::from(two[1]));
    let length = length - length % frame.max(1);
    let whole = length.saturating_add(20 + format.len() as u32);
    let mut header = [b"RIFF", &whole.to_le_bytes()[..], b"WAVEfmt "].concat();
    header.extend((format.len() as u32).to_le_bytes());
    header.extend(format);
    header.extend(b"data");
    header.extend(length.to_le_bytes());
    header
}
