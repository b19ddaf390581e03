//! The written form of what was said: `7:30`, `May 12th`, `23`, `50%`, `$20`.
//!
//! Only what has one reading is rewritten. Numbers below ten that stand alone
//! stay words (`one of them`), `seven thirty` is a time only where something near
//! says so, and pounds stay a word, since they may be a weight. English only.

use text2num::{Language, replace_numbers_in_text};

/// Numbers below this stay words where they stand alone.
const SMALL: f64 = 10.0;
/// Words before a time of day.
const BEFORE_TIME: [&str; 12] = [
    "at", "by", "until", "till", "from", "around", "about", "before", "after", "past", "since",
    "is",
];
/// Words after one.
const AFTER_TIME: [&str; 6] = ["a.m.", "p.m.", "am", "pm", "a.m", "p.m"];
/// Hours that may have stayed words.
const HOURS: [&str; 9] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
];

/// The written form of a transcript.
pub fn form(raw: &str) -> String {
    let digits = replace_numbers_in_text(raw, &Language::english(), SMALL);
    let words: Vec<&str> = digits.split_whitespace().collect();
    let mut written: Vec<String> = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        let (word, taken) = time(&words, at)
            .or_else(|| amount(&words, at))
            .unwrap_or_else(|| (words[at].to_owned(), 1));
        written.push(word);
        at += taken;
    }
    written.join(" ")
}

/// `7 30` or `7.30` as a time of day, and how many words that takes.
fn time(words: &[&str], at: usize) -> Option<(String, usize)> {
    let (hour, minute, taken) = match words[at].split_once('.') {
        Some((hour, minute)) => (hour, minute, 1),
        None => (words[at], *words.get(at + 1)?, 2),
    };
    let (minute, mark) = without_mark(minute);
    let hour = hour_of_day(hour)?;
    let is_minute = minute.len() == 2 && minute.parse().is_ok_and(|m: u8| m < 60);
    let before = at
        .checked_sub(1)
        .map_or("", |before| words[before])
        .to_lowercase();
    let after = words
        .get(at + taken)
        .map_or("", |after| without_mark(after).0);
    let said_so = BEFORE_TIME.contains(&before.as_str())
        || AFTER_TIME.contains(&after.to_lowercase().as_str());
    let is_amount = ["percent", "dollars", "euros"].contains(&after);
    (is_minute && said_so && !is_amount).then(|| (format!("{hour}:{minute}{mark}"), taken))
}

fn hour_of_day(word: &str) -> Option<usize> {
    let small = HOURS
        .iter()
        .position(|&hour| hour.eq_ignore_ascii_case(word));
    small
        .map(|at| at + 1)
        .or_else(|| word.parse().ok().filter(|hour| (1..=12).contains(hour)))
}

/// `50 percent` or `20 dollars` with its sign.
fn amount(words: &[&str], at: usize) -> Option<(String, usize)> {
    let number = words[at];
    let is_number = number.starts_with(|first: char| first.is_ascii_digit())
        && number.ends_with(|last: char| last.is_ascii_digit());
    let (unit, mark) = without_mark(words.get(at + 1)?);
    let signed = match unit {
        "percent" => format!("{number}%{mark}"),
        "dollars" => format!("${number}{mark}"),
        "euros" => format!("\u{20ac}{number}{mark}"),
        _ => return None,
    };
    is_number.then_some((signed, 2))
}

/// A word and the punctuation that follows it.
fn without_mark(word: &str) -> (&str, &str) {
    let bare = word.trim_end_matches([',', '.', '?', '!', ';', ':']);
    (bare, &word[bare.len()..])
}

#[cfg(test)]
mod tests {
    use super::form;

    #[test]
    fn what_has_one_reading_is_written() {
        for (spoken, written) in [
            ("Dinner is at seven thirty.", "Dinner is at 7:30."),
            ("I leave at 7.30, not later.", "I leave at 7:30, not later."),
            ("The train goes at 6 45 p.m.", "The train goes at 6:45 p.m."),
            ("nine fifteen a.m. is fine", "9:15 a.m. is fine"),
            ("We need twenty-three chairs.", "We need 23 chairs."),
            ("on the twelfth of May", "on the 12th of May"),
            ("about fifty percent", "about 50%"),
            ("about 7.30 percent of it", "about 7.30% of it"),
            ("It costs twenty dollars.", "It costs $20."),
            ("three hundred and five", "305"),
        ] {
            assert_eq!(form(spoken), written);
        }
    }

    #[test]
    fn what_has_several_readings_stays() {
        for spoken in [
            "One of them has two or three.",
            "Wait a second, no one is here.",
            "I weigh a lot of pounds.",
            "Hello, how are you?",
            "",
        ] {
            assert_eq!(form(spoken), spoken);
        }
    }

    #[test]
    fn a_written_form_is_its_own() {
        let written = "At 7:30 a.m. on May 12th, 23 people paid $20, or 50%.";
        assert_eq!(form(written), written);
    }
}
