//! Building for other machines than this one, and running there what was built.
//!
//! First choice is a target that rustup installed. Failing that, the
//! distribution's own Rust (Debian: [`RUST_PACKAGES`]) builds the standard
//! library from its sources. Programs run under QEMU: whole boards for
//! microcontrollers, single programs for Linux.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use crate::process::{cargo, root, succeeds, target};

/// Debian's packages of a Rust as new as ours, with the library's sources.
const RUST_PACKAGES: &str = "rustc-web cargo-web rust-web-src";

/// The distribution's programs: never those that rustup puts before them.
const DISTRIBUTION_CARGO: &str = "/usr/bin/cargo";
const DISTRIBUTION_RUSTC: &str = "/usr/bin/rustc";

/// A kind of machine that we build for.
struct Target {
    triple: &'static str,
    /// What has to be built of the standard library where it does not come built.
    libraries: &'static str,
    linker: &'static str,
    /// The linker's package under Debian.
    linker_packages: &'static str,
    emulator: Emulator,
}

/// How QEMU runs a program of a target.
struct Emulator {
    program: &'static str,
    /// QEMU's package under Debian.
    package: &'static str,
    /// What stands before and after the name of the processor or board.
    before: &'static str,
    after: &'static str,
}

const LINUX: Emulator = Emulator {
    program: "qemu-aarch64",
    package: "qemu-user",
    before: "-L /usr/aarch64-linux-gnu -cpu",
    after: "",
};

const CORTEX_M: Emulator = Emulator {
    program: "qemu-system-arm",
    package: "qemu-system-arm",
    before: "-display none -monitor none -serial none -machine",
    after: "-semihosting-config enable=on,target=native -kernel",
};

const TARGETS: &[Target] = &[
    Target {
        triple: "aarch64-unknown-linux-gnu",
        libraries: "std,panic_abort,panic_unwind,test",
        linker: "aarch64-linux-gnu-gcc",
        linker_packages: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
        emulator: LINUX,
    },
    microcontroller("thumbv7em-none-eabihf"),
    microcontroller("thumbv8m.main-none-eabihf"),
];

const fn microcontroller(triple: &'static str) -> Target {
    Target {
        triple,
        libraries: "core",
        linker: "arm-none-eabi-ld",
        linker_packages: "gcc-arm-none-eabi",
        emulator: CORTEX_M,
    }
}

/// What builds for one target, and runs its programs.
pub struct Toolchain {
    target: &'static Target,
    rust: Rust,
}

/// Whose compiler it is.
#[derive(Clone, Copy, PartialEq)]
enum Rust {
    Rustup,
    Distribution,
}

impl Toolchain {
    /// The toolchain for a target triple. The error says what is missing on this
    /// machine, and how to get it.
    pub fn find(triple: &str) -> Result<Self> {
        let target = TARGETS
            .iter()
            .find(|target| target.triple == triple)
            .with_context(|| {
                let known: Vec<_> = TARGETS.iter().map(|target| target.triple).collect();
                format!("cannot build for {triple}, only for {}", known.join(", "))
            })?;
        let rust = if rustup_has(triple) {
            Rust::Rustup
        } else if distribution_builds() {
            Rust::Distribution
        } else {
            bail!(
                "no Rust {} for {triple} was found: `rustup target add {triple}`, \
                 or on Debian: `apt install {RUST_PACKAGES} {}`",
                env!("CARGO_PKG_RUST_VERSION"),
                target.linker_packages
            );
        };
        let toolchain = Self { target, rust };
        if toolchain.needs_linker() && !starts(target.linker) {
            bail!(
                "the linker `{}` for {triple} was not found; on Debian: `apt install {}`",
                target.linker,
                target.linker_packages
            );
        }
        Ok(toolchain)
    }

    /// A cargo command that builds for the target.
    pub fn cargo(&self, subcommand: &str) -> Command {
        let mut command = match self.rust {
            Rust::Rustup => cargo(),
            Rust::Distribution => Command::new(DISTRIBUTION_CARGO),
        };
        command
            .current_dir(root())
            .args([subcommand, "--target", self.target.triple, "--target-dir"])
            .arg(built());
        if self.rust == Rust::Distribution {
            command
                // Cargo and the compiler must be of the same version here.
                .env("RUSTC", DISTRIBUTION_RUSTC)
                .env("RUSTC_BOOTSTRAP", "1")
                .env_remove("RUSTUP_TOOLCHAIN")
                .arg(format!("-Zbuild-std={}", self.target.libraries));
        }
        if self.needs_linker() {
            command.env(self.variable("LINKER"), self.target.linker);
        }
        command
    }

    /// Where [`cargo`](Self::cargo) puts what it builds with a profile.
    pub fn built(&self, profile: &str) -> PathBuf {
        built().join(self.target.triple).join(profile)
    }

    /// Lets `cargo run` and `cargo test` run their programs under QEMU, on a
    /// processor (Linux) or a board (microcontrollers) that QEMU knows by `name`.
    pub fn emulate(&self, command: &mut Command, name: &str) -> Result<()> {
        self.emulator()?;
        let Emulator {
            program,
            before,
            after,
            ..
        } = &self.target.emulator;
        command.env(
            self.variable("RUNNER"),
            format!("{program} {before} {name} {after}"),
        );
        Ok(())
    }

    /// The QEMU that runs whole 64-bit Arm machines. The error says how to get it.
    pub fn system_emulator() -> Result<&'static str> {
        let program = "qemu-system-aarch64";
        ensure!(
            starts(program),
            "{program} was not found; on Debian: `apt install qemu-system-arm`"
        );
        Ok(program)
    }

    /// The QEMU that runs this target's programs. The error says how to get it.
    pub fn emulator(&self) -> Result<&'static str> {
        let Emulator {
            program, package, ..
        } = &self.target.emulator;
        if !starts(program) {
            bail!("the emulator `{program}` was not found; on Debian: `apt install {package}`");
        }
        Ok(program)
    }

    /// Rustup brings a linker for bare metal, and none for other systems.
    fn needs_linker(&self) -> bool {
        self.rust == Rust::Distribution || !self.target.triple.contains("-none-")
    }

    /// The environment variable of a setting of cargo's for this target.
    fn variable(&self, setting: &str) -> String {
        let triple = self.target.triple.replace(['-', '.'], "_");
        format!("CARGO_TARGET_{}_{setting}", triple.to_uppercase())
    }
}

/// What is built for other machines, apart from what is built for this one.
fn built() -> PathBuf {
    target().join("cross")
}

fn rustup_has(triple: &str) -> bool {
    let listed = Command::new("rustup")
        .args(["target", "list", "--installed"])
        .current_dir(root())
        .output();
    listed.is_ok_and(|output| {
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .any(|line| line == triple)
    })
}

/// Whether the distribution's Rust is new enough, and has the library's sources.
fn distribution_builds() -> bool {
    let print = |what: &[&str]| {
        let output = Command::new(DISTRIBUTION_RUSTC).args(what).output().ok()?;
        String::from_utf8(output.stdout).ok()
    };
    let new_enough = print(&["--version"])
        .and_then(|text| minor_version(text.strip_prefix("rustc ")?))
        .is_some_and(|minor| Some(minor) >= minor_version(env!("CARGO_PKG_RUST_VERSION")));
    let has_sources = print(&["--print", "sysroot"]).is_some_and(|sysroot| {
        Path::new(sysroot.trim())
            .join("lib/rustlib/src/rust/library/core")
            .exists()
    });
    new_enough && has_sources && Path::new(DISTRIBUTION_CARGO).exists()
}

/// The second number of a version of Rust.
fn minor_version(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}

fn starts(program: &str) -> bool {
    succeeds(Command::new(program).arg("--version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_named_as_cargo_names_them() {
        let toolchain = Toolchain {
            target: &TARGETS[2],
            rust: Rust::Rustup,
        };
        let name = toolchain.variable("RUNNER");
        assert_eq!(name, "CARGO_TARGET_THUMBV8M_MAIN_NONE_EABIHF_RUNNER");
    }

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(minor_version("1.96.0 (ac68faa20 2026-05-25)"), Some(96));
        assert!(minor_version("1.100.0") > minor_version("1.95"));
        assert_eq!(minor_version("nonsense"), None);
    }

    #[test]
    fn a_target_that_nobody_knows_is_refused_with_those_that_are_known() {
        let error = Toolchain::find("sparc-sun-solaris")
            .err()
            .map(|e| e.to_string());
        assert!(error.is_some_and(|text| text.contains("thumbv7em-none-eabihf")));
    }
}
