//! Decodes blocks to floats, with loops over a set's vectors: codes of two bits, of four bits, and digits select among
//! the products of a block's scale with each code.

use half::f16;
use tercet_core::block::Format;

use super::lanes::Choosing;

/// As [`super::table::Decode`], for TQ1_0.
#[inline(always)]
pub(in crate::simd) fn tq1_0<V: Choosing>(set: V, bytes: &[u8], out: &mut [f32]) -> usize {
    const POWERS: [u8; 16] = [1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27];
    each::<V, 256, 54>(set, Format::Tq1_0, bytes, out, |block, scale, out| {
        let products = four(set, scale);
        let (wide, out) = out.split_at_mut(160);
        let (narrow, last) = out.split_at_mut(80);
        columns::<V, 32>(set, &block[..32], products, wide);
        columns::<V, 16>(set, &block[32..48], products, narrow);
        // Four bytes with four digits each: the first digits of all, then the second ones, and so on.
        let mut fractions = POWERS;
        for (m, fraction) in fractions.iter_mut().enumerate() {
            *fraction = fraction.wrapping_mul(block[48 + m % 4]);
        }
        let fractions = fractions.chunks_exact(set.lanes());
        for (fractions, out) in fractions.zip(last.chunks_exact_mut(set.lanes())) {
            // SAFETY: one byte per lane lies there.
            let fractions = unsafe { set.bytes(fractions.as_ptr()) };
            set.write(next_digit(set, fractions, products).0, out);
        }
    })
}

/// Writes the floats of bytes that hold five digits each, a column of them.
#[inline(always)]
fn columns<V: Choosing, const ROW: usize>(
    set: V,
    bytes: &[u8],
    products: V::Words,
    out: &mut [f32],
) {
    let rows = out.as_chunks_mut::<ROW>().0;
    for (part, bytes) in bytes.chunks_exact(set.lanes()).enumerate() {
        // SAFETY: one byte per lane lies there.
        let mut fractions = unsafe { set.bytes(bytes.as_ptr()) };
        for row in &mut *rows {
            let floats;
            (floats, fractions) = next_digit(set, fractions, products);
            set.write(floats, &mut row[part * set.lanes()..]);
        }
    }
}

/// Returns the products that the digit before fractions of 256 times 3 selects, and the remaining fractions.
#[inline(always)]
fn next_digit<V: Choosing>(
    set: V,
    fractions: V::Words,
    products: V::Words,
) -> (V::Words, V::Words) {
    let tripled = set.add(set.add(fractions, fractions), fractions);
    (
        set.choose(products, tripled, 8),
        set.and(tripled, set.splat(0xFF)),
    )
}

/// As [`super::table::Decode`], for TQ2_0.
#[inline(always)]
pub(in crate::simd) fn tq2_0<V: Choosing>(set: V, bytes: &[u8], out: &mut [f32]) -> usize {
    each::<V, 256, 66>(set, Format::Tq2_0, bytes, out, |block, scale, out| {
        let products = four(set, scale);
        let packed = block.as_chunks::<32>().0.iter();
        for (bytes, out) in packed.zip(out.as_chunks_mut::<128>().0) {
            let rows = out.as_chunks_mut::<32>().0;
            for (part, bytes) in bytes.chunks_exact(set.lanes()).enumerate() {
                // SAFETY: one byte per lane lies there.
                let codes = unsafe { set.bytes(bytes.as_ptr()) };
                for (row, shift) in rows.iter_mut().zip([0, 2, 4, 6]) {
                    let floats = set.choose(products, codes, shift);
                    set.write(floats, &mut row[part * set.lanes()..]);
                }
            }
        }
    })
}

/// As [`super::table::Decode`], for Q2_0.
#[inline(always)]
pub(in crate::simd) fn q2_0<V: Choosing>(set: V, bytes: &[u8], out: &mut [f32]) -> usize {
    each::<V, 64, 18>(set, Format::Q2_0, bytes, out, |block, scale, out| {
        let products = four(set, scale);
        let packed = block[2..].chunks_exact(set.lanes() / 4);
        for (bytes, out) in packed.zip(out.chunks_exact_mut(set.lanes())) {
            // SAFETY: two bits per lane lie there.
            let codes = unsafe { set.twos(bytes.as_ptr()) };
            set.write(set.choose(products, codes, 0), out);
        }
    })
}

/// As [`super::table::Decode`], for Q8_0.
#[inline(always)]
pub(in crate::simd) fn q8_0<V: Choosing>(set: V, bytes: &[u8], out: &mut [f32]) -> usize {
    each::<V, 32, 34>(set, Format::Q8_0, bytes, out, |block, scale, out| {
        let scale = set.pattern(scale.to_bits());
        let codes = block[2..].chunks_exact(set.lanes());
        for (codes, out) in codes.zip(out.chunks_exact_mut(set.lanes())) {
            // SAFETY: one byte per lane lies there.
            let codes = unsafe { set.steps(codes.as_ptr().cast(), set.splat(0)) };
            set.write(set.multiply_f32(codes, scale), out);
        }
    })
}

/// As [`super::table::Decode`], for Q4_0.
#[inline(always)]
pub(in crate::simd) fn q4_0<V: Choosing>(set: V, bytes: &[u8], out: &mut [f32]) -> usize {
    each::<V, 32, 18>(set, Format::Q4_0, bytes, out, |block, scale, out| {
        let products = set.sixteen(scale);
        let rows = out.as_chunks_mut::<16>().0;
        for (part, bytes) in block[2..].chunks_exact(set.lanes()).enumerate() {
            // SAFETY: one byte per lane lies there.
            let codes = unsafe { set.bytes(bytes.as_ptr()) };
            for (row, shift) in rows.iter_mut().zip([0, 4]) {
                let floats = set.choose_of_sixteen(products, codes, shift);
                set.write(floats, &mut row[part * set.lanes()..]);
            }
        }
    })
}

/// Returns the products of a scale with −1, 0, 1 and 2, repeated.
#[inline(always)]
fn four<V: Choosing>(set: V, scale: f32) -> V::Words {
    const CODES: [f32; 16] = {
        let mut codes = [-1.0; 16];
        let mut at = 0;
        while at < 16 {
            codes[at] += (at % 4) as f32;
            at += 1;
        }
        codes
    };
    set.multiply_f32(set.read(&CODES), set.pattern(scale.to_bits()))
}

/// Calls `decode` with each block, its scale and its place.
#[inline(always)]
fn each<V: Choosing, const LEN: usize, const BYTES: usize>(
    set: V,
    format: Format,
    bytes: &[u8],
    out: &mut [f32],
    decode: impl Fn(&[u8; BYTES], f32, &mut [f32; LEN]),
) -> usize {
    let blocks = bytes.as_chunks::<BYTES>().0.iter();
    for (index, (block, out)) in blocks.zip(out.as_chunks_mut::<LEN>().0).enumerate() {
        let scale: f16 = format.scale(block);
        if !scale.is_finite() {
            return index;
        }
        decode(block, set.wide(scale), out);
    }
    bytes.len() / BYTES
}

/// Defines the functions of a set, compiled for its features, and a function from formats to them.
macro_rules! decoders {
    ($set:ty, $features:literal) => {
        /// Returns the decoder of a format: it decodes whole blocks up to the first whose scale is not finite.
        fn decode(format: tercet_core::block::Format) -> Option<$crate::simd::blocks::Decode> {
            use tercet_core::block::Format;

            macro_rules! own {
                ($name:ident) => {{
                    #[target_feature(enable = $features)]
                    fn $name(bytes: &[u8], out: &mut [f32]) -> usize {
                        $crate::simd::blocks::decode::$name(<$set>::here(), bytes, out)
                    }
                    $name
                }};
            }
            Some(match format {
                Format::Tq1_0 => own!(tq1_0),
                Format::Tq2_0 => own!(tq2_0),
                Format::Q2_0 => own!(q2_0),
                Format::Q8_0 => own!(q8_0),
                Format::Q4_0 => own!(q4_0),
                other => return loops::decode(other),
            })
        }
    };
}
pub(in crate::simd) use decoders;
