//! The memory on disk: records, retrieval keys, voices and people, in one file.
//!
//! A [`Store`] is opened by one process at a time and shared by its threads:
//! every method takes `&self`. Writes follow one another, each as one durable
//! transaction: what a method has returned survives a power cut. Reads see the
//! last committed state and do not wait for writes, save for the moments when
//! the file behind the store is exchanged.
//!
//! The retrieval keys are in memory as well, as an immutable [`KeyTable`] that a
//! reader keeps as long as it likes.
//!
//! A store is bounded ([`Limits`]) and can be sealed with a [`MasterKey`]. What
//! people agreed to says what is kept of them ([`Consent`], [`Retention`]).
//!
//! `DESIGN.md` in this crate has the layout of the file, its invariants by
//! name, and what is assumed of the medium below.
#![forbid(unsafe_code)]

mod append;
mod archive;
mod backend;
mod consent;
mod enrol;
mod error;
mod forget;
mod identity;
mod key;
mod keys;
mod limits;
pub mod medium;
mod merge;
mod migrate;
mod open;
mod read;
mod removal;
mod rewrite;
mod schema;
mod sessions;
mod speakers;
mod split;
mod store;
mod transaction;
mod turn;
mod vault;
mod verify;
mod voiceprint;
mod voices;

pub use append::{
    AppendError, Learned, MAX_ADDRESSEES, MAX_ATTACHMENTS, MAX_CAPTION_BYTES, MAX_GROUP,
    MAX_TEXT_BYTES, NewRecord, Speaking,
};
pub use archive::{ExportError, ImportError, MAX_LINE_BYTES};
pub use consent::{ConsentError, Retention};
pub use earwitness_api::types::{
    Consent, Forgotten, Identity, Merge, MergeReason, RecordFilter, Selection,
};
pub use enrol::{EnrolError, Enrolment};
pub use error::StorageError;
pub use forget::ForgetError;
pub use key::{Block, Key, KeyError, KeyLayout, MAX_SCALE};
pub use keys::{KeyTable, MAX_WEIGHT, Query, QueryError, Scored, Weights};
pub use limits::{Limits, RECORD_OVERHEAD_BYTES};
pub use merge::{MergeError, NewMerge, UnmergeError};
pub use open::{CACHE_BYTES, OpenError, Options};
pub use read::Stats;
pub use schema::VOICEPRINTS_PER_SPEAKER;
pub use sessions::SessionError;
pub use speakers::{MAX_NAME_BYTES, NameError};
pub use split::SplitError;
pub use store::Store;
pub use vault::{MasterKey, MasterKeyError};
pub use verify::Finding;
pub use voiceprint::{MAX_VOICEPRINT_DIM, VoiceprintError, VoiceprintModel};
pub use voices::{Voice, Voiceprint};
