//! What a hub's kernel unpacks into memory: our first process and its drivers.

use std::{fs, fs::File, io::Write, path::Path};

use anyhow::Result;
use cpio::newc::{Builder, trailer};
use flate2::{Compression, write::GzEncoder};

use super::kernel::Driver;

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const FILE: u32 = 0o100_644;

/// Writes it, with the drivers in the order in which they are to be loaded.
pub fn write(path: &Path, init: &Path, drivers: &[Driver]) -> Result<()> {
    let mut out = GzEncoder::new(File::create(path)?, Compression::default());
    let mut order = String::new();
    add(&mut out, "modules", DIRECTORY, &[])?;
    for driver in drivers {
        let place = format!("modules/{}.ko", driver.name);
        add(&mut out, &place, FILE, &driver.module)?;
        order += &format!("/{place}\n");
    }
    add(&mut out, "modules/order", FILE, order.as_bytes())?;
    add(&mut out, "init", PROGRAM, &fs::read(init)?)?;
    trailer(&mut out)?;
    out.finish()?.sync_all().map_err(Into::into)
}

fn add(out: &mut impl Write, name: &str, mode: u32, content: &[u8]) -> Result<()> {
    let mut entry = Builder::new(name)
        .mode(mode)
        .nlink(1)
        .write(out, u32::try_from(content.len())?);
    entry.write_all(content)?;
    entry.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use cpio::NewcReader;
    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn it_holds_the_first_process_and_its_drivers_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let init = folder.path().join("init");
        fs::write(&init, "init").unwrap();
        let drivers = ["jbd2", "ext4"].map(|name| Driver {
            name: name.to_owned(),
            module: format!("{name}.ko").into_bytes(),
        });
        let written = folder.path().join("initramfs");
        write(&written, &init, &drivers).unwrap();

        let mut archive: Box<dyn Read> = Box::new(GzDecoder::new(File::open(written).unwrap()));
        let mut found = Vec::new();
        loop {
            let mut entry = NewcReader::new(archive).unwrap();
            if entry.entry().is_trailer() {
                break;
            }
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            found.push((
                entry.entry().name().to_owned(),
                entry.entry().mode(),
                content,
            ));
            archive = entry.finish().unwrap();
        }
        let order = "/modules/jbd2.ko\n/modules/ext4.ko\n";
        let wanted = [
            ("modules", DIRECTORY, ""),
            ("modules/jbd2.ko", FILE, "jbd2.ko"),
            ("modules/ext4.ko", FILE, "ext4.ko"),
            ("modules/order", FILE, order),
            ("init", PROGRAM, "init"),
        ];
        let wanted = wanted.map(|(name, mode, text)| (name.to_owned(), mode, text.to_owned()));
        assert_eq!(found, wanted);
    }
}
