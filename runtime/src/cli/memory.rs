//! `earwitness memory`: look at what is remembered, delete it, take it along, and
//! switch it off.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use earwitness::{desk, switch};
use earwitness_api::{
    message::{Request, Response},
    types::{RecordFilter, RecordId, Selection, Session, SessionId, Speaker, SpeakerId},
};
use jiff::Timestamp;

use super::{Common, archive, backend, backend::Backend, keeping, print};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// List records, oldest first
    List(List),
    /// Show one record whole
    Show {
        /// Its number
        id: u64,
    },
    /// Delete for good, everywhere, and give the space back
    Forget(Forget),
    /// Check that everything in the memory file agrees
    Verify,
    /// Rewrite the memory file without its gaps; needs as much free space as it takes
    Compact,
    /// Listen no longer, and neither read nor write the memory until it is on again
    Off,
    /// Switch the memory on again
    On,
    /// Make a key for a new, encrypted memory
    Key {
        /// The new file
        file: PathBuf,
    },
    /// Write everything into a file that another device can import; it is not encrypted
    Export {
        /// With the voices, so that people are recognised there
        #[arg(long)]
        voiceprints: bool,
        /// The new file
        file: PathBuf,
    },
    /// Fill a new memory from what was exported
    Import {
        /// The exported file
        file: PathBuf,
    },
}

#[derive(clap::Args)]
pub(super) struct List {
    /// Only this session
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Only what this speaker said: a number or a name
    #[arg(long, value_name = "SPEAKER")]
    speaker: Option<String>,
    /// Only the newest so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(desk::MAX_RECORDS)))]
    last: Option<u32>,
}

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(super) struct Forget {
    /// One record, by its number
    #[arg(long, value_name = "ID", group = "what")]
    record: Option<u64>,
    /// A whole session
    #[arg(long, value_name = "NAME", group = "what")]
    session: Option<String>,
    /// A person: everything they said, their voice and their name
    #[arg(long, value_name = "SPEAKER", group = "what")]
    speaker: Option<String>,
    /// Everything said from this moment on (RFC 3339), up to --until
    #[arg(long, value_name = "TIME", group = "what", requires = "until")]
    since: Option<Timestamp>,
    /// The first moment that is kept again
    #[arg(long, value_name = "TIME", requires = "since")]
    until: Option<Timestamp>,
}

pub(super) fn run(common: &Common, command: &Command) -> anyhow::Result<()> {
    match command {
        Command::List(list) => self::list(common, list),
        Command::Show { id } => show(common, RecordId(*id)),
        Command::Forget(args) => {
            let mut backend = Backend::open(common)?;
            let selection = selection(&mut backend, args)?;
            forget(common, &mut backend, selection)
        }
        Command::Verify => verify(common),
        Command::Compact => {
            done(&Backend::open(common)?.call(Request::Compact)?)?;
            say(common, "compacted")
        }
        Command::Off => set_switch(common, false),
        Command::On => set_switch(common, true),
        Command::Key { file } => keeping::make_key(common, file),
        Command::Export { voiceprints, file } => archive::export(common, file, *voiceprints),
        Command::Import { file } => archive::import(common, file),
    }
}

fn list(common: &Common, list: &List) -> anyhow::Result<()> {
    let mut backend = Backend::open(common)?;
    let speakers = backend.speakers()?;
    let sessions = sessions(&mut backend)?;
    let session = match &list.session {
        Some(name) => Some(session_named(&sessions, name)?.id),
        None => None,
    };
    let speaker = match &list.speaker {
        Some(who) => Some(backend.resolve(&backend::speaker_ref(who))?),
        None => None,
    };
    let filter = RecordFilter {
        session,
        speaker,
        ..RecordFilter::default()
    };
    let records = backend.records(filter, list.last)?;
    let mut shown = None;
    for record in records {
        if common.json {
            print::json(&record)?;
            continue;
        }
        if shown != Some(record.session) {
            shown = Some(record.session);
            print::line(&heading(&sessions, record.session))?;
        }
        print::line(&print::record(
            &record,
            name_of(&speakers, record.speaker.speaker),
        ))?;
    }
    Ok(())
}

fn show(common: &Common, id: RecordId) -> anyhow::Result<()> {
    let mut backend = Backend::open(common)?;
    let Response::Record(record) = backend.call(Request::ShowRecord(id))? else {
        bail!(
            "record {} could not be shown; try `earwitness memory verify`",
            id.0
        );
    };
    if common.json {
        return print::json(&record);
    }
    let speakers = backend.speakers()?;
    let sessions = sessions(&mut backend)?;
    let speaker = print::who(record.speaker, name_of(&speakers, record.speaker.speaker));
    print::line(&format!("record     {}", record.id.0))?;
    print::line(&format!(
        "session    {}",
        heading(&sessions, record.session)
    ))?;
    print::line(&format!("when       {}", print::moment(record.unix_ms)))?;
    print::line(&format!(
        "within     {} to {} ms of the session",
        record.start_ms, record.end_ms
    ))?;
    print::line(&format!(
        "speaker    {speaker} (score {:.3})",
        record.speaker.score
    ))?;
    print::line(&format!("text       {}", record.text))
}

/// Forgets and says how much.
pub(super) fn forget(
    common: &Common,
    backend: &mut Backend,
    selection: Selection,
) -> anyhow::Result<()> {
    match backend.call(Request::Forget(selection))? {
        Response::Forgotten(forgotten) if common.json => print::json(&forgotten),
        Response::Forgotten(forgotten) => print::line(&format!(
            "forgot {} records and {} voiceprints{}",
            forgotten.records,
            forgotten.voiceprints,
            if forgotten.reclaimed {
                ""
            } else {
                "; their space is given back once there is room to rewrite the file"
            }
        )),
        other => backend::unexpected(&other),
    }
}

/// What the options select.
fn selection(backend: &mut Backend, forget: &Forget) -> anyhow::Result<Selection> {
    if let Some(id) = forget.record {
        return Ok(Selection::Record(RecordId(id)));
    }
    if let Some(name) = &forget.session {
        return Ok(Selection::Session(
            session_named(&sessions(backend)?, name)?.id,
        ));
    }
    if let Some(who) = &forget.speaker {
        return Ok(Selection::Speaker(
            backend.resolve(&backend::speaker_ref(who))?,
        ));
    }
    let (Some(since), Some(until)) = (forget.since, forget.until) else {
        bail!("say what to forget: --record, --session, --speaker, or --since with --until");
    };
    ensure!(since < until, "--since must be before --until");
    Ok(Selection::TimeRange {
        from: since.as_millisecond(),
        to: until.as_millisecond(),
    })
}

fn verify(common: &Common) -> anyhow::Result<()> {
    let store = backend::store_alone(common, "verify")?;
    let findings = store.verify()?;
    if common.json {
        let details: Vec<&str> = findings
            .iter()
            .map(|finding| finding.detail.as_str())
            .collect();
        print::json(&serde_json::json!({ "findings": details }))?;
    } else {
        findings.iter().try_for_each(|finding| {
            print::line(&format!("{}: {}", finding.invariant, finding.detail))
        })?;
    }
    ensure!(
        findings.is_empty(),
        "{} findings; take a copy of {} and restore a good one",
        findings.len(),
        common.store().display()
    );
    if common.json {
        Ok(())
    } else {
        print::line("everything agrees")
    }
}

/// Through the daemon, which may be listening; else for whoever opens it next.
fn set_switch(common: &Common, on: bool) -> anyhow::Result<()> {
    let store = common.store();
    match backend::daemon(&store) {
        Some(mut daemon) => done(&daemon.call(Request::Switch { on })?)?,
        None => switch::set(&store, on).with_context(|| {
            format!(
                "cannot switch {}; check that its folder is there and may be written",
                store.display()
            )
        })?,
    }
    say(common, if on { "on" } else { "off" })
}

fn done(response: &Response) -> anyhow::Result<()> {
    match response {
        Response::Done => Ok(()),
        other => backend::unexpected(other),
    }
}

fn say(common: &Common, state: &str) -> anyhow::Result<()> {
    if common.json {
        return print::json(&serde_json::json!({ "memory": state }));
    }
    print::line(&format!("the memory is {state}"))
}

fn sessions(backend: &mut Backend) -> anyhow::Result<Vec<Session>> {
    match backend.call(Request::ListSessions)? {
        Response::Sessions(sessions) => Ok(sessions),
        other => backend::unexpected(&other),
    }
}

fn session_named<'s>(sessions: &'s [Session], name: &str) -> anyhow::Result<&'s Session> {
    sessions
        .iter()
        .find(|session| session.name == name)
        .with_context(|| {
            let known: Vec<&str> = sessions
                .iter()
                .map(|session| session.name.as_str())
                .collect();
            let others = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            format!("there is no session called {name:?}; there are: {others}")
        })
}

fn heading(sessions: &[Session], id: SessionId) -> String {
    sessions
        .iter()
        .find(|session| session.id == id)
        .map_or_else(
            || format!("session {}", id.0),
            |session| {
                format!(
                    "{} ({})",
                    session.name,
                    print::moment(session.started_unix_ms)
                )
            },
        )
}

fn name_of(speakers: &[Speaker], id: Option<SpeakerId>) -> Option<&str> {
    speakers
        .iter()
        .find(|speaker| Some(speaker.id) == id)?
        .name
        .as_deref()
}
