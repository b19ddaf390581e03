//! What the daemon, its clients and the microphone nodes say to each other.
//!
//! Three layers, each usable without the one above it:
//!
//! - [`types`]: the nouns (record, speaker, evidence), shared with the store;
//! - [`message`]: versioned requests and responses made of those nouns;
//! - [`frame`]: one message as one COBS-delimited, CRC-checked postcard frame.
//!
//! With the `std` feature there is also a blocking [`client`] over any byte
//! stream. Nothing here knows of audio, models or storage. Without features
//! the crate is `no_std` and does not allocate.
#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(feature = "alloc")]
pub mod types;
