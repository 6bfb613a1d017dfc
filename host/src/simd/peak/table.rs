//! Which loops measure arithmetic, set by set.

use super::{Peak, SCALAR};
use crate::simd::{Backend, Isa};

#[cfg(target_arch = "x86_64")]
const AVX2: Peak = {
    use crate::simd::avx2::peak::{FLOATS, INT8, TERNARY};
    Peak {
        f32: FLOATS,
        int8: INT8,
        ternary: TERNARY,
    }
};

#[cfg(target_arch = "x86_64")]
const SSE41: Peak = {
    use crate::simd::sse41::peak::{FLOATS, INT8};
    Peak {
        f32: FLOATS,
        int8: INT8,
        ternary: INT8,
    }
};

#[cfg(target_arch = "x86_64")]
const AVX_VNNI: Peak = {
    let int8 = crate::simd::avx_vnni::peak::INT8;
    Peak {
        int8,
        ternary: int8,
        ..AVX2
    }
};

#[cfg(target_arch = "x86_64")]
const AVX512: Peak = {
    use crate::simd::avx512::peak::{FLOATS, INT8, TERNARY};
    Peak {
        f32: FLOATS,
        int8: INT8,
        ternary: TERNARY,
    }
};

#[cfg(target_arch = "x86_64")]
const AVX512_VNNI: Peak = {
    let int8 = crate::simd::avx512_vnni::peak::INT8;
    Peak {
        int8,
        ternary: int8,
        ..AVX512
    }
};

#[cfg(target_arch = "x86_64")]
const AMX: Peak = {
    let int8 = crate::simd::amx::peak::INT8;
    Peak {
        int8,
        ternary: int8,
        ..AVX512_VNNI
    }
};

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
const NEON: Peak = {
    use crate::simd::neon::peak::{FLOATS, INT8};
    Peak {
        f32: FLOATS,
        int8: INT8,
        ternary: INT8,
    }
};

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
const DOTPROD: Peak = {
    let int8 = crate::simd::dotprod::peak::INT8;
    Peak {
        int8,
        ternary: int8,
        ..NEON
    }
};

impl Backend {
    /// The loops that measure arithmetic.
    pub(crate) const fn peak(self) -> &'static Peak {
        match self.isa() {
            #[cfg(target_arch = "x86_64")]
            Isa::Sse41 => &SSE41,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &AVX2,
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni => &AVX_VNNI,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &AVX512,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => &AVX512_VNNI,
            #[cfg(target_arch = "x86_64")]
            Isa::Amx => &AMX,
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Isa::Neon => &NEON,
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Isa::DotProd => &DOTPROD,
            _ => &SCALAR,
        }
    }
}
