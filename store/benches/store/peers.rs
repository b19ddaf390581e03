//! What the store is compared with: SQLite with the same durability and payloads,
//! and floors that no store can go below.

use crate::workload::{key, text};
use rusqlite::{Connection, params};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// SQLite in WAL mode, synced at every commit.
pub struct Sqlite(pub Connection);

impl Sqlite {
    pub fn open(path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.execute_batch(
            "create table if not exists records (
                 id integer primary key, session integer, start_ms integer, end_ms integer,
                 unix_ms integer, speaker integer, score real, text text, key blob);
             create table if not exists speakers (
                 id integer primary key, records integer, speech_ms integer, centroid blob);",
        )?;
        Ok(Self(connection))
    }

    /// Turns `from..to` in one transaction.
    pub fn append(&mut self, turns: std::ops::Range<u64>) -> rusqlite::Result<()> {
        let transaction = self.0.transaction()?;
        {
            let mut record = transaction
                .prepare_cached("insert into records values (?1, 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
            let mut speaker = transaction.prepare_cached(
                "insert into speakers values (?1, 1, 2000, ?2) on conflict (id) do update set
                     records = records + 1, speech_ms = speech_ms + 2000, centroid = ?2",
            )?;
            for n in turns {
                let start = n as i64 * 4000;
                let by = (n % 6) as i64 + 1;
                record.execute(params![
                    n as i64 + 1,
                    start,
                    start + 2000,
                    1_772_000_000_000 + start,
                    by,
                    0.7,
                    text(n),
                    key_bytes(n)
                ])?;
                speaker.execute(params![by, [0u8; 192 * 4]])?;
            }
        }
        transaction.commit()
    }

    /// All keys in memory, as the store has them after opening.
    pub fn load_keys(&self) -> rusqlite::Result<Vec<(i64, Vec<u8>)>> {
        let mut statement = self.0.prepare("select id, key from records order by id")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    }

    /// The texts of some records.
    pub fn texts(&self, ids: &[i64]) -> rusqlite::Result<usize> {
        let mut statement = self
            .0
            .prepare_cached("select text from records where id = ?1")?;
        let mut bytes = 0;
        for id in ids {
            bytes += statement
                .query_row([id], |row| row.get::<_, String>(0))?
                .len();
        }
        Ok(bytes)
    }
}

/// A key as it would be stored: three scales and the values.
pub fn key_bytes(n: u64) -> Vec<u8> {
    let key = key(n);
    let blocks = [&key.semantic, &key.speaker, &key.temporal];
    let mut bytes = Vec::new();
    for block in blocks {
        bytes.extend(block.scale.to_le_bytes());
    }
    for block in blocks {
        bytes.extend(block.values.iter().map(|v| v.to_le_bytes()[0]));
    }
    bytes
}

/// The bare payload at the end of a file.
pub struct PlainFile(File);

impl PlainFile {
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self(file))
    }

    /// Writes turns and syncs once; returns the bytes.
    pub fn append(&mut self, turns: std::ops::Range<u64>) -> std::io::Result<usize> {
        let mut bytes = Vec::new();
        for n in turns {
            bytes.extend(key_bytes(n));
            bytes.extend(text(n).as_bytes());
        }
        self.0.write_all(&bytes)?;
        self.0.sync_data()?;
        Ok(bytes.len())
    }
}
