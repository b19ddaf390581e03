//! The message API over a serial port.
//!
//! What a client at the other end of the wire says goes to the daemon's socket, and
//! the answers go back: frames are delimited, so the wire needs nothing of its own.
//! One client at a time. A port whose other end is not there is looked at again and
//! again, which costs next to nothing.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::{fd::AsFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// How long to wait where the other end, or the daemon, is not there.
const PAUSE: Duration = Duration::from_millis(100);
/// Bytes that are carried at a time.
const BLOCK: usize = 4096;

/// Serves on a thread of its own, for as long as the hub runs.
pub fn start(port: PathBuf, socket: PathBuf) -> io::Result<()> {
    let mut wire = OpenOptions::new().read(true).write(true).open(port)?;
    let serve = move || {
        loop {
            // A client that went away, or a daemon that was started anew, ends one
            // conversation and no more.
            let _ = converse(&mut wire, &socket);
            thread::sleep(PAUSE);
        }
    };
    let thread = thread::Builder::new().name("bridge".to_owned());
    thread.spawn(serve).map(drop)
}

/// One conversation, from the first byte that comes in until either end is gone.
fn converse(wire: &mut File, socket: &Path) -> io::Result<()> {
    if !wait(wire)? {
        return Ok(());
    }
    let mut daemon = UnixStream::connect(socket)?;
    loop {
        let mut ends = [
            PollFd::new(wire.as_fd(), PollFlags::POLLIN),
            PollFd::new(daemon.as_fd(), PollFlags::POLLIN),
        ];
        poll(&mut ends, PollTimeout::NONE)?;
        let [from_wire, from_daemon] = ends.map(|end| end.any().unwrap_or(true));
        if from_wire && !carry(wire, &mut daemon)? {
            return Ok(());
        }
        if from_daemon && !carry(&mut daemon, wire)? {
            return Ok(());
        }
    }
}

/// Waits for the other end to say something; false where it is not there.
fn wait(wire: &File) -> io::Result<bool> {
    let mut end = [PollFd::new(wire.as_fd(), PollFlags::POLLIN)];
    poll(&mut end, PollTimeout::NONE)?;
    let state = end[0].revents().unwrap_or(PollFlags::POLLHUP);
    Ok(state.contains(PollFlags::POLLIN))
}

/// Carries what has come in; false where the end is gone.
fn carry(from: &mut impl Read, to: &mut impl Write) -> io::Result<bool> {
    let mut block = [0; BLOCK];
    let length = from.read(&mut block)?;
    to.write_all(&block[..length])?;
    Ok(length > 0)
}

#[cfg(test)]
mod tests {
    use std::os::{fd::OwnedFd, unix::net::UnixListener};

    use super::*;

    #[test]
    fn one_client_after_another_is_answered() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("daemon.sock");
        let daemon = UnixListener::bind(&socket).unwrap();
        let echo = thread::spawn(move || {
            for _ in 0..2 {
                let (mut client, _) = daemon.accept().unwrap();
                let mut word = [0; 4];
                client.read_exact(&mut word).unwrap();
                client.write_all(&word).unwrap();
            }
        });
        for word in [b"ask?", b"and?"] {
            let (mut client, port) = UnixStream::pair().unwrap();
            let mut wire = File::from(OwnedFd::from(port));
            let socket = socket.clone();
            let bridge = thread::spawn(move || converse(&mut wire, &socket));
            client.write_all(word).unwrap();
            let mut answer = [0; 4];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, word);
            drop(client);
            bridge.join().unwrap().unwrap();
        }
        echo.join().unwrap();
    }
}
