//! Text as it is compared for word error rates.
//!
//! A recogniser writes "7:30 p.m." where a transcriber wrote "seven thirty p m";
//! neither is wrong. Both sides are brought to the same words:
//!
//! - lower case, no punctuation; hyphens and slashes part words; notes in `[]`
//!   and `<>` and the hesitations `uh`, `um`, `er`, `hm` go;
//! - numbers are compared digit by digit, however they are grouped: "6231",
//!   "62 31" and "sixty two thirty one" all become `6 2 3 1`. "oh" between
//!   digits is 0, ":00" says nothing, "3.5" is "three point five". Ordinals
//!   count as their number: "12th" and "twelfth" are `1 2`;
//! - `$5` is "5 dollars", `5%` is "5 percent", `&` is "and";
//! - contractions with one reading are written out (n't, 're, 've, 'll, 'm,
//!   let's); `'s` and `'d` have several, and only lose the apostrophe;
//! - initialisms are letters: "U.S." is `u s`, "pm" is `p m`;
//! - a few British spellings become American, "okay" is "ok", "Mr" is "mister".
//!
//! Limits: English only; letters spelled out stay apart ("d e r e k" is five
//! words); a number said two ways that differ in digits stays different.

use text2num::{Language, replace_numbers_in_text};

/// The words of `text` in the form in which they are compared.
pub fn normalize(text: &str) -> Vec<String> {
    let words = without_punctuation(&with_symbols_spoken(&without_notes(&plain_letters(text))));
    let words: Vec<String> = words
        .split_whitespace()
        .flat_map(|word| {
            written_out(word)
                .split(' ')
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .filter(|word| !HESITATIONS.contains(&word.as_str()))
        .collect();
    let text = with_digits_scaled(words).join(" ");
    let text = replace_numbers_in_text(&text, &Language::english(), 0.0);
    digit_by_digit(&text)
}

const HESITATIONS: [&str; 8] = ["uh", "um", "er", "erm", "hm", "hmm", "mm", "mhm"];

/// Lower case, with typographic quotes and dashes made plain.
fn plain_letters(text: &str) -> String {
    let plain = |letter| match letter {
        '\u{2018}' | '\u{2019}' | '\u{02bc}' | '`' => '\'',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        other => other,
    };
    text.chars()
        .map(plain)
        .flat_map(char::to_lowercase)
        .collect()
}

/// Drops what stands in square or angle brackets, such as `[noise]`.
fn without_notes(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::with_capacity(text.len());
    while let Some(open) = rest.find(['[', '<']) {
        let close = if rest[open..].starts_with('[') {
            ']'
        } else {
            '>'
        };
        let Some(length) = rest[open..].find(close) else {
            break;
        };
        kept.push_str(&rest[..open]);
        kept.push(' ');
        rest = &rest[open + length + 1..];
    }
    kept + rest
}

/// Writes out the symbols that people speak.
fn with_symbols_spoken(text: &str) -> String {
    let spaced = text
        .replace('%', " percent ")
        .replace('&', " and ")
        .replace("per cent", "percent");
    let words = spaced.split_whitespace().map(|word| {
        CURRENCIES
            .iter()
            .find_map(|(sign, name)| word.strip_prefix(*sign).map(|amount| (amount, name)))
            .map_or_else(
                || word.to_owned(),
                |(amount, name)| after_amount(amount, name),
            )
    });
    words.collect::<Vec<_>>().join(" ")
}

const CURRENCIES: [(char, &str); 3] = [('$', "dollars"), ('£', "pounds"), ('€', "euros")];

/// The currency is said after the amount, but before punctuation that ends it.
fn after_amount(amount: &str, currency: &str) -> String {
    let number = amount.trim_end_matches(|letter: char| !letter.is_alphanumeric());
    let one = if number == "1" {
        currency.trim_end_matches('s')
    } else {
        currency
    };
    format!("{number} {one}")
}

/// Keeps letters, digits, apostrophes inside words and points inside numbers.
fn without_punctuation(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut kept = String::with_capacity(text.len());
    for (index, &letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).map_or(' ', |index| letters[index]);
        let after = letters.get(index + 1).copied().unwrap_or(' ');
        let in_number = before.is_ascii_digit() && after.is_ascii_digit();
        match letter {
            _ if letter.is_alphanumeric() => kept.push(letter),
            '\'' if before.is_alphanumeric() && after.is_alphanumeric() => kept.push(letter),
            ',' if in_number => {}
            '.' if in_number => kept.push_str(" point "),
            _ => kept.push(' '),
        }
    }
    kept.replace(" o'clock", " oclock")
}

/// One word in its expanded and American form.
fn written_out(word: &str) -> String {
    if let Some((_, form)) = WORDS.iter().find(|(from, _)| *from == word) {
        return (*form).to_owned();
    }
    for (ending, form) in CONTRACTIONS {
        if let Some(stem) = word.strip_suffix(ending) {
            return format!("{stem}{form}");
        }
    }
    word.replace('\'', "")
}

const CONTRACTIONS: [(&str, &str); 5] = [
    ("n't", " not"),
    ("'re", " are"),
    ("'ve", " have"),
    ("'ll", " will"),
    ("'m", " am"),
];

const WORDS: [(&str, &str); 31] = [
    ("can't", "can not"),
    ("cannot", "can not"),
    ("won't", "will not"),
    ("shan't", "shall not"),
    ("ain't", "aint"),
    ("let's", "let us"),
    ("pm", "p m"),
    ("okay", "ok"),
    ("mr", "mister"),
    ("mrs", "missus"),
    ("dr", "doctor"),
    ("colour", "color"),
    ("colours", "colors"),
    ("favour", "favor"),
    ("favourite", "favorite"),
    ("favourites", "favorites"),
    ("flavour", "flavor"),
    ("honour", "honor"),
    ("labour", "labor"),
    ("neighbour", "neighbor"),
    ("neighbours", "neighbors"),
    ("neighbourhood", "neighborhood"),
    ("centre", "center"),
    ("theatre", "theater"),
    ("grey", "gray"),
    ("realise", "realize"),
    ("organise", "organize"),
    ("programme", "program"),
    ("travelling", "traveling"),
    ("cancelled", "canceled"),
    ("mum", "mom"),
];

/// Writes "58 thousand" as `58000` and "a hundred" as `100`, gives numbers their
/// "oh", and takes "am" after a number for the time of day.
fn with_digits_scaled(words: Vec<String>) -> Vec<String> {
    let mut scaled: Vec<String> = Vec::with_capacity(words.len());
    for (index, word) in words.iter().enumerate() {
        let next = words.get(index + 1).map_or("", String::as_str);
        let after_digits = scaled.last().is_some_and(|last| is_digits(last));
        let zeros = scale(word).filter(|_| after_digits);
        match (zeros, word.as_str()) {
            (Some(zeros), _) => {
                if let Some(last) = scaled.last_mut() {
                    last.push_str(zeros);
                }
            }
            (None, "a") if scale(next).is_some() => scaled.push("one".into()),
            (None, "am") if index > 0 && is_number(&words[index - 1]) => {
                scaled.extend(["a".into(), "m".into()]);
            }
            (None, "oh") if index > 0 && is_number(&words[index - 1]) && is_number(next) => {
                scaled.push("zero".into());
            }
            (None, "00") if after_digits => {}
            _ => scaled.push(word.clone()),
        }
    }
    scaled
}

fn scale(word: &str) -> Option<&'static str> {
    match word {
        "hundred" => Some("00"),
        "thousand" => Some("000"),
        "million" => Some("000000"),
        "billion" => Some("000000000"),
        _ => None,
    }
}

fn is_digits(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the word alone is a number, in digits or in letters.
fn is_number(word: &str) -> bool {
    is_digits(word) || replace_numbers_in_text(word, &Language::english(), 0.0) != word
}

/// Parts every number into its digits, and ordinals from their endings.
fn digit_by_digit(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        let number = ["st", "nd", "rd", "th"]
            .iter()
            .find_map(|ending| word.strip_suffix(ending))
            .filter(|stem| is_digits(stem))
            .unwrap_or(word);
        if is_digits(number) {
            words.extend(number.chars().map(String::from));
        } else if let Some((whole, part)) = decimal(number) {
            words.extend(whole.chars().map(String::from));
            words.push("point".into());
            words.extend(part.chars().map(String::from));
        } else {
            words.push(number.to_owned());
        }
    }
    words
}

fn decimal(word: &str) -> Option<(&str, &str)> {
    word.split_once('.')
        .filter(|(whole, part)| is_digits(whole) && is_digits(part))
}

#[cfg(test)]
mod tests {
    use super::normalize;

    /// Each line holds spellings that must compare as equal.
    const SAME: &[&[&str]] = &[
        &["Hello, world!", "hello world"],
        &["7:30", "seven thirty", "7 30"],
        &["at 7:00 p.m.", "at seven p m", "at 7 pm", "at 7 PM."],
        &["at 9 am", "at nine a.m."],
        &["7:05", "seven oh five", "seven zero five"],
        &["3", "three"],
        &["the 12th of May", "the twelfth of may"],
        &[
            "September 27th, 1967",
            "september twenty seventh nineteen sixty seven",
        ],
        &[
            "6231",
            "sixty two thirty one",
            "62-31",
            "6 2 3 1",
            "six two three one",
        ],
        &[
            "2023",
            "twenty twenty three",
            "two thousand and twenty three",
            "2,023",
        ],
        &["58 thousand", "fifty eight thousand", "58,000"],
        &["a hundred", "one hundred", "100"],
        &["3.5", "three point five"],
        &["$5", "five dollars", "$5."],
        &["$1", "one dollar"],
        &["50%", "fifty percent", "50 per cent"],
        &["twenty-one", "21", "twenty one"],
        &["I can't", "I cannot", "i can not", "I can\u{2019}t"],
        &["they're", "they are"],
        &["let's go", "let us go"],
        &["Bob's car", "bobs car"],
        &["the U.S.", "the u s"],
        &["colour", "color"],
        &["okay, [laughs] fine", "OK um fine"],
        &["rock & roll", "rock and roll"],
        &["8 o'clock", "eight o\u{2019}clock"],
    ];

    #[test]
    fn spellings_of_one_utterance_compare_as_equal() {
        for spellings in SAME {
            for spelling in *spellings {
                assert_eq!(normalize(spelling), normalize(spellings[0]), "{spelling:?}");
            }
        }
    }

    #[test]
    fn different_words_stay_different() {
        for (one, other) in [
            ("thirteen", "thirty"),
            ("d e r e k", "derek"),
            ("it's", "it is"),
            ("monday", "sunday"),
            ("oh no", "zero no"),
            ("i am seven", "i a m seven"),
        ] {
            assert_ne!(normalize(one), normalize(other), "{one:?} and {other:?}");
        }
    }

    #[test]
    fn numbers_are_digits_and_words_are_words() {
        let words = normalize("Enter sixty two, please: 7:30!");
        assert_eq!(words, ["enter", "6", "2", "please", "7", "3", "0"]);
        assert!(normalize(" ... [noise] ").is_empty());
    }
}
