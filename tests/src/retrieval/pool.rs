//! What a question is asked of: the records of one or several episodes.

use std::{
    collections::{HashMap, HashSet},
    str::FromStr,
};

use jiff::Timestamp;

use crate::episodes::{Episode, Question, Turn};

/// How many episodes share a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolSize {
    /// Each episode by itself.
    Episode,
    /// All episodes together.
    All,
    /// As many as make about this many records.
    Records(usize),
}

impl FromStr for PoolSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text, text.parse()) {
            ("episode", _) => Ok(Self::Episode),
            ("all", _) => Ok(Self::All),
            (_, Ok(records)) if records > 0 => Ok(Self::Records(records)),
            _ => Err("a pool is `episode`, `all`, or a number of records".into()),
        }
    }
}

/// A memory and the questions to it.
#[derive(Debug, Default)]
pub struct Pool<'a> {
    /// Episode by episode, in the order of time.
    pub records: Vec<PoolRecord<'a>>,
    /// The questions of all its episodes.
    pub questions: Vec<Asked<'a>>,
}

/// A turn as the memory keeps it.
#[derive(Clone, Debug)]
pub struct PoolRecord<'a> {
    /// The episode it belongs to.
    pub episode: &'a Episode,
    /// The place of its session in the episode.
    pub session: usize,
    /// What was said.
    pub turn: &'a Turn,
    /// Wall clock at its start.
    pub said_at: Timestamp,
}

/// A question with what it may draw on and what it should find.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// The episode it belongs to.
    pub episode: &'a Episode,
    /// The question.
    pub question: &'a Question,
    /// The place of its session in the episode.
    pub session: usize,
    /// How many sessions of its episode are history to it.
    history: usize,
    /// The places of the supporting records in the pool.
    pub support: HashSet<usize>,
}

impl PoolRecord<'_> {
    /// The record as text, `speaker (date): text`: without speaker and date a
    /// text index cannot tell people and times apart.
    pub fn document(&self) -> String {
        let speaker = self.episode.name_of(&self.turn.speaker);
        let date = self.said_at.strftime("%-d %B %Y");
        let mut document = format!("{speaker} ({date}): ");
        document.push_str(self.turn.text.as_deref().unwrap_or_default());
        for caption in self
            .turn
            .attachments
            .iter()
            .filter_map(|shown| shown.caption.as_deref())
        {
            document.push(' ');
            document.push_str(caption);
        }
        document
    }
}

impl Asked<'_> {
    /// Whether a record counts as history to this question. In its own episode
    /// that is what was said before; what another episode says is a distractor
    /// at any time.
    pub fn may_draw_on(&self, record: &PoolRecord<'_>) -> bool {
        record.episode.id != self.episode.id || record.session < self.history
    }
}

/// Deals the episodes into pools.
///
/// For [`PoolSize::Records`], episodes are dealt like cards in the order of
/// their scenarios, so that each pool has its share of every scenario ("scenario-
/// balanced candidate pools", PERSIST section 3.2).
pub fn pools(episodes: &[Episode], size: PoolSize) -> Vec<Pool<'_>> {
    let count = match size {
        PoolSize::Episode => episodes.len(),
        PoolSize::All => 1,
        PoolSize::Records(wanted) => {
            let records: usize = episodes.iter().map(|episode| history(episode).1).sum();
            records.div_ceil(wanted).min(episodes.len())
        }
    };
    let mut dealt: Vec<&Episode> = episodes.iter().collect();
    dealt.sort_by_key(|episode| (&episode.scenario, &episode.id));
    let mut pools: Vec<Pool> = Vec::new();
    pools.resize_with(count.max(1), Pool::default);
    for (card, episode) in dealt.into_iter().enumerate() {
        pools[card % count.max(1)].add(episode);
    }
    pools
}

/// How many sessions of an episode are history to any of its questions, and how
/// many turns they hold.
fn history(episode: &Episode) -> (usize, usize) {
    let sessions = History::of(episode).sessions();
    (
        sessions,
        episode.sessions[..sessions]
            .iter()
            .map(|session| session.turns.len())
            .sum(),
    )
}

/// Which sessions are history to the questions of one episode.
///
/// History is what came before the session of the question (PERSIST: "historical
/// records"): the session a question is asked in leads up to it and would give
/// the question away. Where the annotators did take evidence from that session,
/// as for questions about a finished conversation, it is history too.
struct History<'a> {
    episode: &'a Episode,
    /// The place of each session, by id.
    places: HashMap<&'a str, usize>,
    /// For each session, how many sessions are history to questions asked in it.
    lengths: Vec<usize>,
}

impl<'a> History<'a> {
    fn of(episode: &'a Episode) -> Self {
        let sessions = episode.sessions.iter().enumerate();
        let places: HashMap<&str, usize> = sessions
            .clone()
            .map(|(place, session)| (session.id.as_str(), place))
            .collect();
        let session_of: HashMap<&str, usize> = sessions
            .flat_map(|(place, session)| {
                session
                    .turns
                    .iter()
                    .map(move |turn| (turn.id.as_str(), place))
            })
            .collect();
        let mut lengths: Vec<usize> = (0..episode.sessions.len()).collect();
        for question in &episode.questions {
            let Some(&asked_in) = places.get(question.session.as_str()) else {
                continue;
            };
            let latest = question
                .evidence
                .iter()
                .filter_map(|turn| session_of.get(turn.as_str()))
                .max();
            lengths[asked_in] = lengths[asked_in].max(latest.map_or(0, |latest| latest + 1));
        }
        Self {
            episode,
            places,
            lengths,
        }
    }

    fn place(&self, question: &Question) -> usize {
        self.places
            .get(question.session.as_str())
            .copied()
            .unwrap_or_default()
    }

    /// How many sessions belong into a pool: all that are history to someone.
    fn sessions(&self) -> usize {
        let asked = self
            .episode
            .questions
            .iter()
            .map(|question| self.lengths[self.place(question)]);
        asked.max().unwrap_or(self.episode.sessions.len())
    }
}

impl<'a> Pool<'a> {
    fn add(&mut self, episode: &'a Episode) {
        let history = History::of(episode);
        let mut places = HashMap::new();
        for (session, part) in episode.sessions.iter().enumerate().take(history.sessions()) {
            for turn in &part.turns {
                places.insert(turn.id.as_str(), self.records.len());
                let said_at = part.start + jiff::SignedDuration::from_millis(turn.start_ms as i64);
                self.records.push(PoolRecord {
                    episode,
                    session,
                    turn,
                    said_at,
                });
            }
        }
        for question in &episode.questions {
            let session = history.place(question);
            let support = question
                .evidence
                .iter()
                .filter_map(|turn| places.get(turn.as_str()));
            self.questions.push(Asked {
                episode,
                question,
                session,
                history: history.lengths[session],
                support: support.copied().collect(),
            });
        }
    }
}
