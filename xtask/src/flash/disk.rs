//! A hub's disk, onto a file or a block device.
//!
//! A device that is in use is refused: mounted, swapped to, part of another device, or
//! with such a partition, which covers the disk that this machine runs from. So is a
//! file that is. What was written is read back from the medium and compared.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, IsTerminal, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

/// How much is written at a time.
const BLOCK: usize = 4 << 20;
/// The kernel refuses to open a device that is in use with this flag.
const EXCLUSIVE: i32 = nix::libc::O_EXCL;

/// Writes an image and verifies it.
pub fn write(image: &Path, to: &Path, yes: bool) -> Result<()> {
    let mut source =
        File::open(image).with_context(|| format!("cannot read {}", image.display()))?;
    let size = source.metadata()?.len();
    let mut target = open(to, &source, yes)?;
    eprintln!("writing {} to {}", HumanBytes(size), to.display());
    copy(&mut source, &mut target, &bar(size, "writing"))?;
    target.sync_all()?;
    // What is read back comes from the medium and not from memory.
    posix_fadvise(&target, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
    compare(&mut source, &mut target, &bar(size, "verifying"))?;
    println!("{}: written and verified, {size} bytes", to.display());
    Ok(())
}

/// What is written to.
#[derive(Debug, PartialEq)]
enum Target {
    File,
    Device,
}

/// Refuses what nothing can be written to, whatever it would be.
pub fn check(to: &Path) -> Result<()> {
    check_kind(to)?;
    System::default().check_unused(to)
}

/// Opens the target of that source, emptied if it is a file.
fn open(to: &Path, source: &File, yes: bool) -> Result<File> {
    let cannot = || format!("cannot write to {}", to.display());
    check_other(to, source)?;
    let target = check_kind(to)?;
    System::default().check_unused(to)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    if target == Target::File {
        return options
            .create(true)
            .truncate(true)
            .open(to)
            .with_context(cannot);
    }
    let size = source.metadata()?.len();
    let mut device = options
        .custom_flags(EXCLUSIVE)
        .open(to)
        .with_context(cannot)?;
    let room = device.seek(SeekFrom::End(0))?;
    eprintln!(
        "{}: {}, {}",
        to.display(),
        HumanBytes(room),
        System::default().model(to)
    );
    ensure!(
        room >= size,
        "the image of {} does not fit: take a larger card or disk",
        HumanBytes(size)
    );
    ensure!(
        yes || confirmed()?,
        "nothing was written; --yes writes without asking"
    );
    Ok(device)
}

/// Refuses to write an image onto itself.
fn check_other(to: &Path, source: &File) -> Result<()> {
    let image = source.metadata()?;
    let same = fs::metadata(to)
        .is_ok_and(|there| (there.dev(), there.ino()) == (image.dev(), image.ino()));
    ensure!(
        !same,
        "{} is the image itself; name another file or a device",
        to.display()
    );
    Ok(())
}

/// Refuses what an image cannot be written to, before anything of it is lost.
fn check_kind(to: &Path) -> Result<Target> {
    let Ok(there) = fs::metadata(to) else {
        ensure!(
            !to.starts_with("/dev"),
            "there is no device {}: connect the card or disk",
            to.display()
        );
        return Ok(Target::File);
    };
    let kind = there.file_type();
    if kind.is_block_device() {
        return Ok(Target::Device);
    }
    ensure!(
        kind.is_file(),
        "{} is neither a file nor a disk; name the file or the block device to write",
        to.display()
    );
    Ok(Target::File)
}

fn confirmed() -> Result<bool> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    eprint!("everything on it will be lost; write `yes` to go on: ");
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim() == "yes")
}

fn copy(source: &mut File, target: &mut File, bar: &ProgressBar) -> Result<()> {
    source.seek(SeekFrom::Start(0))?;
    target.seek(SeekFrom::Start(0))?;
    let mut block = vec![0; BLOCK];
    loop {
        let count = read_block(source, &mut block)?;
        if count == 0 {
            bar.finish_and_clear();
            return Ok(());
        }
        target
            .write_all(&block[..count])
            .context("the disk took no more: is it worn out, or full?")?;
        bar.inc(count as u64);
    }
}

/// Fails at the first difference.
fn compare(
    source: &mut (impl Read + Seek),
    target: &mut (impl Read + Seek),
    bar: &ProgressBar,
) -> Result<()> {
    source.seek(SeekFrom::Start(0))?;
    target.seek(SeekFrom::Start(0))?;
    let (mut ours, mut theirs) = (vec![0; BLOCK], vec![0; BLOCK]);
    let mut at = 0;
    loop {
        let count = read_block(source, &mut ours)?;
        if count == 0 {
            bar.finish_and_clear();
            return Ok(());
        }
        let back = read_block(target, &mut theirs[..count])?;
        if ours[..count] != theirs[..back] {
            bail!(
                "what was read back differs between byte {at} and {}: the card or disk is \
                 broken, take another",
                at + count as u64
            );
        }
        at += count as u64;
        bar.inc(count as u64);
    }
}

/// Fills a block as far as there is something.
fn read_block(from: &mut impl Read, block: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < block.len() {
        match from.read(&mut block[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn bar(size: u64, doing: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(size).with_message(doing);
    let style = "{msg} [{wide_bar}] {bytes} of {total_bytes}, {binary_bytes_per_sec}, {eta}";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar
}

/// What the kernel tells about disks.
struct System {
    sys: PathBuf,
    proc: PathBuf,
}

impl Default for System {
    fn default() -> Self {
        Self {
            sys: "/sys".into(),
            proc: "/proc".into(),
        }
    }
}

impl System {
    /// Refuses a device or file that is in use.
    fn check_unused(&self, target: &Path) -> Result<()> {
        let path = target.canonicalize().unwrap_or_else(|_| target.to_owned());
        for device in self.devices(&path) {
            if let Some(at) = self.mounted_at(&device)? {
                bail!(
                    "{} is in use: {} is mounted at {at}; unmount it, or name another",
                    target.display(),
                    device.display()
                );
            }
            if self.swaps(&device)? {
                bail!(
                    "{} is in use: {} is swapped to; name another",
                    target.display(),
                    device.display()
                );
            }
            if let Some(holder) = self.holder(&device) {
                bail!("{} is in use by {holder}; name another", target.display());
            }
        }
        Ok(())
    }

    /// The device itself with its partitions; for a file, the loop devices on it.
    fn devices(&self, path: &Path) -> Vec<PathBuf> {
        let mut devices = Vec::new();
        for name in names(&self.sys.join("class/block")) {
            let folder = self.sys.join("class/block").join(&name);
            let device = Path::new("/dev").join(&name);
            let backed = fs::read_to_string(folder.join("loop/backing_file"));
            let is_on_file = backed.is_ok_and(|file| Path::new(file.trim()) == path);
            if device == path || is_on_file {
                devices.push(device);
                let parts = names(&folder).into_iter();
                let parts = parts.filter(|part| folder.join(part).join("partition").exists());
                devices.extend(parts.map(|part| Path::new("/dev").join(part)));
            }
        }
        devices
    }

    fn mounted_at(&self, device: &Path) -> Result<Option<String>> {
        let mounts = fs::read_to_string(self.proc.join("self/mounts"))?;
        let mut lines = mounts.lines().map(str::split_whitespace);
        Ok(lines.find_map(|mut words| {
            let source = Path::new(words.next()?);
            let source = source.canonicalize().unwrap_or_else(|_| source.to_owned());
            (source == device).then(|| words.next().map(str::to_owned))?
        }))
    }

    fn swaps(&self, device: &Path) -> Result<bool> {
        let swaps = fs::read_to_string(self.proc.join("swaps")).unwrap_or_default();
        let mut names = swaps
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        Ok(names.any(|name| Path::new(name) == device))
    }

    fn holder(&self, device: &Path) -> Option<String> {
        let name = device.file_name()?;
        names(&self.sys.join("class/block").join(name).join("holders")).pop()
    }

    fn model(&self, device: &Path) -> String {
        let name = device.file_name().unwrap_or_default();
        let folder = self.sys.join("class/block").join(name).join("device");
        let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
        let model = read("model").or_else(|| read("name"));
        model.map_or("of an unknown model".into(), |model| {
            model.trim().to_owned()
        })
    }
}

/// The names in a folder; none where it is not there.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok());
    names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use std::os::unix::fs::symlink;

    /// A machine with a system disk, a card with a mounted partition, a card that is
    /// free, and a file behind a mounted loop device.
    fn system(folder: &Path) -> System {
        let (sys, proc) = (folder.join("sys"), folder.join("proc"));
        let block = sys.join("class/block");
        for path in [
            "vda/vda1",
            "sdb/sdb1",
            "sdb/device",
            "sdc/sdc1",
            "sdd/holders/dm-0",
            "loop0/loop",
        ] {
            fs::create_dir_all(block.join(path)).unwrap();
        }
        for partition in ["vda/vda1", "sdb/sdb1", "sdc/sdc1"] {
            fs::write(block.join(partition).join("partition"), "1\n").unwrap();
        }
        fs::write(block.join("sdb/device/model"), "Card Reader  \n").unwrap();
        fs::write(
            block.join("loop0/loop/backing_file"),
            "/tmp/no-such-disk.img\n",
        )
        .unwrap();
        fs::create_dir_all(proc.join("self")).unwrap();
        let mounts = "/dev/vda1 / ext4 rw 0 0\n/dev/sdc1 /media/card vfat rw 0 0\n\
                      /dev/loop0 /mnt ext4 rw 0 0\n";
        fs::write(proc.join("self/mounts"), mounts).unwrap();
        System { sys, proc }
    }

    #[test]
    fn what_is_in_use_is_refused_and_says_by_what() {
        let folder = tempfile::tempdir().unwrap();
        let system = system(folder.path());
        let refused = |target: &str| {
            let checked = system.check_unused(Path::new(target));
            checked.err().map(|error| error.to_string())
        };
        assert!(refused("/dev/vda").unwrap().contains("mounted at /;"));
        assert!(refused("/dev/sdc").unwrap().contains("/media/card"));
        assert!(refused("/dev/sdd").unwrap().contains("dm-0"));
        assert!(refused("/tmp/no-such-disk.img").unwrap().contains("/mnt"));
        assert_eq!(refused("/dev/sdb"), None);
        assert_eq!(refused("/tmp/another.img"), None);
    }

    #[test]
    fn a_device_is_shown_with_its_model() {
        let folder = tempfile::tempdir().unwrap();
        let system = system(folder.path());
        assert_eq!(system.model(Path::new("/dev/sdb")), "Card Reader");
        assert_eq!(system.model(Path::new("/dev/vda")), "of an unknown model");
    }

    #[test]
    fn a_file_is_written_and_verified() {
        let folder = tempfile::tempdir().unwrap();
        let (image, to) = (folder.path().join("image"), folder.path().join("to"));
        let bytes: Vec<u8> = (0..BLOCK + 1_000).map(|i| (i % 251) as u8).collect();
        fs::write(&image, &bytes).unwrap();
        fs::write(&to, vec![9; BLOCK * 2]).unwrap();
        write(&image, &to, false).unwrap();
        assert!(fs::read(&to).unwrap() == bytes);
    }

    #[test]
    fn a_difference_is_found() {
        let bytes = vec![1; BLOCK + 10];
        let mut bad = bytes.clone();
        bad[BLOCK + 5] = 2;
        let verify = |back: Vec<u8>| {
            compare(
                &mut Cursor::new(&bytes),
                &mut Cursor::new(back),
                &ProgressBar::hidden(),
            )
        };
        assert!(verify(bytes.clone()).is_ok());
        let error = verify(bad).unwrap_err().to_string();
        assert!(error.contains(&BLOCK.to_string()), "{error}");
        assert!(verify(bytes[..BLOCK].to_vec()).is_err());
    }

    #[test]
    fn an_image_is_not_written_to_itself_under_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let image = place("image");
        fs::write(&image, "all of it").unwrap();
        fs::hard_link(&image, place("hard")).unwrap();
        symlink(&image, place("soft")).unwrap();
        for name in ["image", "hard", "soft"] {
            let error = write(&image, &place(name), true).unwrap_err().to_string();
            assert!(error.contains("the image itself"), "{error}");
            assert_eq!(fs::read_to_string(&image).unwrap(), "all of it");
        }
    }

    #[test]
    fn what_is_no_disk_is_refused_for_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        fs::write(&image, "all of it").unwrap();
        let refused = |to: &Path| write(&image, to, true).unwrap_err().to_string();
        assert!(refused(Path::new("/dev/null")).contains("neither a file nor a disk"));
        assert!(refused(folder.path()).contains("neither a file nor a disk"));
        assert!(refused(Path::new("/dev/no-such-card")).contains("connect the card"));
        assert!(!Path::new("/dev/no-such-card").exists());
    }
}
