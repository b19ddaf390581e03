//! `earwitness run`: the daemon.
//!
//! Its threads: one reads the source and never waits for models (a microphone has
//! its own callback thread in front of it), this one turns sound into records, one
//! a client answers requests, and one forgets what was kept long enough. A stop signal ends the
//! stream in good order: what is being said becomes a record first.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use earwitness::{
    capture::{AudioSource, CaptureError, FileSource, NodeSource, PcmFormat, PcmSource},
    hub::HubError,
    listen::{Account, Listener, Placement, Told},
    paths,
    serve::{self, Daemon},
};
use earwitness_store::{StorageError, Store};
use jiff::{Timestamp, tz::TimeZone};

use super::{Common, Hearing, print, summary::Summary};

/// Blocks of sound that may wait for the pipeline.
const BLOCKS: usize = 64;
/// How often a stop signal is looked for while no sound comes in.
const STOP_POLL: Duration = Duration::from_millis(100);
/// How often what is kept for a time only is looked through.
const EXPIRE_EVERY: Duration = Duration::from_hours(1);

#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    hearing: Hearing,
    /// Listen to a recording instead of the microphone
    #[arg(long, value_name = "FILE", conflicts_with = "pcm")]
    wav: Option<PathBuf>,
    /// Listen to raw 16-bit little-endian samples from a file or pipe; `-` is
    /// standard input
    #[arg(long, value_name = "FILE")]
    pcm: Option<PathBuf>,
    /// Listen to the microphone node at a serial port; several times for several nodes,
    /// of which the one that hears best is taken
    #[arg(long, value_name = "PORT", conflicts_with_all = ["wav", "pcm", "until_end"])]
    node: Vec<PathBuf>,
    /// Bits a second of the nodes' ports
    #[arg(long, value_name = "BAUD", default_value_t = 1_000_000, requires = "node",
          value_parser = clap::value_parser!(u32).range(115_200..))]
    node_rate: u32,
    /// Samples a second of --pcm
    #[arg(long, value_name = "HZ", default_value_t = 16_000, requires = "pcm")]
    rate: u32,
    /// Interleaved channels of --pcm
    #[arg(long, value_name = "N", default_value_t = 1, requires = "pcm")]
    channels: u16,
    /// Name of the session [default: the time it begins]
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// When the recording was made (RFC 3339) [default: now]
    #[arg(long, value_name = "TIME")]
    start: Option<Timestamp>,
    /// Stop when the sound ends, instead of answering questions until stopped
    #[arg(long)]
    until_end: bool,
}

pub(super) fn run(common: &Common, args: &Args) -> anyhow::Result<()> {
    let started = Instant::now();
    let stop = stop_flag()?;
    let daemon = Arc::new(Daemon::new(common.open_hub(&args.hearing)?));
    let mut summary = Summary::new(started.elapsed());
    // Before anybody can switch the memory off.
    let sound = start_reading(args, &stop)?;
    let listener = begin(args, &daemon)?;
    let socket = paths::socket_of(&common.store());
    let clients = serve::bind(&socket).with_context(|| {
        format!(
            "cannot serve at {}; choose a shorter or writable place with --store",
            socket.display()
        )
    })?;
    let server = Arc::clone(&daemon);
    thread::Builder::new()
        .name("serve".to_owned())
        .spawn(move || serve::serve(&server, &clients))?;
    expire_hourly(Arc::clone(&daemon))?;

    let heard = listen(common, &daemon, listener, &sound, &stop).and_then(|account| {
        summary.add(&account);
        summary.print(common, started.elapsed())
    });
    daemon.set_listening(false);
    if heard.is_ok() && !args.until_end {
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(STOP_POLL);
        }
    }
    // Another daemon cannot have bound it: this one still holds the store.
    let _ = std::fs::remove_file(&socket);
    heard
}

/// Forgets from now on, on a thread of its own, what was kept long enough.
fn expire_hourly(daemon: Arc<Daemon>) -> io::Result<()> {
    let expire = move || loop {
        let now = Timestamp::now().as_millisecond();
        match daemon.hub().store().expire(now) {
            Ok(forgotten) => tracing::debug!(records = forgotten.records, "expired"),
            Err(StorageError::Off) => {}
            Err(error) => tracing::error!(%error, "what is too old was not forgotten"),
        }
        daemon.hub().follow_store();
        thread::sleep(EXPIRE_EVERY);
    };
    let thread = thread::Builder::new().name("expire".to_owned());
    thread.spawn(expire).map(drop)
}

fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .context("cannot listen for stop signals")?;
    }
    Ok(stop)
}

/// A listener at the start of a new session.
fn begin<'d>(args: &Args, daemon: &'d Daemon) -> anyhow::Result<Listener<'d>> {
    let now = args.start.unwrap_or_else(Timestamp::now);
    let store = daemon.hub().store();
    let name = match &args.session {
        Some(name) => name.clone(),
        None => unused_name(store, now)?,
    };
    let session = store.begin_session(&name, now.as_millisecond())?;
    let listener = Listener::new(daemon.hub(), session, Placement::default())?;
    tracing::info!(session = name, "listening");
    Ok(listener)
}

/// The start as a name for a session that nobody has named. A daemon may come up
/// twice within a second, so a number follows where the name is taken.
fn unused_name(store: &Store, start: Timestamp) -> Result<String, StorageError> {
    let start = start
        .to_zoned_datetime(TimeZone::system())
        .strftime("live %Y-%m-%d %H:%M:%S")
        .to_string();
    let mut name = start.clone();
    let mut number = 1;
    while store.session_by_name(&name)?.is_some() {
        number += 1;
        name = format!("{start} ({number})");
    }
    Ok(name)
}

fn listen(
    common: &Common,
    daemon: &Daemon,
    mut listener: Listener<'_>,
    sound: &Receiver<Block>,
    stop: &AtomicBool,
) -> anyhow::Result<Account> {
    daemon.set_listening(true);
    let mut tell = |told: Told<'_>| {
        daemon.publish(told);
        if let Err(error) = print::told(common, daemon.hub(), told) {
            tracing::debug!(%error, "a record could not be printed");
        }
    };
    let mut waiting = BLOCKS;
    let mut lost = 0;
    let ended = loop {
        // A stop takes in what is captured already, and no more.
        let stopping = stop.load(Ordering::Relaxed);
        if stopping && waiting == 0 {
            break Ok(());
        }
        waiting -= usize::from(stopping);
        let patience = if stopping { Duration::ZERO } else { STOP_POLL };
        match sound.recv_timeout(patience) {
            Ok(Ok(mut block)) => {
                if !daemon.hub().store().is_on() {
                    // Silence in its place keeps the session's time.
                    block.fill(0.0);
                }
                settle(listener.push(&block, &mut tell), &mut lost)?;
            }
            Ok(Err(error)) => break Err(error),
            Err(RecvTimeoutError::Timeout) if stopping => break Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Ok(()),
        }
    };
    settle(listener.finish(&mut tell), &mut lost)?;
    settle(daemon.hub().reconcile().map(drop), &mut lost)?;
    tracing::info!("the sound has ended");
    ended?;
    if lost > 0 {
        bail!(
            "{lost} turns could not be recorded; see the reasons above, and make room on the disk"
        );
    }
    Ok(listener.account().clone())
}

/// A record that could not be written (a full disk, say) is lost and said so;
/// the daemon goes on, and writes again when it can. What was being said when the
/// memory was switched off is not to be kept.
fn settle(outcome: Result<(), HubError>, lost: &mut u64) -> Result<(), HubError> {
    match outcome {
        Err(error) if error.is_off() => Ok(()),
        Err(HubError::Append(error)) => {
            tracing::error!(%error, "a turn was not recorded");
            *lost += 1;
            Ok(())
        }
        outcome => outcome,
    }
}

type Block = Result<Vec<f32>, CaptureError>;

/// Reads the source on a thread of its own. The source is opened there too,
/// since a sound card's stream stays with its thread; this waits until it is.
fn start_reading(args: &Args, stop: &AtomicBool) -> anyhow::Result<Receiver<Block>> {
    let (opened_sender, opened) = mpsc::sync_channel(1);
    let (sender, receiver) = mpsc::sync_channel(BLOCKS);
    let open = opener(args)?;
    thread::Builder::new()
        .name("capture".to_owned())
        .spawn(move || match open() {
            Ok(source) => {
                let _ = opened_sender.send(Ok(()));
                read_all(source, &sender);
            }
            Err(error) => {
                let _ = opened_sender.send(Err(error));
            }
        })?;
    loop {
        match opened.recv_timeout(STOP_POLL) {
            Ok(outcome) => return Ok(outcome.map(|()| receiver)?),
            Err(RecvTimeoutError::Disconnected) => {
                bail!("the capture thread ended early; start again")
            }
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                bail!("stopped before the sound began")
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

type Opener = Box<dyn FnOnce() -> Result<Box<dyn AudioSource>, CaptureError> + Send>;

fn opener(args: &Args) -> anyhow::Result<Opener> {
    if let Some(path) = args.wav.clone() {
        return Ok(Box::new(move || Ok(Box::new(FileSource::open(&path)?))));
    }
    if let Some(path) = args.pcm.clone() {
        let format = PcmFormat {
            rate_hz: args.rate,
            channels: args.channels,
        };
        return Ok(Box::new(move || open_pcm(path, format)));
    }
    if !args.node.is_empty() {
        let (nodes, rate) = (args.node.clone(), args.node_rate);
        return Ok(Box::new(move || {
            Ok(Box::new(NodeSource::open(&nodes, rate)?))
        }));
    }
    microphone()
}

fn open_pcm(path: PathBuf, format: PcmFormat) -> Result<Box<dyn AudioSource>, CaptureError> {
    let name = path.display().to_string();
    if name == "-" {
        return Ok(Box::new(PcmSource::new(
            "standard input",
            io::stdin(),
            format,
        )?));
    }
    let file = std::fs::File::open(&path).map_err(|source| CaptureError::Io { path, source })?;
    Ok(Box::new(PcmSource::new(&name, file, format)?))
}

#[cfg(feature = "mic")]
fn microphone() -> anyhow::Result<Opener> {
    Ok(Box::new(|| {
        Ok(Box::new(earwitness::capture::Microphone::open()?))
    }))
}

#[cfg(not(feature = "mic"))]
fn microphone() -> anyhow::Result<Opener> {
    bail!(
        "this program was built without microphone input; use --wav or --pcm, or build it with the feature `mic`"
    )
}

fn read_all(mut source: Box<dyn AudioSource>, sender: &SyncSender<Block>) {
    loop {
        let mut block = Vec::new();
        let more = source.read(&mut block);
        if !block.is_empty() && sender.send(Ok(block)).is_err() {
            return;
        }
        match more {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                let _ = sender.send(Err(error));
                return;
            }
        }
    }
}
