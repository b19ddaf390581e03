//! What the shape of the JSON cannot say: that ids are unique, that references
//! lead somewhere and that audio exists.

use std::{collections::HashSet, path::Path};

use super::{Episode, Question, Session, Turn};

/// The first thing found wrong with an episode.
#[derive(Debug)]
pub(super) struct Flaw {
    pub json_path: String,
    pub reason: String,
}

type Checked = Result<(), Flaw>;

fn flaw(json_path: String, reason: String) -> Checked {
    Err(Flaw { json_path, reason })
}

/// The ids of an episode, filled while its parts are checked.
struct Ids<'a> {
    episode: &'a Episode,
    participants: HashSet<&'a str>,
    sessions: HashSet<&'a str>,
    turns: HashSet<&'a str>,
    questions: HashSet<&'a str>,
}

/// Checks everything, and stops at the first flaw.
pub(super) fn check(episode: &Episode) -> Checked {
    let mut ids = Ids {
        episode,
        participants: HashSet::new(),
        sessions: HashSet::new(),
        turns: HashSet::new(),
        questions: HashSet::new(),
    };
    if episode.id.is_empty() {
        return flaw("$.id".into(), "an id must not be empty".into());
    }
    for (index, participant) in episode.participants.iter().enumerate() {
        new_id(
            &mut ids.participants,
            &participant.id,
            format!("$.participants[{index}].id"),
        )?;
    }
    for (index, session) in episode.sessions.iter().enumerate() {
        ids.session(session, &format!("$.sessions[{index}]"))?;
    }
    for (index, question) in episode.questions.iter().enumerate() {
        ids.question(question, &format!("$.questions[{index}]"))?;
    }
    Ok(())
}

impl<'a> Ids<'a> {
    fn session(&mut self, session: &'a Session, at: &str) -> Checked {
        new_id(&mut self.sessions, &session.id, format!("{at}.id"))?;
        for (index, turn) in session.turns.iter().enumerate() {
            self.turn(turn, &format!("{at}.turns[{index}]"))?;
        }
        Ok(())
    }

    fn turn(&mut self, turn: &'a Turn, at: &str) -> Checked {
        new_id(&mut self.turns, &turn.id, format!("{at}.id"))?;
        known(
            &self.participants,
            &turn.speaker,
            "participant",
            format!("{at}.speaker"),
        )?;
        for (index, addressee) in turn.addressees.iter().enumerate() {
            let at = format!("{at}.addressees[{index}]");
            known(&self.participants, addressee, "participant", at)?;
        }
        if turn.end_ms < turn.start_ms {
            let reason = format!(
                "the end, {}, lies before the start, {}",
                turn.end_ms, turn.start_ms
            );
            return flaw(format!("{at}.end_ms"), reason);
        }
        self.audio(turn.audio.as_deref(), at)
    }

    fn question(&mut self, question: &'a Question, at: &str) -> Checked {
        new_id(&mut self.questions, &question.id, format!("{at}.id"))?;
        known(
            &self.sessions,
            &question.session,
            "session",
            format!("{at}.session"),
        )?;
        if let Some(asker) = &question.asker {
            known(
                &self.participants,
                asker,
                "participant",
                format!("{at}.asker"),
            )?;
        }
        for (index, turn) in question.evidence.iter().enumerate() {
            known(&self.turns, turn, "turn", format!("{at}.evidence[{index}]"))?;
        }
        self.audio(question.audio.as_deref(), at)
    }

    fn audio(&self, audio: Option<&Path>, at: &str) -> Checked {
        let Some(audio) = audio else { return Ok(()) };
        let at = format!("{at}.audio");
        if audio.is_absolute() {
            return flaw(
                at,
                format!(
                    "{} must be relative to the episode's folder",
                    audio.display()
                ),
            );
        }
        let path = self.episode.audio_path(audio);
        if !path.is_file() {
            return flaw(at, format!("there is no file {}", path.display()));
        }
        Ok(())
    }
}

fn new_id<'a>(ids: &mut HashSet<&'a str>, id: &'a str, at: String) -> Checked {
    if id.is_empty() {
        return flaw(at, "an id must not be empty".into());
    }
    if !ids.insert(id) {
        return flaw(at, format!("{id:?} is used twice"));
    }
    Ok(())
}

fn known(ids: &HashSet<&str>, id: &str, what: &str, at: String) -> Checked {
    if ids.contains(id) {
        return Ok(());
    }
    flaw(at, format!("there is no {what} {id:?}"))
}
