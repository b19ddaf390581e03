//! What a question's own words say about time, and whether a record says anything.

/// Which state of a matter a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No word of the question picks one.
    Any,
    /// The state before any change: "originally", "at first".
    Earliest,
    /// The state that holds now: "now", "latest".
    Latest,
    /// Both, side by side: "how did it change".
    Change,
}

const EARLIEST: &[&str] = &[
    "originally",
    "original",
    "at first",
    "initially",
    "first plan",
    "before that",
    "used to",
];
const LATEST: &[&str] = &[
    "latest",
    "now",
    "currently",
    "current",
    "most recent",
    "in the end",
    "finally",
    "still",
];
const CHANGE: &[&str] = &[
    "change",
    "changed",
    "changes",
    "differ",
    "difference",
    "instead of",
];
/// The state that a question asks for.
pub fn state(question: &str) -> State {
    let words = words(question);
    if any(&words, CHANGE) {
        State::Change
    } else if any(&words, EARLIEST) {
        State::Earliest
    } else if any(&words, LATEST) {
        State::Latest
    } else {
        State::Any
    }
}

/// Whether a record only asks: every sentence in it is a question. Who asks
/// where the keys are does not say where they are.
pub fn only_asks(text: &str) -> bool {
    let mut ends = text
        .chars()
        .filter(|c| matches!(c, '.' | '!' | '?'))
        .peekable();
    ends.peek().is_some() && ends.all(|end| end == '?')
}

/// Whether one of the phrases stands in the words as whole words.
fn any(words: &[String], phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        words
            .windows(phrase.len())
            .any(|window| window.iter().eq(phrase.iter()))
    })
}

/// Lower-case words; an apostrophe belongs to its word.
fn words(text: &str) -> Vec<String> {
    text.replace('\u{2019}', "'")
        .to_lowercase()
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_time_pick_a_state() {
        assert_eq!(
            state("When did I originally plan to leave?"),
            State::Earliest
        );
        assert_eq!(state("When am I leaving now?"), State::Latest);
        assert_eq!(state("How did my plan change?"), State::Change);
        assert_eq!(state("Where are the keys?"), State::Any);
        assert_eq!(state("Who knows the way to the snowy hill?"), State::Any);
    }

    #[test]
    fn a_record_that_states_something_does_more_than_ask() {
        assert!(only_asks("And where are the keys?"));
        assert!(only_asks("Really? Where?"));
        assert!(!only_asks("It is on Tuesday. Could you drive me?"));
        assert!(!only_asks("I looked for them"));
    }
}
