//! An emulated node, and the two wires to it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use earwitness_api::frame;
use earwitness_api::node::{NodeMessage, NodeRequest};
use earwitness_node::link::{Counters, Event, NodeLink};

/// How long the emulator may take to start, and the node to say anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running emulator; dropping it ends it.
pub struct Emulator {
    process: Child,
    link: TcpStream,
    microphone: TcpStream,
    frames: NodeLink,
}

impl Emulator {
    /// Starts `command` with the addresses of our ports in its arguments.
    pub fn start(command: &[String]) -> Result<Self> {
        let (link, microphone) = (listen()?, listen()?);
        let address = |port: &TcpListener| port.local_addr().map(|address| address.to_string());
        let (link_at, microphone_at) = (address(&link)?, address(&microphone)?);
        let words = command.iter().map(|word| {
            word.replace("{link}", &link_at)
                .replace("{microphone}", &microphone_at)
        });
        let words: Vec<String> = words.collect();
        let (program, arguments) = words.split_first().context("no emulator was named")?;
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start `{program}`"))?;
        let streams = accept(&link, &mut process).and_then(|link| {
            let microphone = accept(&microphone, &mut process)?;
            Ok((link, microphone))
        });
        let (link, microphone) = streams.inspect_err(|_| end(&mut process))?;
        Ok(Self {
            process,
            link,
            microphone,
            frames: NodeLink::default(),
        })
    }

    /// Sends a request over the link.
    pub fn ask(&mut self, request: NodeRequest) -> Result<()> {
        let mut buffer = [0; 64];
        let bytes = frame::encode(&NodeMessage::new(request), &mut buffer)?;
        Ok(self.link.write_all(bytes)?)
    }

    /// Lets the microphone hear samples, as fast as the node takes them.
    pub fn play(&mut self, samples: &[i16]) {
        let bytes: Vec<u8> = samples
            .iter()
            .flat_map(|sample| sample.to_le_bytes())
            .collect();
        let wire = self.microphone.try_clone();
        // If this fails the node falls silent, and who waits for it says so.
        thread::spawn(move || wire.and_then(|mut wire| wire.write_all(&bytes)));
    }

    /// Waits for bytes from the link and hands on what they say.
    pub fn receive(&mut self, emit: impl FnMut(Event)) -> Result<()> {
        let mut bytes = [0; 4096];
        match self.link.read(&mut bytes) {
            Ok(0) => bail!("the emulator ended by itself; what it said is above"),
            Ok(count) => self.frames.feed(&bytes[..count], emit),
            Err(error) => {
                return Err(error).context("the node fell silent");
            }
        }
        Ok(())
    }

    /// What came over the link.
    pub fn counters(&self) -> Counters {
        self.frames.counters()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// Ends a process, whether or not it still runs.
fn end(process: &mut Child) {
    let _ = process.kill();
    let _ = process.wait();
}

fn listen() -> Result<TcpListener> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("cannot open a port")?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The emulator's end of a wire.
fn accept(listener: &TcpListener, process: &mut Child) -> Result<TcpStream> {
    let begun = Instant::now();
    loop {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(false)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            return Ok(stream);
        }
        if let Some(status) = process.try_wait()? {
            bail!("the emulator ended at once ({status}); what it said is above");
        }
        ensure!(begun.elapsed() < PATIENCE, "the emulator does not start");
        thread::sleep(Duration::from_millis(10));
    }
}
