//! What the closed-class words of a question say about who and which state is meant.

use std::collections::{BTreeMap, HashMap};

/// Which word is which cue.
#[derive(Clone, Debug)]
pub(super) struct Cues {
    of_word: HashMap<String, usize>,
    count: usize,
}

impl Cues {
    /// Cues by name, the last two being "somebody is named" and "several are", and
    /// the words of the others.
    pub(super) fn new(names: &[String], words: &BTreeMap<String, Vec<String>>) -> Self {
        let mut of_word = HashMap::new();
        for (place, name) in names.iter().enumerate() {
            for word in words.get(name).into_iter().flatten() {
                of_word.insert(word.clone(), place);
            }
        }
        Self {
            of_word,
            count: names.len(),
        }
    }

    /// 1 for each cue that a question has, 0 otherwise.
    pub(super) fn read(&self, text: &str, people: usize) -> Vec<f32> {
        let mut found = vec![0.0; self.count];
        for word in words(text) {
            if let Some(&place) = self.of_word.get(&word) {
                found[place] = 1.0;
            }
        }
        if let [.., named, several] = &mut found[..] {
            *named = f32::from(u8::from(people > 0));
            *several = f32::from(u8::from(people > 1));
        }
        found
    }
}

/// The words of a text: lower-case runs of letters and digits. What follows an
/// apostrophe is a word of its own.
pub fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}
