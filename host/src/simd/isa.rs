//! The instruction sets that kernels exist for.

use std::fmt;

use super::sets;

/// An instruction set that kernels of this crate exist for.
///
/// Each value stands for a class of processors, and so for more than its name: the list gives all required features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// No set of its own: [`tercet_core::scalar`], compiled for the target's baseline.
    Scalar,
    /// x86-64 with SSE4.1: Penryn and later (all of x86-64-v2).
    Sse41,
    /// x86-64 with AVX2, BMI1, BMI2, F16C, FMA, LZCNT and POPCNT: Haswell, Zen and later (x86-64-v3).
    Avx2,
    /// [`Isa::Avx2`] with AVX-VNNI: the 256-bit byte products of Alder Lake and later.
    AvxVnni,
    /// [`Isa::Avx2`] with AVX-512 F, BW, CD, DQ and VL: Skylake-SP (x86-64-v4).
    Avx512,
    /// [`Isa::Avx512`] with VNNI, VBMI, VBMI2, BITALG and VPOPCNTDQ: Ice Lake, Zen 4 and later.
    Avx512Vnni,
    /// [`Isa::Avx512Vnni`] with AMX-TILE and AMX-INT8, on Linux, which must grant permission to use them: Sapphire
    /// Rapids and later Xeons.
    ///
    /// Its kernels are tested in an emulated processor (see `.ci/amx` in the repository); a Xeon gave the same digests.
    Amx,
    /// AArch64 with NEON, which all AArch64 processors have.
    Neon,
    /// [`Isa::Neon`] with DotProd: Cortex-A55, A76, Neoverse N1, Apple M1 and later.
    DotProd,
}

impl Isa {
    /// Every set, each after the sets it falls back on.
    pub const ALL: [Self; 9] = [
        Self::Scalar,
        Self::Sse41,
        Self::Avx2,
        Self::AvxVnni,
        Self::Avx512,
        Self::Avx512Vnni,
        Self::Amx,
        Self::Neon,
        Self::DotProd,
    ];

    /// Returns its name, as used in `TERCET_BACKEND`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Sse41 => "sse4.1",
            Self::Avx2 => "avx2",
            Self::AvxVnni => "avx-vnni",
            Self::Avx512 => "avx512",
            Self::Avx512Vnni => "avx512-vnni",
            Self::Amx => "amx",
            Self::Neon => "neon",
            Self::DotProd => "dotprod",
        }
    }

    /// Returns the set with this name; case does not matter.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|isa| isa.name().eq_ignore_ascii_case(name))
    }

    /// True if this processor and its system support the set.
    pub fn is_available(self) -> bool {
        sets::runs(self)
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
