//! What was said: words while they are spoken, and their written form.

mod live;
pub mod written;

pub use live::{Live, LiveOptions, Shown};
