//! The pipeline from sound to answer, and the daemon around it.
//!
//! One way through, a module a step:
//!
//! ```text
//! capture -> segment -> attribute + transcribe -> remember -> recall -> answer
//!            `-------------- listen --------------'          `---- desk ----'
//! ```
//!
//! [`voices`] keeps the voices in order between sessions. [`hub`] holds the models
//! and the memory that all of them share, [`serve`] puts the hub behind the message
//! API, and the program in `main.rs` is a thin command line over all of it.
#![forbid(unsafe_code)]

pub mod answer;
pub mod attribute;
pub mod capture;
mod describe;
pub mod desk;
pub mod gate;
pub mod hub;
pub mod listen;
pub mod meter;
pub mod paths;
pub mod recall;
mod remember;
pub mod segment;
pub mod serve;
pub mod switch;
pub mod transcribe;
pub mod voices;
pub mod write;

pub use describe::describe;
