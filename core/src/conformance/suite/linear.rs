//! The linear layer on any engine, in every layout.

use super::Digest;
use crate::block::{self, Format};
use crate::engine::LinearEngine;
use crate::linear::{I8Sym, Layer, Layout, LinearError, Matrix, Requantize, Rescale, Table, pack};
use crate::number::Random;
use crate::quant::{Rule, ScaleRule};

/// Largest number of weights of a matrix.
const WEIGHTS: usize = 1024;
/// Number of bytes of the largest matrix: eight rows of 128 in pairs of bytes, or lanes.
const BYTES: usize = 1152;
/// Largest number of inputs.
const COLS: usize = 512;
/// Largest number of outputs.
const ROWS: usize = 17;
/// Scratch for all of the shapes.
const SCRATCH: usize = 288;

/// Bytes with the alignment of a word.
#[repr(align(4))]
struct Words([u8; BYTES]);

/// Rows and columns, for layouts that accept any.
const SHAPES: [(usize, usize); 8] = [
    (1, 1),
    (0, 5),
    (17, 31),
    (9, 63),
    (8, 64),
    (3, 65),
    (2, 130),
    (4, 255),
];

/// Rows, and columns as a number of blocks.
const BLOCK_SHAPES: [(usize, usize); 4] = [(1, 1), (0, 1), (3, 1), (2, 2)];

/// In the order of [`Layout::ALL`].
const NAMES: [&str; Layout::ALL.len()] = [
    "linear/int8",
    "linear/int8_pairs",
    "linear/int4",
    "linear/ternary_lanes",
    "linear/five_trits",
    "linear/tq1_0",
    "linear/tq2_0",
    "linear/q2_0",
    "linear/q8_0",
    "linear/q4_0",
    "linear/q4_1",
    "linear/q5_0",
    "linear/q5_1",
    "linear/q4_k",
    "linear/q6_k",
];

pub(super) fn run<E: LinearEngine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    // By reference, so that the names stay in flash.
    for (name, layout) in NAMES.iter().zip(Layout::ALL) {
        report(name, layers(engine, layout));
    }
}

/// The linear layer without an engine: scales as multipliers, and errors.
#[inline(never)]
pub(super) fn requantize() -> u64 {
    let mut digest = Digest::new();
    let mut random = Random::new(40);
    for round in 0..400 {
        let scale = f64::from_bits(random.next_u64() >> 1);
        // Half of them anywhere, half in the range that layers have.
        let scale = match round % 2 {
            0 => scale,
            _ => scale_near(&mut random, -62),
        };
        let Some(scale) = digest.outcome(Requantize::from_scale(scale)) else {
            continue;
        };
        digest.u64(scale.multiplier() as u64);
        digest.u64(scale.shift().into());
        let sum = random.next_u64() as i64;
        for shift in [1, 20, 31, 40, 62] {
            digest.i8s(&[scale.apply(sum >> shift), scale.apply(-(sum >> shift))]);
        }
    }
    digest.outcome(Requantize::new((1 << 30) - 1, 1));
    digest.outcome(Requantize::new(1 << 30, 95));
    digest.outcome(I8Sym::new(&[0, -128]));
    digest.value()
}

/// Returns a double of 1 to 2 times a power of two between 2^lowest and 1.
fn scale_near(random: &mut Random, lowest: i64) -> f64 {
    let exponent = 1023 + lowest + random.below(lowest.unsigned_abs()) as i64;
    f64::from_bits((exponent as u64) << 52 | random.next_u64() >> 12)
}

/// Every shape, with random and with extreme weights and activations.
#[inline(never)]
fn layers<E: LinearEngine>(engine: &mut E, layout: Layout) -> u64 {
    let mut digest = Digest::new();
    let shapes = match layout {
        Layout::Block(_) => BLOCK_SHAPES.as_slice(),
        _ => SHAPES.as_slice(),
    };
    for (seed, &(rows, cols)) in (41..).zip(shapes) {
        let cols = match layout {
            Layout::Block(format) => cols * format.len(),
            _ => cols,
        };
        for extreme in [false, true] {
            let mut bytes = Words([0; BYTES]);
            // Aligned to a word and not aligned, in turn: kernels must not need alignment, and are faster with it.
            let start = usize::from(extreme == (seed % 2 == 0));
            let Some(bytes) = layout
                .bytes(rows, cols)
                .ok()
                .and_then(|len| bytes.0.get_mut(start..start + len))
            else {
                // A shape that does not fit is an error in this file.
                digest.u64(u64::MAX);
                continue;
            };
            let mut random = Random::new(seed);
            digest.outcome(fill_any(layout, (rows, cols), extreme, &mut random, bytes));
            product(
                engine,
                (layout, rows, cols),
                bytes,
                extreme,
                &mut random,
                &mut digest,
            );
        }
    }
    digest.value()
}

/// Writes weights of any layout, or only its extremes.
pub(super) fn fill_any(
    layout: Layout,
    shape: (usize, usize),
    extreme: bool,
    random: &mut Random,
    bytes: &mut [u8],
) -> Result<(), LinearError> {
    match layout {
        Layout::Block(format) => fill_blocks(format, extreme, random, bytes),
        _ => fill(layout, shape, extreme, random, bytes),
    }
}

/// Packs codes: any of the layout, or only its extremes.
#[inline(never)]
fn fill(
    layout: Layout,
    (rows, cols): (usize, usize),
    extreme: bool,
    random: &mut Random,
    bytes: &mut [u8],
) -> Result<(), LinearError> {
    let (lowest, highest) = layout.codes();
    let mut codes = [0i8; WEIGHTS + 80];
    let codes = codes.get_mut(..rows * cols).unwrap_or_default();
    for code in codes.iter_mut() {
        let span = (highest as i64 - lowest as i64 + 1) as u64;
        *code = match extreme {
            true => lowest,
            false => (lowest as i64 + random.below(span) as i64) as i8,
        };
    }
    pack::pack(layout, rows, cols, codes, bytes)
}

/// Writes blocks with any codes, including +2 if a format has it.
#[inline(never)]
fn fill_blocks(
    format: Format,
    extreme: bool,
    random: &mut Random,
    bytes: &mut [u8],
) -> Result<(), LinearError> {
    for block in bytes.chunks_exact_mut(format.bytes()) {
        if !format.can_encode() {
            fill_bytes(format, extreme, random, block);
            continue;
        }
        let mut values = [0.0; Format::MAX_LEN];
        let values = values.get_mut(..format.len()).unwrap_or_default();
        for value in values.iter_mut() {
            *value = match extreme {
                true => -60_000.0,
                false => (random.below(2001) as f32 - 1000.0) / 256.0,
            };
        }
        // Finite values and whole blocks cause no error.
        let _ = block::encode(format, Rule::AbsMax, ScaleRule::Rule, values, block);
        if matches!(format, Format::Tq2_0 | Format::Q2_0) && !extreme {
            // Byte 2 contains codes in both formats: some become +2.
            if let Some(byte) = block.get_mut(2) {
                *byte = 0xFF;
            }
        }
    }
    Ok(())
}

/// Writes any bytes of a block with a scale and a minimum of up to 2 in magnitude, or bytes with all bits set with
/// the largest of 32.
fn fill_bytes(format: Format, extreme: bool, random: &mut Random, block: &mut [u8]) {
    for byte in block.iter_mut() {
        *byte = match extreme {
            true => 0xFF,
            false => random.next_u64() as u8,
        };
    }
    for at in [Some(format.scale_offset()), format.min_offset()] {
        let Some(slot) = at.and_then(|at| block.get_mut(at..at + 2)) else {
            continue;
        };
        let bits = match extreme {
            true => 0x5000,
            false => random.below(0x4000) as u16 | (random.below(2) as u16) << 15,
        };
        slot.copy_from_slice(&bits.to_le_bytes());
    }
}

/// Sums, floats and int8, with and without bias, with one scale and with many.
#[inline(never)]
fn product<E: LinearEngine>(
    engine: &mut E,
    (layout, rows, cols): (Layout, usize, usize),
    bytes: &[u8],
    extreme: bool,
    random: &mut Random,
    digest: &mut Digest,
) {
    let mut x = [0i8; COLS];
    let x = x.get_mut(..cols).unwrap_or_default();
    for value in x.iter_mut() {
        *value = match extreme {
            true => 127,
            false => (random.below(255) as i64 - 127) as i8,
        };
    }
    let (mut bias, mut multipliers, mut shifts) = ([0; ROWS], [0; ROWS], [0; ROWS]);
    for ((bias, multiplier), shift) in bias.iter_mut().zip(&mut multipliers).zip(&mut shifts) {
        *bias = (random.next_u64() as i32) >> 18;
        *multiplier = (1 << 30) | (random.next_u64() as u32 >> 2) as i32;
        *shift = 36 + random.below(6) as u8;
    }
    let (Some(bias), Some(multipliers), Some(shifts)) = (
        bias.get(..rows),
        multipliers.get(..rows),
        shifts.get_mut(..rows),
    ) else {
        return;
    };
    let bias_shift = match layout {
        Layout::Block(_) => {
            shifts.iter_mut().for_each(|shift| *shift += 20);
            15
        }
        _ => 0,
    };
    let made = || -> Result<_, LinearError> {
        let weights = Matrix::new(layout, rows, cols, bytes)?;
        let plain = Layer::new(match layout {
            Layout::Block(_) => weights,
            _ => weights.with_scale(0.0625)?,
        });
        let biased = Layer::new(match layout {
            Layout::Block(_) => weights,
            // Any patterns below infinity's: multipliers are such patterns.
            _ => weights.with_row_scales(Table::Words(multipliers))?,
        });
        let biased = biased.with_bias(Table::Words(bias), bias_shift)?;
        let rescale = Rescale::rows(Table::Words(multipliers), shifts)?;
        Ok((plain, biased, rescale, I8Sym::new(x)?))
    };
    let Some((plain, biased, rescale, x)) = digest.outcome(made()) else {
        return;
    };
    let mut scratch = [0; SCRATCH];
    let mut sums = [0; ROWS];
    let mut floats = [0.0; ROWS];
    let mut codes = [0; ROWS];
    let (Some(sums), Some(floats), Some(codes)) = (
        sums.get_mut(..rows),
        floats.get_mut(..rows),
        codes.get_mut(..rows),
    ) else {
        return;
    };
    digest.outcome(engine.sums(&plain, x, sums, &mut scratch));
    sums.iter().for_each(|&sum| digest.u64(sum as u64));
    digest.outcome(engine.matvec(&plain, x, 0.125, floats, &mut scratch));
    digest.f32s(floats);
    digest.outcome(engine.matvec(&biased, x, 0.3, floats, &mut scratch));
    digest.f32s(floats);
    digest.outcome(engine.dense(&biased, &rescale, x, codes, &mut scratch));
    digest.i8s(codes);
    if let Ok(scale) = Requantize::from_scale(0.01) {
        let one = Rescale::one(scale).with_relu();
        digest.outcome(engine.dense(&plain, &one, x, codes, &mut scratch));
        digest.i8s(codes);
    }
    // Engines that need scratch, including core's own.
    digest.outcome(crate::linear::sums(&plain, x, sums, &mut []));
}
