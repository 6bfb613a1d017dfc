//! Which kernels search int8 and ternary rows, set by set.

use super::{Many, SCALAR, Search};
use crate::simd::taken::take;
use crate::simd::{Backend, Isa};

#[cfg(target_arch = "x86_64")]
const SSE41: Search = Search {
    dots: crate::simd::sse41::search::dots,
    dots_and_norms: crate::simd::sse41::search::dots_and_norms,
    many: Some(Many {
        pack: crate::simd::sse41::many_search::pack,
        dots: crate::simd::sse41::many_search::dots,
    }),
    packed_len: crate::simd::sse41::many_search::packed_len,
    passing: crate::simd::sse41::search::passing,
    ..SCALAR
};

#[cfg(target_arch = "x86_64")]
const AVX2: Search = Search {
    dots: crate::simd::avx2::search::dots,
    dots_and_norms: crate::simd::avx2::search::dots_and_norms,
    many: Some(Many {
        pack: crate::simd::avx2::many_search::pack,
        dots: crate::simd::avx2::many_search::dots,
    }),
    packed_len: crate::simd::avx2::many_search::packed_len,
    passing: crate::simd::avx2::search::passing,
    ternary_dots: crate::simd::avx2::ternary_search::dots,
    ternary_norms: crate::simd::avx2::ternary_search::norms,
};

#[cfg(target_arch = "x86_64")]
const AVX_VNNI: Search = Search {
    dots: crate::simd::avx_vnni::search::dots,
    dots_and_norms: crate::simd::avx_vnni::search::dots_and_norms,
    many: Some(Many {
        pack: crate::simd::avx_vnni::many_search::pack,
        dots: crate::simd::avx_vnni::many_search::dots,
    }),
    packed_len: crate::simd::avx_vnni::many_search::packed_len,
    ..AVX2
};

#[cfg(target_arch = "x86_64")]
const AVX512: Search = Search {
    dots: crate::simd::avx512::search::dots,
    dots_and_norms: crate::simd::avx512::search::dots_and_norms,
    many: Some(Many {
        pack: crate::simd::avx512::many_search::pack,
        dots: crate::simd::avx512::many_search::dots,
    }),
    packed_len: crate::simd::avx512::many_search::packed_len,
    passing: crate::simd::avx512::search::passing,
    ..AVX2
};

#[cfg(target_arch = "x86_64")]
const AVX512_VNNI: Search = Search {
    dots: crate::simd::avx512_vnni::search::dots,
    dots_and_norms: crate::simd::avx512_vnni::search::dots_and_norms,
    many: Some(Many {
        pack: crate::simd::avx512_vnni::many_search::pack,
        dots: crate::simd::avx512_vnni::many_search::dots,
    }),
    packed_len: crate::simd::avx512_vnni::many_search::packed_len,
    ternary_dots: crate::simd::avx512_vnni::ternary_search::dots,
    ternary_norms: crate::simd::avx512_vnni::ternary_search::norms,
    ..AVX512
};

#[cfg(target_arch = "x86_64")]
const AMX: Search = Search {
    many: Some(Many {
        pack: crate::simd::avx512_vnni::many_search::pack,
        dots: crate::simd::amx::search::dots,
    }),
    ..AVX512_VNNI
};

#[cfg(target_arch = "aarch64")]
const NEON: Search = Search {
    dots: crate::simd::neon::search::dots,
    dots_and_norms: crate::simd::neon::search::dots_and_norms,
    many: Some(Many {
        pack: crate::simd::neon::many_search::pack,
        dots: crate::simd::neon::many_search::dots,
    }),
    packed_len: crate::simd::neon::many_search::packed_len,
    passing: crate::simd::neon::search::passing,
    ..SCALAR
};

#[cfg(target_arch = "aarch64")]
const DOT_PROD: Search = Search {
    dots: crate::simd::dotprod::search::dots,
    dots_and_norms: crate::simd::dotprod::search::dots_and_norms,
    many: Some(Many {
        pack: crate::simd::dotprod::many_search::pack,
        dots: crate::simd::dotprod::many_search::dots,
    }),
    packed_len: crate::simd::dotprod::many_search::packed_len,
    ..NEON
};

impl Backend {
    /// The kernels of integer search.
    pub(crate) fn search(self) -> &'static Search {
        match take(self.isa()) {
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
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => &NEON,
            #[cfg(target_arch = "aarch64")]
            Isa::DotProd => &DOT_PROD,
            _ => &SCALAR,
        }
    }
}
