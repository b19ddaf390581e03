//! What may come from a disk or an archive is read without a panic, whatever it
//! is. The including file has `common`, a medium in memory.
#![allow(dead_code)]

use crate::common::MemoryMedium;
use earwitness_api::types::RecordFilter;
use earwitness_store::{MasterKey, Options, Store};
use redb::{Builder, TableDefinition, WriteTransaction};

/// A store in plain, into which rows are put.
const BASE: &[u8] = include_bytes!("../tests/golden/v2.redb");
/// The same, sealed.
const BASE_SEALED: &[u8] = include_bytes!("../tests/golden/v2-sealed.redb");

/// A file of any bytes.
pub fn open(bytes: &[u8]) {
    let medium = MemoryMedium::default();
    medium.set_content(bytes.to_vec());
    if let Ok(store) = Store::open_on(medium) {
        look(&store);
    }
}

/// An archive of any bytes; one that is taken is sound and can be taken again.
pub fn import(mut bytes: &[u8]) {
    let store = empty();
    if store.import(&mut bytes).is_ok() {
        look(&store);
        assert_eq!(store.verify().ok(), Some(Vec::new()));
        let archive = export(&store);
        let again = empty();
        assert!(again.import(&mut &archive[..]).is_ok());
        assert!(export(&again) == archive);
    }
}

/// A row of any bytes in any table: the first byte chooses the table, the second
/// the key.
pub fn row(bytes: &[u8]) {
    look_with_row(BASE, Options::default(), bytes);
}

/// The same in a sealed store.
pub fn sealed(bytes: &[u8]) {
    let key = Some(MasterKey::new([7; 32]));
    let options = Options {
        key,
        ..Options::default()
    };
    look_with_row(BASE_SEALED, options, bytes);
}

fn look_with_row(base: &[u8], options: Options, bytes: &[u8]) {
    let [table, key, row @ ..] = bytes else {
        return;
    };
    let medium = MemoryMedium::default();
    medium.set_content(base.to_vec());
    put_row(&medium, *table, *key, row);
    if let Ok(store) = Store::open_on_with(medium, options) {
        look(&store);
        let session = store.begin_session("after", 0);
        if let Ok(session) = session {
            let _ = store.append(crate::common::turn(session.id, "after"));
        }
        let _ = store.expire(i64::MAX);
        look(&store);
    }
}

fn put_row(medium: &MemoryMedium, table: u8, key: u8, row: &[u8]) {
    let Ok(database) = Builder::new().create_with_backend(medium.raw()) else {
        return;
    };
    let Ok(transaction) = database.begin_write() else {
        return;
    };
    if put(&transaction, table, key, row).is_ok() {
        let _ = transaction.commit();
    }
}

fn put(transaction: &WriteTransaction, table: u8, key: u8, row: &[u8]) -> Result<(), redb::Error> {
    const NUMBERED: [&str; 5] = ["sessions", "speakers", "enrolments", "merges", "data-keys"];
    const NAMED: [&str; 6] = [
        "counters",
        "layout",
        "voiceprint-model",
        "schema",
        "reclaim",
        "proof",
    ];
    let which = usize::from(table);
    match which % 13 {
        0 => {
            let table: TableDefinition<u64, &[u8]> = TableDefinition::new("records");
            transaction.open_table(table)?.insert(u64::from(key), row)?;
        }
        numbered @ 1..=5 => {
            let table: TableDefinition<u32, &[u8]> = TableDefinition::new(NUMBERED[numbered - 1]);
            transaction.open_table(table)?.insert(u32::from(key), row)?;
        }
        named @ 6..=11 => {
            let table: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");
            transaction
                .open_table(table)?
                .insert(NAMED[named - 6], row)?;
        }
        _ => {
            let table: TableDefinition<(u32, u32), ()> = TableDefinition::new("apart");
            let pair = (u32::from(key), row.len() as u32);
            transaction.open_table(table)?.insert(pair, ())?;
        }
    }
    Ok(())
}

fn empty() -> Store {
    let medium = MemoryMedium::default();
    match Store::open_on(medium) {
        Ok(store) => store,
        Err(error) => panic!("{error}"),
    }
}

fn export(store: &Store) -> Vec<u8> {
    let mut archive = Vec::new();
    let _ = store.export(&mut archive, true);
    archive
}

/// Reads everything there is; errors are answers.
fn look(store: &Store) {
    let _ = store.verify();
    let _ = store.sessions();
    let _ = store.identities();
    let _ = store.merges();
    let _ = store.apart();
    let _ = store.voices();
    let _ = store.voiceprints();
    let _ = store.stats();
    if let Ok(records) = store.records(RecordFilter::default()) {
        for record in records {
            let _ = store.record(record.id);
        }
    }
    export(store);
}
