//! A record as text for those who read text: the embedder and the words.

use earwitness_api::types::Attachment;
use jiff::Timestamp;

/// `NAME (D MONTH YEAR): TEXT`, as the embedder sees a record; without the name
/// where none is known.
pub(crate) fn document(name: Option<&str>, unix_ms: i64, text: &str) -> String {
    let date = date(unix_ms);
    match name {
        Some(name) => format!("{name} ({date}): {text}"),
        None => format!("({date}): {text}"),
    }
}

/// The day of a record, by universal time: a key must not depend on where the hub
/// takes itself to be.
pub(super) fn date(unix_ms: i64) -> String {
    Timestamp::from_millisecond(unix_ms)
        .map(|at| at.strftime("%-d %B %Y").to_string())
        .unwrap_or_default()
}

/// What was said, with what was shown along with it.
pub(crate) fn said(text: &str, attachments: &[Attachment]) -> String {
    let captions = attachments.iter().map(|shown| shown.caption.as_str());
    let parts: Vec<&str> = std::iter::once(text)
        .chain(captions)
        .filter(|part| !part.is_empty())
        .collect();
    parts.join(" ")
}
