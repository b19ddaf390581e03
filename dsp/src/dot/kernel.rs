//! Which kernel: what this processor can do, found out at run time.

use super::{
    plain,
    rows::{Operands, RowDots},
};

/// A way to multiply int8 vectors that this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel(Isa);

/// Kernels, each better than those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Isa {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(target_arch = "aarch64")]
    Sdot,
    #[cfg(target_arch = "aarch64")]
    I8mm,
    #[cfg(cortex_m_dsp)]
    Smlad,
}

#[cfg(all(target_arch = "aarch64", feature = "std"))]
use std::arch::is_aarch64_feature_detected as has;
/// Without `std` nobody can be asked: only what the whole program is compiled for.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
use std::arch::is_x86_feature_detected as has;
#[cfg(not(feature = "std"))]
#[allow(unused_macros, reason = "some targets have nothing to choose from")]
macro_rules! has {
    ($feature:tt) => {
        cfg!(target_feature = $feature)
    };
}

impl Isa {
    const ALL: &[Self] = &[
        Self::Plain,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "x86_64")]
        Self::Avx512Vnni,
        #[cfg(target_arch = "aarch64")]
        Self::Neon,
        #[cfg(target_arch = "aarch64")]
        Self::Sdot,
        #[cfg(target_arch = "aarch64")]
        Self::I8mm,
        #[cfg(cortex_m_dsp)]
        Self::Smlad,
    ];

    fn is_here(self) -> bool {
        match self {
            Self::Plain => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => has!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => has!("avx512f") && has!("avx512bw") && has!("avx512vnni"),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => has!("neon"),
            #[cfg(target_arch = "aarch64")]
            Self::Sdot => has!("neon") && has!("dotprod"),
            #[cfg(target_arch = "aarch64")]
            Self::I8mm => has!("neon") && has!("dotprod") && has!("i8mm"),
            #[cfg(cortex_m_dsp)]
            Self::Smlad => true,
        }
    }
}

impl Kernel {
    /// The kernel that runs anywhere.
    pub const PLAIN: Self = Self(Isa::Plain);

    /// The kernels that this processor can run, the best one last.
    pub fn available() -> impl Iterator<Item = Self> {
        Isa::ALL
            .iter()
            .filter(|isa| isa.is_here())
            .map(|&isa| Self(isa))
    }

    /// The best kernel of this processor.
    pub fn best() -> Self {
        Self::available().last().unwrap_or(Self::PLAIN)
    }

    /// The name of the instructions that it uses.
    pub fn name(self) -> &'static str {
        match self.0 {
            Isa::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => "avx512-vnni",
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => "neon",
            #[cfg(target_arch = "aarch64")]
            Isa::Sdot => "neon-sdot",
            #[cfg(target_arch = "aarch64")]
            Isa::I8mm => "neon-i8mm",
            #[cfg(cortex_m_dsp)]
            Isa::Smlad => "cortex-m-smlad",
        }
    }

    /// Whether bytes of one side are unsigned for it.
    #[cfg(feature = "std")]
    pub(crate) fn takes_unsigned(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self.0 == Isa::Avx512Vnni;
        #[cfg(not(target_arch = "x86_64"))]
        return false;
    }

    /// Does `work`, which has to be inlined here, with the vectors of this kernel.
    #[cfg(feature = "std")]
    #[allow(unsafe_code)]
    pub(crate) fn vectorised<R>(self, work: impl FnOnce() -> R) -> R {
        match self.0 {
            // SAFETY, here and below: as in `each_row`.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { crate::convolve::x86_64::with_avx2(work) },
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => unsafe { crate::convolve::x86_64::with_avx512(work) },
            _ => work(),
        }
    }

    /// Convolves one block of outputs into `codes`; see [`convolve`](crate::convolve).
    #[cfg(feature = "std")]
    #[allow(unsafe_code)]
    pub(crate) fn convolve(self, line: &crate::convolve::Line<'_>, codes: &mut [u8]) {
        use crate::convolve;
        match self.0 {
            // SAFETY, here and below: as in `each_row`.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { convolve::x86_64::avx2(line, codes) },
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => unsafe { convolve::x86_64::avx512_vnni(line, codes) },
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe { convolve::aarch64::neon(line, codes) },
            #[cfg(target_arch = "aarch64")]
            Isa::Sdot | Isa::I8mm => unsafe { convolve::aarch64::sdot(line, codes) },
            _ => convolve::plain::line(line, codes),
        }
    }

    /// Calls `emit` with each row's number and dot products, in order of rows.
    #[allow(unsafe_code)]
    pub(crate) fn each_row<const B: usize, const Q: usize>(
        self,
        operands: &Operands<'_, B, Q>,
        emit: impl FnMut(usize, RowDots<B, Q>),
    ) {
        match self.0 {
            Isa::Plain => plain::each_row(operands, emit),
            // SAFETY, here and below: `available` gives a kernel only where the
            // processor has its instructions, and nothing else makes one.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { super::x86_64::avx2(operands, emit) },
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => unsafe { super::x86_64::avx512_vnni(operands, emit) },
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe { super::aarch64::neon(operands, emit) },
            #[cfg(target_arch = "aarch64")]
            Isa::Sdot => unsafe { super::aarch64::sdot(operands, emit) },
            #[cfg(target_arch = "aarch64")]
            Isa::I8mm => unsafe { super::aarch64::i8mm(operands, emit) },
            #[cfg(cortex_m_dsp)]
            Isa::Smlad => super::cortex_m::smlad(operands, emit),
        }
    }
}
