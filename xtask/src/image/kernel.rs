//! The kernel of a hub and its drivers, out of the distribution's package.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use crate::process::{output, run, succeeds};

/// A kernel's files, unpacked.
pub struct Kernel {
    /// The image that a bootloader starts.
    pub image: PathBuf,
    /// Drivers by name.
    drivers: BTreeMap<String, PathBuf>,
}

impl Kernel {
    /// The newest kernel that a package of Debian's stands for, kept in a folder.
    pub fn fetch(package: &str, kept: &Path) -> Result<Self> {
        let versioned = newest(package)?;
        let folder = kept.join(&versioned);
        if !folder.exists() {
            let staging = kept.join(format!("{versioned}.new"));
            let _ = fs::remove_dir_all(&staging);
            fs::create_dir_all(&staging)?;
            unpack(&versioned, &staging)?;
            Self::read(&staging)?;
            fs::rename(&staging, &folder)?;
        }
        Self::read(&folder)
    }

    /// A kernel in a folder that is laid out as a root file system is.
    pub fn read(folder: &Path) -> Result<Self> {
        let image = fs::read_dir(folder.join("boot"))
            .ok()
            .and_then(|files| {
                let mut files = files.flatten().map(|file| file.path());
                files.find(|file| file.file_name().is_some_and(is_image))
            })
            .with_context(|| format!("{} has no boot/vmlinuz-VERSION", folder.display()))?;
        let mut drivers = BTreeMap::new();
        for root in ["lib/modules", "usr/lib/modules"] {
            collect(&folder.join(root), &mut drivers)?;
        }
        Ok(Self { image, drivers })
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

fn is_image(name: &std::ffi::OsStr) -> bool {
    name.to_string_lossy().starts_with("vmlinuz-")
}

fn collect(folder: &Path, drivers: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            collect(&path, drivers)?;
        } else if let Some(name) = path.file_name().and_then(|name| name.to_str())
            && let Some((name, _)) = name.split_once(".ko")
        {
            drivers.insert(name.replace('-', "_"), path);
        }
    }
    Ok(())
}

/// The package, with a version in its name, that a package of Debian's stands for now.
fn newest(package: &str) -> Result<String> {
    let foreign = format!("{package}:arm64");
    if !succeeds(Command::new("apt-cache").args(["show", &foreign])) {
        bail!(
            "no kernel: Debian's {foreign} is not known here. As root: `dpkg --add-architecture \
             arm64 && apt-get update`; or name a folder with boot/ and lib/modules/ by --kernel"
        );
    }
    let depends = output(Command::new("apt-cache").args(["depends", &foreign]))?;
    dependency(&depends).with_context(|| format!("{foreign} depends on no linux-image-VERSION"))
}

/// The versioned kernel among what `apt-cache depends` prints; the first line is the
/// package itself.
fn dependency(printed: &str) -> Option<String> {
    let mut words = printed.lines().skip(1).flat_map(str::split_whitespace);
    let word = words.find(|word| word.starts_with("linux-image-"))?;
    Some(word.trim_end_matches(":arm64").to_owned())
}

/// Downloads a package, and unpacks it.
fn unpack(package: &str, folder: &Path) -> Result<()> {
    let foreign = format!("{package}:arm64");
    eprintln!("== the kernel {foreign}");
    run(Command::new("apt-get")
        .args(["download", "--quiet", &foreign])
        .current_dir(folder))?;
    let archive = fs::read_dir(folder)?
        .flatten()
        .map(|file| file.path())
        .find(|file| file.extension().is_some_and(|kind| kind == "deb"))
        .context("apt-get left no package")?;
    run(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(folder))?;
    fs::remove_file(archive).map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_version_is_what_the_package_depends_on() {
        let printed = "linux-image-arm64:arm64\n  Depends: linux-image-6.1.0-57-arm64:arm64\n";
        assert_eq!(dependency(printed).unwrap(), "linux-image-6.1.0-57-arm64");
        assert_eq!(dependency("linux-image-arm64:arm64\n"), None);
    }
}
