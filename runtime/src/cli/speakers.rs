//! `earwitness speakers`: who was heard, what they are called, and which voices
//! are one person.

use std::path::PathBuf;

use earwitness_api::{
    message::{Request, Response},
    types::{Consent, Identity, Merge, RecordId, Selection, Speaker, SpeakerId},
};
use serde::Serialize;

use super::{Common, backend, backend::Backend, enroll, print};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// List everyone who was heard
    List,
    /// Learn somebody's voice on purpose
    Enroll {
        /// The person's name
        name: String,
        /// Recordings of that person alone: WAV or FLAC, 30 s in all at most
        #[arg(long, value_name = "FILE", num_args = 1.., required_unless_present = "mic")]
        wav: Vec<PathBuf>,
        /// Listen to the microphone, and say what to say
        #[arg(long, conflicts_with = "wav")]
        mic: bool,
    },
    /// Give a speaker a name
    Name {
        /// The speaker's number or present name
        speaker: String,
        /// The new name
        name: String,
    },
    /// Two speakers are one person
    Merge {
        /// The number or name of the speaker that stays
        into: String,
        /// The number or name of the speaker that becomes part of it
        from: String,
        /// Also where the two have different names
        #[arg(long)]
        force: bool,
    },
    /// A speaker is two persons: undo a merge, or give some records to a new speaker
    Split {
        /// The number of the voice whose merge is undone, or, with --records, the
        /// speaker's number or name
        speaker: String,
        /// The records that somebody else said
        #[arg(long, value_name = "RECORD", num_args = 1..)]
        records: Vec<u64>,
    },
    /// Write down what a person agreed to; a refusal deletes what they said at once
    Consent {
        /// The speaker's number or name
        speaker: String,
        /// What they agreed to
        consent: Agreed,
    },
    /// Delete a person: everything they said, their voice and their name
    Forget {
        /// The speaker's number or name
        speaker: String,
    },
}

/// [`Consent`] on the command line.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum Agreed {
    /// Nobody asked them
    Unknown,
    /// They are here for a while: their words are kept for a day
    Guest,
    /// They agreed to be remembered
    Given,
    /// They refused: nothing of what they say is kept
    Refused,
}

impl From<Agreed> for Consent {
    fn from(agreed: Agreed) -> Self {
        match agreed {
            Agreed::Unknown => Self::Unknown,
            Agreed::Guest => Self::Guest,
            Agreed::Given => Self::Given,
            Agreed::Refused => Self::Refused,
        }
    }
}

pub(super) fn run(common: &Common, command: &Command) -> anyhow::Result<()> {
    if let Command::Enroll { name, wav, mic } = command {
        let recordings = if *mic {
            enroll::guided()?
        } else {
            enroll::files(wav)?
        };
        return enroll::run(common, name, recordings);
    }
    let mut backend = Backend::open(common)?;
    let mut find = |who: &str| backend.resolve(&backend::speaker_ref(who));
    match command {
        Command::Enroll { .. } => Ok(()),
        Command::List => list(common, &mut backend),
        Command::Name { speaker, name } => {
            let request = Request::NameSpeaker {
                speaker: find(speaker)?,
                name: name.clone(),
            };
            show_changed(common, &mut backend, request)
        }
        Command::Merge { into, from, force } => {
            let request = Request::MergeSpeakers {
                into: find(into)?,
                from: find(from)?,
                despite_names: *force,
            };
            show_changed(common, &mut backend, request)
        }
        Command::Split { speaker, records } => {
            let request = match (records.as_slice(), speaker.parse()) {
                ([], Ok(voice)) => Request::UndoMerge {
                    from: SpeakerId(voice),
                },
                ([], Err(_)) => anyhow::bail!(
                    "say which merge to undo by the number of the voice (`earwitness speakers list` \
                     shows them), or which records were somebody else with --records"
                ),
                (records, _) => Request::SplitSpeaker {
                    speaker: find(speaker)?,
                    records: records.iter().copied().map(RecordId).collect(),
                },
            };
            show_changed(common, &mut backend, request)
        }
        Command::Consent { speaker, consent } => {
            let request = Request::SetConsent {
                speaker: find(speaker)?,
                consent: (*consent).into(),
            };
            show_changed(common, &mut backend, request)
        }
        Command::Forget { speaker } => {
            let speaker = find(speaker)?;
            super::memory::forget(common, &mut backend, Selection::Speaker(speaker))
        }
    }
}

fn list(common: &Common, backend: &mut Backend) -> anyhow::Result<()> {
    match backend.call(Request::ListIdentities)? {
        Response::Identities(identities) => identities
            .iter()
            .try_for_each(|identity| show(common, identity)),
        other => backend::unexpected(&other),
    }
}

fn show_changed(common: &Common, backend: &mut Backend, request: Request) -> anyhow::Result<()> {
    match backend.call(request)? {
        Response::Identity(identity) => show(common, &identity),
        Response::Merge(merge) => show_undone(common, &merge),
        Response::Speaker(speaker) => show(
            common,
            &Identity {
                members: vec![speaker.id],
                speaker,
                enrolled: false,
                consent: Consent::default(),
            },
        ),
        other => backend::unexpected(&other),
    }
}

/// An identity as one flat object.
#[derive(Serialize)]
struct Listed<'i> {
    #[serde(flatten)]
    speaker: &'i Speaker,
    members: &'i [SpeakerId],
    enrolled: bool,
    consent: Consent,
}

pub(super) fn show(common: &Common, identity: &Identity) -> anyhow::Result<()> {
    let Identity {
        speaker,
        members,
        enrolled,
        consent,
    } = identity;
    if common.json {
        return print::json(&Listed {
            speaker,
            members,
            enrolled: *enrolled,
            consent: *consent,
        });
    }
    let others: Vec<String> = members
        .iter()
        .filter(|member| **member != speaker.id)
        .map(|member| member.0.to_string())
        .collect();
    let mut line = format!("{:>5}  {:<18}", speaker.id.0, name(speaker));
    line += &if speaker.records > 0 {
        format!(
            "  {:>6} records  first heard {}  last heard {}",
            speaker.records,
            print::moment(speaker.first_heard_unix_ms),
            print::moment(speaker.last_heard_unix_ms)
        )
    } else {
        "  not heard yet".to_owned()
    };
    if *enrolled {
        line += "  enrolled";
    }
    line += match consent {
        Consent::Unknown => "",
        Consent::Guest => "  guest",
        Consent::Given => "  agreed",
        Consent::Refused => "  refused",
    };
    if !others.is_empty() {
        line += &format!("  with voice {}", others.join(", "));
    }
    print::line(&line)
}

pub(super) fn name(speaker: &Speaker) -> &str {
    speaker.name.as_deref().unwrap_or("(no name)")
}

fn show_undone(common: &Common, merge: &Merge) -> anyhow::Result<()> {
    if common.json {
        return print::json(merge);
    }
    print::line(&format!(
        "voice {} is no longer part of speaker {}, and stays apart",
        merge.from.0, merge.into.0
    ))
}
