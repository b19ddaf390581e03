//! The hub's end of microphone nodes: bytes of several links in, one stream of
//! 16 kHz sound out.
//!
//! | module | what it does |
//! |---|---|
//! | [`link`] | frames of one node, and what is missing between them |
//! | [`clock`] | a node's clock in the hub's time: offset and drift |
//! | [`timeline`] | the last two seconds of one node, and how loud it is over its noise |
//! | [`mod@array`] | several nodes on one time axis, and the best of them |
//!
//! Nothing here opens a port, reads a clock or starts a thread: bytes come with
//! their time of arrival, so that everything can be replayed. Node counts, buffers
//! and windows are bounded; what does not fit is dropped and counted.
//!
//! Limits: nodes are aligned to the sample, as good as the smallest delay of their
//! links is constant; that serves choosing one of them, and not adding them up.

pub mod array;
pub mod clock;
pub mod link;
pub mod timeline;
