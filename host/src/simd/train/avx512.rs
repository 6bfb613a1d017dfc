//! Products of codes with AVX-512: of two rows in pairs of 16 bits, or with VNNI of four rows in bytes.

use std::arch::x86_64::*;

use super::weights::{CodeProducts, pair};

/// Defines the products of a set.
macro_rules! products {
    ($(#[$about:meta])* $name:ident, $features:literal, $depth:literal, $offset:literal,
        $inputs:expr, $gradients:expr, |$sums:ident, $lanes:ident, $others:ident| $add:expr) => {
        $(#[$about])*
        #[derive(Clone, Copy)]
        pub(super) struct $name(());

        impl $name {
            /// Returns the set; only code that is compiled for it can call this.
            #[inline]
            #[target_feature(enable = $features)]
            pub(super) fn here() -> Self {
                Self(())
            }
        }

        impl CodeProducts for $name {
            const DEPTH: usize = $depth;
            const COLUMNS: usize = 16;
            const OFFSET: i32 = $offset;
            type Vector = __m512i;
            type Wide = __m512i;

            #[inline(always)]
            fn inputs(codes: [i8; 4]) -> i32 {
                $inputs(codes)
            }

            #[inline(always)]
            fn gradients(codes: [i8; 4]) -> i32 {
                $gradients(codes)
            }

            #[inline(always)]
            fn splat(self, sum: i32) -> __m512i {
                // SAFETY: the set runs here.
                unsafe { _mm512_set1_epi32(sum) }
            }

            #[inline(always)]
            fn load(self, lanes: &[i32]) -> __m512i {
                let lanes: &[i32; 16] = lanes.first_chunk().expect("a vector of lanes");
                // SAFETY: the set runs here; sixteen lanes are there.
                unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
            }

            #[inline(always)]
            fn add(self, sums: __m512i, inputs: __m512i, gradients: i32) -> __m512i {
                // SAFETY: the set runs here.
                unsafe {
                    let ($sums, $lanes, $others) = (sums, inputs, _mm512_set1_epi32(gradients));
                    $add
                }
            }

            #[inline(always)]
            fn zero(self) -> __m512i {
                // SAFETY: the set runs here.
                unsafe { _mm512_setzero_si512() }
            }

            #[inline(always)]
            fn widen(self, wide: [__m512i; 2], sums: __m512i, shift: u32) -> [__m512i; 2] {
                // SAFETY: the set runs here.
                unsafe {
                    let shift = _mm_cvtsi32_si128(shift as i32);
                    let low = _mm512_cvtepi32_epi64(_mm512_castsi512_si256(sums));
                    let high = _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64::<1>(sums));
                    [
                        _mm512_add_epi64(wide[0], _mm512_sll_epi64(low, shift)),
                        _mm512_add_epi64(wide[1], _mm512_sll_epi64(high, shift)),
                    ]
                }
            }

            #[inline(always)]
            fn store(self, sums: __m512i, to: &mut [i32]) {
                let to: &mut [i32; 16] = to.first_chunk_mut().expect("room for a vector of sums");
                // SAFETY: the set runs here; sixteen sums fit there.
                unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), sums) }
            }

            #[inline(always)]
            fn add_to(self, wide: [__m512i; 2], to: &mut [i64]) {
                let to: &mut [i64; 16] = to.first_chunk_mut().expect("a vector of sums");
                // SAFETY: the set runs here; sixteen sums are there.
                unsafe {
                    for (at, wide) in wide.into_iter().enumerate() {
                        let to = to.as_mut_ptr().add(8 * at);
                        _mm512_storeu_si512(to.cast(), _mm512_add_epi64(_mm512_loadu_si512(to.cast()), wide));
                    }
                }
            }
        }
    };
}

products!(
    /// AVX-512, which this machine supports.
    Pairs, "avx512f,avx512bw", 2, 0, pair, pair,
    |sums, inputs, gradients| _mm512_add_epi32(sums, _mm512_madd_epi16(inputs, gradients))
);
products!(
    /// AVX-512 with VNNI, which this machine supports. The instruction takes one operand without signs.
    Quads, "avx512f,avx512vnni", 4, 128,
    unsigned, signed,
    |sums, inputs, gradients| _mm512_dpbusd_epi32(sums, inputs, gradients)
);

/// Returns codes and 128 as a lane.
#[inline(always)]
fn unsigned(codes: [i8; 4]) -> i32 {
    signed(codes) ^ 0x8080_8080_u32 as i32
}

/// Returns codes as a lane.
#[inline(always)]
fn signed([a, b, c, d]: [i8; 4]) -> i32 {
    i32::from_le_bytes([a as u8, b as u8, c as u8, d as u8])
}
