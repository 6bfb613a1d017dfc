//! The instruction sets that kernels are written for.

use std::fmt;

use super::sets;

/// An instruction set that kernels of this crate are written for.
///
/// Each stands for the processors that have it, and so for more than its name: the list says what else is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// No set of its own: [`tercet_core::scalar`], compiled for the target's baseline.
    Scalar,
    /// x86-64 with SSE4.1: Penryn and what came after (all of x86-64-v2).
    Sse41,
    /// x86-64 with AVX2, BMI1, BMI2, F16C, FMA, LZCNT and POPCNT: Haswell, Zen and what came after (x86-64-v3).
    Avx2,
    /// [`Isa::Avx2`] with AVX-VNNI: the 256-bit byte products of Alder Lake and later.
    AvxVnni,
    /// [`Isa::Avx2`] with AVX-512 F, BW, CD, DQ and VL: Skylake-SP (x86-64-v4).
    Avx512,
    /// [`Isa::Avx512`] with VNNI, VBMI, VBMI2, BITALG and VPOPCNTDQ: Ice Lake, Zen 4 and later.
    Avx512Vnni,
    /// [`Isa::Avx512Vnni`] with AMX-TILE and AMX-INT8, on Linux, which is asked for leave to use them: Sapphire Rapids and later Xeons.
    ///
    /// Its kernels are tested in an emulated processor (`.ci/amx` in the repository says how); a Xeon gave the same digests.
    Amx,
    /// AArch64 with NEON, which all have.
    Neon,
    /// [`Isa::Neon`] with DotProd: Cortex-A55, A76, Neoverse N1, Apple M1 and later.
    DotProd,
}

impl Isa {
    /// Every set, each after those it falls back on.
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

    /// Its name, as `TERCET_BACKEND` has it.
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

    /// The set of a name; case does not matter.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|isa| isa.name().eq_ignore_ascii_case(name))
    }

    /// Whether this processor and its system run the set.
    pub fn is_available(self) -> bool {
        sets::of(self).is_some_and(|set| (set.runs)())
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
