//! What a board's own firmware reads: the kernel with all that it is started with.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;

use super::{Image, kernel::Kernel};
use crate::boards::Boot;

/// The files' names on the boot partition.
const KERNEL: &str = "kernel";
const INITRAMFS: &str = "initramfs";
const DEVICE_TREE: &str = "board.dtb";

/// Lays out the boot partition in a folder.
pub fn lay_out(
    folder: &Path,
    how: &Boot,
    image: &Image,
    kernel: &Kernel,
    console: &str,
) -> Result<()> {
    fs::create_dir_all(folder)?;
    let add = |from: &Path, name: &str| fs::copy(from, folder.join(name)).map(drop);
    add(&image.kernel, KERNEL)?;
    add(&image.initramfs, INITRAMFS)?;
    add(&device_tree(how, kernel)?, DEVICE_TREE)?;
    let arguments = arguments(console);
    match how {
        Boot::RaspberryPi { firmware, .. } => {
            for name in firmware {
                add(&kernel.firmware(name)?, name)?;
            }
            fs::write(folder.join("config.txt"), config())?;
            fs::write(folder.join("cmdline.txt"), arguments + "\n")?;
        }
        Boot::Extlinux { .. } => {
            fs::create_dir(folder.join("extlinux"))?;
            fs::write(folder.join("extlinux/extlinux.conf"), extlinux(&arguments))?;
        }
    }
    Ok(())
}

/// What a kernel is told: where to speak, and to try again where it cannot go on.
pub fn arguments(console: &str) -> String {
    format!("console={console} quiet panic=3")
}

fn device_tree(how: &Boot, kernel: &Kernel) -> Result<PathBuf> {
    let (Boot::RaspberryPi { device_tree, .. } | Boot::Extlinux { device_tree }) = how;
    kernel.device_tree(device_tree)
}

/// A Raspberry Pi's settings. Its serial port needs `enable_uart`; a Raspberry Pi 5 starts
/// no system that does not say it knows the board, unless `os_check` is off.
fn config() -> String {
    format!(
        "arm_64bit=1\n\
         enable_uart=1\n\
         os_check=0\n\
         kernel={KERNEL}\n\
         device_tree={DEVICE_TREE}\n\
         initramfs {INITRAMFS} followkernel\n"
    )
}

fn extlinux(arguments: &str) -> String {
    format!(
        "default earwitness\n\
         label earwitness\n  \
         kernel /{KERNEL}\n  \
         initrd /{INITRAMFS}\n  \
         fdt /{DEVICE_TREE}\n  \
         append {arguments}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel in a folder, as Debian packs it since it is split, and what is made of it.
    fn laid_out(how: &Boot) -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let file = place.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, name).unwrap();
            file
        };
        write("usr/lib/modules/7.3/vmlinuz");
        write("usr/lib/modules/7.3/dtb/vendor/board.dtb");
        write("usr/lib/raspi-firmware/start4.elf");
        let image = Image {
            kernel: write("kernel"),
            initramfs: write("initramfs"),
            disk: place.path().join("disk.img"),
        };
        let kernel = Kernel::read(place.path()).unwrap();
        let folder = place.path().join("boot");
        lay_out(&folder, how, &image, &kernel, "ttyS7").unwrap();
        (place, folder)
    }

    fn read(folder: &Path, name: &str) -> String {
        fs::read_to_string(folder.join(name)).unwrap_or_else(|_| panic!("no {name}"))
    }

    #[test]
    fn a_raspberry_pi_finds_all_that_its_settings_name() {
        let (_place, folder) = laid_out(&Boot::RaspberryPi {
            device_tree: "vendor/board.dtb".into(),
            firmware: vec!["start4.elf".into()],
        });
        let config = read(&folder, "config.txt");
        let value = |key: &str| {
            let line = config.lines().find_map(|line| line.strip_prefix(key));
            line.unwrap_or_else(|| panic!("no {key}"))
        };
        assert_eq!(read(&folder, value("kernel=")), "kernel");
        let tree = read(&folder, value("device_tree="));
        assert_eq!(tree, "usr/lib/modules/7.3/dtb/vendor/board.dtb");
        let initramfs = value("initramfs ").strip_suffix(" followkernel");
        assert_eq!(read(&folder, initramfs.unwrap()), "initramfs");
        assert!(read(&folder, "cmdline.txt").starts_with("console=ttyS7 "));
        assert!(read(&folder, "start4.elf").ends_with("start4.elf"));
    }

    #[test]
    fn u_boot_finds_all_that_its_menu_names() {
        let (_place, folder) = laid_out(&Boot::Extlinux {
            device_tree: "vendor/board.dtb".into(),
        });
        let menu = read(&folder, "extlinux/extlinux.conf");
        let value = |key: &str| {
            let mut lines = menu.lines().map(str::trim);
            lines.find_map(|line| line.strip_prefix(key)).unwrap()
        };
        for key in ["kernel /", "initrd /", "fdt /"] {
            assert!(folder.join(value(key)).exists(), "{key}");
        }
        assert!(value("append ").starts_with("console=ttyS7 "));
    }
}
