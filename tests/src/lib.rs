//! Episodes, metrics, the demo and the evaluations.
//!
//! Everything that is measured goes the same way: [`episodes`] reads a data
//! set, one of [`retrieval`], [`speakers`] and [`asr`] runs a part of the system
//! over it, [`metrics`] scores what came out, and [`report`] writes it down. The
//! part under test sits behind a small trait, so that each evaluation is itself
//! tested with a fake whose score is known beforehand.
#![forbid(unsafe_code)]

pub mod asr;
pub mod connect;
pub mod demo;
pub mod episodes;
pub mod ghosts;
pub mod metrics;
pub mod noisy;
pub mod report;
pub mod retrieval;
pub mod soak;
pub mod speakers;
