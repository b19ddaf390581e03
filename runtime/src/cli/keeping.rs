//! How the memory is kept: with which key, and up to which size.

use std::{
    env,
    io::Write,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use anyhow::Context;
use earwitness_store::{Limits, MasterKey, Options, Retention};

use super::{Common, backend, print};

/// Holds the key where no file is named.
const KEY_VARIABLE: &str = "EARWITNESS_KEY";
const MIB: u64 = 1024 * 1024;
const DAY: Duration = Duration::from_hours(24);

/// Options of whatever opens the memory.
#[derive(clap::Args)]
pub(super) struct Keeping {
    /// The key of an encrypted memory; `earwitness memory key FILE` makes one
    /// [default: EARWITNESS_KEY, 64 hexadecimal digits, or no encryption]
    #[arg(long, global = true, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The name of that key in the Linux kernel's keyring, where `keyctl padd user
    /// NAME @u <FILE` puts it; --key-file goes before it
    #[arg(long, global = true, env = "EARWITNESS_KEYRING", value_name = "NAME")]
    keyring: Option<String>,
    /// Records that are kept; beyond, the oldest make room
    #[arg(long, global = true, env = "EARWITNESS_MAX_RECORDS", value_name = "N",
          default_value_t = Limits::default().records, value_parser = at_least_one())]
    max_records: u64,
    /// Space that the memory takes on the disk, in MiB; beyond, the oldest records
    /// make room
    #[arg(long, global = true, env = "EARWITNESS_MAX_DISK", value_name = "MIB",
          default_value_t = Limits::default().disk_bytes / MIB, value_parser = at_least_one())]
    max_disk: u64,
    /// Space that it takes while it is open, in MiB; likewise
    #[arg(long, global = true, env = "EARWITNESS_MAX_MEMORY", value_name = "MIB",
          default_value_t = Limits::default().memory_bytes / MIB, value_parser = at_least_one())]
    max_memory: u64,
    /// Days for which a daemon keeps what was said by people who have no name here
    /// and were not asked; or `forever`
    #[arg(
        long,
        global = true,
        env = "EARWITNESS_KEEP_UNASKED",
        value_name = "DAYS",
        default_value = "30"
    )]
    keep_unasked: Kept,
}

/// A time for which something is kept; `None` is for ever.
#[derive(Clone, Copy)]
struct Kept(Option<Duration>);

impl FromStr for Kept {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse::<u32>()) {
            ("forever", _) => Ok(Self(None)),
            (_, Ok(days @ 1..)) => Ok(Self(Some(days * DAY))),
            _ => Err("give a number of days, at least 1, or `forever`".to_owned()),
        }
    }
}

fn at_least_one() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..)
}

impl Keeping {
    pub(super) fn options(&self) -> anyhow::Result<Options> {
        Ok(Options {
            limits: self.limits(),
            retention: Retention {
                unknown: self.keep_unasked.0,
                ..Retention::default()
            },
            key: self.key()?,
        })
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            records: self.max_records,
            disk_bytes: self.max_disk.saturating_mul(MIB),
            memory_bytes: self.max_memory.saturating_mul(MIB),
            ..Limits::default()
        }
    }

    fn key(&self) -> anyhow::Result<Option<MasterKey>> {
        Ok(match (&self.key_file, &self.keyring) {
            (Some(file), _) => Some(MasterKey::from_file(file)?),
            (None, Some(name)) => Some(MasterKey::from_keyring(name)?),
            (None, None) if env::var_os(KEY_VARIABLE).is_some() => {
                Some(MasterKey::from_env(KEY_VARIABLE)?)
            }
            (None, None) => None,
        })
    }
}

/// Makes a key for a new memory.
pub(super) fn make_key(common: &Common, path: &Path) -> anyhow::Result<()> {
    let key = MasterKey::generate()?;
    let mut file = backend::create_private(path)?;
    file.write_all(key.to_hex().as_bytes())
        .and_then(|()| file.sync_all())
        .with_context(|| format!("the key cannot be written to {}", path.display()))?;
    if common.json {
        return print::json(&serde_json::json!({ "key_file": path }));
    }
    print::line(&format!(
        "{} holds a new key; keep a copy elsewhere: without it, what it encrypts is lost",
        path.display()
    ))
}
