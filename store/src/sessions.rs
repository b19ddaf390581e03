//! Sessions: one stretch of recording each, with a name of its own.

use crate::error::StorageError;
use crate::schema::{SESSIONS, next_id, open, put, rows};
use crate::speakers::{MAX_NAME_BYTES, is_name};
use crate::store::Store;
use earwitness_api::types::{Session, SessionId};
use redb::WriteTransaction;

/// Why a session was not begun.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The name is taken.
    #[error("there is a session named {:?} already: choose another name", .0.name)]
    Exists(Session),
    /// The name is empty, too long, or holds control characters.
    #[error("a session's name has 1 to {MAX_NAME_BYTES} bytes that can be shown: choose another")]
    Name,
    /// The file failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Store {
    /// Begins a session. The name must not have been used in this store.
    pub fn begin_session(&self, name: &str, started_unix_ms: i64) -> Result<Session, SessionError> {
        if !is_name(name) {
            return Err(SessionError::Name);
        }
        let _writing = self.begin_writing();
        self.write(|transaction| begin(transaction, name, started_unix_ms))
    }

    /// All sessions, oldest first.
    pub fn sessions(&self) -> Result<Vec<Session>, StorageError> {
        self.read(|transaction| rows(&transaction.open_table(SESSIONS)?))
    }

    /// The session of that name.
    pub fn session_by_name(&self, name: &str) -> Result<Option<Session>, StorageError> {
        Ok(named(self.sessions()?, name))
    }
}

fn begin(
    transaction: &WriteTransaction,
    name: &str,
    started_unix_ms: i64,
) -> Result<Session, SessionError> {
    let mut table = open(transaction, SESSIONS)?;
    if let Some(session) = named(rows(&table)?, name) {
        return Err(SessionError::Exists(session));
    }
    let id = next_id(transaction, |last| &mut last.session)?;
    let session = Session {
        id: SessionId(id),
        name: name.to_owned(),
        started_unix_ms,
    };
    put(&mut table, id, &session)?;
    Ok(session)
}

fn named(sessions: Vec<Session>, name: &str) -> Option<Session> {
    sessions.into_iter().find(|session| session.name == name)
}
