//! A hub's disk: a table of partitions, what its board boots from, two slots, and the
//! data.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use fatfs::{Dir, FatType, FileSystem, FormatVolumeOptions, FsOptions, format_volume};
use fscommon::StreamSlice;
use gpt::{GptConfig, disk::LogicalBlockSize, mbr::ProtectiveMBR, partition_types};

use crate::boards::Bytes;
use crate::process::run_quietly;

const BLOCK: u64 = 512;
/// Partitions begin and end at whole ones of these, as flash erases in large blocks.
const ALIGNED: u64 = 1 << 20;

/// The partition that a board boots from: room for two kernels.
const BOOT: u64 = 256 << 20;

/// What the partitions hold: folders that become their roots.
pub struct Contents<'a> {
    /// What the board's own firmware reads; an emulator needs none.
    pub boot: Option<&'a Path>,
    /// The two slots.
    pub slots: [&'a Path; 2],
    /// The data.
    pub data: &'a Path,
}

/// Makes the image of a disk of that size. What the board boots from comes first, where
/// firmware looks; the slots and the data share the rest.
pub fn make(image: &Path, size: Bytes, contents: &Contents) -> Result<()> {
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(image)
        .with_context(|| format!("cannot make {}", image.display()))?;
    // What is not written to takes no room on the disk that the image lies on.
    file.set_len(size.0)?;
    let boot = contents.boot.map_or(0, |_| BOOT);
    let part = ((size.0 - boot) / ALIGNED - 2) / 3 * ALIGNED;
    let [a, b] = contents.slots;
    let mut partitions: Vec<Partition> = [("slot-a", a), ("slot-b", b), ("data", contents.data)]
        .map(|(label, root)| Partition::new(label, part, root))
        .into();
    if let Some(root) = contents.boot {
        partitions.insert(0, Partition::new("boot", boot, root));
    }
    let starts = partition(file, size.0, &partitions)?;
    for (partition, start) in partitions.iter().zip(starts) {
        if contents.boot == Some(partition.root) {
            partition.format_fat(image, start)?;
        } else {
            partition.format(image, start)?;
        }
    }
    Ok(())
}

/// A partition to be made of a folder.
struct Partition<'a> {
    label: &'static str,
    size: u64,
    root: &'a Path,
}

/// Writes the table; gives the first byte of each partition.
fn partition(mut file: File, size: u64, partitions: &[Partition]) -> Result<Vec<u64>> {
    let blocks = u32::try_from(size / BLOCK - 1).unwrap_or(u32::MAX);
    ProtectiveMBR::with_lb_size(blocks).overwrite_lba0(&mut file)?;
    let mut disk = GptConfig::new()
        .writable(true)
        .logical_block_size(LogicalBlockSize::Lb512)
        .create_from_device(file, None)?;
    disk.update_partitions(BTreeMap::new())?;
    let mut starts = Vec::new();
    for Partition { label, size, .. } in partitions {
        let aligned = Some(ALIGNED / BLOCK);
        let kind = match *label {
            "boot" => partition_types::BASIC,
            _ => partition_types::LINUX_FS,
        };
        let number = disk.add_partition(label, *size, kind, 0, aligned)?;
        starts.push(disk.partitions()[&number].first_lba * BLOCK);
    }
    disk.write()?.sync_all()?;
    Ok(starts)
}

impl<'a> Partition<'a> {
    fn new(label: &'static str, size: u64, root: &'a Path) -> Self {
        Self { label, size, root }
    }

    /// Makes a file system of the folder in its place in the image.
    fn format(&self, image: &Path, start: u64) -> Result<()> {
        let mut make = Command::new(e2fs("mke2fs")?);
        make.args(["-q", "-F", "-t", "ext4", "-L", self.label])
            .args(["-E", &format!("offset={start},root_owner=0:0"), "-d"])
            .arg(self.root)
            .arg(image)
            .arg(format!("{}k", self.size / 1024));
        run_quietly(&mut make, |_| {})
            .map(drop)
            .with_context(|| self.does_not_fit())
    }

    /// The same, as firmware reads it.
    fn format_fat(&self, image: &Path, start: u64) -> Result<()> {
        let file = File::options().read(true).write(true).open(image)?;
        let mut slice = StreamSlice::new(file, start, start + self.size)?;
        let options = FormatVolumeOptions::new()
            .fat_type(FatType::Fat32)
            .volume_label(*b"BOOT       ");
        format_volume(&mut slice, options)?;
        let system = FileSystem::new(slice, FsOptions::new())?;
        fill(self.root, &system.root_dir()).with_context(|| self.does_not_fit())?;
        system.unmount()?;
        Ok(())
    }

    fn does_not_fit(&self) -> String {
        format!("{} does not fit into {}", self.label, Bytes(self.size))
    }
}

/// Copies what is in a folder.
fn fill(from: &Path, to: &Dir<'_, StreamSlice<File>>) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().context("a file has no readable name")?;
        if entry.file_type()?.is_dir() {
            fill(&entry.path(), &to.create_dir(name)?)?;
        } else {
            io::copy(&mut File::open(entry.path())?, &mut to.create_file(name)?)?;
        }
    }
    Ok(())
}

/// A program of e2fsprogs: where root finds it, others may not.
fn e2fs(name: &str) -> Result<PathBuf> {
    let places = ["/usr/sbin", "/sbin", "/usr/bin"];
    let found = places
        .map(|folder| Path::new(folder).join(name))
        .into_iter()
        .find(|path| path.exists());
    found.with_context(|| format!("{name} is missing: on Debian, `apt install e2fsprogs`"))
}

/// Copies a file out of the data partition of an image that nobody uses.
pub fn read_data(image: &Path, name: &str, to: &Path) -> Result<()> {
    let disk = GptConfig::new().open(image)?;
    let mut partitions = disk.partitions().values();
    let data = partitions
        .find(|partition| partition.name == "data")
        .context("the image has no data partition")?;
    let place = format!("{}?offset={}", image.display(), data.first_lba * BLOCK);
    let mut dump = Command::new(e2fs("debugfs")?);
    dump.args(["-R", &format!("dump /{name} {}", to.display()), &place]);
    run_quietly(&mut dump, |_| {})?;
    ensure!(to.exists(), "the data partition has no {name}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// Reads a file of the first partition, as firmware does.
    fn boot_file(image: &Path, name: &str) -> String {
        let disk = GptConfig::new().open(image).unwrap();
        let boot = disk.partitions().values().next().unwrap();
        assert_eq!((&*boot.name, boot.first_lba), ("boot", ALIGNED / BLOCK));
        let [start, end] = [boot.first_lba, boot.last_lba + 1].map(|block| block * BLOCK);
        let file = File::options().read(true).write(true).open(image).unwrap();
        let slice = StreamSlice::new(file, start, end).unwrap();
        let system = FileSystem::new(slice, FsOptions::new()).unwrap();
        assert_eq!(system.fat_type(), FatType::Fat32);
        let mut read = String::new();
        let mut file = system.root_dir().open_file(name).unwrap();
        file.read_to_string(&mut read).unwrap();
        read
    }

    #[test]
    fn what_lies_on_the_partitions_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let root = |name: &str| {
            let root = folder.path().join(name);
            fs::create_dir(&root).unwrap();
            fs::write(root.join("name"), name).unwrap();
            root
        };
        let (slot, data) = (root("slot"), root("data"));
        let started = root("started");
        fs::create_dir(started.join("overlays")).unwrap();
        fs::write(started.join("overlays/long name.dtbo"), "overlay").unwrap();
        let contents = Contents {
            boot: Some(&started),
            slots: [&slot, &slot],
            data: &data,
        };
        let image = folder.path().join("disk.img");
        make(&image, Bytes(BOOT + (64 << 20)), &contents).unwrap();
        let read = folder.path().join("read");
        read_data(&image, "name", &read).unwrap();
        assert_eq!(fs::read_to_string(&read).unwrap(), "data");
        assert_eq!(boot_file(&image, "overlays/long name.dtbo"), "overlay");
        assert_eq!(boot_file(&image, "name"), "started");
        let absent = read_data(&image, "absent", &folder.path().join("none"));
        assert!(absent.unwrap_err().to_string().contains("no absent"));
    }
}
