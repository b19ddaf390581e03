//! Errors in one line, each reason once.

use std::error::Error;

/// An error with its causes, on one line. A cause that the text above it already
/// names is not said again.
pub fn describe(error: impl AsRef<dyn Error + 'static>) -> String {
    let mut cause = Some(error.as_ref());
    let mut said = String::new();
    while let Some(error) = cause {
        let reason = error
            .to_string()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        if said.is_empty() {
            said = reason;
        } else if !said.contains(&reason) {
            said = format!("{said}: {reason}");
        }
        cause = error.source();
    }
    said
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the tape: {0}")]
    struct Told(#[source] io::Error);

    #[derive(Debug, thiserror::Error)]
    #[error("no tape")]
    struct Untold(#[source] Told);

    #[test]
    fn every_reason_is_said_once_and_on_one_line() {
        let told = Told(io::Error::other("it is\n  torn"));
        let error: Box<dyn Error> = Box::new(Untold(told));
        assert_eq!(describe(error), "no tape: cannot read the tape: it is torn");
    }
}
