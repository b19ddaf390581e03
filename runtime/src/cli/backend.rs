//! A request goes to the daemon that serves the store, or, where none runs, to
//! the store itself.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    os::unix::{
        fs::{DirBuilderExt, OpenOptionsExt},
        net::UnixStream,
    },
    path::Path,
};

use anyhow::{Context, bail};
use earwitness::{desk, paths};
use earwitness_api::{
    client::{Client, ClientError},
    message::{Request, Response, SpeakerRef},
    types::{Record, RecordFilter, Speaker, SpeakerId},
};
use earwitness_store::Store;

use super::Common;

/// Whoever answers requests about memory.
pub(super) enum Backend {
    Daemon(Box<Client<UnixStream>>),
    Store(Box<Store>),
}

impl Backend {
    /// The daemon if one runs, else the store.
    pub(super) fn open(common: &Common) -> anyhow::Result<Self> {
        let store = common.store();
        match daemon(&store) {
            Some(client) => Ok(Self::Daemon(Box::new(client))),
            None if !store.exists() => bail!(
                "there is no memory at {}; take in a recording with `earwitness ingest`, or name another with --store",
                store.display()
            ),
            None => Ok(Self::Store(Box::new(common.open_store()?))),
        }
    }

    /// Sends one request; an error response becomes an error.
    pub(super) fn call(&mut self, request: Request) -> anyhow::Result<Response> {
        match self {
            Self::Daemon(client) => Ok(client.call(request)?),
            Self::Store(store) => accepted(desk::answer(store, request)),
        }
    }

    /// Records that pass the filter, oldest first; the newest so many if `last`
    /// says so. Asks as often as it takes.
    pub(super) fn records(
        &mut self,
        filter: RecordFilter,
        last: Option<u32>,
    ) -> anyhow::Result<Vec<Record>> {
        if last.is_some() {
            let mut newest = self.some_records(RecordFilter {
                limit: last,
                newest_first: true,
                ..filter
            })?;
            newest.reverse();
            return Ok(newest);
        }
        let mut records = Vec::new();
        loop {
            let after = records.last().map(|record: &Record| record.id);
            let page = self.some_records(RecordFilter { after, ..filter })?;
            if page.is_empty() {
                return Ok(records);
            }
            records.extend(page);
        }
    }

    fn some_records(&mut self, filter: RecordFilter) -> anyhow::Result<Vec<Record>> {
        match self.call(Request::ListRecords(filter))? {
            Response::Records(records) => Ok(records),
            other => unexpected(&other),
        }
    }

    pub(super) fn speakers(&mut self) -> anyhow::Result<Vec<Speaker>> {
        match self.call(Request::ListSpeakers)? {
            Response::Speakers(speakers) => Ok(speakers),
            other => unexpected(&other),
        }
    }

    /// The speaker that a person means by a number or a name.
    pub(super) fn resolve(&mut self, who: &SpeakerRef) -> anyhow::Result<SpeakerId> {
        Ok(desk::find(&self.speakers()?, who)?)
    }
}

/// The store itself, for what a daemon does not do for others.
pub(super) fn store_alone(common: &Common, task: &str) -> anyhow::Result<Store> {
    match Backend::open(common)? {
        Backend::Store(store) => Ok(*store),
        Backend::Daemon(_) => bail!("a daemon is using this memory; stop it, then {task}"),
    }
}

/// A connection to the daemon that serves this store, if one does.
pub(super) fn daemon(store: &Path) -> Option<Client<UnixStream>> {
    Client::connect(&paths::socket_of(store)).ok()
}

/// An error response becomes an error.
pub(super) fn accepted(response: Response) -> anyhow::Result<Response> {
    match response {
        Response::Error { code, message } => Err(ClientError::Refused { code, message }.into()),
        response => Ok(response),
    }
}

/// For a response of another kind than the request asks for.
pub(super) fn unexpected<T>(response: &Response) -> anyhow::Result<T> {
    tracing::debug!(?response, "unexpected response");
    Err(ClientError::Unexpected.into())
}

/// A number is an id, anything else a name.
pub(super) fn speaker_ref(text: &str) -> SpeakerRef {
    match text.parse() {
        Ok(id) => SpeakerRef::Id(SpeakerId(id)),
        Err(_) => SpeakerRef::Name(text.to_owned()),
    }
}

/// Makes the folder of a new store, for its owner's eyes only.
pub(super) fn make_folder(store: &Path) -> anyhow::Result<()> {
    let Some(folder) = store
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    else {
        return Ok(());
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| {
            format!(
                "cannot make the folder {}; choose another place with --store",
                folder.display()
            )
        })
}

/// Makes a file for its owner's eyes only, where there is none.
pub(super) fn create_private(path: &Path) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path).with_context(|| {
        format!(
            "cannot make {}; name a new file in a writable folder",
            path.display()
        )
    })
}
