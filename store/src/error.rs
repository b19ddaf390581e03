//! Failures of the file below the store, shared by every operation.

/// The file could not do what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// Reading or writing failed; nothing acknowledged is lost.
    #[error(
        "the memory's file failed ({0}): check the disk and its free space, then try again; \
         nothing acknowledged is lost"
    )]
    Failed(String),
    /// The memory is switched off.
    #[error("the memory is switched off: nothing is read or written until it is switched on")]
    Off,
    /// What was read is not what the store wrote.
    #[error("the memory's file is damaged ({0}): run `earwitness memory verify`")]
    Damaged(String),
}

impl<E: Into<redb::Error>> From<E> for StorageError {
    fn from(error: E) -> Self {
        match error.into() {
            redb::Error::Corrupted(what) => Self::Damaged(what),
            error @ (redb::Error::TableTypeMismatch { .. }
            | redb::Error::TableIsMultimap(_)
            | redb::Error::TypeDefinitionChanged { .. }
            | redb::Error::TableDoesNotExist(_)) => Self::Damaged(error.to_string()),
            error => Self::Failed(error.to_string()),
        }
    }
}
