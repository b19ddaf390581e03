//! From tokens to words.
//!
//! A word is what stands between two spaces, punctuation included. Quotation
//! marks go: the model has read many books, and puts some utterances in the
//! marks of a dialogue that nobody speaks. What a word looks like depends on its
//! own tokens alone (and on whether it is the first), so a word does not change
//! when others follow it.

use std::ops::Range;

use super::vocabulary::Vocabulary;
use super::{Token, Word};

/// Marks that a word may end in.
const MARKS: [char; 4] = ['.', ',', '?', '!'];

/// Puts tokens together; `spoken` says in which samples each was heard.
pub(super) fn join(
    vocabulary: &Vocabulary,
    tokens: &[Token],
    spoken: impl Iterator<Item = Range<usize>>,
) -> Vec<Word> {
    let spoken: Vec<Range<usize>> = spoken.collect();
    let mut words = Vec::new();
    let mut start = 0;
    for end in 1..=tokens.len() {
        if end < tokens.len() && !vocabulary.begins_word(tokens[end].id) {
            continue;
        }
        let own = &tokens[start..end];
        let text = vocabulary.text(own.iter().map(|token| token.id));
        let text = unquoted(&text, words.is_empty());
        if !text.is_empty() {
            words.push(Word {
                text,
                samples: spoken[start].start..spoken[end - 1].end,
                probability: mean(own),
                tokens: start..end,
            });
        }
        start = end;
    }
    words
}

/// The words with a space between them.
pub(super) fn text(words: &[Word]) -> String {
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    words.join(" ")
}

fn mean(tokens: &[Token]) -> f32 {
    tokens.iter().map(|token| token.probability).sum::<f32>() / tokens.len() as f32
}

/// A word without quotation marks; apostrophes stay where they belong to it.
fn unquoted(word: &str, is_first: bool) -> String {
    let double = ['"', '\u{201c}', '\u{201d}'];
    let one_mark = match word.rsplit_once(double) {
        // The first mark ends what is quoted, the second is the sentence's.
        Some((quoted, after)) if quoted.ends_with(MARKS) && after.starts_with(MARKS) => quoted,
        _ => word,
    };
    let plain = one_mark.replace(double, "");
    let single = ['\'', '\u{2018}', '\u{2019}'];
    let opened = if is_first {
        plain.trim_start_matches(single)
    } else {
        &plain
    };
    let closed = opened.trim_end_matches(single);
    if closed.ends_with(MARKS) || closed.is_empty() {
        closed.to_owned()
    } else {
        opened.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(ids: &[u32]) -> Vec<Word> {
        let vocabulary = Vocabulary::parse("\n \"Hel\nlo\n,\n wor\nld\n.\"\n").unwrap();
        let tokens: Vec<Token> = ids
            .iter()
            .map(|&id| Token {
                id,
                probability: id as f32 / 10.0,
            })
            .collect();
        let spoken = (0..ids.len()).map(|at| at * 10..at * 10 + 9);
        join(&vocabulary, &tokens, spoken)
    }

    #[test]
    fn tokens_become_words_with_their_place_and_probability() {
        let words = joined(&[1, 2, 3, 4, 5, 6]);
        assert_eq!(text(&words), "Hello, world.");
        assert_eq!((&words[0].samples, &words[0].tokens), (&(0..29), &(0..3)));
        assert_eq!((&words[1].samples, &words[1].tokens), (&(30..59), &(3..6)));
        assert!((words[0].probability - 0.2).abs() < 1e-6);
        assert!(joined(&[]).is_empty());
    }

    #[test]
    fn the_marks_of_a_dialogue_go_and_apostrophes_stay() {
        assert_eq!(unquoted("\"'Where", true), "Where");
        assert_eq!(unquoted("\u{201c}it?'\u{201d}", false), "it?");
        assert_eq!(unquoted("boys'", false), "boys'");
        assert_eq!(unquoted("'em", false), "'em");
        assert_eq!(unquoted("\"'", true), "");
        assert_eq!(unquoted("short,\",", false), "short,");
        assert_eq!(unquoted("so...\"", false), "so...");
        assert_eq!(unquoted("\"so\",", false), "so,");
    }
}
