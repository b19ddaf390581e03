//! `boards/<name>/board.toml`: all that the chores know of a board.
//!
//! A description that cannot be right is refused with its file and the reason:
//! unknown keys, a class on the wrong kind of target, a budget larger than the board.

use std::{fmt, fs, path::PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Deserializer, de::Error};

use crate::process::root;

/// One board, as its file describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// The name of its folder, which is not in the file.
    #[serde(skip)]
    pub name: String,
    /// What runs on it.
    pub class: Class,
    /// The Rust target triple.
    pub target: String,
    /// RAM that a program may use.
    pub memory: Bytes,
    /// Flash, or the smallest card or disk that will do.
    pub storage: Bytes,
    /// Where its log speaks: a terminal of the kernel's, `rtt` or `semihosting`.
    pub console: String,
    /// What can be asked how much power it takes; where there is nothing, reports say
    /// so.
    pub power_sensors: Vec<PowerSensor>,
    /// Its processor.
    pub cpu: Cpu,
    /// What the project allows itself.
    pub budget: Budget,
    /// How a program gets onto it.
    pub flash: Flash,
    /// What a hub's image is made of; none where none can be made.
    pub image: Option<Image>,
}

/// What runs on a board.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The whole runtime under Linux.
    Hub,
    /// Capture, features and framing, without an operating system.
    MicNode,
}

/// A kind of sensor that Linux or the board's own program can read.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PowerSensor {
    Hwmon,
    Ina2xx,
    Battery,
    Rapl,
}

/// A processor.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// The core, as compilers name it.
    pub core: String,
    /// Extensions that every such board has.
    pub features: Vec<String>,
}

/// What the project allows itself on a board.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// A hub's resident set; a node's variables and stack.
    pub memory: Bytes,
    /// A hub's stripped program; all that a node has in flash.
    pub program: Bytes,
}

/// How a program gets onto a board.
#[derive(Debug, Deserialize)]
#[serde(tag = "method", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Flash {
    /// QEMU loads it.
    Emulator {
        /// QEMU's name of the machine.
        machine: String,
        /// How fast the clock runs that a node measures its work with.
        clock_hz: Option<u32>,
    },
    /// An image is written to a card or disk.
    BlockDevice,
    /// A debug probe writes it.
    ProbeRs {
        /// probe-rs's name of the chip.
        chip: String,
    },
}

/// What a hub's image is made of.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// Debian's package of the kernel.
    pub kernel: String,
    /// The suite it is taken from, and the firmware with it; where none is named, the one
    /// that this machine has.
    pub suite: Option<String>,
    /// What starts the kernel; nothing where an emulator does.
    pub boot: Option<Boot>,
    /// Drivers to load before anything is mounted; those that they need come along.
    pub modules: Vec<String>,
    /// What the runtime is started with.
    pub arguments: Vec<String>,
}

/// What starts a kernel from the first partition of a hub's disk.
#[derive(Debug, Deserialize)]
#[serde(tag = "loader", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Boot {
    /// The firmware of a Raspberry Pi.
    RaspberryPi {
        /// The board's description, by its name beside the kernel.
        device_tree: String,
        /// Files of the firmware that are not in the board's own memory.
        #[serde(default)]
        firmware: Vec<String>,
    },
    /// U-Boot, which the board has in a memory of its own.
    Extlinux {
        /// The board's description, by its name beside the kernel.
        device_tree: String,
    },
}

impl Image {
    /// Files of the board's firmware that go onto its disk.
    pub fn firmware(&self) -> &[String] {
        match &self.boot {
            Some(Boot::RaspberryPi { firmware, .. }) => firmware,
            _ => &[],
        }
    }
}

/// A size, written as `128 KiB`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Bytes(pub u64);

const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let size = text.split_once(' ').and_then(|(count, unit)| {
            let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
            count.parse::<u64>().ok()?.checked_mul(*factor)
        });
        size.map(Self).ok_or_else(|| {
            D::Error::custom(format!("{text:?} is no size: write it as \"128 KiB\""))
        })
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match UNITS
            .iter()
            .find(|(_, factor)| self.0.is_multiple_of(*factor))
        {
            Some((unit, factor)) => write!(f, "{} {unit}", self.0 / factor),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

impl Board {
    /// The board of that name.
    pub fn find(name: &str) -> Result<Self> {
        let path = folder().join(name).join("board.toml");
        if !path.exists() {
            let names: Vec<_> = all()?.into_iter().map(|board| board.name).collect();
            bail!(
                "there is no board {name:?}; choose one of {}",
                names.join(", ")
            );
        }
        let text = fs::read_to_string(&path)?;
        let board = Self::parse(name, &text);
        board.with_context(|| format!("{} cannot be right", path.display()))
    }

    /// Whether a program for the board, a package of its name, is in its folder.
    pub fn has_program(&self) -> bool {
        folder().join(&self.name).join("Cargo.toml").exists()
    }

    fn parse(name: &str, text: &str) -> Result<Self> {
        let board = Self {
            name: name.into(),
            ..toml::from_str(text)?
        };
        board.check()?;
        Ok(board)
    }

    fn check(&self) -> Result<()> {
        let Self {
            target,
            memory,
            storage,
            budget,
            ..
        } = self;
        let bare = target.starts_with("thumb") && target.contains("-none-");
        match self.class {
            Class::Hub => ensure!(!bare, "a hub runs Linux, and {target} is bare metal"),
            Class::MicNode => ensure!(bare, "a mic-node is bare metal, and {target} is not"),
        }
        let fits = budget.memory <= *memory && budget.program <= *storage;
        ensure!(
            fits,
            "a budget is larger than the board: see memory and storage"
        );
        let flashes = match &self.flash {
            Flash::Emulator { clock_hz, .. } => {
                clock_hz.is_some() == (self.class == Class::MicNode)
            }
            Flash::BlockDevice => self.class == Class::Hub,
            Flash::ProbeRs { .. } => self.class == Class::MicNode,
        };
        ensure!(
            self.image.is_none() || self.class == Class::Hub,
            "[image] is for hubs: a node is a program alone"
        );
        ensure!(
            flashes,
            "[flash] does not fit the class: hubs take block-device or emulator, nodes \
             probe-rs or emulator with clock_hz"
        );
        Ok(())
    }
}

/// Every board, by name.
pub fn all() -> Result<Vec<Board>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder()).context("cannot read boards/")? {
        let entry = entry?;
        if entry.path().join("board.toml").exists() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    names.iter().map(|name| Board::find(name)).collect()
}

/// `cargo xtask boards`: lists the boards and checks their descriptions.
pub fn list() -> Result<()> {
    for board in all()? {
        let class = match board.class {
            Class::Hub => "hub",
            Class::MicNode => "mic-node",
        };
        let how = match &board.flash {
            Flash::Emulator { machine, .. } => format!("emulator ({machine})"),
            Flash::BlockDevice => "block device".into(),
            Flash::ProbeRs { chip } => format!("probe-rs ({chip})"),
        };
        println!(
            "{:18} {class:9} {:26} {} with {}, RAM {} of {}, program {} of {}, console {}, {how}{}",
            board.name,
            board.target,
            board.cpu.core,
            board.cpu.features.join(" "),
            board.budget.memory,
            board.memory,
            board.budget.program,
            board.storage,
            board.console,
            match board.power_sensors.as_slice() {
                [] => String::new(),
                sensors => format!(", power from {sensors:?}"),
            }
        );
    }
    Ok(())
}

fn folder() -> PathBuf {
    root().join("boards")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = include_str!("../../boards/qemu-mps2-an386/board.toml");

    fn refused(replaced: &str, by: &str) -> String {
        assert!(NODE.contains(replaced), "{replaced}");
        let error = Board::parse("x", &NODE.replace(replaced, by)).unwrap_err();
        format!("{error:#}")
    }

    #[test]
    fn every_board_of_the_project_is_right() {
        let boards = all().unwrap();
        assert!(boards.iter().any(|board| board.class == Class::Hub));
        assert!(boards.iter().any(|board| board.class == Class::MicNode));
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(refused("memory = \"128 KiB\"", "memory = \"8 MiB\"").contains("budget is larger"));
        assert!(refused("\"mic-node\"", "\"hub\"").contains("a hub runs Linux"));
        assert!(
            refused("thumbv7em-none-eabihf", "aarch64-unknown-linux-gnu").contains("bare metal")
        );
        assert!(refused("\"4 MiB\"", "\"4 MB\"").contains("\"128 KiB\""));
        assert!(refused("console", "konsole").contains("konsole"));
        assert!(refused("clock_hz = 25_000_000", "").contains("clock_hz"));
        assert!(refused("power_sensors = []", "power_sensors = [\"guess\"]").contains("guess"));
    }

    #[test]
    fn a_board_that_is_not_there_is_named_with_those_that_are() {
        let error = Board::find("abacus").unwrap_err().to_string();
        assert!(error.contains("qemu-mps2-an386"), "{error}");
    }

    #[test]
    fn sizes_are_shown_as_they_are_written() {
        assert_eq!(Bytes(128 << 10).to_string(), "128 KiB");
        assert_eq!(Bytes(3 << 30).to_string(), "3 GiB");
        assert_eq!(Bytes(1_000).to_string(), "1000 bytes");
    }
}
