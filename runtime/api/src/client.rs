//! A blocking client of the daemon over any byte stream.
//!
//! One request at a time: [`Client::call`] waits for its response. A program
//! that wants records as they come opens a second connection and subscribes.

use crate::connection::{Connection, ReceiveError, SendError};
use crate::message::{Envelope, ErrorCode, Request, Response};
use crate::types::Record;
use std::boxed::Box;
use std::io::{self, Read, Write};
use std::string::String;

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there.
    #[error("no daemon answers at {path} ({source}): start it with `earwitness run`")]
    Connect {
        /// The socket.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The request could not be sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The response could not be read.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// The daemon closed the connection.
    #[error("the daemon closed the connection before it answered: see its log, then try again")]
    Closed,
    /// The daemon answered something else than was asked for.
    #[error("the daemon's response does not belong to the request: update the older program")]
    Unexpected,
    /// The daemon refused.
    #[error("{message}")]
    Refused {
        /// What kind of failure.
        code: ErrorCode,
        /// The daemon's own words.
        message: String,
    },
}

/// A connection to the daemon.
#[derive(Debug)]
pub struct Client<S> {
    connection: Connection<S>,
    last_id: u32,
}

#[cfg(unix)]
impl Client<std::os::unix::net::UnixStream> {
    /// Connects to the daemon's Unix socket.
    pub fn connect(path: &std::path::Path) -> Result<Self, ClientError> {
        std::os::unix::net::UnixStream::connect(path)
            .map(Self::new)
            .map_err(|source| ClientError::Connect {
                path: path.display().to_string(),
                source,
            })
    }
}

impl<S: Read + Write> Client<S> {
    /// A client over a stream that leads to the daemon.
    pub fn new(stream: S) -> Self {
        Self {
            connection: Connection::new(stream),
            last_id: 0,
        }
    }

    /// Sends a request and waits for its response. A [`Response::Error`] comes
    /// back as [`ClientError::Refused`].
    pub fn call(&mut self, request: Request) -> Result<Response, ClientError> {
        self.last_id = self.last_id.wrapping_add(1);
        self.connection
            .send(&Envelope::new(self.last_id, request))?;
        self.response()
    }

    /// Turns the connection into a stream of records, each as soon as it is
    /// durable.
    pub fn subscribe(mut self) -> Result<Subscription<S>, ClientError> {
        match self.call(Request::Subscribe)? {
            Response::Subscribed => Ok(Subscription { client: self }),
            _ => Err(ClientError::Unexpected),
        }
    }

    /// Turns the connection into a stream of everything that is heard, words while
    /// they are spoken among it.
    pub fn follow(mut self) -> Result<Following<S>, ClientError> {
        match self.call(Request::Follow)? {
            Response::Subscribed => Ok(Following { client: self }),
            _ => Err(ClientError::Unexpected),
        }
    }

    fn response(&mut self) -> Result<Response, ClientError> {
        let envelope = self.connection.receive()?.ok_or(ClientError::Closed)?;
        if envelope.id != self.last_id {
            return Err(ClientError::Unexpected);
        }
        match envelope.body {
            Response::Error { code, message } => Err(ClientError::Refused { code, message }),
            response => Ok(response),
        }
    }
}

/// Records as they are acknowledged; ends when the daemon closes the connection.
#[derive(Debug)]
pub struct Subscription<S> {
    client: Client<S>,
}

impl<S: Read + Write> Iterator for Subscription<S> {
    type Item = Result<Box<Record>, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.client.response() {
            Ok(Response::Acknowledged(record)) => Some(Ok(record)),
            Ok(_) => Some(Err(ClientError::Unexpected)),
            Err(ClientError::Closed) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// [`Response::Partial`], [`Response::Transcript`] and [`Response::Acknowledged`] as
/// they come; ends when the daemon closes the connection.
#[derive(Debug)]
pub struct Following<S> {
    client: Client<S>,
}

impl<S: Read + Write> Iterator for Following<S> {
    type Item = Result<Response, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.client.response() {
            Err(ClientError::Closed) => None,
            response => Some(response),
        }
    }
}
