//! What the daemon, its clients and the microphone nodes say to each other.
//!
//! Three layers, each usable without the one above it:
//!
//! - `types`: the nouns (record, speaker, evidence), shared with the store;
//! - `message`: versioned requests and responses made of those nouns;
//! - [`frame`]: one message as one COBS-delimited, CRC-checked postcard frame.
//!
//! Beside the messages, on the same frames: [`node`], the protocol of microphone
//! nodes.
//!
//! With the `std` feature there are also `connection`, which moves frames over
//! any byte stream and serves both ends, and a blocking `client` on top of it.
//! Nothing here knows of audio, models or storage. Without features the crate is
//! `no_std`, does not allocate, and holds [`frame`] and [`node`] alone.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(feature = "std")]
pub mod client;
#[cfg(feature = "std")]
pub mod connection;
pub mod frame;
#[cfg(feature = "alloc")]
pub mod message;
pub mod node;
#[cfg(feature = "alloc")]
pub mod types;
