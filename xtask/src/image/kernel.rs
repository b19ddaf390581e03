//! The kernel of a hub, its drivers, and what a board's own firmware reads beside it, out
//! of the distribution's packages.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::debian::Suite;
use crate::boards::Image;

/// The package of what a Raspberry Pi's first stage reads, and where it unpacks to.
const FIRMWARE: (&str, &str) = ("raspi-firmware", "usr/lib/raspi-firmware");

/// A kernel's files, unpacked.
pub struct Kernel {
    /// The image that a bootloader starts.
    pub image: PathBuf,
    folder: PathBuf,
    /// Drivers by name.
    drivers: BTreeMap<String, PathBuf>,
    /// The names of those that are part of the image.
    built_in: BTreeSet<String>,
}

impl Kernel {
    /// The newest kernel that a board's package stands for, and the board's firmware, kept
    /// in a folder.
    pub fn fetch(described: &Image, kept: &Path) -> Result<Self> {
        let suite = match &described.suite {
            Some(name) => Suite::named(name, &kept.join("suites"))?,
            None => Suite::own(),
        };
        let versioned = suite.newest(&described.kernel)?;
        let needs_firmware = !described.firmware().is_empty();
        let name = if needs_firmware {
            format!("{versioned}+{}", FIRMWARE.0)
        } else {
            versioned.clone()
        };
        let folder = kept.join(&name);
        if !folder.exists() {
            let staging = kept.join(name + ".new");
            let _ = fs::remove_dir_all(&staging);
            fs::create_dir_all(&staging)?;
            for package in suite.parts(&versioned)? {
                suite.unpack(&package, &staging)?;
            }
            if needs_firmware {
                suite.unpack(FIRMWARE.0, &staging)?;
            }
            Self::read(&staging)?;
            fs::rename(&staging, &folder)?;
        }
        Self::read(&folder)
    }

    /// A kernel in a folder that is laid out as a root file system is.
    pub fn read(folder: &Path) -> Result<Self> {
        let modules = ["lib/modules", "usr/lib/modules"].map(|root| folder.join(root));
        let image = entries(&folder.join("boot"))
            .into_iter()
            .find(|file| named(file, "vmlinuz-"))
            // Where Debian puts it from 14 on.
            .or_else(|| below(&modules[1], "vmlinuz"))
            .with_context(|| format!("{} has no boot/vmlinuz-VERSION", folder.display()))?;
        let (mut drivers, mut built_in) = (BTreeMap::new(), BTreeSet::new());
        for root in &modules {
            collect(root, &mut drivers)?;
            if let Some(list) = below(root, "modules.builtin") {
                let list = fs::read_to_string(list)?;
                built_in.extend(list.lines().filter_map(|line| driver_name(line.as_ref())));
            }
        }
        Ok(Self {
            image,
            folder: folder.to_owned(),
            drivers,
            built_in,
        })
    }

    /// The description of a board's hardware that comes with the kernel, by its name
    /// there: `vendor/board.dtb`.
    pub fn device_tree(&self, name: &str) -> Result<PathBuf> {
        let versions = entries(&self.folder.join("usr/lib"))
            .into_iter()
            .filter(|place| named(place, "linux-image-"));
        let split = entries(&self.folder.join("usr/lib/modules"))
            .into_iter()
            .map(|version| version.join("dtb"));
        versions
            .chain(split)
            .map(|place| place.join(name))
            .find(|place| place.exists())
            .with_context(|| format!("this kernel has no device tree {name}"))
    }

    /// A file of the board's firmware.
    pub fn firmware(&self, name: &str) -> Result<PathBuf> {
        let file = self.folder.join(FIRMWARE.1).join(name);
        ensure!(
            file.exists(),
            "{} is missing: it comes with Debian's {}",
            file.display(),
            FIRMWARE.0
        );
        Ok(file)
    }

    /// The wanted drivers, each behind those that it needs.
    pub fn drivers(&self, wanted: &[String]) -> Result<Vec<Driver>> {
        let mut ordered = Vec::new();
        for name in wanted {
            self.add(name, &mut ordered, 0)?;
        }
        Ok(ordered)
    }

    fn add(&self, name: &str, ordered: &mut Vec<Driver>, depth: usize) -> Result<()> {
        ensure!(depth < 16, "the driver {name} needs itself");
        let name = name.replace('-', "_");
        if self.built_in.contains(&name) {
            return Ok(());
        }
        let path = self
            .drivers
            .get(&name)
            .with_context(|| format!("this kernel has no driver {name}"))?;
        if ordered.iter().any(|driver| driver.name == name) {
            return Ok(());
        }
        let module = module(path)?;
        for needed in depends(&module) {
            self.add(&needed, ordered, depth + 1)?;
        }
        ordered.push(Driver { name, module });
        Ok(())
    }
}

/// A driver as the kernel takes it.
pub struct Driver {
    /// Its name, with underscores.
    pub name: String,
    /// The module, in plain.
    pub module: Vec<u8>,
}

/// Reads a module; Debian's are compressed from 13 on.
fn module(path: &Path) -> Result<Vec<u8>> {
    let module = if path.extension().is_some_and(|kind| kind == "xz") {
        let mut unpack = Command::new("xz");
        unpack.args(["--decompress", "--stdout"]).arg(path);
        let unpacked = unpack
            .output()
            .context("xz is missing: on Debian, `apt install xz-utils`")?;
        unpacked.stdout
    } else {
        fs::read(path)?
    };
    ensure!(
        module.starts_with(b"\x7fELF"),
        "the driver {} is no module, in plain or packed by xz",
        path.display()
    );
    Ok(module)
}

/// What a module says it needs: the entry `depends=` of its section `.modinfo`.
fn depends(module: &[u8]) -> Vec<String> {
    const ENTRY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(ENTRY.len()).position(|part| part == ENTRY) else {
        return Vec::new();
    };
    let rest = &module[at + ENTRY.len()..];
    let end = rest.iter().position(|&byte| byte == 0).unwrap_or(0);
    let names = String::from_utf8_lossy(&rest[..end]);
    let names = names.split(',').filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// What is in a folder; nothing where there is none.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// The first file of that name in one of a folder's folders.
fn below(folder: &Path, name: &str) -> Option<PathBuf> {
    let files = entries(folder).into_iter().map(|inner| inner.join(name));
    files.into_iter().find(|file| file.exists())
}

fn named(path: &Path, prefix: &str) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with(prefix)
}

/// A driver's name, with underscores, from where it lies.
fn driver_name(path: &Path) -> Option<String> {
    let (name, _) = path.file_name()?.to_str()?.split_once(".ko")?;
    Some(name.replace('-', "_"))
}

fn collect(folder: &Path, drivers: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for path in entries(folder) {
        if path.is_dir() && !path.is_symlink() {
            collect(&path, drivers)?;
        } else if let Some(name) = driver_name(&path) {
            drivers.insert(name, path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::run;

    fn kernel(drivers: &[(&str, &str)]) -> (tempfile::TempDir, Kernel) {
        let folder = tempfile::tempdir().unwrap();
        let modules = folder.path().join("lib/modules/6.1/kernel");
        fs::create_dir_all(&modules).unwrap();
        fs::create_dir_all(folder.path().join("boot")).unwrap();
        fs::write(folder.path().join("boot/vmlinuz-6.1"), "kernel").unwrap();
        for (name, depends) in drivers {
            let module = format!("\x7fELF\0license=GPL\0depends={depends}\0name={name}\0");
            fs::write(modules.join(format!("{name}.ko")), module).unwrap();
        }
        let kernel = Kernel::read(folder.path()).unwrap();
        (folder, kernel)
    }

    fn names(drivers: Vec<Driver>) -> Vec<String> {
        drivers.into_iter().map(|driver| driver.name).collect()
    }

    #[test]
    fn a_driver_comes_behind_those_that_it_needs() {
        let (_folder, kernel) = kernel(&[
            ("ext4", "jbd2,mbcache"),
            ("jbd2", ""),
            ("mbcache", ""),
            ("crc32c_generic", ""),
        ]);
        let wanted = ["crc32c-generic", "ext4", "jbd2"].map(str::to_owned);
        let order = names(kernel.drivers(&wanted).unwrap());
        assert_eq!(order, ["crc32c_generic", "jbd2", "mbcache", "ext4"]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let (_folder, kernel) = kernel(&[("a", "b"), ("b", "a")]);
        let refused = |name: &str| {
            let wanted = [name.to_owned()];
            kernel.drivers(&wanted).err().unwrap().to_string()
        };
        assert!(refused("ext4").contains("no driver ext4"));
        assert!(refused("a").contains("needs itself"));
        assert!(Kernel::read(Path::new("/nowhere")).is_err());
    }

    #[test]
    fn packed_drivers_are_unpacked_and_what_is_none_is_refused() {
        let (folder, _) = kernel(&[("jbd2", ""), ("ext4", "jbd2")]);
        let modules = folder.path().join("lib/modules/6.1/kernel");
        let mut pack = Command::new("xz");
        run(pack.arg(modules.join("ext4.ko"))).unwrap();
        fs::write(modules.join("odd.ko"), "text").unwrap();
        let kernel = Kernel::read(folder.path()).unwrap();
        let drivers = kernel.drivers(&["ext4".to_owned()]).unwrap();
        assert!(
            drivers
                .iter()
                .all(|driver| driver.module.starts_with(b"\x7fELF"))
        );
        assert_eq!(names(drivers), ["jbd2", "ext4"]);
        let refused = kernel.drivers(&["odd".to_owned()]).err().unwrap();
        assert!(refused.to_string().contains("no module"));
    }
}
