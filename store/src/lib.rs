//! The memory on disk: records, retrieval keys, voiceprints and people.
