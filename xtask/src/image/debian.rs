//! Packages of Debian's for 64-bit Arm, of the suite that this machine has or of another.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::process::{output, run, succeeds};

/// Where Debian keeps the keys of all its suites.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Where packages come from.
pub struct Suite {
    /// What `apt-get` and `apt-cache` are told.
    options: Vec<String>,
}

impl Suite {
    /// What this machine itself installs from.
    pub fn own() -> Self {
        Self { options: vec![] }
    }

    /// Another suite of the same mirror; nothing of this machine's configuration is
    /// changed. Its lists are kept in a folder.
    pub fn named(name: &str, kept: &Path) -> Result<Self> {
        let folder = kept.join(name);
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(part))?;
        }
        let place = |part: &str| folder.join(part).display().to_string();
        let mirror = mirror()?;
        // Backports hold what is newer, and nothing else.
        let sources: String = BTreeSet::from([name, name.trim_end_matches("-backports")])
            .into_iter()
            .map(|suite| {
                format!(
                    "deb [arch=arm64 signed-by={KEYS}] {mirror} {suite} main non-free-firmware\n"
                )
            })
            .collect();
        fs::write(folder.join("sources.list"), sources)?;
        let settings = [
            format!("Dir::Etc::sourcelist={}", place("sources.list")),
            "Dir::Etc::sourceparts=-".to_owned(),
            format!("APT::Default-Release={name}"),
            format!("Dir::State::lists={}", place("lists")),
            format!("Dir::Cache={}", place("cache")),
            "APT::Architecture=arm64".to_owned(),
            // Who updates these lists is who owns the folder.
            "APT::Sandbox::User=".to_owned(),
        ];
        let suite = Self {
            options: settings.map(|setting| format!("-o{setting}")).to_vec(),
        };
        run(suite.apt("apt-get").args(["-qq", "update"]))
            .with_context(|| format!("Debian's suite {name} cannot be had"))?;
        Ok(suite)
    }

    /// The package, with a version in its name, that a package stands for now.
    pub fn newest(&self, package: &str) -> Result<String> {
        let foreign = foreign(package);
        ensure!(
            succeeds(self.apt("apt-cache").args(["show", &foreign])),
            "no kernel: Debian's {foreign} is not known here. As root: `dpkg --add-architecture \
             arm64 && apt-get update`; or name a folder with boot/ and lib/modules/ by --kernel"
        );
        let depends = output(self.apt("apt-cache").args(["depends", &foreign]))?;
        dependencies(&depends)
            .find(|name| name.starts_with("linux-image-"))
            .with_context(|| format!("{foreign} depends on no linux-image-VERSION"))
    }

    /// A kernel's package and those that it is split into, which have its version in
    /// their names.
    pub fn parts(&self, versioned: &str) -> Result<Vec<String>> {
        let depends = output(self.apt("apt-cache").args(["depends", &foreign(versioned)]))?;
        let version = versioned.trim_start_matches("linux-image-");
        let parts = dependencies(&depends).filter(|name| name.ends_with(version));
        Ok([versioned.to_owned()].into_iter().chain(parts).collect())
    }

    /// Downloads a package, and unpacks it.
    pub fn unpack(&self, package: &str, folder: &Path) -> Result<()> {
        eprintln!("== {package}");
        let mut download = self.apt("apt-get");
        download.args(["download", "--quiet", &foreign(package)]);
        run(download.current_dir(folder))?;
        let archive = archive(folder).context("apt-get left no package")?;
        run(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(folder))?;
        fs::remove_file(archive).map_err(Into::into)
    }

    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(&self.options);
        command
    }
}

fn foreign(package: &str) -> String {
    format!("{package}:arm64")
}

fn archive(folder: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(folder).ok()?.flatten();
    files
        .map(|file| file.path())
        .find(|file| file.extension().is_some_and(|kind| kind == "deb"))
}

/// The mirror that this machine has Debian from.
fn mirror() -> Result<String> {
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(REPO_URI)"]);
    targets.args(["Label: Debian", "Component: main"]);
    let printed = output(&mut targets)?;
    let first = printed.lines().next().map(str::to_owned);
    first.context(
        "this machine installs from no mirror of Debian's; name a folder with boot/ and \
         lib/modules/ by --kernel",
    )
}

/// What `apt-cache depends` prints, without the package itself, which is the first line.
fn dependencies(printed: &str) -> impl Iterator<Item = String> {
    let lines = printed.lines().skip(1).map(str::trim);
    lines.filter_map(|line| {
        let name = line.strip_prefix("Depends: ")?;
        Some(name.trim_end_matches(":arm64").to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_package_depends_on_is_read_without_its_architecture() {
        let printed = "linux-image-arm64:arm64\n  Depends: linux-image-6.1.0-57-arm64:arm64\n  \
                       Suggests: linux-doc\n |Depends: <dracut:arm64>\n";
        let names: Vec<String> = dependencies(printed).collect();
        assert_eq!(names, ["linux-image-6.1.0-57-arm64"]);
        assert_eq!(dependencies("linux-image-arm64:arm64\n").next(), None);
    }
}
