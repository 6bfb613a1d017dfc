//! Blocks of 32 codes, with loops that are written once over a set's vectors and products: for formats that a set has
//! no kernels of its own for. [`by_loops`] makes the set's functions from these and from [`super::parts`].

use tercet_core::number::bits;

use super::codes::{Block32, fixed, offset_of};
use super::lanes::Lanes;
use crate::simd::linear::{Activations, Start};
use crate::simd::search::dots::DotProducts;

/// 2⁻¹⁰⁰: from here on a scale and its reciprocal are normal.
const TINY: f32 = f32::from_bits(27 << 23);

/// Blocks whose products are computed at once.
const FOUR: usize = 4;

/// As [`super::table::Decode`].
#[inline(always)]
pub(in crate::simd) fn decode<V: Lanes, C: Block32<BYTES>, const BYTES: usize>(
    set: V,
    bytes: &[u8],
    out: &mut [f32],
) -> usize {
    let blocks = bytes.as_chunks::<BYTES>().0.iter();
    for (index, (block, out)) in blocks.zip(out.as_chunks_mut::<32>().0).enumerate() {
        let (scale, min) = (C::FORMAT.scale(block), C::FORMAT.min(block));
        if !scale.is_finite() || !min.is_finite() {
            return index;
        }
        let (scale, min) = (set.wide(scale), set.wide(min));
        let mut codes = [0; 32];
        C::unpack(block, &mut codes);
        for (y, code) in out.iter_mut().zip(codes) {
            *y = (i32::from(code) - offset_of(C::FORMAT)) as f32 * scale;
            if C::FORMAT.min_offset().is_some() {
                *y += min;
            }
        }
    }
    bytes.len() / BYTES
}

/// Computes the products of up to four blocks with activations, whose sums are `sums`; modulo 2³².
#[inline(always)]
fn products<S: DotProducts, C: Block32<BYTES>, const BYTES: usize>(
    set: S,
    blocks: &[[u8; BYTES]],
    x: &[[i8; 32]],
    sums: [i32; FOUR],
) -> [i32; FOUR] {
    let mut found = [set.start(0); FOUR];
    for ((found, block), (x, sum)) in found.iter_mut().zip(blocks).zip(x.iter().zip(sums)) {
        let mut codes = [0; 32];
        C::unpack(block, &mut codes);
        let above = S::ABOVE + offset_of(C::FORMAT);
        *found = add(set, set.start(-above * sum), &codes, x);
    }
    set.totals(found)
}

/// Adds (code + [`DotProducts::ABOVE`]) · x of a block, with codes below 128.
#[inline(always)]
fn add<S: DotProducts>(set: S, mut sums: S::Sums, codes: &[u8; 32], x: &[i8; 32]) -> S::Sums {
    for at in (0..32).step_by(S::STEP.min(32)) {
        // SAFETY: a step, or what is left of 32, lies there.
        let (codes, x) = unsafe {
            let codes = set.load(codes.as_ptr().cast::<i8>().add(at), 32 - at);
            (codes, set.load(x.as_ptr().add(at), 32 - at))
        };
        sums = set.add_products(sums, codes, x);
    }
    sums
}

/// Returns the sums of up to four blocks of activations.
#[inline(always)]
fn sums<S: DotProducts>(set: S, x: &[[i8; 32]]) -> [i32; FOUR] {
    let mut found = [set.start(0); FOUR];
    for (found, x) in found.iter_mut().zip(x) {
        *found = add(set, *found, &[1; 32], x);
    }
    set.totals(found).map(|sum| sum / (1 + S::ABOVE))
}

/// Returns Σ weight · x of a block times 2²⁴, below 2⁶⁰ in magnitude; see [`tercet_core::block::dot_fixed`].
#[inline(always)]
fn term<C: Block32<BYTES>, const BYTES: usize>(block: &[u8; BYTES], dot: i32, sum: i32) -> i64 {
    let term = fixed(C::FORMAT.scale(block)) * i64::from(dot);
    match C::FORMAT.min_offset() {
        Some(_) => term + fixed(C::FORMAT.min(block)) * i64::from(sum),
        None => term,
    }
}

/// As [`super::table::Dot`].
#[inline(always)]
pub(in crate::simd) fn dot<S: DotProducts, C: Block32<BYTES>, const BYTES: usize>(
    set: S,
    bytes: &[u8],
    x: &[i8],
) -> Option<i128> {
    let (mut wide, mut narrow) = (0, 0i64);
    let (blocks, x) = (bytes.as_chunks::<BYTES>().0, x.as_chunks::<32>().0);
    for (blocks, x) in blocks.chunks(FOUR).zip(x.chunks(FOUR)) {
        let sums = sums(set, x);
        let dots = products::<S, C, BYTES>(set, blocks, x, sums);
        for ((block, dot), sum) in blocks.iter().zip(dots).zip(sums) {
            if !C::FORMAT.scale(block).is_finite() || !C::FORMAT.min(block).is_finite() {
                return None;
            }
            let term = term::<C, BYTES>(block, dot, sum);
            narrow = match narrow.checked_add(term) {
                Some(sum) => sum,
                None => {
                    wide += i128::from(narrow);
                    term
                }
            };
        }
    }
    Some(wide + i128::from(narrow))
}

/// Stores the activations in order, and their sums over blocks.
#[inline(always)]
pub(in crate::simd) fn prepare<S: DotProducts>(set: S, x: &[i8], activations: &mut Activations) {
    activations.set(x);
    activations.start = vec![Start([0; 16]); x.len().div_ceil(512)];
    let starts = activations.start.iter_mut();
    let starts = starts.flat_map(|start| start.0.as_chunks_mut::<FOUR>().0);
    for (start, x) in starts.zip(x.as_chunks::<32>().0.chunks(FOUR)) {
        *start = sums(set, x);
    }
}

/// Computes the sums of rows of blocks; see [`crate::simd::linear::WideRows`].
#[inline(always)]
pub(in crate::simd) fn rows<S: DotProducts, C: Block32<BYTES>, const BYTES: usize>(
    set: S,
    bytes: &[u8],
    x: &Activations,
    out: &mut [i64],
) {
    for (row, out) in bytes.chunks_exact(x.len / 32 * BYTES).zip(out) {
        let mut total = 0;
        for (at, blocks) in row.as_chunks::<BYTES>().0.chunks(FOUR).enumerate() {
            let lines = [
                x.lines[2 * at].0,
                x.lines.get(2 * at + 1).map_or([0; 64], |line| line.0),
            ];
            let x_of = lines.as_flattened().as_chunks::<32>().0;
            let sums = x.start[at / 4].0.as_chunks::<FOUR>().0[at % 4];
            let dots = products::<S, C, BYTES>(set, blocks, x_of, sums);
            // A matrix refuses rows whose sums could leave 62 bits.
            for ((block, dot), sum) in blocks.iter().zip(dots).zip(sums) {
                total += term::<C, BYTES>(block, dot, sum);
            }
        }
        *out = total;
    }
}

/// As [`super::table::Encode`].
#[inline(always)]
pub(in crate::simd) fn encode<V: Lanes, C: Block32<BYTES>, const BYTES: usize>(
    set: V,
    values: &[f32],
    out: &mut [u8],
) -> usize {
    let (lowest, highest) = C::FORMAT.codes();
    let blocks = values.as_chunks::<32>().0.iter();
    for (index, (values, out)) in blocks.zip(out.as_chunks_mut::<BYTES>().0).enumerate() {
        let Some((min, max)) = extremes(set, values) else {
            return index;
        };
        let (scale, from, half) = match C::FORMAT.min_offset() {
            Some(_) => ((max - min) / f32::from(highest), min, 0.5),
            None => {
                let scale = first_of_largest(values, min, max) / f32::from(lowest);
                (scale, 0.0, 0.5 - f32::from(lowest))
            }
        };
        let (narrow, narrow_min) = (set.narrow(scale), set.narrow(from));
        let is_small = scale != 0.0 && scale.abs() < TINY;
        if is_small || !narrow.is_finite() || !narrow_min.is_finite() {
            return index;
        }
        let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
        let most = i32::from(highest) - i32::from(lowest);
        let codes = stored(set, values, [from, inverse, half], most);
        C::pack(&codes, out);
        out[C::FORMAT.scale_offset()..][..2].copy_from_slice(&narrow.to_le_bytes());
        if let Some(at) = C::FORMAT.min_offset() {
            out[at..][..2].copy_from_slice(&narrow_min.to_le_bytes());
        }
    }
    values.len() / 32
}

/// Returns `trunc(fl(fl(fl(x − from) · inverse) + half))`, at most `most`.
#[inline(always)]
fn stored<V: Lanes>(
    set: V,
    values: &[f32; 32],
    [from, inverse, half]: [f32; 3],
    most: i32,
) -> [u8; 32] {
    let [from, inverse, half] = [from, inverse, half].map(|x| set.pattern(x.to_bits()));
    let most = set.splat(most);
    let mut codes = [0; 32];
    for at in (0..32).step_by(set.lanes()) {
        let x = set.subtract_f32(set.read(&values[at..]), from);
        let x = set.add_f32(set.multiply_f32(x, inverse), half);
        let code = set.truncate(x);
        let code = set.select(set.exceeds(code, most), most, code);
        set.write_bytes(code, &mut codes[at..]);
    }
    codes
}

/// Returns the smallest and the largest value, of zeros the first one; `None` if one is not finite.
#[inline(always)]
fn extremes<V: Lanes>(set: V, values: &[f32; 32]) -> Option<(f32, f32)> {
    // Signed integers that are ordered like the values, with −0 just below +0.
    let magnitude = set.splat(i32::MAX);
    let (zero, ones) = (set.splat(0), set.splat(-1));
    let (mut highest, mut lowest) = (set.splat(i32::MIN), set.splat(i32::MIN));
    for at in (0..32).step_by(set.lanes()) {
        let x = set.read(&values[at..]);
        let negative = set.subtract(ones, set.and(x, magnitude));
        let key = set.select(set.exceeds(zero, x), negative, x);
        highest = set.max(highest, key);
        lowest = set.max(lowest, set.subtract(ones, key));
    }
    let largest = |keys| set.largest([zero, keys]).1;
    let (highest, lowest) = (largest(highest), largest(lowest));
    // The complement of the lowest key, which for a negative value is its magnitude.
    const INFINITE: i32 = bits::INFINITE as i32;
    if highest >= INFINITE || lowest >= INFINITE {
        return None;
    }
    let value = |key: i32| f32::from_bits(if key < 0 { !key | i32::MIN } else { key } as u32);
    let (min, max) = (value(!lowest), value(highest));
    let first = |x: f32| match x == 0.0 {
        true => values.iter().copied().find(|&x| x == 0.0).unwrap_or(x),
        false => x,
    };
    Some((first(min), first(max)))
}

/// Returns the first value of the largest magnitude; +0 for zeros.
#[inline(always)]
fn first_of_largest(values: &[f32; 32], min: f32, max: f32) -> f32 {
    if max > -min {
        max
    } else if max < -min {
        min
    } else {
        let first = values.iter().find(|x| x.abs() == max);
        first.copied().filter(|&x| x != 0.0).unwrap_or(0.0)
    }
}

/// Defines a set's functions for the formats, with loops that are compiled for its features.
macro_rules! by_loops {
    ($set:ty, $features:literal: $($function:ident),+) => {
        /// Functions for formats that the set has no special kernels for; `None` for formats that every set has
        /// special kernels for.
        pub(in crate::simd) mod loops {
            use tercet_core::block::Format;

            use $crate::simd::blocks::codes::{Block32, Codes, with_block32, with_parts};

            $($crate::simd::blocks::by_loops!(@$function $set, $features);)+
        }
    };
    (@decode $set:ty, $features:literal) => {
        /// Returns the decoder of a format.
        pub(in crate::simd) fn decode(format: Format) -> Option<$crate::simd::blocks::Decode> {
            fn of<C: Block32<BYTES>, const BYTES: usize>() -> $crate::simd::blocks::Decode {
                #[target_feature(enable = $features)]
                fn decode<C: Block32<BYTES>, const BYTES: usize>(
                    bytes: &[u8],
                    out: &mut [f32],
                ) -> usize {
                    $crate::simd::blocks::loops::decode::<_, C, BYTES>(<$set>::here(), bytes, out)
                }
                decode::<C, BYTES>
            }
            fn of_parts<C: Codes<256, BYTES>, const BYTES: usize>() -> $crate::simd::blocks::Decode
            {
                #[target_feature(enable = $features)]
                fn decode<C: Codes<256, BYTES>, const BYTES: usize>(
                    bytes: &[u8],
                    out: &mut [f32],
                ) -> usize {
                    $crate::simd::blocks::parts::decode::<_, C, BYTES>(<$set>::here(), bytes, out)
                }
                decode::<C, BYTES>
            }
            with_block32!(format, of()).or_else(|| with_parts!(format, of_parts()))
        }
    };
    (@dot $set:ty, $features:literal) => {
        /// Returns the product of a format's blocks.
        pub(in crate::simd) fn dot(format: Format) -> Option<$crate::simd::blocks::Dot> {
            fn of<C: Block32<BYTES>, const BYTES: usize>() -> $crate::simd::blocks::Dot {
                #[target_feature(enable = $features)]
                fn dot<C: Block32<BYTES>, const BYTES: usize>(
                    bytes: &[u8],
                    x: &[i8],
                ) -> Option<i128> {
                    $crate::simd::blocks::loops::dot::<_, C, BYTES>(<$set>::here(), bytes, x)
                }
                dot::<C, BYTES>
            }
            fn of_parts<C: Codes<256, BYTES>, const BYTES: usize>() -> $crate::simd::blocks::Dot {
                #[target_feature(enable = $features)]
                fn dot<C: Codes<256, BYTES>, const BYTES: usize>(
                    bytes: &[u8],
                    x: &[i8],
                ) -> Option<i128> {
                    use $crate::simd::blocks::parts;
                    let set = <$set>::here();
                    parts::dot::<C, BYTES>(bytes, x, |block, x, sums| {
                        parts::products::<_, C, BYTES>(set, block, x, sums)
                    })
                }
                dot::<C, BYTES>
            }
            with_block32!(format, of()).or_else(|| with_parts!(format, of_parts()))
        }
    };
    (@encode $set:ty, $features:literal) => {
        /// Returns the encoder of a format.
        pub(in crate::simd) fn encode(format: Format) -> Option<$crate::simd::blocks::Encode> {
            fn of<C: Block32<BYTES>, const BYTES: usize>() -> $crate::simd::blocks::Encode {
                #[target_feature(enable = $features)]
                fn encode<C: Block32<BYTES>, const BYTES: usize>(
                    values: &[f32],
                    out: &mut [u8],
                ) -> usize {
                    $crate::simd::blocks::loops::encode::<_, C, BYTES>(<$set>::here(), values, out)
                }
                encode::<C, BYTES>
            }
            with_block32!(format, of())
        }
    };
    (@vector $set:ty, $features:literal) => {
        /// Returns the kernel for rows of a format times a vector.
        pub(in crate::simd) fn vector(format: Format) -> Option<$crate::simd::linear::Vector> {
            use $crate::simd::linear::{Activations, Rows, Vector};

            fn of<C: Block32<BYTES>, const BYTES: usize>() -> Vector {
                #[target_feature(enable = $features)]
                fn prepare(x: &[i8], activations: &mut Activations) {
                    $crate::simd::blocks::loops::prepare(<$set>::here(), x, activations);
                }
                #[target_feature(enable = $features)]
                fn rows<C: Block32<BYTES>, const BYTES: usize>(
                    bytes: &[u8],
                    x: &Activations,
                    out: &mut [i64],
                ) {
                    let set = <$set>::here();
                    $crate::simd::blocks::loops::rows::<_, C, BYTES>(set, bytes, x, out);
                }
                Vector {
                    prepare,
                    rows: Rows::Wide(rows::<C, BYTES>),
                }
            }
            fn of_parts<C: Codes<256, BYTES>, const BYTES: usize>() -> Vector {
                #[target_feature(enable = $features)]
                fn prepare<C: Codes<256, BYTES>, const BYTES: usize>(
                    x: &[i8],
                    activations: &mut Activations,
                ) {
                    $crate::simd::blocks::parts::prepare::<C, BYTES>(x, activations);
                }
                #[target_feature(enable = $features)]
                fn rows<C: Codes<256, BYTES>, const BYTES: usize>(
                    bytes: &[u8],
                    x: &Activations,
                    out: &mut [i64],
                ) {
                    use $crate::simd::blocks::parts;
                    let set = <$set>::here();
                    parts::rows::<C, BYTES>(bytes, x, out, |block, x, sums| {
                        parts::products::<_, C, BYTES>(set, block, x, sums)
                    });
                }
                Vector {
                    prepare: prepare::<C, BYTES>,
                    rows: Rows::Wide(rows::<C, BYTES>),
                }
            }
            with_block32!(format, of()).or_else(|| with_parts!(format, of_parts()))
        }
    };
}
pub(in crate::simd) use by_loops;
