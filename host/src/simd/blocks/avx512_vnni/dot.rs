//! Products of blocks with int8 activations, exact: `vpdpbusd` adds four products in 32 bits without saturating.
//!
//! Codes are multiplied as unsigned numbers, too large by 1, 8 or 128, and that multiple of the sum of the activations
//! is subtracted.

use std::arch::x86_64::*;

use tercet_core::block::Format;

use crate::simd::avx2;
use crate::simd::blocks::Dot;

use super::sum::{STEP, Sixteen, totals, totals_of_halves};
use crate::simd::blocks::dot::blocks;

/// Returns the product of a format's blocks; `None` if a scale is not finite.
pub(in crate::simd) fn of(format: Format) -> Option<Dot> {
    Some(match format {
        Format::Tq1_0 => tq1_0,
        Format::Tq2_0 => tq2_0,
        Format::Q2_0 => q2_0,
        Format::Q8_0 => q8_0,
        Format::Q4_0 => q4_0,
        other => return (avx2::blocks::KERNELS.dot)(other),
    })
}

/// The digits of a byte are the whole parts of its thirds: 86 · 3 and 171 · 3 are the first to reach 256 and 512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn tq1_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    let dots = |blocks: &[_], x: &[_]| {
        each(blocks, x, |block, x| {
            // 48 bytes of five digits, four of four.
            let packed: *const i8 = block.as_ptr().cast();
            // SAFETY: 52 of the block's bytes are read.
            let mut fraction = unsafe { _mm512_maskz_loadu_epi8((1 << 52) - 1, packed) };
            let one = _mm512_set1_epi8(1);
            let mut sum = _mm512_setzero_si512();
            for lane in 0..5 {
                let is_more = _mm512_cmpge_epu8_mask(fraction, _mm512_set1_epi8(86));
                let is_two = _mm512_cmpge_epu8_mask(fraction, _mm512_set1_epi8(171_u8 as i8));
                let digit = _mm512_maskz_mov_epi8(is_more, one);
                let digit = _mm512_mask_add_epi8(digit, is_two, digit, one);
                fraction = _mm512_add_epi8(_mm512_add_epi8(fraction, fraction), fraction);
                // SAFETY: 32 activations from 32 · 4, 16 from 160 + 16 · 4 and 4 from 240 + 4 · 3 on, at most.
                let x = unsafe {
                    let low = _mm256_loadu_si256(x.as_ptr().add(32 * lane).cast());
                    let high = _mm_loadu_si128(x.as_ptr().add(160 + 16 * lane).cast());
                    let last = match lane {
                        4 => _mm_setzero_si128(),
                        _ => _mm_loadu_si32(x.as_ptr().add(240 + 4 * lane).cast()),
                    };
                    let high = _mm256_set_m128i(last, high);
                    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
                };
                sum = _mm512_dpbusd_epi32(sum, digit, x);
            }
            sum
        })
    };
    // SAFETY: the set runs where this function may be called.
    unsafe { blocks::<Sixteen, STEP, 256, 54>(bytes, x, 52, dots) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn tq2_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    let dots = |blocks: &[_], x: &[_]| {
        each(blocks, x, |block, x| {
            let packed = load(block);
            let codes = [
                packed,
                _mm512_srli_epi16::<2>(packed),
                _mm512_srli_epi16::<4>(packed),
                _mm512_srli_epi16::<6>(packed),
            ];
            let mut sum = _mm512_setzero_si512();
            for (lane, codes) in codes.into_iter().enumerate() {
                let codes = _mm512_and_si512(codes, _mm512_set1_epi8(3));
                let x = two(&x[32 * lane..], &x[128 + 32 * lane..]);
                sum = _mm512_dpbusd_epi32(sum, codes, x);
            }
            sum
        })
    };
    // SAFETY: the set runs where this function may be called.
    unsafe { blocks::<Sixteen, STEP, 256, 66>(bytes, x, 64, dots) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")]
fn q2_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    // Spreads two bytes of eight codes over eight bytes, each of which uses two bits.
    let spread = _mm512_set_epi64(
        0x0F0E_0F0E_0F0E_0F0E,
        0x0D0C_0D0C_0D0C_0D0C,
        0x0B0A_0B0A_0B0A_0B0A,
        0x0908_0908_0908_0908,
        0x0706_0706_0706_0706,
        0x0504_0504_0504_0504,
        0x0302_0302_0302_0302,
        0x0100_0100_0100_0100,
    );
    let shifts = _mm512_set1_epi64(0x0E0C_0A08_0604_0200);
    let dots = |blocks: &[_], x: &[_]| {
        each(blocks, x, |block, x| {
            let packed = _mm512_broadcast_i32x4(load_16(&block[2..]));
            let eights = _mm512_shuffle_epi8(packed, spread);
            let codes = _mm512_multishift_epi64_epi8(shifts, eights);
            let codes = _mm512_and_si512(codes, _mm512_set1_epi8(3));
            _mm512_dpbusd_epi32(_mm512_setzero_si512(), codes, load(x))
        })
    };
    // SAFETY: the set runs where this function may be called.
    unsafe { blocks::<Sixteen, STEP, 64, 18>(bytes, x, 0, dots) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn q8_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    let dots = |blocks: &[_], x: &[_]| {
        pairs(blocks, x, 0x80, |a, b| {
            let codes = two(&a[2..], &b[2..]);
            _mm512_xor_si512(codes, _mm512_set1_epi8(i8::MIN))
        })
    };
    // SAFETY: the set runs where this function may be called.
    unsafe { blocks::<Sixteen, STEP, 32, 34>(bytes, x, 0, dots) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn q4_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    // Upper nibbles in every second quarter.
    let shifts = _mm512_set_epi64(
        0x0004_0004_0004_0004,
        0x0004_0004_0004_0004,
        0,
        0,
        0x0004_0004_0004_0004,
        0x0004_0004_0004_0004,
        0,
        0,
    );
    let dots = |blocks: &[_], x: &[_]| {
        pairs(blocks, x, 8, |a, b| {
            let [a, b] = [a, b].map(|block| _mm256_broadcastsi128_si256(load_16(&block[2..])));
            let both = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), b);
            _mm512_and_si512(_mm512_srlv_epi16(both, shifts), _mm512_set1_epi8(15))
        })
    };
    // SAFETY: the set runs where this function may be called.
    unsafe { blocks::<Sixteen, STEP, 32, 18>(bytes, x, 0, dots) }
}

/// Computes the products of the blocks of a full or partial step, whose codes are one too large in `dot`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn each<const LEN: usize, const BYTES: usize>(
    blocks: &[[u8; BYTES]],
    x: &[[i8; LEN]],
    dot: impl Fn(&[u8; BYTES], &[i8; LEN]) -> __m512i,
) -> __m512i {
    let mut sums = [_mm512_setzero_si512(); STEP];
    for ((sum, block), x) in sums.iter_mut().zip(blocks).zip(x) {
        let mut once = _mm512_setzero_si512();
        for x in x.as_chunks::<64>().0 {
            once = _mm512_dpbusd_epi32(once, _mm512_set1_epi8(1), load(x));
        }
        *sum = _mm512_sub_epi32(dot(block, x), once);
    }
    totals(sums)
}

/// Computes the products of a step's blocks of 32 codes, two side by side, which are `above` too large.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn pairs<const BYTES: usize>(
    blocks: &[[u8; BYTES]],
    x: &[[i8; 32]],
    above: u8,
    codes: impl Fn(&[u8; BYTES], &[u8; BYTES]) -> __m512i,
) -> __m512i {
    let above = _mm512_set1_epi8(above as i8);
    let mut sums = [_mm512_setzero_si512(); STEP / 2];
    let pairs = blocks.as_chunks::<2>().0.iter().zip(x.as_chunks::<2>().0);
    for (sum, ([a, b], x)) in sums.iter_mut().zip(pairs) {
        let x = load(x.as_flattened());
        let none = _mm512_setzero_si512();
        let products = _mm512_dpbusd_epi32(none, codes(a, b), x);
        *sum = _mm512_sub_epi32(products, _mm512_dpbusd_epi32(none, above, x));
    }
    totals_of_halves(sums)
}

/// Loads 64 bytes from the first on.
#[inline]
#[target_feature(enable = "avx512f")]
fn load<T: Byte>(bytes: &[T]) -> __m512i {
    let bytes = &bytes[..64];
    // SAFETY: 64 bytes lie there.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Loads 32 bytes from the first of each.
#[inline]
#[target_feature(enable = "avx512f")]
fn two<T: Byte>(low: &[T], high: &[T]) -> __m512i {
    // SAFETY: 32 bytes lie there.
    let [low, high] = [low, high].map(|bytes| unsafe {
        let bytes = &bytes[..32];
        _mm256_loadu_si256(bytes.as_ptr().cast())
    });
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}

/// Loads 16 bytes from the first on.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_16(bytes: &[u8]) -> __m128i {
    let bytes = &bytes[..16];
    // SAFETY: 16 bytes lie there.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// Signed or unsigned bytes.
trait Byte {}
impl Byte for i8 {}
impl Byte for u8 {}
