//! Intentions as phrases: `leave [on {}]` gives "leave on Monday", "leaving on
//! Monday", "leave" and "leaving".

/// What somebody can intend, with a place for its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Phrase {
    with_value: String,
    without: String,
}

impl Phrase {
    /// Reads a phrase whose brackets hold `{}`; `question` replaces what is left
    /// when the brackets are dropped.
    pub fn parse(text: &str, question: Option<&str>) -> Option<Self> {
        let (before, rest) = text.split_once('[')?;
        let (inside, after) = rest.split_once(']')?;
        inside.contains("{}").then_some(())?;
        let dropped = format!("{} {}", before.trim_end(), after.trim_start());
        Some(Self {
            with_value: format!("{before}{inside}{after}"),
            without: question.unwrap_or(dropped.trim()).to_owned(),
        })
    }

    /// Infinitive with the value.
    pub fn with(&self, value: &str) -> String {
        self.with_value.replace("{}", value)
    }

    /// Gerund with the value.
    pub fn gerund_with(&self, value: &str) -> String {
        gerund(&self.with(value))
    }

    /// Infinitive without the value.
    pub fn bare(&self) -> &str {
        &self.without
    }

    /// Gerund without the value.
    pub fn gerund_bare(&self) -> String {
        gerund(&self.without)
    }
}

/// The first word of an English verb phrase in its -ing form.
fn gerund(phrase: &str) -> String {
    let (verb, rest) = phrase.split_at(phrase.find(' ').unwrap_or(phrase.len()));
    if verb.ends_with("ing") && verb.len() > 5 {
        return phrase.to_owned();
    }
    let is_vowel = |letter: char| "aeiou".contains(letter);
    let tail: Vec<char> = verb.chars().rev().take(3).collect();
    let stem = match tail[..] {
        ['e', before, ..] if !"eoy".contains(before) => verb[..verb.len() - 1].to_owned(),
        [last, vowel, before] if doubles(verb, last) && is_vowel(vowel) && !is_vowel(before) => {
            format!("{verb}{last}")
        }
        _ => verb.to_owned(),
    };
    format!("{stem}ing{rest}")
}

/// Whether a verb has one vowel, and ends in a consonant that can be doubled.
fn doubles(verb: &str, last: char) -> bool {
    let vowels = verb
        .chars()
        .filter(|letter| "aeiou".contains(*letter))
        .count();
    vowels == 1 && !"aeiouwxy".contains(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_is_said_with_and_without_its_value() {
        let phrase = Phrase::parse("put [{}] on", None).unwrap();
        assert_eq!(phrase.with("the kettle"), "put the kettle on");
        assert_eq!(phrase.gerund_with("the kettle"), "putting the kettle on");
        assert_eq!(phrase.bare(), "put on");
        let leave = Phrase::parse("leave [on {}]", None).unwrap();
        assert_eq!(
            (leave.bare(), leave.gerund_bare().as_str()),
            ("leave", "leaving")
        );
        let chore = Phrase::parse("[{}] this week", Some("do this week")).unwrap();
        assert_eq!(chore.bare(), "do this week");
    }

    #[test]
    fn what_has_no_place_for_a_value_is_no_phrase() {
        for wrong in ["leave", "leave [now]", "leave {}"] {
            assert_eq!(Phrase::parse(wrong, None), None, "{wrong}");
        }
    }

    #[test]
    fn verbs_take_their_ing() {
        let forms = [
            ("see it", "seeing it"),
            ("open", "opening"),
            ("book", "booking"),
            ("set off", "setting off"),
            ("scrub", "scrubbing"),
            ("play", "playing"),
            ("show", "showing"),
            ("kayaking there", "kayaking there"),
            ("sing", "singing"),
        ];
        for (verb, form) in forms {
            assert_eq!(gerund(verb), form);
        }
    }
}
