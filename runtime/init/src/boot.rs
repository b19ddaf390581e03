//! Which slot is booted.
//!
//! There are two, each with a whole runtime. An update goes into the one that is not
//! in use and puts it on trial: it has a few boots to come up in. Once the daemon
//! listens, its slot is confirmed. A slot that fails its trial is left for the other
//! one; a confirmed slot is not left because the power went off, only when its own
//! file system or daemon fails.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

/// Boots that a slot on trial has.
pub const TRIALS: u8 = 3;

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The first.
    A,
    /// The second.
    B,
}

impl Slot {
    /// The label of its partition.
    pub fn label(self) -> &'static str {
        match self {
            Self::A => "slot-a",
            Self::B => "slot-b",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// What is known of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Its daemon has listened.
    Confirmed,
    /// It has so many boots left to come up in.
    Trial(u8),
}

/// The slot to boot, and how far it is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Which one.
    pub slot: Slot,
    /// How far.
    pub trust: Trust,
}

impl Choice {
    /// A new disk boots what it was made with.
    pub const FIRST: Self = Self {
        slot: Slot::A,
        trust: Trust::Confirmed,
    };

    /// What holds while this boot is under way. To be kept before anything of the
    /// slot runs, so that a boot that hangs counts.
    pub fn at_boot(self) -> Self {
        match self.trust {
            Trust::Confirmed => self,
            Trust::Trial(0) => Self {
                slot: self.slot.other(),
                trust: Trust::Confirmed,
            },
            Trust::Trial(left) => Self {
                trust: Trust::Trial(left - 1),
                ..self
            },
        }
    }

    /// What is booted where [`at_boot`](Self::at_boot) cannot be kept: a trial that is
    /// not counted could be tried for ever, so it is not begun.
    pub fn uncounted(self) -> Self {
        match self.trust {
            Trust::Confirmed => self,
            Trust::Trial(_) => Self {
                slot: self.slot.other(),
                trust: Trust::Confirmed,
            },
        }
    }

    /// The daemon listens.
    pub fn confirmed(self) -> Self {
        Self {
            trust: Trust::Confirmed,
            ..self
        }
    }

    /// The slot cannot be mounted, or its daemon does not stay.
    pub fn failed(self) -> Self {
        match self.trust {
            Trust::Confirmed => Self {
                slot: self.slot.other(),
                trust: Trust::Trial(TRIALS),
            },
            Trust::Trial(_) => self,
        }
    }

    /// Reads it from its file; a file that is not there or not ours is that of a new
    /// disk.
    pub fn load(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap_or_default();
        Self::parse(&text).unwrap_or(Self::FIRST)
    }

    /// Writes it so that after a power cut there is either this or what was before.
    pub fn save(self, file: &Path) -> io::Result<()> {
        replace(file, &self.to_string())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let slot = match words.next()? {
            "a" => Slot::A,
            "b" => Slot::B,
            _ => return None,
        };
        let trust = match words.next()? {
            "confirmed" => Trust::Confirmed,
            "trial" => Trust::Trial(words.next()?.parse().ok()?),
            _ => return None,
        };
        Some(Self { slot, trust })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slot = match self.slot {
            Slot::A => 'a',
            Slot::B => 'b',
        };
        match self.trust {
            Trust::Confirmed => writeln!(f, "{slot} confirmed"),
            Trust::Trial(left) => writeln!(f, "{slot} trial {left}"),
        }
    }
}

/// Replaces a small file in one step, and does not return before it is durable.
pub fn replace(file: &Path, text: &str) -> io::Result<()> {
    let aside = file.with_extension("new");
    let mut new = File::create(&aside)?;
    new.write_all(text.as_bytes())?;
    new.sync_all()?;
    fs::rename(&aside, file)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(slot: Slot, trust: Trust) -> Choice {
        Choice { slot, trust }
    }

    #[test]
    fn what_fails_its_trial_is_left_for_what_was_confirmed() {
        let mut booted = choice(Slot::B, Trust::Trial(TRIALS));
        for left in (0..TRIALS).rev() {
            booted = booted.at_boot();
            assert_eq!(booted, choice(Slot::B, Trust::Trial(left)));
        }
        assert_eq!(booted.at_boot(), choice(Slot::A, Trust::Confirmed));
    }

    #[test]
    fn a_slot_that_comes_up_is_kept() {
        let booted = choice(Slot::B, Trust::Trial(1)).at_boot().confirmed();
        assert_eq!(booted.at_boot(), choice(Slot::B, Trust::Confirmed));
    }

    #[test]
    fn power_cuts_do_not_move_a_confirmed_slot() {
        let mut booted = Choice::FIRST;
        for _ in 0..10 {
            booted = booted.at_boot();
        }
        assert_eq!(booted, Choice::FIRST);
    }

    #[test]
    fn a_trial_that_cannot_be_counted_is_not_begun() {
        let booted = choice(Slot::B, Trust::Trial(2)).at_boot();
        assert_eq!(booted.uncounted(), choice(Slot::A, Trust::Confirmed));
        assert_eq!(Choice::FIRST.at_boot().uncounted(), Choice::FIRST);
    }

    #[test]
    fn a_confirmed_slot_that_fails_lets_the_other_try() {
        let failed = Choice::FIRST.failed();
        assert_eq!(failed, choice(Slot::B, Trust::Trial(TRIALS)));
        assert_eq!(failed.failed(), failed);
    }

    #[test]
    fn it_is_read_as_it_was_written_and_a_torn_file_is_a_new_disk() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("boot");
        assert_eq!(Choice::load(&file), Choice::FIRST);
        for kept in [
            choice(Slot::B, Trust::Confirmed),
            choice(Slot::A, Trust::Trial(2)),
        ] {
            kept.save(&file).unwrap();
            assert_eq!(Choice::load(&file), kept);
        }
        fs::write(&file, "b tri").unwrap();
        assert_eq!(Choice::load(&file), Choice::FIRST);
    }
}
