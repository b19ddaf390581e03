//! Sessions: one stretch of recording each, with a name of its own.

use crate::error::StorageError;
use crate::limits::count_evicted;
use crate::removal::Removal;
use crate::schema::{SESSIONS, next_id, put, rows};
use crate::speakers::{MAX_NAME_BYTES, is_name};
use crate::store::Store;
use crate::transaction::{Change, NOBODY};
use earwitness_api::types::{Session, SessionId};
use redb::{ReadableTable, ReadableTableMetadata};

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
    /// Begins a session. No other of this name may be kept. Where there are as
    /// many as the limits allow, the oldest is evicted with its records.
    pub fn begin_session(&self, name: &str, started_unix_ms: i64) -> Result<Session, SessionError> {
        if !is_name(name) {
            return Err(SessionError::Name);
        }
        let _writing = self.begin_writing();
        let (session, removal) = self.write(|change| {
            let session = begin(change, name, started_unix_ms)?;
            Ok::<_, SessionError>((session, evict(change, self.limits.sessions)?))
        })?;
        self.change_keys(|keys| keys.remove(&removal.records));
        self.keep_reserve();
        Ok(session)
    }

    /// All sessions, oldest first.
    pub fn sessions(&self) -> Result<Vec<Session>, StorageError> {
        self.read(|snapshot| rows(snapshot, SESSIONS))
    }

    /// The session of that name.
    pub fn session_by_name(&self, name: &str) -> Result<Option<Session>, StorageError> {
        Ok(named(self.sessions()?, name))
    }
}

fn begin(change: &Change<'_>, name: &str, started_unix_ms: i64) -> Result<Session, SessionError> {
    if let Some(session) = named(rows(change, SESSIONS)?, name) {
        return Err(SessionError::Exists(session));
    }
    let id = next_id(change, |last| &mut last.session)?;
    let session = Session {
        id: SessionId(id),
        name: name.to_owned(),
        started_unix_ms,
    };
    put(change, SESSIONS, id, NOBODY, &session)?;
    Ok(session)
}

/// Evicts the oldest session where there are more than may be.
fn evict(change: &Change<'_>, most: u32) -> Result<Removal, StorageError> {
    let (sessions, oldest) = {
        let table = change.open(SESSIONS)?;
        let oldest = table.first()?.map_or(0, |(id, _)| id.value());
        (table.len()?, SessionId(oldest))
    };
    if sessions <= u64::from(most.max(1)) {
        return Ok(Removal::default());
    }
    let removal = Removal::of_session(change, oldest)?;
    removal.carry_out(change)?;
    count_evicted(change, removal.records.len() as u64)?;
    Ok(removal)
}

fn named(sessions: Vec<Session>, name: &str) -> Option<Session> {
    sessions.into_iter().find(|session| session.name == name)
}
