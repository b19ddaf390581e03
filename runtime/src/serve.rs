//! The daemon's side of the message API: requests over a Unix socket.
//!
//! Each client has a thread of its own; at most [`MAX_CLIENTS`] are served at a
//! time and further ones are told so. A subscriber that reads too slowly is
//! dropped rather than waited for: it can list what it missed. The socket can be
//! used by its owner only.

use std::{
    fs,
    io::{self, Read},
    os::unix::{
        fs::{FileTypeExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    thread,
    time::{Duration, Instant},
};

use earwitness_api::{
    connection::{Connection, ReceiveError},
    message::{Envelope, ErrorCode, Request, Response, Status},
};

use crate::{desk, hub::Hub, listen::Told};

/// Clients served at a time.
pub const MAX_CLIENTS: usize = 16;
/// Messages that may wait for one subscriber.
const SUBSCRIBER_QUEUE: usize = 64;
/// How often a subscriber is looked after while no records come.
const SUBSCRIBER_POLL: Duration = Duration::from_millis(500);
/// How long a client may keep a place without asking anything.
const IDLE_LIMIT: Duration = Duration::from_secs(300);

/// A daemon: the hub and those who listen to it.
pub struct Daemon {
    hub: Hub,
    started: Instant,
    clients: AtomicUsize,
    listening: AtomicBool,
    subscribers: Mutex<Vec<Subscriber>>,
}

/// A client that is told of what is heard.
struct Subscriber {
    queue: SyncSender<Response>,
    /// Whether it wants words while they are spoken, and not records alone.
    follows: bool,
}

impl Daemon {
    /// A daemon that serves a hub.
    pub fn new(hub: Hub) -> Self {
        Self {
            hub,
            started: Instant::now(),
            clients: AtomicUsize::new(0),
            listening: AtomicBool::new(false),
            subscribers: Mutex::default(),
        }
    }

    /// The hub it serves.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Says whether sound is coming in.
    pub fn set_listening(&self, listening: bool) {
        self.listening.store(listening, Ordering::Relaxed);
    }

    /// Tells every subscriber what has been heard.
    pub fn publish(&self, told: Told<'_>) {
        let (message, is_record) = match told {
            Told::Partial(partial) => (Response::Partial(partial.clone()), false),
            Told::Transcript(said) => (Response::Transcript(Box::new(said.clone())), false),
            Told::Record(record) => (Response::Acknowledged(Box::new(record.clone())), true),
        };
        let mut subscribers = self
            .subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|subscriber| {
            !(subscriber.follows || is_record) || subscriber.queue.try_send(message.clone()).is_ok()
        });
    }

    fn subscribe(&self, follows: bool) -> Receiver<Response> {
        let (queue, receiver) = mpsc::sync_channel(SUBSCRIBER_QUEUE);
        self.subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Subscriber { queue, follows });
        receiver
    }

    fn respond(&self, request: Request) -> Response {
        match request {
            Request::Ask(ask) => desk::ask(&self.hub, ask),
            Request::Prepare(text) => desk::prepare(&self.hub, &text),
            Request::Enrol(enrol) => desk::enrol(&self.hub, &enrol),
            Request::EstimateVoices => desk::estimate_voices(&self.hub),
            Request::Switch { on } => desk::switch(&self.hub, on),
            Request::Write(write) => desk::write(&self.hub, &write),
            Request::Status => self
                .status()
                .unwrap_or_else(|error| desk::failure(ErrorCode::Unavailable, &error)),
            other => {
                let response = desk::answer(self.hub.store(), other);
                self.hub.follow_store();
                response
            }
        }
    }

    fn status(&self) -> Result<Response, earwitness_store::StorageError> {
        let stats = self.hub.store().stats()?;
        Ok(Response::Status(Status {
            uptime_ms: self.started.elapsed().as_millis() as u64,
            listening: self.listening.load(Ordering::Relaxed),
            writable: stats.writable,
            sessions: stats.sessions,
            records: stats.records,
            speakers: stats.speakers,
            store_bytes: stats.bytes,
        }))
    }
}

/// Binds the socket. The caller holds the store, so a socket that is still there
/// was left behind by a daemon that is gone. Anything else there is left alone,
/// and binding fails.
pub fn bind(socket: &Path) -> io::Result<UnixListener> {
    if fs::symlink_metadata(socket).is_ok_and(|found| found.file_type().is_socket()) {
        fs::remove_file(socket)?;
    }
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Serves clients until the process ends.
pub fn serve(daemon: &Arc<Daemon>, listener: &UnixListener) {
    for stream in listener.incoming() {
        match stream {
            Ok(stream) => accept(daemon, stream),
            Err(error) => tracing::warn!(%error, "a client could not be accepted"),
        }
    }
}

fn accept(daemon: &Arc<Daemon>, stream: UnixStream) {
    let served = daemon.clients.fetch_add(1, Ordering::Relaxed);
    let guard = Served(Arc::clone(daemon));
    let work = move || {
        let mut connection = Connection::new(stream);
        if served >= MAX_CLIENTS {
            refuse(&mut connection);
        } else if let Err(error) = converse(&guard.0, &mut connection) {
            tracing::debug!(%error, "a client left");
        }
    };
    if let Err(error) = thread::Builder::new().name("client".to_owned()).spawn(work) {
        tracing::warn!(%error, "no thread for a client");
    }
}

/// Answers the first request of a client for whom there is no place.
fn refuse(connection: &mut Connection<UnixStream>) {
    let _ = connection.stream().set_read_timeout(Some(SUBSCRIBER_POLL));
    if let Ok(Some(Envelope { id, .. })) = connection.receive::<Request>() {
        let busy = desk::failure(ErrorCode::Unavailable, &"too many clients; try again later");
        let _ = connection.send(&Envelope::new(id, busy));
    }
}

/// Counts a client for as long as it lives.
struct Served(Arc<Daemon>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

fn converse(
    daemon: &Daemon,
    connection: &mut Connection<UnixStream>,
) -> Result<(), Box<dyn std::error::Error>> {
    connection.stream().set_read_timeout(Some(IDLE_LIMIT))?;
    loop {
        match connection.receive::<Request>() {
            Ok(None) => return Ok(()),
            Ok(Some(Envelope {
                id,
                body: request @ (Request::Subscribe | Request::Follow),
                ..
            })) => {
                let follows = request == Request::Follow;
                return stream(daemon, connection, id, follows);
            }
            Ok(Some(Envelope { id, body, .. })) => {
                connection.send(&Envelope::new(id, daemon.respond(body)))?;
            }
            Err(ReceiveError::Refused(refusal)) => {
                let response = desk::failure(ErrorCode::BadRequest, &refusal);
                connection.send(&Envelope::new(0, response))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn stream(
    daemon: &Daemon,
    connection: &mut Connection<UnixStream>,
    id: u32,
    follows: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let messages = daemon.subscribe(follows);
    connection.send(&Envelope::new(id, Response::Subscribed))?;
    loop {
        match messages.recv_timeout(SUBSCRIBER_POLL) {
            Ok(message) => connection.send(&Envelope::new(id, message))?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) if has_left(connection.stream()) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Whether a subscriber, who has nothing more to say, has closed its end.
fn has_left(mut stream: &UnixStream) -> bool {
    let looked = stream
        .set_nonblocking(true)
        .and_then(|()| stream.read(&mut [0]));
    let restored = stream.set_nonblocking(false);
    matches!(looked, Ok(0)) || restored.is_err()
}
