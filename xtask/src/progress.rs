//! Progress on standard error: one moving line on a terminal, and a plain line
//! for each beginning and end where there is none.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// One step that takes a while.
pub struct Step {
    name: String,
    begun: Instant,
    bar: Option<ProgressBar>,
}

impl Step {
    /// Announces the step.
    pub fn begin(name: &str, doing: &str) -> Self {
        let bar = stderr().is_terminal().then(|| spinner(name, doing));
        if bar.is_none() {
            eprintln!("{name}: {doing}");
        }
        Self {
            name: name.into(),
            begun: Instant::now(),
            bar,
        }
    }

    /// Shows what the step is at; only on a terminal.
    pub fn at(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        }
    }

    /// Leaves one line that says how the step ended.
    pub fn end(self, outcome: &str) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        eprintln!(
            "{}: {outcome} ({:.1} s)",
            self.name,
            self.begun.elapsed().as_secs_f32()
        );
    }
}

fn spinner(name: &str, doing: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner()
        .with_prefix(name.to_owned())
        .with_message(doing.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}: {wide_msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
