//! The recognizer's vocabulary: what each token adds to a text.
//!
//! The project's own file holds one token a line, in the order of the ids. A line
//! is the text of the token with its spaces; `\xNN` is a byte that is not
//! printable or not UTF-8 by itself, `\\` a backslash. A control token's line is
//! empty. In the layout of sherpa-onnx a line is a token and its id: U+2581 is a
//! space, `<0xNN>` a byte, and anything else in `<>` a control token.

/// Why a vocabulary is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum VocabularyError {
    #[error("line {line} of the vocabulary has a malformed escape")]
    Escape { line: usize },
    #[error("line {line} of the tokens is not a token and its number, each number once from 0")]
    Numbered { line: usize },
}

/// The bytes of every token.
#[derive(Debug)]
pub(super) struct Vocabulary {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Vocabulary {
    /// Parses the vocabulary file.
    pub(super) fn parse(file: &str) -> Result<Self, VocabularyError> {
        let mut bytes = Vec::with_capacity(file.len());
        let mut ends = Vec::new();
        for (i, line) in file.lines().enumerate() {
            unescape(line, &mut bytes).ok_or(VocabularyError::Escape { line: i + 1 })?;
            ends.push(bytes.len() as u32);
        }
        Ok(Self { bytes, ends })
    }

    /// Parses a file in the layout of sherpa-onnx.
    pub(super) fn parse_numbered(file: &str) -> Result<Self, VocabularyError> {
        let mut tokens = vec![None; file.lines().count()];
        for (i, line) in file.lines().enumerate() {
            let malformed = VocabularyError::Numbered { line: i + 1 };
            let Some((token, id)) = line.trim_end().rsplit_once([' ', '\t']) else {
                return Err(malformed);
            };
            let place = id.parse().ok().and_then(|id: usize| tokens.get_mut(id));
            match place {
                Some(place @ None) => *place = Some(bytes_of(token)),
                _ => return Err(malformed),
            }
        }
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for token in tokens.into_iter().flatten() {
            bytes.extend(token);
            ends.push(bytes.len() as u32);
        }
        Ok(Self { bytes, ends })
    }

    /// Number of tokens.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text of a sequence of tokens, without spaces at its ends.
    ///
    /// An id beyond the vocabulary adds nothing; bytes that do not make up a
    /// character become U+FFFD.
    pub(super) fn text(&self, ids: impl IntoIterator<Item = u32>) -> String {
        let bytes: Vec<u8> = ids
            .into_iter()
            .flat_map(|id| self.token(id as usize))
            .copied()
            .collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    /// Whether a token begins a new word.
    pub(super) fn begins_word(&self, id: u32) -> bool {
        self.token(id as usize).starts_with(b" ")
    }

    /// Brings `word`, the word that a text ends in, up to date with one more token.
    pub(super) fn extend_word(&self, word: &mut String, id: u32) {
        let token = String::from_utf8_lossy(self.token(id as usize));
        match token.strip_prefix(' ') {
            Some(first) => first.clone_into(word),
            None => word.push_str(&token),
        }
    }

    /// What a token adds to the text.
    pub(super) fn token(&self, id: usize) -> &[u8] {
        let Some(&end) = self.ends.get(id) else {
            return &[];
        };
        let start = id.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..end as usize]
    }
}

/// What a token in the layout of sherpa-onnx adds to a text.
fn bytes_of(token: &str) -> Vec<u8> {
    let control = token
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'))
        .filter(|name| !name.is_empty());
    let byte = control.and_then(|name| u8::from_str_radix(name.strip_prefix("0x")?, 16).ok());
    match (byte, control) {
        (Some(byte), _) => vec![byte],
        (None, Some(_)) => Vec::new(),
        (None, None) => token.replace('\u{2581}', " ").into_bytes(),
    }
}

/// Appends a line with its escapes undone.
fn unescape(line: &str, bytes: &mut Vec<u8>) -> Option<()> {
    let mut rest = line;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('\\') {
            bytes.push(b'\\');
            rest = after;
        } else {
            let digits = rest.strip_prefix('x')?.get(..2)?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[3..];
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_join_to_text() {
        let vocabulary = Vocabulary::parse("\n Hello\n wor\nld\n\\xc3\n\\xa9\n\\\\\n").unwrap();
        assert_eq!(vocabulary.len(), 7);
        assert_eq!(vocabulary.text([0, 1, 2, 3]), "Hello world");
        assert_eq!(vocabulary.text([4, 5, 6]), "é\\");
    }

    #[test]
    fn a_word_grows_until_the_next_begins() {
        let vocabulary = Vocabulary::parse(" Hello\n wor\nld\n").unwrap();
        let mut word = String::new();
        let mut grown = |id| {
            vocabulary.extend_word(&mut word, id);
            word.clone()
        };
        assert_eq!([0, 1, 2].map(&mut grown), ["Hello", "wor", "world"]);
        assert!(vocabulary.begins_word(1) && !vocabulary.begins_word(2));
    }

    #[test]
    fn half_a_character_and_an_unknown_id_do_no_harm() {
        let vocabulary = Vocabulary::parse("\\xc3\na\n").unwrap();
        assert_eq!(vocabulary.text([1, 0]), "a\u{fffd}");
        assert_eq!(vocabulary.text([1, 99]), "a");
    }

    #[test]
    fn malformed_escapes_are_refused() {
        for line in ["\\", "\\x", "\\x1", "\\xzz", "\\n", "\\x1é"] {
            let file = format!("a\n{line}\n");
            let error = Vocabulary::parse(&file).unwrap_err();
            assert_eq!(error, VocabularyError::Escape { line: 2 });
        }
    }

    #[test]
    fn numbered_tokens_are_read_in_any_order() {
        let file = "<blk> 0\n\u{2581}SEA 2\n<0x41>\t1\nS 3\n< 4\n";
        let vocabulary = Vocabulary::parse_numbered(file).unwrap();
        assert_eq!(vocabulary.text([2, 3, 0, 2, 1, 4]), "SEAS SEAA<");
        assert!(vocabulary.begins_word(2) && !vocabulary.begins_word(3));
    }

    #[test]
    fn tokens_without_their_number_are_refused() {
        for (file, line) in [("a", 1), ("a 0\nb x\n", 2), ("a 0\nb 0\n", 2), ("a 1\n", 1)] {
            let error = Vocabulary::parse_numbered(file).unwrap_err();
            assert_eq!(error, VocabularyError::Numbered { line }, "{file}");
        }
    }
}
