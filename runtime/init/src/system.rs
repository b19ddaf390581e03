//! What has to be there before anything of ours can run: the kernel's file systems,
//! drivers, partitions, and names for serial ports.

use std::{
    fs::{self, File},
    io::ErrorKind,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Child,
    sync::{Arc, atomic::AtomicBool},
    thread::sleep,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use nix::{
    errno::Errno,
    kmod::{ModuleInitFlags, finit_module},
    mount::{MsFlags, mount},
    sys::{
        reboot::{RebootMode, reboot},
        signal::{Signal, kill},
    },
    unistd::{Pid, chdir, chroot, sync},
};

pub use signal_hook::consts::{SIGINT as INT, SIGTERM as TERM};

/// How long a disk may take to appear.
const PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(50);
/// Where ports get their names.
const PORTS: &str = "/dev/virtio-ports";

/// The kernel's own file systems, where programs expect them.
pub fn mount_kernel() -> Result<()> {
    for (kind, place) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/run"),
    ] {
        fs::create_dir_all(place)?;
        match mount(
            Some(kind),
            place,
            Some(kind),
            MsFlags::empty(),
            None::<&str>,
        ) {
            // The kernel may have mounted it already.
            Ok(()) | Err(Errno::EBUSY) => {}
            Err(error) => bail!("{kind} cannot be mounted at {place}: {error}"),
        }
    }
    Ok(())
}

/// Loads the drivers that a file lists, one path a line, each behind those it needs.
pub fn load_modules(list: &Path) -> Result<()> {
    let paths = fs::read_to_string(list).unwrap_or_default();
    for path in paths.lines() {
        let file = File::open(path).with_context(|| format!("no driver at {path}"))?;
        match finit_module(&file, c"", ModuleInitFlags::empty()) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(error) => bail!("the driver {path} cannot be loaded: {error}"),
        }
    }
    Ok(())
}

/// Mounts the partition of that label, once its disk has appeared.
pub fn mount_partition(label: &str, place: &str, flags: MsFlags) -> Result<()> {
    let device = partition(label)?;
    fs::create_dir_all(place)?;
    mount(Some(&device), place, Some("ext4"), flags, None::<&str>)
        .with_context(|| format!("{label} ({}) cannot be mounted", device.display()))
}

/// Shows a folder at another place too.
pub fn bind(from: &str, to: &str) -> Result<()> {
    mount(
        Some(from),
        to,
        None::<&str>,
        MsFlags::MS_BIND | MsFlags::MS_REC,
        None::<&str>,
    )
    .with_context(|| format!("{from} cannot be shown at {to}"))
}

fn partition(label: &str) -> Result<PathBuf> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(device) = labelled(Path::new("/sys/class/block"), label) {
            return Ok(Path::new("/dev").join(device));
        }
        if waited >= PATIENCE {
            bail!("no partition is called {label}: is the disk there, and its driver?");
        }
        sleep(POLL);
        waited += POLL;
    }
}

/// The device of the partition of that label, of those below a folder of the kernel's.
fn labelled(devices: &Path, label: &str) -> Option<String> {
    let wanted = format!("PARTNAME={label}");
    let mut entries = fs::read_dir(devices).ok()?.flatten();
    let found = entries.find(|entry| {
        let about = fs::read_to_string(entry.path().join("uevent")).unwrap_or_default();
        about.lines().any(|line| line == wanted)
    })?;
    Some(found.file_name().to_string_lossy().into_owned())
}

/// Gives every virtual serial port the name that the machine has for it.
pub fn name_ports() -> Result<()> {
    let Ok(ports) = fs::read_dir("/sys/class/virtio-ports") else {
        return Ok(());
    };
    fs::create_dir_all(PORTS)?;
    for port in ports.flatten() {
        let name = fs::read_to_string(port.path().join("name")).unwrap_or_default();
        let device = Path::new("/dev").join(port.file_name());
        match symlink(device, Path::new(PORTS).join(name.trim())) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// The port of that name, if the machine has one.
pub fn port(name: &str) -> Option<PathBuf> {
    let path = Path::new(PORTS).join(name);
    path.exists().then_some(path)
}

/// Makes a folder the root of this process and of all that it starts.
pub fn enter(root: &str) -> Result<()> {
    chroot(root).with_context(|| format!("{root} cannot be entered"))?;
    chdir("/").context("the root cannot be entered")
}

/// A flag that a signal raises.
pub fn on_signal(signal: i32) -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal, Arc::clone(&flag))?;
    Ok(flag)
}

/// Tells a program to stop, and waits until it has; one that does not is killed.
pub fn end_well(child: &mut Child, mut on_wait: impl FnMut()) -> Result<()> {
    let process = Pid::from_raw(i32::try_from(child.id())?);
    kill(process, Signal::SIGTERM)?;
    let mut waited = Duration::ZERO;
    while child.try_wait()?.is_none() && waited < PATIENCE {
        on_wait();
        sleep(POLL);
        waited += POLL;
    }
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// Ends the machine, with everything on its disks and nothing written to them any more.
pub fn end(how: RebootMode, written: &str) {
    sync();
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    if let Err(error) = mount(None::<&str>, written, None::<&str>, flags, None::<&str>) {
        // Its journal mends it at the next boot.
        crate::say(&format!("{written} is not closed: {error}"));
    }
    let Err(error) = reboot(how);
    crate::say(&format!("the machine cannot be restarted: {error}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_found_by_its_whole_label() {
        let devices = tempfile::tempdir().unwrap();
        for (device, label) in [("vda1", "slot-a"), ("vda2", "slot-ab")] {
            let folder = devices.path().join(device);
            fs::create_dir(&folder).unwrap();
            let about = format!("DEVTYPE=partition\nPARTNAME={label}\n");
            fs::write(folder.join("uevent"), about).unwrap();
        }
        fs::create_dir(devices.path().join("vda")).unwrap();
        let found = |label| labelled(devices.path(), label);
        assert_eq!(found("slot-a").as_deref(), Some("vda1"));
        assert_eq!(found("slot-ab").as_deref(), Some("vda2"));
        assert_eq!(found("slot"), None);
    }
}
