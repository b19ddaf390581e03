//! From a folder to checked episodes and refusals.

use std::{
    collections::HashMap,
    fmt, fs, io,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{Episode, check};

const FILE_NAME: &str = "episode.json";

/// What a data set holds.
#[derive(Debug, Default)]
pub struct EpisodeSet {
    /// The episodes that are sound, in the order of their folders' names.
    pub episodes: Vec<Episode>,
    /// The ones that are not, and why.
    pub refused: Vec<Refusal>,
}

/// Why one episode was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The file that is wrong.
    pub file: PathBuf,
    /// Where in it, for example `$.sessions[0].turns[3].speaker`.
    pub json_path: String,
    /// What is wrong there.
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            json_path,
            reason,
        } = self;
        write!(out, "{}: {json_path}: {reason}", file.display())
    }
}

/// Why a data set could not be read at all.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The folder is missing or closed to us.
    #[error("cannot list {dir}: {source}; name a folder of episodes", dir = .dir.display())]
    Unreadable {
        /// The folder asked for.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder holds no episode.
    #[error(
        "{dir} holds no episode; name a folder with an {FILE_NAME}, or one whose folders hold one",
        dir = .dir.display()
    )]
    Empty {
        /// The folder asked for.
        dir: PathBuf,
    },
}

/// Reads the episode `dir`, or every episode in the folders of `dir`.
pub fn load_set(dir: &Path) -> Result<EpisodeSet, LoadError> {
    let mut set = EpisodeSet::default();
    let mut seen = HashMap::new();
    for folder in episode_folders(dir)? {
        match read_episode(&folder).and_then(|episode| once(episode, &mut seen)) {
            Ok(episode) => set.episodes.push(episode),
            Err(refusal) => set.refused.push(refusal),
        }
    }
    Ok(set)
}

fn episode_folders(dir: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let unreadable = |source| LoadError::Unreadable {
        dir: dir.to_owned(),
        source,
    };
    if dir.join(FILE_NAME).is_file() {
        return Ok(vec![dir.to_owned()]);
    }
    let mut folders = Vec::new();
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let folder = entry.map_err(unreadable)?.path();
        if folder.join(FILE_NAME).is_file() {
            folders.push(folder);
        }
    }
    if folders.is_empty() {
        return Err(LoadError::Empty {
            dir: dir.to_owned(),
        });
    }
    folders.sort();
    Ok(folders)
}

fn read_episode(folder: &Path) -> Result<Episode, Refusal> {
    let file = folder.join(FILE_NAME);
    let refuse = |json_path: String, reason: String| Refusal {
        file: file.clone(),
        json_path,
        reason,
    };
    let text = fs::read(&file).map_err(|error| refuse("$".into(), error.to_string()))?;
    let mut json = serde_json::Deserializer::from_slice(&text);
    let mut episode: Episode = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." {
            "$".into()
        } else {
            format!("$.{path}")
        };
        refuse(path, error.into_inner().to_string())
    })?;
    json.end()
        .map_err(|error| refuse("$".into(), error.to_string()))?;
    folder.clone_into(&mut episode.dir);
    check::check(&episode).map_err(|flaw| refuse(flaw.json_path, flaw.reason))?;
    put_in_order(&mut episode);
    Ok(episode)
}

/// Files may list sessions and turns as they like; readers see them as they
/// happened.
fn put_in_order(episode: &mut Episode) {
    episode.sessions.sort_by_key(|session| session.start);
    for session in &mut episode.sessions {
        session
            .turns
            .sort_by_key(|turn| (turn.start_ms, turn.end_ms));
    }
}

/// Reports name episodes by id, so two must not share one.
fn once(episode: Episode, seen: &mut HashMap<String, PathBuf>) -> Result<Episode, Refusal> {
    match seen.insert(episode.id.clone(), episode.dir.clone()) {
        None => Ok(episode),
        Some(first) => Err(Refusal {
            file: episode.dir.join(FILE_NAME),
            json_path: "$.id".into(),
            reason: format!("{:?} is also the id of {}", episode.id, first.display()),
        }),
    }
}
