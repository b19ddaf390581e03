//! A hub's disk: a table of partitions, two slots, and the data.

use std::{
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use gpt::{GptConfig, disk::LogicalBlockSize, mbr::ProtectiveMBR, partition_types};

use crate::boards::Bytes;
use crate::process::run_quietly;

const BLOCK: u64 = 512;
/// Partitions begin and end at whole ones of these, as flash erases in large blocks.
const ALIGNED: u64 = 1 << 20;

/// What the partitions hold: folders that become their roots.
pub struct Contents<'a> {
    /// The two slots.
    pub slots: [&'a Path; 2],
    /// The data.
    pub data: &'a Path,
}

/// Makes the image of a disk of that size, a third of it for each partition.
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
    let part = (size.0 / ALIGNED - 2) / 3 * ALIGNED;
    let partitions = partition(file, size.0, part)?;
    let [a, b] = contents.slots;
    let roots = [a, b, contents.data];
    for ((label, start), root) in partitions.into_iter().zip(roots) {
        format(image, label, start, part, root)?;
    }
    Ok(())
}

/// Writes the table; gives label and first byte of each partition.
fn partition(mut file: File, size: u64, part: u64) -> Result<Vec<(&'static str, u64)>> {
    let blocks = u32::try_from(size / BLOCK - 1).unwrap_or(u32::MAX);
    ProtectiveMBR::with_lb_size(blocks).overwrite_lba0(&mut file)?;
    let mut disk = GptConfig::new()
        .writable(true)
        .logical_block_size(LogicalBlockSize::Lb512)
        .create_from_device(file, None)?;
    disk.update_partitions(BTreeMap::new())?;
    let mut made = Vec::new();
    for label in ["slot-a", "slot-b", "data"] {
        let aligned = Some(ALIGNED / BLOCK);
        let number = disk.add_partition(label, part, partition_types::LINUX_FS, 0, aligned)?;
        made.push((label, disk.partitions()[&number].first_lba * BLOCK));
    }
    disk.write()?.sync_all()?;
    Ok(made)
}

/// Makes a file system of a folder in its place in the image.
fn format(image: &Path, label: &str, start: u64, size: u64, root: &Path) -> Result<()> {
    let mut make = Command::new(e2fs("mke2fs")?);
    make.args(["-q", "-F", "-t", "ext4", "-L", label])
        .args(["-E", &format!("offset={start},root_owner=0:0"), "-d"])
        .arg(root)
        .arg(image)
        .arg(format!("{}k", size / 1024));
    run_quietly(&mut make, |_| {})
        .map(drop)
        .with_context(|| format!("{label} does not fit into {}", Bytes(size)))
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
    use std::fs;

    use super::*;

    #[test]
    fn what_lies_on_the_data_partition_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let root = |name: &str| {
            let root = folder.path().join(name);
            fs::create_dir(&root).unwrap();
            fs::write(root.join("name"), name).unwrap();
            root
        };
        let (slot, data) = (root("slot"), root("data"));
        let contents = Contents {
            slots: [&slot, &slot],
            data: &data,
        };
        let image = folder.path().join("disk.img");
        make(&image, Bytes(64 << 20), &contents).unwrap();
        let read = folder.path().join("read");
        read_data(&image, "name", &read).unwrap();
        assert_eq!(fs::read_to_string(&read).unwrap(), "data");
        let absent = read_data(&image, "absent", &folder.path().join("none"));
        assert!(absent.unwrap_err().to_string().contains("no absent"));
    }
}
