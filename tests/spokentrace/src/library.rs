//! The grammar and the words of one split.

use std::collections::BTreeMap;

use fastrand::Rng;
use serde::Deserialize;

use crate::{phrase::Phrase, split::Split};

const SLOTS: &str = include_str!("../data/slots.toml");
const SPEECH: &str = include_str!("../data/speech.toml");
const QUESTIONS: &str = include_str!("../data/questions.toml");
const NAMES: &str = include_str!("../data/names.txt");
const VOICES: &str = include_str!("../data/voices.txt");
const DOMAINS: [&str; 3] = [
    include_str!("../data/work.toml"),
    include_str!("../data/media.toml"),
    include_str!("../data/living.toml"),
];

/// Lists of templates by name.
pub(crate) type Templates = BTreeMap<String, Vec<String>>;

/// Everything that one split says things with.
#[derive(Debug)]
pub(crate) struct Library {
    pub slots: BTreeMap<String, Slot>,
    pub speech: Templates,
    /// By task, then by form.
    pub questions: BTreeMap<String, Templates>,
    pub subscenarios: Vec<Subscenario>,
    /// A name and its short form.
    pub names: Vec<(String, String)>,
    pub voices: Vec<String>,
}

/// What can stand in a relation's brackets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Slot {
    /// What asks for it.
    pub wh: Vec<String>,
    form: String,
    /// Columns that all splits have in common.
    #[serde(default)]
    shared: Vec<usize>,
    /// Comma-separated words.
    columns: Vec<String>,
}

/// A kind of conversation.
#[derive(Debug)]
pub(crate) struct Subscenario {
    pub name: String,
    /// What it is about, with a place for a code name.
    pub theme: String,
    pub relations: Vec<Relation>,
}

/// Something that people intend, each with a value of their own.
#[derive(Debug)]
pub(crate) struct Relation {
    pub slot: String,
    pub phrases: Vec<Phrase>,
    /// What asks for the value.
    pub wh: Vec<String>,
}

/// What is wrong with the grammar files.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// A file is not in its format.
    #[error("a grammar file is malformed: {0}")]
    Toml(#[from] toml::de::Error),
    /// A relation names no slot, or a phrase has no brackets.
    #[error("the relation {0:?} does not fit: its slot must exist and its phrases hold [{{}}]")]
    Relation(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Domain {
    subscenario: Vec<RawSubscenario>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSubscenario {
    name: String,
    theme: String,
    relation: Vec<RawRelation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRelation {
    slot: String,
    say: Vec<String>,
    /// Instead of the slot's.
    wh: Option<Vec<String>>,
    /// Instead of what is left of `say` without its brackets.
    question: Option<Vec<String>>,
}

impl Library {
    /// The part of the grammar that belongs to `split`.
    pub fn read(split: Split) -> Result<Self, LibraryError> {
        let mut slots: BTreeMap<String, Slot> = toml::from_str(SLOTS)?;
        slots.values_mut().for_each(|slot| slot.keep(split));
        let part = |templates: Templates| -> Templates {
            templates
                .into_iter()
                .map(|(name, list)| (name, split.part(list)))
                .collect()
        };
        let questions: BTreeMap<String, Templates> = toml::from_str(QUESTIONS)?;
        let mut subscenarios = Vec::new();
        for domain in DOMAINS {
            for raw in toml::from_str::<Domain>(domain)?.subscenario {
                subscenarios.push(raw.keep(split, &slots)?);
            }
        }
        Ok(Self {
            slots,
            speech: part(toml::from_str(SPEECH)?),
            questions: questions
                .into_iter()
                .map(|(task, forms)| (task, part(forms)))
                .collect(),
            subscenarios,
            names: split.part(lines(NAMES).filter_map(|line| line.split_once(' ').map(owned))),
            voices: split.part(lines(VOICES).map(str::to_owned)),
        })
    }

    /// One of the templates for something to say.
    pub fn say(&self, name: &str, rng: &mut Rng) -> &str {
        choose(&self.speech[name], rng).as_str()
    }

    /// One of the templates for a question.
    pub fn ask(&self, task: &str, form: &str, rng: &mut Rng) -> &str {
        choose(&self.questions[task][form], rng).as_str()
    }
}

impl Slot {
    /// Any of the values.
    pub fn value(&self, rng: &mut Rng) -> String {
        (0..)
            .zip(&self.columns)
            .fold(self.form.clone(), |form, (place, column)| {
                let words: Vec<&str> = column.split(',').map(str::trim).collect();
                form.replace(&format!("{{{place}}}"), choose::<&str>(&words, rng))
            })
    }

    /// All of the values.
    #[cfg(test)]
    pub fn values(&self) -> Vec<String> {
        (0..)
            .zip(&self.columns)
            .fold(vec![self.form.clone()], |forms, (place, column)| {
                let fill = |form: String| {
                    let words = column.split(',').map(str::trim);
                    let filled = words.map(|word| form.replace(&format!("{{{place}}}"), word));
                    filled.collect::<Vec<_>>()
                };
                forms.into_iter().flat_map(fill).collect()
            })
    }

    fn keep(&mut self, split: Split) {
        for (place, column) in self.columns.iter_mut().enumerate() {
            if !self.shared.contains(&place) {
                *column = split.part(column.split(',')).join(",");
            }
        }
    }
}

impl RawSubscenario {
    fn keep(
        self,
        split: Split,
        slots: &BTreeMap<String, Slot>,
    ) -> Result<Subscenario, LibraryError> {
        let relations = self.relation.into_iter();
        let kept = relations.map(|relation| relation.keep(split, slots));
        Ok(Subscenario {
            name: self.name,
            theme: self.theme,
            relations: kept.collect::<Result<_, _>>()?,
        })
    }
}

impl RawRelation {
    fn keep(self, split: Split, slots: &BTreeMap<String, Slot>) -> Result<Relation, LibraryError> {
        let unfit = || LibraryError::Relation(self.say.join(", "));
        let slot = slots.get(&self.slot).ok_or_else(unfit)?;
        let question = |place: usize| Some(self.question.as_ref()?.get(place)?.as_str());
        let phrases = self.say.iter().enumerate();
        let phrases: Vec<Phrase> = phrases
            .map(|(place, text)| Phrase::parse(text, question(place)).ok_or_else(unfit))
            .collect::<Result<_, _>>()?;
        Ok(Relation {
            wh: self.wh.clone().unwrap_or_else(|| slot.wh.clone()),
            phrases: split.part(phrases),
            slot: self.slot,
        })
    }
}

/// Fills the braces of a template.
pub(crate) fn fill(template: &str, words: &[(&str, &str)]) -> String {
    words
        .iter()
        .fold(template.to_owned(), |text, (name, word)| {
            text.replace(&format!("{{{name}}}"), word)
        })
}

/// The text with a capital at the beginning of each sentence.
pub(crate) fn sentences(text: &str) -> String {
    let mut begins = true;
    let capitalize = |letter: char| {
        let first = begins && letter.is_alphanumeric();
        begins = matches!(letter, '.' | '?' | '!') || (begins && !first);
        if first {
            letter.to_ascii_uppercase()
        } else {
            letter
        }
    };
    text.chars().map(capitalize).collect()
}

/// One of the items; the lists of the grammar are never empty.
pub(crate) fn choose<'a, T>(list: &'a [T], rng: &mut Rng) -> &'a T {
    &list[rng.usize(..list.len())]
}

/// The lines that are no comments.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn owned((name, short): (&str, &str)) -> (String, String) {
    (name.to_owned(), short.to_owned())
}
