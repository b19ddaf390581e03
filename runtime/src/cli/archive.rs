//! `earwitness memory export` and `import`: a memory taken along to another device.

use std::{
    fs::{self, File},
    io::{BufReader, BufWriter},
    path::Path,
};

use anyhow::{Context, bail};
use earwitness_store::{ExportError, Store};

use super::{Common, backend, print};

/// Writes everything into a new file, in plain.
pub(super) fn export(common: &Common, path: &Path, voiceprints: bool) -> anyhow::Result<()> {
    let store = backend::store_alone(common, "export")?;
    let file = backend::create_private(path)?;
    if let Err(error) = write_all(&store, file, voiceprints) {
        // A part of an archive is of no use to anybody.
        let _ = fs::remove_file(path);
        return Err(error.into());
    }
    say(common, "exported", &store)
}

fn write_all(store: &Store, file: File, voiceprints: bool) -> Result<(), ExportError> {
    let mut out = BufWriter::new(file);
    store.export(&mut out, voiceprints)?;
    let file = out.into_inner().map_err(|error| error.into_error());
    file.and_then(|file| file.sync_all())
        .map_err(|error| ExportError::Write(error.to_string()))
}

/// Fills a new memory; where that fails there is none, as before.
pub(super) fn import(common: &Common, path: &Path) -> anyhow::Result<()> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let memory = common.store();
    if backend::daemon(&memory).is_some() {
        bail!("a daemon is using this memory; stop it, then import into a new one");
    }
    let is_new = !memory.exists();
    backend::make_folder(&memory)?;
    let store = common.open_store()?;
    if let Err(error) = store.import(&mut BufReader::new(file)) {
        drop(store);
        if is_new {
            let _ = fs::remove_file(&memory);
        }
        return Err(error).with_context(|| format!("{} was not imported", path.display()));
    }
    say(common, "imported", &store)
}

fn say(common: &Common, done: &str, store: &Store) -> anyhow::Result<()> {
    let records = store.stats()?.records;
    if common.json {
        return print::json(&serde_json::json!({ done: records }));
    }
    print::line(&format!("{done} {records} records"))
}
