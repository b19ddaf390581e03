//! SpokenTrace: dialogues over several sessions, and questions that only a memory
//! of who said what and when can answer (PERSIST, section 3 and appendix B).
//!
//! An episode is planned before anything is said: `plan` fixes the facts, their
//! states and speakers, the questions and their evidence; `realize` turns them
//! into two history sessions and a short current one; `validate` reads the
//! dialogue again and refuses an episode whose words do not bear out its plan.
//!
//! The three splits share no template, no value, no name and no voice: each list
//! of the grammar is divided by position when it is read.
//! The same seed gives the same episodes.

mod episode;
mod generate;
mod library;
mod phrase;
mod plan;
mod planner;
mod question;
mod realize;
mod schedule;
mod split;
#[cfg(test)]
mod tests;
mod validate;

pub use episode::{Episode, Participant, Question, Session, Turn};
pub use generate::{GenerateError, Generator};
pub use library::LibraryError;
pub use split::Split;
