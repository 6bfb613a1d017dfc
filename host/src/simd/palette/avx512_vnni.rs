//! Palettes, 64 values per vector: bits are moved to their bytes by `vpermb` and `vpmultishiftqb`, and are looked up by
//! `vpermb`.

use std::arch::x86_64::*;

use crate::simd::palette::lanes::{LookUps, STEP};

/// AVX-512 with VNNI and VBMI, which this machine supports: one vector per step.
#[derive(Clone, Copy)]
pub(in crate::simd) struct Vbmi(());

impl Vbmi {
    /// Returns the set; only code that is compiled for it can call this.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")]
    pub(in crate::simd) fn here() -> Self {
        Self(())
    }
}

impl LookUps for Vbmi {
    type Bytes = __m512i;
    type Book = [__m512i; 4];
    type Sums = __m512i;

    const UNSIGNED: bool = true;

    #[inline(always)]
    fn reach(self, _: usize) -> usize {
        64
    }

    #[inline(always)]
    fn load(self, from: &[i8; STEP]) -> __m512i {
        // SAFETY: the set runs here; 64 bytes lie there.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline(always)]
    unsafe fn unpack<const BITS: usize>(self, from: *const u8) -> __m512i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe {
            let packed = _mm512_loadu_si512(from.cast());
            if BITS == 8 {
                return packed;
            }
            let eights = _mm512_permutexvar_epi8(table(&const { spread(BITS) }), packed);
            _mm512_multishift_epi64_epi8(table(&const { shifts(BITS) }), eights)
        }
    }

    #[inline(always)]
    unsafe fn pack<const BITS: usize>(self, indices: __m512i, to: *mut u8) {
        // SAFETY: the set runs here; the caller's promise.
        unsafe {
            let packed = if BITS == 8 {
                indices
            } else {
                // Two indices in 16 bits, four in 32, eight in 64. Indices are at most 127, powers at most 2¹⁴.
                let two = _mm512_maddubs_epi16(_mm512_set1_epi16(1 | 1 << (8 + BITS)), indices);
                let four = _mm512_madd_epi16(two, _mm512_set1_epi32(1 | 1 << (16 + 2 * BITS)));
                let free = 32 - 4 * BITS as i64;
                let next = _mm512_sllv_epi32(four, _mm512_set1_epi64(free));
                let eight = _mm512_srlv_epi64(next, _mm512_set1_epi64(free));
                _mm512_permutexvar_epi8(table(&const { gather(BITS) }), eight)
            };
            _mm512_storeu_si512(to.cast(), packed);
        }
    }

    #[inline(always)]
    fn book(self, from: &[u8; 256]) -> [__m512i; 4] {
        let from: *const __m512i = from.as_ptr().cast();
        // SAFETY: the set runs here; 256 bytes lie there.
        unsafe {
            [
                _mm512_loadu_si512(from),
                _mm512_loadu_si512(from.add(1)),
                _mm512_loadu_si512(from.add(2)),
                _mm512_loadu_si512(from.add(3)),
            ]
        }
    }

    /// A look-up uses six bits of an index, or seven with two vectors.
    #[inline(always)]
    fn look_up<const BITS: usize>(self, book: &[__m512i; 4], indices: __m512i) -> __m512i {
        // SAFETY: the set runs here.
        unsafe {
            match BITS {
                0..=6 => _mm512_permutexvar_epi8(indices, book[0]),
                7 => _mm512_permutex2var_epi8(book[0], indices, book[1]),
                _ => _mm512_mask_blend_epi8(
                    _mm512_movepi8_mask(indices),
                    _mm512_permutex2var_epi8(book[0], indices, book[1]),
                    _mm512_permutex2var_epi8(book[2], indices, book[3]),
                ),
            }
        }
    }

    #[inline(always)]
    fn scaled(self, entries: __m512i, scale: f32, to: &mut [f32; STEP]) {
        // SAFETY: the set runs here, and 64 floats have room.
        unsafe {
            let scale = _mm512_set1_ps(scale);
            let quarters = [
                _mm512_castsi512_si128(entries),
                _mm512_extracti32x4_epi32::<1>(entries),
                _mm512_extracti32x4_epi32::<2>(entries),
                _mm512_extracti32x4_epi32::<3>(entries),
            ];
            for (index, quarter) in quarters.into_iter().enumerate() {
                let entries = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(quarter));
                _mm512_storeu_ps(
                    to.as_mut_ptr().add(16 * index),
                    _mm512_mul_ps(entries, scale),
                );
            }
        }
    }

    #[inline(always)]
    fn zero(self) -> __m512i {
        // SAFETY: the set runs here.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn product(self, sums: __m512i, entries: __m512i, x: &[i8; STEP]) -> __m512i {
        // SAFETY: the set runs here, and 64 activations lie there.
        unsafe { _mm512_dpbusd_epi32(sums, entries, _mm512_loadu_si512(x.as_ptr().cast())) }
    }

    #[inline(always)]
    fn total(self, sums: __m512i) -> i32 {
        // SAFETY: the set runs here.
        unsafe { _mm512_reduce_add_epi32(sums) }
    }
}

#[inline(always)]
unsafe fn table(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the set runs here; 64 bytes lie there.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Returns eight bytes from the start of every eight indices.
const fn spread(bits: usize) -> [u8; 64] {
    let mut places = [0; 64];
    let mut at = 0;
    while at < 64 {
        places[at] = ((at / 8 * bits + at % 8) % 64) as u8;
        at += 1;
    }
    places
}

/// Returns the start of each of eight indices, in bits.
const fn shifts(bits: usize) -> [u8; 64] {
    let mut shifts = [0; 64];
    let mut at = 0;
    while at < 64 {
        shifts[at] = (at % 8 * bits) as u8;
        at += 1;
    }
    shifts
}

/// Returns the bytes of eight indices, next to the next ones.
const fn gather(bits: usize) -> [u8; 64] {
    let mut places = [0; 64];
    let mut at = 0;
    while at < 8 * bits {
        places[at] = (at / bits * 8 + at % bits) as u8;
        at += 1;
    }
    places
}

crate::simd::palette::steps::palette_kernels!(
    Vbmi,
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi"
);
