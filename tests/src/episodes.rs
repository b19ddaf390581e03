//! Reader of episodes, the one format of every data set.
//!
//! An episode is a folder with an `episode.json`; a data set is a folder of
//! episodes. Unknown fields are ignored. An episode that is malformed is refused
//! with its file, the JSON path and the reason, and the others still load. What
//! [`load_set`] hands out has been checked: ids are unique, every reference
//! leads somewhere, every audio file is there, and sessions and turns stand in
//! the order of time.

mod check;
mod format;
mod load;
#[cfg(test)]
mod tests;

pub use format::{Attachment, Episode, Participant, Question, Session, Turn};
pub use load::{EpisodeSet, LoadError, Refusal, load_set};
