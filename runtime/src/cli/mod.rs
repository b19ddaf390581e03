//! The command line: what people type, and how it exits.
//!
//! Results go to standard output, progress and logs to standard error. Exit
//! status: 0 done, 1 it failed (the last line on standard error says why and
//! what to do), 2 wrong usage.

mod archive;
mod ask;
mod backend;
mod doctor;
mod enroll;
mod ingest;
mod keeping;
mod memory;
mod print;
mod run;
mod speakers;
mod summary;

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, ensure};
use clap::{Args, Parser, Subcommand};
use earwitness::{
    answer::extractive::Extractive,
    describe,
    hub::{Hub, HubOptions},
    paths, switch,
    transcribe::LiveOptions,
};
use earwitness_models::manifest::Kind;
use earwitness_store::Store;
use jiff::tz::TimeZone;
use tracing_subscriber::EnvFilter;

/// Hears several people, and remembers who said what to whom, and when.
#[derive(Parser)]
#[command(name = "earwitness", version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(Args)]
struct Common {
    /// The memory file [default: below the user's data folder]
    #[arg(long, global = true, env = "EARWITNESS_STORE", value_name = "FILE")]
    store: Option<PathBuf>,
    /// The folder of the model packs
    #[arg(long, global = true, env = "EARWITNESS_PACKS", value_name = "DIR")]
    packs: Option<PathBuf>,
    /// Which voiceprint pack to use: VARIANT is the folder voiceprint-VARIANT
    /// [default: the folder voiceprint]
    #[arg(
        long,
        global = true,
        env = "EARWITNESS_VOICEPRINT",
        value_name = "VARIANT"
    )]
    voiceprint: Option<String>,
    #[command(flatten)]
    keeping: keeping::Keeping,
    /// Print JSON, one object a line, and nothing else
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Listen, remember, and serve the message API
    Run(run::Args),
    /// Take recordings into memory
    Ingest(ingest::Args),
    /// Ask a question
    Ask(ask::Args),
    /// Look at what is remembered, delete it, take it along, and switch it off
    #[command(subcommand)]
    Memory(memory::Command),
    /// See, name, enroll, merge and split the people who were heard
    #[command(subcommand)]
    Speakers(speakers::Command),
    /// Say what is missing or wrong on this device, and the fix
    Doctor(doctor::Args),
}

impl Common {
    fn store(&self) -> PathBuf {
        self.store.clone().unwrap_or_else(paths::default_store)
    }

    fn packs(&self) -> PathBuf {
        self.packs.clone().unwrap_or_else(paths::default_packs)
    }

    /// Which variant of a kind of pack was asked for.
    fn variant(&self, kind: Kind) -> Option<&str> {
        match kind {
            Kind::Voiceprint => self.voiceprint.as_deref(),
            _ => None,
        }
    }

    /// Opens the memory, or makes a new one in a folder that is there.
    fn open_store(&self) -> anyhow::Result<Store> {
        self.check_on()?;
        let options = self.keeping.options()?;
        Ok(Store::open_with(&self.store(), options)?)
    }

    fn check_on(&self) -> anyhow::Result<()> {
        ensure!(
            switch::is_on(&self.store()),
            "the memory is switched off: nothing is read or written until `earwitness memory on`"
        );
        Ok(())
    }

    /// Loads the models and opens the store, whose folder is made if need be.
    fn open_hub(&self, hearing: &Hearing) -> anyhow::Result<Hub> {
        self.check_on()?;
        let store = self.store();
        backend::make_folder(&store)?;
        let answerer = Box::new(Extractive::new(TimeZone::system()));
        let options = HubOptions {
            voiceprint: self.voiceprint.clone(),
            memory: self.keeping.options()?,
            ..hearing.options()?
        };
        Ok(Hub::open(&self.packs(), &store, answerer, options)?)
    }
}

/// How words are recognised.
#[derive(Args, Default)]
struct Hearing {
    /// Show words while they are spoken
    #[arg(long)]
    partials: bool,
    /// Names and places that are spoken of here, one a line, so that they are
    /// recognised more readily; the names of speakers are known already
    #[arg(long, env = "EARWITNESS_LEXICON", value_name = "FILE")]
    lexicon: Option<PathBuf>,
}

impl Hearing {
    fn options(&self) -> anyhow::Result<HubOptions> {
        let household = match &self.lexicon {
            None => Vec::new(),
            Some(path) => std::fs::read_to_string(path)
                .with_context(|| format!("cannot read the lexicon {}", path.display()))?
                .lines()
                .map(str::to_owned)
                .collect(),
        };
        Ok(HubOptions {
            partials: self.partials.then(LiveOptions::default),
            household,
            ..HubOptions::default()
        })
    }
}

pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    tracing_subscriber::fmt()
        .with_env_filter(
            EnvFilter::try_from_env("EARWITNESS_LOG")
                .unwrap_or_else(|_| EnvFilter::new("warn,earwitness=info,tract=error")),
        )
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .with_writer(io::stderr)
        .init();
    match dispatch(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("earwitness: {}", describe(&error));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(cli: &Cli) -> anyhow::Result<()> {
    let common = &cli.common;
    match &cli.command {
        Command::Run(args) => run::run(common, args),
        Command::Ingest(args) => ingest::run(common, args),
        Command::Ask(args) => ask::run(common, args),
        Command::Memory(command) => memory::run(common, command),
        Command::Speakers(command) => speakers::run(common, command),
        Command::Doctor(args) => doctor::run(common, args),
    }
}

/// Whoever read our output has seen enough: `earwitness memory list | head`.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
