//! `earwitness speakers`: who was heard, and what they are called.

use earwitness_api::{
    message::{Request, Response},
    types::{Selection, Speaker},
};

use super::{Common, backend, backend::Backend, print};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// List everyone who was heard
    List,
    /// Give a speaker a name
    Name {
        /// The speaker's number or present name
        speaker: String,
        /// The new name
        name: String,
    },
    /// Delete a person: everything they said, their voice and their name
    Forget {
        /// The speaker's number or name
        speaker: String,
    },
}

pub(super) fn run(common: &Common, command: &Command) -> anyhow::Result<()> {
    let mut backend = Backend::open(common)?;
    match command {
        Command::List => {
            for speaker in backend.speakers()? {
                show(common, &speaker)?;
            }
            Ok(())
        }
        Command::Name { speaker, name } => {
            let speaker = backend.resolve(&backend::speaker_ref(speaker))?;
            match backend.call(Request::NameSpeaker {
                speaker,
                name: name.clone(),
            })? {
                Response::Speaker(speaker) => show(common, &speaker),
                other => backend::unexpected(&other),
            }
        }
        Command::Forget { speaker } => {
            let speaker = backend.resolve(&backend::speaker_ref(speaker))?;
            super::memory::forget(common, &mut backend, Selection::Speaker(speaker))
        }
    }
}

fn show(common: &Common, speaker: &Speaker) -> anyhow::Result<()> {
    if common.json {
        return print::json(speaker);
    }
    print::line(&format!(
        "{:>5}  {:<18}  {:>6} records  first heard {}  last heard {}",
        speaker.id.0,
        speaker.name.as_deref().unwrap_or("(no name)"),
        speaker.records,
        print::moment(speaker.first_heard_unix_ms),
        print::moment(speaker.last_heard_unix_ms)
    ))
}
