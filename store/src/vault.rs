//! Keys, and sealing with them.
//!
//! The master key comes from outside and is never stored. It wraps data keys, one
//! for each voice and one for what belongs to nobody; these seal the rows. So
//! destroying the key of a voice makes every copy of its rows unreadable, also
//! those that a flash chip still holds.
//!
//! Everything is sealed by XChaCha20-Poly1305 with nonces at random, and bound to
//! its place: a sealed row moved to another is not opened.

use crate::error::StorageError;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;

/// The key of a store: 32 secret bytes. They are overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey(Arc<Zeroizing<[u8; KEY_BYTES]>>);

/// Why there is no master key.
#[derive(Debug, thiserror::Error)]
pub enum MasterKeyError {
    /// The file cannot be read.
    #[error("the key file {path} cannot be read ({reason}): check that it is there and yours")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// The environment variable is not there.
    #[error("the environment variable {0} is not set: set it to the key, 64 hexadecimal digits")]
    Variable(String),
    /// The kernel's keyring does not give it.
    #[error(
        "the kernel's keyring has no key {name:?} to read ({reason}): put it there with \
         `keyctl padd user {name} @u <KEY_FILE`, or use --key-file"
    )]
    Keyring {
        /// What it is called there.
        name: String,
        /// What the system said.
        reason: String,
    },
    /// It is not a key.
    #[error("{0} holds no key: it has to be 64 hexadecimal digits, or 32 bytes")]
    Form(String),
    /// The system has no random numbers.
    #[error("the system gives no random numbers ({0}): try again later")]
    Random(String),
}

impl MasterKey {
    /// A key of these bytes.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Arc::new(Zeroizing::new(bytes)))
    }

    /// A new key, for a new store.
    pub fn generate() -> Result<Self, MasterKeyError> {
        let key = random().map_err(|error| MasterKeyError::Random(error.to_string()))?;
        Ok(Self(Arc::new(key)))
    }

    /// As [`MasterKey::from_file`] and [`MasterKey::from_env`] read it.
    pub fn to_hex(&self) -> Zeroizing<String> {
        let mut digits = Zeroizing::new(String::with_capacity(2 * KEY_BYTES));
        for byte in self.0.iter() {
            for digit in [byte >> 4, byte & 15] {
                digits.extend(char::from_digit(digit.into(), 16));
            }
        }
        digits
    }

    /// The key in a file: 32 bytes, or 64 hexadecimal digits.
    pub fn from_file(path: &Path) -> Result<Self, MasterKeyError> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map(Zeroizing::new);
        let bytes = bytes.map_err(|error| MasterKeyError::File {
            path: name.clone(),
            reason: error.to_string(),
        })?;
        from_bytes(&bytes).ok_or(MasterKeyError::Form(name))
    }

    /// The key in an environment variable: 64 hexadecimal digits.
    pub fn from_env(variable: &str) -> Result<Self, MasterKeyError> {
        let digits = std::env::var(variable).map(Zeroizing::new);
        let digits = digits.map_err(|_| MasterKeyError::Variable(variable.to_owned()))?;
        from_hex(digits.as_bytes()).ok_or_else(|| MasterKeyError::Form(variable.to_owned()))
    }

    /// The key that the Linux kernel keeps under this name, of its type `user`: 32
    /// bytes, or 64 hexadecimal digits. It is looked for in the keyring of the
    /// session and in that of the user.
    pub fn from_keyring(name: &str) -> Result<Self, MasterKeyError> {
        let bytes = read_keyring(name).map_err(|reason| MasterKeyError::Keyring {
            name: name.to_owned(),
            reason,
        })?;
        from_bytes(&bytes).ok_or_else(|| MasterKeyError::Form(format!("the keyring's {name:?}")))
    }
}

#[cfg(target_os = "linux")]
fn read_keyring(name: &str) -> Result<Zeroizing<Vec<u8>>, String> {
    use linux_keyutils::{KeyError, KeyRing, KeyRingIdentifier::*};
    /// Of `ENOSYS`: a kernel that was built without keyrings.
    const NO_SUCH_CALL: i32 = 38;
    let found = [Session, User].map(|ring| {
        let key = KeyRing::from_special_id(ring, false)?.search(name)?;
        key.read_to_vec().map(Zeroizing::new)
    });
    let [session, user] = found;
    session.or(user).map_err(|error| match error {
        KeyError::Unknown(NO_SUCH_CALL) => "this kernel has no keyrings".to_owned(),
        error => error.to_string(),
    })
}

#[cfg(not(target_os = "linux"))]
fn read_keyring(_name: &str) -> Result<Zeroizing<Vec<u8>>, String> {
    Err("this system has none".to_owned())
}

/// 32 bytes as they are, or as digits.
fn from_bytes(bytes: &[u8]) -> Option<MasterKey> {
    match <[u8; KEY_BYTES]>::try_from(bytes) {
        Ok(bytes) => Some(MasterKey::new(bytes)),
        Err(_) => from_hex(bytes),
    }
}

fn from_hex(digits: &[u8]) -> Option<MasterKey> {
    let digits = digits.trim_ascii();
    if digits.len() != 2 * KEY_BYTES {
        return None;
    }
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
        for digit in pair {
            *byte = *byte << 4 | char::from(*digit).to_digit(16)? as u8;
        }
    }
    Some(MasterKey(Arc::new(key)))
}

impl Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey")
    }
}

/// A key that seals rows.
pub(crate) type DataKey = Arc<Zeroizing<[u8; KEY_BYTES]>>;

/// Where something sealed stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'t> {
    pub table: &'t str,
    pub key: u64,
    pub owner: u32,
}

impl Place<'_> {
    fn bytes(self) -> Vec<u8> {
        let (key, owner) = (self.key.to_le_bytes(), self.owner.to_le_bytes());
        [&key[..], &owner[..], self.table.as_bytes()].concat()
    }
}

/// Opens and makes data keys.
#[derive(Debug, Default)]
pub(crate) struct Vault {
    master: Option<MasterKey>,
    /// By their wrapped form: unwrapping costs more than looking up.
    unwrapped: Mutex<BTreeMap<Vec<u8>, DataKey>>,
}

const DATA_KEYS: &str = "data-keys";

impl Vault {
    pub fn new(master: Option<MasterKey>) -> Self {
        Self {
            master,
            unwrapped: Mutex::default(),
        }
    }

    /// Whether rows are sealed.
    pub fn seals(&self) -> bool {
        self.master.is_some()
    }

    /// What only this master key opens.
    pub fn proof(&self) -> Result<Option<Vec<u8>>, StorageError> {
        let master = self.master.as_ref();
        master.map(|key| seal(&key.0, PROOF, &[])).transpose()
    }

    /// Whether it was this master key that made the proof.
    pub fn accepts(&self, proof: &[u8]) -> bool {
        let master = self.master.as_ref();
        master.is_some_and(|key| unseal(&key.0, PROOF, proof).is_some())
    }

    /// A new data key, and how it is kept.
    pub fn make(&self, owner: u32) -> Result<Option<(DataKey, Vec<u8>)>, StorageError> {
        let Some(master) = &self.master else {
            return Ok(None);
        };
        let key = Arc::new(random()?);
        let wrapped = seal(&master.0, of_owner(owner), key.as_slice())?;
        Ok(Some((key, wrapped)))
    }

    pub fn unwrap_key(&self, owner: u32, wrapped: &[u8]) -> Result<DataKey, StorageError> {
        let mut known = self
            .unwrapped
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = known.get(wrapped) {
            return Ok(Arc::clone(key));
        }
        let unwrapped = self
            .master
            .as_ref()
            .and_then(|master| unseal(&master.0, of_owner(owner), wrapped))
            .map(Zeroizing::new)
            .and_then(|bytes| <[u8; KEY_BYTES]>::try_from(bytes.as_slice()).ok());
        let key = unwrapped.ok_or_else(|| damaged(format!("the key of voice {owner}")))?;
        let key = Arc::new(Zeroizing::new(key));
        known.insert(wrapped.to_vec(), Arc::clone(&key));
        Ok(key)
    }

    /// Lets go of keys that may have been destroyed.
    pub fn forget(&self) {
        let mut known = self
            .unwrapped
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.clear();
    }
}

const PROOF: Place<'_> = Place {
    table: "meta",
    key: 0,
    owner: 0,
};

fn of_owner(owner: u32) -> Place<'static> {
    Place {
        table: DATA_KEYS,
        key: 0,
        owner,
    }
}

/// Nonce, then the sealed bytes.
pub(crate) fn seal(
    key: &Zeroizing<[u8; KEY_BYTES]>,
    place: Place<'_>,
    bytes: &[u8],
) -> Result<Vec<u8>, StorageError> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(no_random)?;
    let payload = Payload {
        msg: bytes,
        aad: &place.bytes(),
    };
    let sealed = cipher(key).encrypt(&XNonce::from(nonce), payload);
    let sealed = sealed.map_err(|_| StorageError::Failed("a row cannot be sealed".into()))?;
    Ok([&nonce[..], &sealed].concat())
}

/// `None` where the bytes were not sealed by this key for this place.
pub(crate) fn unseal(
    key: &Zeroizing<[u8; KEY_BYTES]>,
    place: Place<'_>,
    bytes: &[u8],
) -> Option<Vec<u8>> {
    let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
    let payload = Payload {
        msg: sealed,
        aad: &place.bytes(),
    };
    cipher(key).decrypt(&XNonce::from(*nonce), payload).ok()
}

fn cipher(key: &Zeroizing<[u8; KEY_BYTES]>) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&(**key).into())
}

fn random() -> Result<Zeroizing<[u8; KEY_BYTES]>, StorageError> {
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    getrandom::fill(bytes.as_mut_slice()).map_err(no_random)?;
    Ok(bytes)
}

fn no_random(error: getrandom::Error) -> StorageError {
    StorageError::Failed(format!("no random numbers: {error}"))
}

fn damaged(what: String) -> StorageError {
    StorageError::Damaged(format!("{what} cannot be opened"))
}
