//! Palettes on any engine, and the search for the best entries.

use super::{Digest, input};
use crate::engine::PaletteEngine;
use crate::number::Random;
use crate::palette::{IndexMatrix, Output, Palette, Width, optimal_1d, scratch_len};

/// Number of values of the largest matrix: small enough for the scratch of its search.
const VALUES: usize = 24;

/// Scratch for any width: four entries need the most.
const SCRATCH: usize = scratch_len(VALUES, 4);

const _: () = {
    let mut bits = 1;
    while bits <= 8 {
        assert!(scratch_len(VALUES, 1 << bits) <= SCRATCH);
        bits += 1;
    }
};

/// Rows, columns and rows per group.
const SHAPES: [(usize, usize, usize); 6] = [
    (1, 1, 1),
    (1, 23, 1),
    (24, 1, 24),
    (3, 7, 2),
    (4, 6, 4),
    (0, 4, 1),
];

const NAMES: [[&str; 3]; 8] = [
    ["palette/1/encode", "palette/1/decode", "palette/1/matvec"],
    ["palette/2/encode", "palette/2/decode", "palette/2/matvec"],
    ["palette/3/encode", "palette/3/decode", "palette/3/matvec"],
    ["palette/4/encode", "palette/4/decode", "palette/4/matvec"],
    ["palette/5/encode", "palette/5/decode", "palette/5/matvec"],
    ["palette/6/encode", "palette/6/decode", "palette/6/matvec"],
    ["palette/7/encode", "palette/7/decode", "palette/7/matvec"],
    ["palette/8/encode", "palette/8/decode", "palette/8/matvec"],
];

pub(super) fn run<E: PaletteEngine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    // By reference, so that the names stay in flash.
    for (&width, [encode, decode, matvec]) in Width::ALL.iter().zip(&NAMES) {
        report(encode, encoding(engine, width));
        report(decode, decoding(engine, width));
        report(matvec, product(engine, width));
    }
}

/// Every family in every shape, without and with weights; a matrix without rows and a NaN return errors.
#[inline(never)]
fn encoding<E: PaletteEngine>(engine: &mut E, width: Width) -> u64 {
    let mut digest = Digest::new();
    let mut importances = [0; VALUES];
    let mut random = Random::new(30);
    for importance in &mut importances {
        *importance = random.below(4) as u32;
    }
    for (seed, family) in (31..).zip(input::FAMILIES) {
        for (rows, cols, group_rows) in SHAPES {
            let Some(layout) =
                digest.outcome(IndexMatrix::with_rows(width, rows, cols, group_rows))
            else {
                continue;
            };
            let mut values = [0.0; VALUES];
            let (Some(values), Some(importances)) = (
                values.get_mut(..layout.values()),
                importances.get(..layout.values()),
            ) else {
                continue;
            };
            family.fill(seed, values);
            encode_into(engine, &layout, values, &[], &mut digest);
            encode_into(engine, &layout, values, importances, &mut digest);
        }
    }
    let spoiled = [1.0, f32::NAN, 2.0, 3.0];
    if let Ok(layout) = IndexMatrix::new(width, 1, 4, 1) {
        encode_into(engine, &layout, &spoiled, &[], &mut digest);
    }
    digest.value()
}

/// Encodes and digests indices, codebooks, scales, counts and errors.
#[inline(never)]
fn encode_into<E: PaletteEngine>(
    engine: &mut E,
    layout: &IndexMatrix,
    values: &[f32],
    importances: &[u32],
    digest: &mut Digest,
) {
    // Two groups of 256 entries, or one; at most one byte per value and row.
    let (mut indices, mut codebooks, mut scales) = ([0; VALUES], [0; 512], [0.0; 2]);
    let mut scratch = [0; SCRATCH];
    let (Some(indices), Some(codebooks), Some(scales)) = (
        indices.get_mut(..layout.index_bytes()),
        codebooks.get_mut(..layout.codebook_len()),
        scales.get_mut(..layout.groups()),
    ) else {
        return;
    };
    let out = Output {
        indices,
        codebooks,
        scales,
    };
    let done = engine.encode_palette(layout, values, importances, out, &mut scratch);
    let Some(done) = digest.outcome(done) else {
        return;
    };
    for count in [done.groups, done.zero, done.flushed] {
        digest.u64(count);
    }
    digest.bytes(indices);
    digest.i8s(codebooks);
    digest.f32s(scales);
}

/// Creates a matrix of random bytes, entries and scales, which need not come from an encoder.
#[inline(never)]
fn random_palette(
    width: Width,
    seed: u64,
    cols: usize,
    use_it: &mut dyn FnMut(&Palette<'_>, &mut Random),
) {
    let mut random = Random::new(seed);
    let (mut indices, mut codebooks) = ([0; 3 * 257], [0; 2 * 256]);
    for byte in &mut indices {
        *byte = random.next_u64() as u8;
    }
    for entry in &mut codebooks {
        *entry = random.next_u64() as i8;
    }
    for scales in [[0.0123, 3.0e36], [1.0e-45, 0.0], [1.0, f32::INFINITY]] {
        let Ok(layout) = IndexMatrix::with_rows(width, 3, cols, 2) else {
            continue;
        };
        let (Some(indices), Some(codebooks)) = (
            indices.get(..layout.index_bytes()),
            codebooks.get(..layout.codebook_len()),
        ) else {
            continue;
        };
        let palette = Palette {
            layout,
            indices,
            codebooks,
            scales: &scales,
        };
        use_it(&palette, &mut random);
    }
}

#[inline(never)]
fn decoding<E: PaletteEngine>(engine: &mut E, width: Width) -> u64 {
    let mut digest = Digest::new();
    for cols in [1, 31, 85] {
        random_palette(width, 40, cols, &mut |palette, _| {
            let mut out = [0.0; 3 * 85];
            let Some(out) = out.get_mut(..palette.layout.values()) else {
                return;
            };
            if digest
                .outcome(engine.decode_palette(palette, out))
                .is_some()
            {
                digest.f32s(out);
            }
        });
    }
    digest.value()
}

#[inline(never)]
fn product<E: PaletteEngine>(engine: &mut E, width: Width) -> u64 {
    let mut digest = Digest::new();
    for cols in super::SIZES {
        random_palette(width, 50, cols, &mut |palette, random| {
            let mut x = [0i8; 257];
            for value in &mut x {
                *value = random.next_u64() as i8;
            }
            let mut y = [0.0; 3];
            let x = x.get(..palette.layout.cols()).unwrap_or_default();
            if digest
                .outcome(engine.multiply_palette(palette, x, 0.75, &mut y))
                .is_some()
            {
                digest.f32s(&y);
            }
        });
    }
    digest.value()
}

/// The search itself, over more values than the encoders above have: ties, gaps, absent values, large weights.
#[inline(never)]
pub(super) fn optimal() -> u64 {
    const POINTS: usize = 75;
    let mut digest = Digest::new();
    let mut scratch = [0; scratch_len(POINTS, 5)];
    let (mut values, mut weights) = ([0i8; POINTS], [0u64; POINTS]);
    for (seed, largest) in [(60, 2), (61, 5), (62, 1 << 41)] {
        let mut random = Random::new(seed);
        let mut next = -129i16;
        for (value, weight) in values.iter_mut().zip(&mut weights) {
            next += 1 + random.below(6) as i16;
            *value = next.min(127) as i8;
            *weight = random.below(largest);
        }
        for entries in [1, 2, 5] {
            let mut codebook = [0; 5];
            let codebook = codebook.get_mut(..entries).unwrap_or_default();
            // Values that stop rising, at 127, return errors.
            for count in [0, 1, 30, 60, POINTS] {
                let part = values.get(..count).unwrap_or_default();
                let weights = weights.get(..count).unwrap_or_default();
                let best = optimal_1d(part, weights, codebook, &mut scratch);
                if let Some(best) = digest.outcome(best) {
                    digest.u64(best.cost);
                    digest.u64(best.entries as u64);
                    digest.i8s(codebook);
                }
            }
        }
    }
    digest.value()
}
