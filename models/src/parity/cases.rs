//! Reading the references of a pack.

use safetensors::{Dtype, SafeTensors};

use super::ParityError;
use crate::pack::{Pack, PackError};

/// The references of one pack.
pub(super) struct Cases<'a> {
    pack: &'a Pack,
    tensors: SafeTensors<'a>,
    count: usize,
}

impl<'a> Cases<'a> {
    /// Understands the content of `parity.safetensors`; an error if it holds no case.
    pub(super) fn parse(pack: &'a Pack, bytes: &'a [u8]) -> Result<Self, PackError> {
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| broken(pack, error))?;
        let case = |name: &str| name.split_once('.')?.0.parse::<usize>().ok();
        let last = tensors.names().into_iter().filter_map(case).max();
        let count = last.ok_or_else(|| broken(pack, "it holds no case"))? + 1;
        Ok(Self {
            pack,
            tensors,
            count,
        })
    }

    /// Something of each case.
    pub(super) fn map<T>(
        &self,
        of_case: impl FnMut(Case) -> Result<T, ParityError>,
    ) -> Result<Vec<T>, ParityError> {
        (0..self.count)
            .map(|index| Case { cases: self, index })
            .map(of_case)
            .collect()
    }
}

/// One input with what the original gave for it.
pub(super) struct Case<'a> {
    cases: &'a Cases<'a>,
    index: usize,
}

impl Case<'_> {
    /// The recording, from -1 to 1.
    pub(super) fn audio(&self) -> Result<Vec<f32>, PackError> {
        let sample = |bytes| f32::from(i16::from_le_bytes(bytes)) / 32_768.0;
        self.values("audio", Dtype::I16, sample)
    }

    /// A result in real numbers.
    pub(super) fn floats(&self, name: &str) -> Result<Vec<f32>, PackError> {
        self.values(name, Dtype::F32, f32::from_le_bytes)
    }

    /// A result in token ids.
    pub(super) fn ids(&self, name: &str) -> Result<Vec<u32>, PackError> {
        self.values(name, Dtype::U32, u32::from_le_bytes)
    }

    /// The text.
    pub(super) fn text(&self) -> Result<String, PackError> {
        let bytes = self.values("text", Dtype::U8, u8::from_le_bytes)?;
        String::from_utf8(bytes).map_err(|error| broken(self.cases.pack, error))
    }

    fn values<const SIZE: usize, T>(
        &self,
        name: &str,
        dtype: Dtype,
        value: impl Fn([u8; SIZE]) -> T,
    ) -> Result<Vec<T>, PackError> {
        let name = format!("{}.{name}", self.index);
        let tensor = self.cases.tensors.tensor(&name);
        let tensor = tensor.map_err(|error| broken(self.cases.pack, format!("{name}: {error}")))?;
        if tensor.dtype() != dtype {
            let reason = format!("{name} is {:?}, not {dtype:?}", tensor.dtype());
            return Err(broken(self.cases.pack, reason));
        }
        let (values, _) = tensor.data().as_chunks::<SIZE>();
        Ok(values.iter().copied().map(value).collect())
    }
}

fn broken(pack: &Pack, reason: impl ToString) -> PackError {
    pack.malformed(format!("parity.safetensors: {}", reason.to_string()))
}
