//! The pipeline from sound to answer.
