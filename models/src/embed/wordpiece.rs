//! WordPiece tokens for BERT models without case.
//!
//! Text is cleaned, split into words and punctuation, and each word is cut into
//! the longest pieces that the vocabulary has, from the left (Devlin et al.,
//! "BERT", 2018; Wu et al., "Google's Neural Machine Translation System", 2016,
//! section 4.1). Unlike the reference tokenizer, the names of control tokens in
//! a text (`[SEP]` and the like) are words and not control tokens: a text from
//! outside cannot steer the model with them.
//!
//! Work and memory are bounded by the text up to the last token that is kept.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{
    GeneralCategory as Category, GeneralCategoryGroup as Group, UnicodeGeneralCategory,
};

/// Longest word in characters that is looked up; a longer one is unknown.
const LONGEST_WORD: usize = 100;
/// What marks a piece that continues a word.
const CONTINUATION: &str = "##";

/// Why a vocabulary is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the vocabulary lacks the control token {0}")]
pub struct MissingToken(&'static str);

/// A vocabulary and the rules to apply it.
#[derive(Debug)]
pub struct WordPiece {
    ids: HashMap<Box<str>, u32>,
    start: u32,
    end: u32,
    unknown: u32,
    max_tokens: usize,
}

impl WordPiece {
    /// `vocabulary` holds one piece a line, in the order of the ids; at most
    /// `max_tokens` ids are given for a text, with those of its two ends.
    pub fn new(vocabulary: &str, max_tokens: usize) -> Result<Self, MissingToken> {
        let ids: HashMap<Box<str>, u32> = vocabulary.lines().map(Box::from).zip(0..).collect();
        let control = |name| ids.get(name).copied().ok_or(MissingToken(name));
        Ok(Self {
            start: control("[CLS]")?,
            end: control("[SEP]")?,
            unknown: control("[UNK]")?,
            ids,
            max_tokens: max_tokens.max(2),
        })
    }

    /// The ids for `text`, between those that mark its start and its end.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let mut tokens = vec![self.start];
        let last = self.max_tokens - 1;
        for_each_word(text, |word| {
            self.append_pieces(word, &mut tokens);
            tokens.len() < last
        });
        tokens.truncate(last);
        tokens.push(self.end);
        tokens
    }

    /// Appends the longest known pieces of `word`, or the unknown token for all of it.
    fn append_pieces(&self, word: &str, tokens: &mut Vec<u32>) {
        let before = tokens.len();
        let mut rest = word;
        if word.chars().nth(LONGEST_WORD).is_some() {
            tokens.push(self.unknown);
            return;
        }
        while !rest.is_empty() {
            let prefix = if tokens.len() == before {
                ""
            } else {
                CONTINUATION
            };
            let Some((id, length)) = self.longest_piece(prefix, rest) else {
                tokens.truncate(before);
                tokens.push(self.unknown);
                return;
            };
            tokens.push(id);
            rest = &rest[length..];
        }
    }

    /// Id and length in bytes of the longest piece that `rest` begins with.
    fn longest_piece(&self, prefix: &str, rest: &str) -> Option<(u32, usize)> {
        let mut piece = format!("{prefix}{rest}");
        while piece.len() > prefix.len() {
            if let Some(&id) = self.ids.get(&*piece) {
                return Some((id, piece.len() - prefix.len()));
            }
            piece.pop();
        }
        None
    }
}

/// Calls `visit` with each word and each punctuation mark until it returns false.
fn for_each_word(text: &str, mut visit: impl FnMut(&str) -> bool) {
    let mut word = String::new();
    for character in plain(text) {
        let alone = is_punctuation(character) || is_ideograph(character);
        if (alone || character.is_whitespace()) && !word.is_empty() {
            if !visit(&word) {
                return;
            }
            word.clear();
        }
        if alone {
            if !visit(character.encode_utf8(&mut [0; 4])) {
                return;
            }
        } else if !character.is_whitespace() {
            word.push(character);
        }
    }
    if !word.is_empty() {
        visit(&word);
    }
}

/// The text without control characters, accents and case.
fn plain(text: &str) -> impl Iterator<Item = char> {
    text.chars()
        .filter(|&c| c != '\u{fffd}' && !is_control(c))
        .nfd()
        .filter(|c| c.general_category() != Category::NonspacingMark)
        .flat_map(char::to_lowercase)
}

fn is_control(c: char) -> bool {
    !matches!(c, '\t' | '\n' | '\r') && c.general_category_group() == Group::Other
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() || c.general_category_group() == Group::Punctuation
}

/// Chinese characters, which are written without spaces between words. Not
/// Hangul or kana: Korean and Japanese words stay whole, as in the reference.
fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{4e00}'..='\u{9fff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{20000}'..='\u{2a6df}'
        | '\u{2a700}'..='\u{2b73f}'
        | '\u{2b740}'..='\u{2b81f}'
        | '\u{2b920}'..='\u{2ceaf}'
        | '\u{f900}'..='\u{faff}'
        | '\u{2f800}'..='\u{2fa1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        for_each_word(text, |word| {
            words.push(word.to_owned());
            true
        });
        words
    }

    fn tokenizer(max_tokens: usize) -> WordPiece {
        let vocabulary = "[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\n##a\n.\nrun";
        WordPiece::new(vocabulary, max_tokens).unwrap()
    }

    #[test]
    fn words_lose_case_and_accents() {
        assert_eq!(words("Café ÜBER naïve"), ["cafe", "uber", "naive"]);
        assert_eq!(words("e\u{301}te\u{301}"), ["ete"]);
    }

    #[test]
    fn punctuation_and_symbols_of_ascii_stand_alone() {
        assert_eq!(words("don't $5."), ["don", "'", "t", "$", "5", "."]);
        assert_eq!(words("“so” – 7€"), ["“", "so", "”", "–", "7€"]);
    }

    #[test]
    fn ideographs_stand_alone_but_other_scripts_do_not() {
        assert_eq!(
            words("会议 Привет서울"),
            ["会", "议", "привет서울".nfd().collect::<String>().as_str()]
        );
    }

    #[test]
    fn control_characters_vanish_and_whitespace_splits() {
        assert_eq!(
            words(" a\u{7}b\u{ad}\u{200b}c\u{fffd}\t\u{a0}d\n"),
            ["abc", "d"]
        );
    }

    #[test]
    fn the_longest_pieces_win() {
        assert_eq!(
            tokenizer(16).encode("unaffable run."),
            [1, 3, 4, 5, 8, 7, 2]
        );
    }

    #[test]
    fn a_word_with_an_unknown_part_is_unknown_as_a_whole() {
        assert_eq!(tokenizer(16).encode("unaffx"), [1, 0, 2]);
        assert_eq!(
            tokenizer(16).encode(&format!("un{}", "a".repeat(98)))[..2],
            [1, 3]
        );
        assert_eq!(
            tokenizer(16).encode(&format!("un{}", "a".repeat(99))),
            [1, 0, 2]
        );
    }

    #[test]
    fn long_text_is_cut_and_empty_text_has_two_ends() {
        assert_eq!(
            tokenizer(5).encode("run run unaffable run"),
            [1, 8, 8, 3, 2]
        );
        assert_eq!(tokenizer(5).encode(""), [1, 2]);
    }

    #[test]
    fn names_of_control_tokens_are_text() {
        assert_eq!(tokenizer(16).encode("[SEP]"), [1, 0, 0, 0, 2]);
    }

    #[test]
    fn a_vocabulary_without_control_tokens_is_refused() {
        assert_eq!(
            WordPiece::new("a\nb", 8).unwrap_err(),
            MissingToken("[CLS]")
        );
    }
}
