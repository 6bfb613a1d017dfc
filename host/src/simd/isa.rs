//! The instruction sets that kernels are written for.

use std::fmt;

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
    /// AArch64 with NEON, which all have.
    Neon,
    /// [`Isa::Neon`] with DotProd: Cortex-A55, A76, Neoverse N1, Apple M1 and later.
    DotProd,
}

impl Isa {
    /// Every set, each after those it falls back on.
    pub const ALL: [Self; 8] = [
        Self::Scalar,
        Self::Sse41,
        Self::Avx2,
        Self::AvxVnni,
        Self::Avx512,
        Self::Avx512Vnni,
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
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Sse41 => is_x86_feature_detected!("sse4.1"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("f16c")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("lzcnt")
                    && is_x86_feature_detected!("popcnt")
            }
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => Self::Avx2.is_available() && is_x86_feature_detected!("avxvnni"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512cd")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => {
                Self::Avx512.is_available()
                    && is_x86_feature_detected!("avx512vnni")
                    && is_x86_feature_detected!("avx512vbmi")
                    && is_x86_feature_detected!("avx512vbmi2")
                    && is_x86_feature_detected!("avx512bitalg")
                    && is_x86_feature_detected!("avx512vpopcntdq")
            }
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Self::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Self::DotProd => {
                Self::Neon.is_available() && std::arch::is_aarch64_feature_detected!("dotprod")
            }
            // Another architecture's.
            _ => false,
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
