//! redb's transactions together with the keys that open what they read.

use crate::error::StorageError;
use crate::schema::{
    DATA_KEYS, ENROLMENTS, MERGES, PLAIN, RECORDS, Row, RowKey, SEALED, SESSIONS, SPEAKERS,
};
use crate::vault::{DataKey, Place, Vault, seal, unseal};
use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, TableHandle, WriteTransaction};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The owner of what belongs to no voice: sessions, and turns of nobody known.
pub(crate) const NOBODY: u32 = 0;

type Keyring = BTreeMap<u32, DataKey>;

/// What can be read: a committed state, or a change under way.
pub(crate) trait Tables {
    /// A table for reading.
    fn table<K: redb::Key + 'static, V: redb::Value + 'static>(
        &self,
        table: TableDefinition<'_, K, V>,
    ) -> Result<impl ReadableTable<K, V>, StorageError>;

    /// The key that seals the rows of an owner.
    fn data_key(&self, owner: u32) -> Option<DataKey>;

    /// Whether rows are sealed.
    fn is_sealed(&self) -> bool;

    /// What a row holds.
    fn unseal<'b>(
        &self,
        table: &str,
        key: u64,
        bytes: &'b [u8],
    ) -> Result<Cow<'b, [u8]>, StorageError> {
        let damaged = |what: &str| StorageError::Damaged(format!("row {key} of {table} {what}"));
        match (self.is_sealed(), bytes.split_first()) {
            (false, Some((&PLAIN, row))) => Ok(Cow::Borrowed(row)),
            (true, Some((&SEALED, sealed))) => {
                let (owner, sealed) = sealed
                    .split_first_chunk()
                    .ok_or_else(|| damaged("is too short"))?;
                let owner = u32::from_le_bytes(*owner);
                let place = Place { table, key, owner };
                let opened = self
                    .data_key(owner)
                    .and_then(|data_key| unseal(&data_key, place, sealed));
                opened
                    .map(Cow::Owned)
                    .ok_or_else(|| damaged("cannot be opened"))
            }
            (_, Some((form, _))) => Err(damaged(&format!("has the unknown form {form}"))),
            (_, None) => Err(damaged("is empty")),
        }
    }
}

/// A committed state.
pub(crate) struct Snapshot {
    transaction: ReadTransaction,
    keyring: Keyring,
    sealed: bool,
}

impl Snapshot {
    pub fn new(transaction: ReadTransaction, vault: &Vault) -> Result<Self, StorageError> {
        let keyring = match vault.seals() {
            true => read_keyring(&transaction.open_table(DATA_KEYS)?, vault)?,
            false => Keyring::new(),
        };
        Ok(Self {
            transaction,
            keyring,
            sealed: vault.seals(),
        })
    }
}

impl Tables for Snapshot {
    fn table<K: redb::Key + 'static, V: redb::Value + 'static>(
        &self,
        table: TableDefinition<'_, K, V>,
    ) -> Result<impl ReadableTable<K, V>, StorageError> {
        Ok(self.transaction.open_table(table)?)
    }

    fn data_key(&self, owner: u32) -> Option<DataKey> {
        self.keyring.get(&owner).cloned()
    }

    fn is_sealed(&self) -> bool {
        self.sealed
    }
}

/// A change under way. A table can be open once at a time.
pub(crate) struct Change<'s> {
    transaction: WriteTransaction,
    vault: &'s Vault,
    keyring: RefCell<Keyring>,
}

impl<'s> Change<'s> {
    pub fn new(transaction: WriteTransaction, vault: &'s Vault) -> Result<Self, StorageError> {
        let keyring = match vault.seals() {
            true => read_keyring(&transaction.open_table(DATA_KEYS)?, vault)?,
            false => Keyring::new(),
        };
        Ok(Self {
            transaction,
            vault,
            keyring: RefCell::new(keyring),
        })
    }

    pub fn commit(self) -> Result<(), StorageError> {
        Ok(self.transaction.commit()?)
    }

    /// A table for writing.
    pub fn open<K: redb::Key + 'static, V: redb::Value + 'static>(
        &self,
        table: TableDefinition<'_, K, V>,
    ) -> Result<Table<'_, K, V>, StorageError> {
        Ok(self.transaction.open_table(table)?)
    }

    /// A row as it is stored; an owner who has no data key yet gets one.
    pub fn seal(
        &self,
        table: &str,
        key: u64,
        owner: u32,
        row: &[u8],
    ) -> Result<Vec<u8>, StorageError> {
        let place = Place { table, key, owner };
        let Some(data_key) = self.own_key(owner)? else {
            return Ok([&[PLAIN], row].concat());
        };
        let sealed = seal(&data_key, place, row)?;
        Ok([&[SEALED], &owner.to_le_bytes()[..], &sealed].concat())
    }

    fn own_key(&self, owner: u32) -> Result<Option<DataKey>, StorageError> {
        match self.data_key(owner) {
            Some(key) => Ok(Some(key)),
            None => self.renew_key(owner),
        }
    }

    /// Gives an owner a new data key in place of any other.
    pub fn renew_key(&self, owner: u32) -> Result<Option<DataKey>, StorageError> {
        let Some((key, wrapped)) = self.vault.make(owner)? else {
            return Ok(None);
        };
        self.open(DATA_KEYS)?.insert(owner, wrapped.as_slice())?;
        self.keyring.borrow_mut().insert(owner, key.clone());
        Ok(Some(key))
    }

    /// Gives some owners new data keys and seals all their rows anew.
    pub fn renew_keys(&self, owners: &BTreeSet<u32>) -> Result<(), StorageError> {
        let mut old = Keyring::new();
        for owner in owners {
            if let Some(key) = self.data_key(*owner) {
                old.insert(*owner, key);
                self.renew_key(*owner)?;
            }
        }
        if old.is_empty() {
            return Ok(());
        }
        self.seal_anew(RECORDS, &old)?;
        for table in [SESSIONS, SPEAKERS, ENROLMENTS, MERGES] {
            self.seal_anew(table, &old)?;
        }
        Ok(())
    }

    fn seal_anew<K: RowKey>(
        &self,
        table: TableDefinition<'_, K, Row>,
        old: &Keyring,
    ) -> Result<(), StorageError> {
        let mut rows = self.open(table)?;
        let keys = rows.iter()?.map(|row| Ok(row?.0.value()));
        for key in keys.collect::<Result<Vec<K>, StorageError>>()? {
            let place = |owner| Place {
                table: table.name(),
                key: key.into(),
                owner,
            };
            let opened = rows.get(key)?.and_then(|row| {
                let (owner, sealed) = row.value().get(1..)?.split_first_chunk()?;
                let owner = u32::from_le_bytes(*owner);
                Some((owner, unseal(old.get(&owner)?, place(owner), sealed)?))
            });
            if let Some((owner, row)) = opened {
                let row = self.seal(table.name(), key.into(), owner, &row)?;
                rows.insert(key, row.as_slice())?;
            }
        }
        Ok(())
    }

    /// Destroys the data key of an owner.
    pub fn destroy_key(&self, owner: u32) -> Result<(), StorageError> {
        self.open(DATA_KEYS)?.remove(owner)?;
        self.keyring.borrow_mut().remove(&owner);
        Ok(())
    }
}

impl Tables for Change<'_> {
    fn table<K: redb::Key + 'static, V: redb::Value + 'static>(
        &self,
        table: TableDefinition<'_, K, V>,
    ) -> Result<impl ReadableTable<K, V>, StorageError> {
        self.open(table)
    }

    fn data_key(&self, owner: u32) -> Option<DataKey> {
        self.keyring.borrow().get(&owner).cloned()
    }

    fn is_sealed(&self) -> bool {
        self.vault.seals()
    }
}

fn read_keyring(
    table: &impl ReadableTable<u32, Row>,
    vault: &Vault,
) -> Result<Keyring, StorageError> {
    let mut keyring = Keyring::new();
    for row in table.iter()? {
        let (owner, wrapped) = row?;
        let owner = owner.value();
        keyring.insert(owner, vault.unwrap_key(owner, wrapped.value())?);
    }
    Ok(keyring)
}
