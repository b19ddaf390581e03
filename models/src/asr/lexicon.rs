//! Words that are likelier here than elsewhere: the names of a household.
//!
//! A recognizer that hesitates between `Carol` and `carrel` is helped by knowing
//! who lives here. Each letter by which a token brings the text nearer to a word
//! of the lexicon adds to the token's score (shallow fusion over prefixes, as in
//! Zhao et al., "Shallow-Fusion End-to-End Contextual Biasing", 2019). A token
//! must be among the model's own best to profit, so that no name is put where
//! nothing like it was heard. Words are taken by their letters, whichever way the
//! vocabulary cuts them.

/// Most words that a lexicon holds; what comes after them is left out.
pub const MAX_WORDS: usize = 512;
/// What a whole word of the lexicon adds to the logarithm of its probability.
const BONUS: f32 = 3.0;
/// A token this much less likely (in nats) than the best does not profit.
const REACH: f32 = 4.0;

/// A set of words to prefer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lexicon {
    /// Sorted, so that words with a common prefix lie together.
    words: Vec<String>,
}

impl Lexicon {
    /// Takes every word of the given names; `Mary Ann` is two.
    ///
    /// Words of one letter are left out: they would be found everywhere.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let words = names.into_iter().flat_map(str::split_whitespace);
        let mut words: Vec<String> = words
            .filter(|word| word.chars().count() > 1)
            .map(str::to_owned)
            .take(MAX_WORDS)
            .collect();
        words.sort();
        words.dedup();
        Self { words }
    }

    /// Whether it holds no word.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The best of the `allowed` tokens when `logits` follow a text that ends in
    /// `word`, a word that is not over yet. `text` gives what a token adds to the
    /// text, a new word after a space.
    pub(super) fn choose<'v>(
        &self,
        logits: &[f32],
        allowed: impl Fn(usize) -> bool,
        word: &str,
        text: impl Fn(usize) -> &'v [u8],
    ) -> usize {
        let tokens = || (0..logits.len()).filter(|&token| allowed(token));
        let best = tokens().max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
        let Some(best) = best.filter(|_| !self.words.is_empty()) else {
            return best.unwrap_or(0);
        };
        let score = |&token: &usize| logits[token] + self.bonus(word, text(token));
        tokens()
            .filter(|&token| logits[token] >= logits[best] - REACH)
            .max_by(|a, b| score(a).total_cmp(&score(b)))
            .unwrap_or(best)
    }

    /// What a token adds to its score, if that is near enough to the best one.
    pub(super) fn bonus_near_best(&self, score: f32, best: f32, word: &str, token: &[u8]) -> f32 {
        if score >= best - REACH {
            self.bonus(word, token)
        } else {
            0.0
        }
    }

    /// What a token adds to the score of a text that ends in `word`; an empty one
    /// ends the text.
    pub(super) fn bonus(&self, word: &str, token: &[u8]) -> f32 {
        let Ok(token) = str::from_utf8(token) else {
            return 0.0;
        };
        match token.strip_prefix(' ') {
            Some(first) => self.nearness(first) - self.unfinished(word),
            None if token.is_empty() => -self.unfinished(word),
            None => self.nearness(&format!("{word}{token}")) - self.nearness(word),
        }
    }

    /// What a word has earned that is only the beginning of one in the lexicon.
    fn unfinished(&self, word: &str) -> f32 {
        let earned = self.nearness(word);
        if earned < BONUS { earned } else { 0.0 }
    }

    /// What a word that has got as far as `start` has earned.
    fn nearness(&self, start: &str) -> f32 {
        let at = self.words.partition_point(|word| word.as_str() < start);
        let word = match self.words.get(at) {
            Some(word) if !start.is_empty() && word.starts_with(start) => word,
            // `Carol's` has all of `Carol`.
            _ => return self.earned_whole(start),
        };
        BONUS * start.len() as f32 / word.len() as f32
    }

    fn earned_whole(&self, word: &str) -> f32 {
        let stem = word.split(|letter: char| !letter.is_alphabetic()).next();
        let whole = stem.is_some_and(|stem| {
            stem.len() < word.len()
                && self
                    .words
                    .binary_search_by(|w| w.as_str().cmp(stem))
                    .is_ok()
        });
        if whole { BONUS } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: [&[u8]; 8] = [
        b" Car", b" car", b"ol", b"rel", b" Bob", b"'s", b"\xc3", b" the",
    ];

    fn chosen(word: &str, logits: [f32; 8]) -> usize {
        Lexicon::new(["Carol Smith", "Bob"]).choose(&logits, |_| true, word, |token| TOKENS[token])
    }

    #[test]
    fn a_near_miss_becomes_the_name() {
        let start = [1.0, 2.0, -9.0, -9.0, -9.0, -9.0, 1.5, -9.0];
        assert_eq!(chosen("", start), 0);
        let end = [-9.0, -9.0, 1.0, 1.8, -9.0, -9.0, 1.5, -9.0];
        assert_eq!(chosen("Car", end), 2);
    }

    #[test]
    fn a_name_is_not_put_where_another_word_is_certain() {
        let sure = [1.0, 6.0, -9.0, -9.0, 0.0, -9.0, -9.0, 1.0];
        assert_eq!(chosen("", sure), 1);
    }

    #[test]
    fn what_leaves_a_name_loses_what_its_beginning_earned() {
        let lexicon = Lexicon::new(["Carol"]);
        let earned: f32 = lexicon.bonus("", b" Car") + lexicon.bonus("Car", b"pet");
        assert!(earned.abs() < 1e-6);
        assert!((lexicon.bonus("Car", b" is") + lexicon.bonus("", b" Car")).abs() < 1e-6);
        for after in [&b"'s"[..], b".", b" is", b""] {
            assert!(lexicon.bonus("Carol", after).abs() < 1e-6);
        }
    }

    #[test]
    fn an_empty_lexicon_changes_nothing_and_a_large_one_is_bounded() {
        let none = Lexicon::default();
        assert_eq!(none.choose(&[0.0, 1.0], |_| true, "", |_| b""), 1);
        assert_eq!(none.choose(&[0.0, 1.0], |token| token == 0, "", |_| b""), 0);
        let many: Vec<String> = (0..2 * MAX_WORDS).map(|i| format!("name{i}")).collect();
        let lexicon = Lexicon::new(many.iter().map(String::as_str));
        assert_eq!(lexicon.words.len(), MAX_WORDS);
    }
}
