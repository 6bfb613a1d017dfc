//! Palettes, 32 values per vector: bits are moved to their bytes by `vpshufb` and a multiplication instead of a shift
//! per lane, and are looked up by `vpshufb`, 16 entries at a time.

use std::arch::x86_64::*;

use super::vectors::Avx2;
use crate::simd::palette::lanes::{LookUps, STEP};

impl LookUps for Avx2 {
    type Bytes = [__m256i; 2];
    /// 16 entries in both halves.
    type Book = [__m256i; 16];
    type Sums = __m256i;

    const UNSIGNED: bool = false;

    /// The last 16 indices begin at 6·B.
    #[inline(always)]
    fn reach(self, bits: usize) -> usize {
        6 * bits + 16
    }

    #[inline(always)]
    fn load(self, from: &[i8; STEP]) -> [__m256i; 2] {
        // SAFETY: the set runs here; 64 bytes lie there.
        unsafe {
            [
                _mm256_loadu_si256(from.as_ptr().cast()),
                _mm256_loadu_si256(from.as_ptr().add(32).cast()),
            ]
        }
    }

    #[inline(always)]
    unsafe fn unpack<const BITS: usize>(self, from: *const u8) -> [__m256i; 2] {
        // SAFETY: the set runs here; the caller's promise.
        unsafe {
            if BITS == 8 {
                return self.load(&*from.cast());
            }
            [
                unpack_32::<BITS>(from),
                unpack_32::<BITS>(from.add(4 * BITS)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn pack<const BITS: usize>(self, indices: [__m256i; 2], to: *mut u8) {
        for (half, indices) in indices.into_iter().enumerate() {
            // SAFETY: the set runs here, and as many bytes are written as promised.
            unsafe {
                let to = to.add(half * 4 * BITS);
                if BITS == 8 {
                    _mm256_storeu_si256(to.cast(), indices);
                } else {
                    let packed = pack_32::<BITS>(indices);
                    _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(packed));
                    let high = _mm256_extracti128_si256::<1>(packed);
                    _mm_storeu_si128(to.add(2 * BITS).cast(), high);
                }
            }
        }
    }

    #[inline(always)]
    fn book(self, from: &[u8; 256]) -> [__m256i; 16] {
        // SAFETY: the set runs here; 256 bytes lie there.
        unsafe {
            let mut book = [_mm256_setzero_si256(); 16];
            for (row, entries) in book.iter_mut().enumerate() {
                let from = from.as_ptr().add(16 * row);
                *entries = _mm256_broadcastsi128_si256(_mm_loadu_si128(from.cast()));
            }
            book
        }
    }

    #[inline(always)]
    fn look_up<const BITS: usize>(
        self,
        book: &[__m256i; 16],
        [low, high]: [__m256i; 2],
    ) -> [__m256i; 2] {
        // SAFETY: the set runs here.
        unsafe {
            [
                look_up_32::<BITS>(book, low),
                look_up_32::<BITS>(book, high),
            ]
        }
    }

    #[inline(always)]
    fn scaled(self, entries: [__m256i; 2], scale: f32, to: &mut [f32; STEP]) {
        for (half, entries) in entries.into_iter().enumerate() {
            // SAFETY: the set runs here, and 64 floats have room.
            unsafe {
                let scale = _mm256_set1_ps(scale);
                let low = _mm256_castsi256_si128(entries);
                let high = _mm256_extracti128_si256::<1>(entries);
                let eights = [
                    low,
                    _mm_unpackhi_epi64(low, low),
                    high,
                    _mm_unpackhi_epi64(high, high),
                ];
                for (index, eight) in eights.into_iter().enumerate() {
                    let entries = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight));
                    let to = to.as_mut_ptr().add(32 * half + 8 * index);
                    _mm256_storeu_ps(to, _mm256_mul_ps(entries, scale));
                }
            }
        }
    }

    #[inline(always)]
    fn zero(self) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    fn product(self, mut sums: __m256i, entries: [__m256i; 2], x: &[i8; STEP]) -> __m256i {
        // SAFETY: the set runs here, and 64 activations lie there.
        unsafe {
            for (half, entries) in entries.into_iter().enumerate() {
                let low = _mm256_castsi256_si128(entries);
                let high = _mm256_extracti128_si256::<1>(entries);
                for (quarter, entries) in [low, high].into_iter().enumerate() {
                    let x = x.as_ptr().add(32 * half + 16 * quarter);
                    let x = _mm256_cvtepi8_epi16(_mm_loadu_si128(x.cast()));
                    let products = _mm256_madd_epi16(_mm256_cvtepi8_epi16(entries), x);
                    sums = _mm256_add_epi32(sums, products);
                }
            }
            sums
        }
    }

    #[inline(always)]
    fn total(self, sums: __m256i) -> i32 {
        // SAFETY: the set runs here.
        unsafe {
            let sums = _mm_add_epi32(
                _mm256_castsi256_si128(sums),
                _mm256_extracti128_si256::<1>(sums),
            );
            let sums = _mm_add_epi32(sums, _mm_unpackhi_epi64(sums, sums));
            _mm_cvtsi128_si32(_mm_add_epi32(sums, _mm_shuffle_epi32::<1>(sums)))
        }
    }
}

/// Returns the entries of 32 indices.
///
/// # Safety
/// The set runs here.
#[inline(always)]
unsafe fn look_up_32<const BITS: usize>(book: &[__m256i; 16], indices: __m256i) -> __m256i {
    // SAFETY: the set runs here.
    unsafe {
        if BITS <= 4 {
            return _mm256_shuffle_epi8(book[0], indices);
        }
        // In the row with its entry, an index is below 16 and becomes 0x70 or more; in the others it has its highest
        // bit set, which gives 0.
        let (mut found, mut left) = (_mm256_setzero_si256(), indices);
        for row in &book[..(1 << BITS) / 16] {
            let within = _mm256_adds_epu8(left, _mm256_set1_epi8(0x70));
            found = _mm256_or_si256(found, _mm256_shuffle_epi8(*row, within));
            left = _mm256_sub_epi8(left, _mm256_set1_epi8(16));
        }
        found
    }
}

/// Reads 32 indices of less than eight bits, from 2·B + 16 bytes.
///
/// # Safety
/// The set runs here, and so many bytes can be read.
#[inline(always)]
unsafe fn unpack_32<const BITS: usize>(from: *const u8) -> __m256i {
    // SAFETY: the set runs here; the caller's promise.
    unsafe {
        let mask = _mm256_set1_epi8(((1u8 << BITS) - 1) as i8);
        match BITS {
            4 => {
                // The upper half of a byte, shifted by 4 bits, begins the next byte.
                let words = _mm256_cvtepu8_epi16(_mm_loadu_si128(from.cast()));
                let both = _mm256_or_si256(words, _mm256_slli_epi16::<4>(words));
                _mm256_and_si256(both, mask)
            }
            2 => {
                // The same in two steps, from 4 bits to 16 and from 2 to 8.
                let words = _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast()));
                let halves = _mm256_or_si256(words, _mm256_slli_epi32::<12>(words));
                let quarters = _mm256_or_si256(halves, _mm256_slli_epi32::<6>(halves));
                _mm256_and_si256(quarters, mask)
            }
            _ => {
                let low = _mm_loadu_si128(from.cast());
                let high = _mm_loadu_si128(from.add(2 * BITS).cast());
                let packed = _mm256_set_m128i(high, low);
                let factors = table(&const { factors(BITS) });
                // An index is in two bytes; bits above it are shifted out at the top, bits below it at the bottom.
                let first = _mm256_shuffle_epi8(packed, table(&const { windows(BITS, 0) }));
                let second = _mm256_shuffle_epi8(packed, table(&const { windows(BITS, BITS) }));
                let down = _mm_cvtsi32_si128(16 - BITS as i32);
                let first = _mm256_srl_epi16(_mm256_mullo_epi16(first, factors), down);
                let second = _mm256_srl_epi16(_mm256_mullo_epi16(second, factors), down);
                _mm256_packus_epi16(first, second)
            }
        }
    }
}

/// Returns 32 packed indices of less than eight bits, in the first 2·B bytes of either half.
///
/// # Safety
/// The set runs here.
#[inline(always)]
unsafe fn pack_32<const BITS: usize>(indices: __m256i) -> __m256i {
    // SAFETY: the set runs here.
    unsafe {
        // Two indices in 16 bits, four in 32, eight in 64. Indices are at most 127, powers at most 2¹⁴.
        let two = _mm256_maddubs_epi16(_mm256_set1_epi16(1 | 1 << (8 + BITS)), indices);
        let four = _mm256_madd_epi16(two, _mm256_set1_epi32(1 | 1 << (16 + 2 * BITS)));
        let free = 32 - 4 * BITS as i64;
        let next = _mm256_sllv_epi32(four, _mm256_set1_epi64x(free));
        let eight = _mm256_srlv_epi64(next, _mm256_set1_epi64x(free));
        _mm256_shuffle_epi8(eight, table(&const { gather(BITS) }))
    }
}

#[inline(always)]
unsafe fn table(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the set runs here; 32 bytes lie there.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// Returns the two bytes that contain each of eight indices, from byte `first` on; the same in both halves.
const fn windows(bits: usize, first: usize) -> [u8; 32] {
    let mut places = [0; 32];
    let mut at = 0;
    while at < 32 {
        let index = at % 16 / 2;
        places[at] = (first + index * bits / 8 + at % 2) as u8;
        at += 1;
    }
    places
}

/// Returns 2^(16 − B − o) for an index that begins at bit o of its two bytes.
const fn factors(bits: usize) -> [u8; 32] {
    let mut factors = [0; 32];
    let mut at = 0;
    while at < 16 {
        let factor = 1u16 << (16 - bits - at % 8 * bits % 8);
        let [low, high] = factor.to_le_bytes();
        factors[2 * at] = low;
        factors[2 * at + 1] = high;
        at += 1;
    }
    factors
}

/// Returns the bytes of eight indices next to those of the next; the same in both halves.
const fn gather(bits: usize) -> [u8; 32] {
    let mut places = [0x80; 32];
    let mut at = 0;
    while at < 2 * bits {
        places[at] = (at / bits * 8 + at % bits) as u8;
        places[16 + at] = places[at];
        at += 1;
    }
    places
}

crate::simd::palette::steps::palette_kernels!(Avx2, "avx2,f16c,fma");
