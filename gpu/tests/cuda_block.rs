//! The CUDA engine's blocks against core's: bytes, floats, products and refusals, to the bit.

use crate::support::draw::Draw;
use crate::support::emulator::{checked, device};
use half::{bf16, f16};
use proptest::prelude::*;
use tercet_core::block::{self, BlockError, Encoded, Format};
use tercet_core::engine::BlockEngine;
use tercet_core::number::Element;
use tercet_core::quant::{Rule, ScaleRule};
use tercet_gpu::engine::{Cuda, CudaError, CudaOptions};

const RULES: [Rule; 4] = [Rule::AbsMax, Rule::AbsMean, Rule::Twn, Rule::Optimal];
const SCALES: [ScaleRule; 2] = [ScaleRule::Rule, ScaleRule::LeastSquares];

/// Kinds of data, each hard for something.
const KINDS: u64 = 8;

fn value(draw: &mut Draw, kind: u64) -> f32 {
    let unit = (draw.next() >> 40) as f32 / (1 << 24) as f32 - 0.5;
    match kind {
        // Weights.
        0 => unit * 0.2,
        // Of any exponent whose scale fits f16.
        1 => f32::from_bits(
            (draw.next() as u32 & 0x807F_FFFF) | ((126 - draw.below(100) as u32) << 23),
        ),
        // Few distinct values, so many ties; multiples of half a step.
        2 => draw.below(15) as f32 * 0.5 - 3.5,
        // Subnormal: too small for the scale's reciprocal.
        3 => f32::from_bits(draw.next() as u32 & 0x8000_003F),
        // Around where 1/scale overflows.
        4 => f32::from_bits(draw.next() as u32 & 0x81FF_FFFF),
        // Scales around f16's least and largest.
        5 => unit * 6e-8,
        6 => unit * 130_000.0,
        // Zeros of both signs.
        _ => 0.0f32.copysign(unit),
    }
}

fn values(seed: u64, len: usize, kind: impl Fn(usize) -> u64) -> Vec<f32> {
    let mut draw = Draw(seed);
    (0..len).map(|i| value(&mut draw, kind(i))).collect()
}

type Bytes = Result<(Encoded, Vec<u8>), CudaError>;

fn of_core<T: Element>(format: Format, rule: Rule, scale: ScaleRule, values: &[T]) -> Bytes {
    let mut bytes = vec![0; format.encoded_len(values.len())?];
    let done = block::encode(format, rule, scale, values, &mut bytes)?;
    Ok((done, bytes))
}

fn of_cuda<T: Element>(
    cuda: &mut Cuda,
    format: Format,
    rule: Rule,
    scale: ScaleRule,
    values: &[T],
) -> Bytes {
    let mut bytes = vec![0; format.encoded_len(values.len())?];
    let done = cuda.encode_blocks(format, rule, scale, values, &mut bytes)?;
    Ok((done, bytes))
}

fn resident<T: Element>(
    cuda: &mut Cuda,
    format: Format,
    rule: Rule,
    scale: ScaleRule,
    values: &[T],
) -> Bytes {
    let there = cuda.upload(values)?;
    let mut blocks = cuda.blocks(format, values.len())?;
    let done = cuda.encode_resident(&there, rule, scale, &mut blocks)?;
    let mut bytes = vec![0; blocks.bytes().len()];
    cuda.read(blocks.bytes(), &mut bytes)?;
    Ok((done, bytes))
}

fn compare<T: Element>(
    cuda: &mut Cuda,
    format: Format,
    rule: Rule,
    scale: ScaleRule,
    values: &[T],
) {
    let case = format!(
        "{format:?} {rule:?} {scale:?} {:?} × {}",
        T::KIND,
        values.len()
    );
    let expected = of_core(format, rule, scale, values);
    assert_eq!(
        of_cuda(cuda, format, rule, scale, values),
        expected,
        "{case}"
    );
    assert_eq!(
        resident(cuda, format, rule, scale, values),
        expected,
        "resident, {case}"
    );
}

/// With every rule that the format takes, in all three types.
fn compare_all(cuda: &mut Cuda, format: Format, values: &[f32]) {
    let f16s: Vec<_> = values.iter().map(|&x| f16::from_f32(x)).collect();
    let bf16s: Vec<_> = values.iter().map(|&x| bf16::from_f32(x)).collect();
    for rule in RULES {
        for scale in SCALES {
            compare(cuda, format, rule, scale, values);
            compare(cuda, format, rule, scale, &f16s);
            compare(cuda, format, rule, scale, &bf16s);
        }
    }
}

/// Blocks that fill some lanes of a warp, a warp, a tile of 2,048 values, and a bit more than each.
fn counts(format: Format) -> [usize; 5] {
    let tile = 2048 / format.len();
    [0, 1, 3, tile - 1, 2 * tile + 1]
}

#[test]
fn blocks_are_encoded_as_by_core() {
    let Some(device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    for format in Format::ALL {
        for (seed, count) in (0..).zip(counts(format)) {
            device.set(&format!("seed={seed}"));
            let len = count * format.len();
            // Each block is of another kind, without those whose scales overflow.
            let values = values(seed, len, |i| [0, 1, 2, 3, 4, 5, 7][i / format.len() % 7]);
            compare_all(&mut cuda, format, &values);
        }
    }
}

/// The mean lies between two floats, and that one at the middle of two f16, but for a value 2⁻⁹⁰ below: it decides
/// the scale.
#[test]
fn nothing_is_lost_beside_large_values() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    for format in [Format::Tq1_0, Format::Tq2_0, Format::Q2_0] {
        let len = format.len();
        let whole = len as f32;
        let mut values = vec![0.0; 2 * len];
        for (block, tiny) in values.chunks_mut(len).zip([0.0, f32::from_bits(37 << 23)]) {
            // Means of 1, 2⁻¹¹ and 2⁻²⁴.
            let parts = [whole, whole / 2048.0, whole / 16_777_216.0, tiny];
            block[len - 4..].copy_from_slice(&parts);
        }
        let (_, bytes) = of_core(format, Rule::AbsMean, ScaleRule::Rule, &values).unwrap();
        let mut scales = [0.0; 2];
        block::scales(format, &bytes, &mut scales).unwrap();
        assert_eq!(scales, [1.0, 1.0 + 1.0 / 1024.0]);
        compare(&mut cuda, format, Rule::AbsMean, ScaleRule::Rule, &values);
    }
}

/// One value of 1 and eight of 1/4: S²/k is 1 for one code and for nine, so that one is enough.
#[test]
fn equal_errors_take_fewer_codes() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    for format in [Format::Tq1_0, Format::Tq2_0, Format::Q2_0] {
        let mut values = vec![0.0; 3 * format.len()];
        for block in values.chunks_mut(format.len()) {
            for (i, value) in block.iter_mut().rev().take(9).enumerate() {
                *value = if i == 3 { -1.0 } else { 0.25 };
            }
        }
        compare(&mut cuda, format, Rule::Optimal, ScaleRule::Rule, &values);
    }
}

#[test]
fn refusals_name_the_first_block() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    for format in Format::ALL {
        let len = 40 * format.len();
        for round in 0..6 {
            let mut draw = Draw(round);
            // Scales up to 65,000 · 127 / 127 and beyond f16's largest.
            let mut values = values(round, len, |_| if round % 2 == 0 { 6 } else { 0 });
            for _ in 0..round {
                let at = draw.below(len as u64) as usize;
                values[at] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][draw.below(3) as usize];
            }
            compare(&mut cuda, format, Rule::AbsMax, ScaleRule::Rule, &values);
            compare(
                &mut cuda,
                format,
                Rule::AbsMean,
                ScaleRule::LeastSquares,
                &values,
            );
        }
        let refused = |result: Bytes| result.unwrap_err();
        let values = vec![1.0f32; format.len() + 1];
        assert_eq!(
            refused(of_cuda(
                &mut cuda,
                format,
                Rule::AbsMax,
                ScaleRule::Rule,
                &values
            )),
            refused(of_core(format, Rule::AbsMax, ScaleRule::Rule, &values)),
        );
    }
}

/// Clears a bit of each exponent of a block's scale and minimum.
fn make_finite(format: Format, block: &mut [u8]) {
    block[format.scale_offset() + 1] &= 0xBF;
    if let Some(at) = format.min_offset() {
        block[at + 1] &= 0xBF;
    }
}

/// Blocks of values, or, of formats that are read only, of any bytes with finite scales.
fn blocks_of(format: Format, values: &[f32], draw: &mut Draw) -> Vec<u8> {
    if format.can_encode() {
        return of_core(format, Rule::AbsMax, ScaleRule::Rule, values)
            .unwrap()
            .1;
    }
    let mut bytes = vec![0; format.encoded_len(values.len()).unwrap()];
    bytes.fill_with(|| draw.next() as u8);
    for block in bytes.chunks_mut(format.bytes()) {
        make_finite(format, block);
    }
    bytes
}

#[test]
fn blocks_are_decoded_as_by_core() {
    let Some(device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    for format in Format::ALL {
        for (seed, count) in (10..).zip(counts(format)) {
            device.set(&format!("seed={seed}"));
            let mut draw = Draw(seed);
            // Any bytes, but for scales and minima that are not finite.
            let mut bytes: Vec<u8> = (0..count * format.bytes())
                .map(|_| draw.next() as u8)
                .collect();
            for block in bytes.chunks_mut(format.bytes()) {
                make_finite(format, block);
            }
            let len = count * format.len();
            let mut expected = vec![0.0; len];
            block::decode(format, &bytes, &mut expected).unwrap();
            let mut found = vec![1.0; len];
            cuda.decode_blocks(format, &bytes, &mut found).unwrap();
            assert!(
                found
                    .iter()
                    .zip(&expected)
                    .all(|(a, b)| a.to_bits() == b.to_bits()),
                "{format:?}"
            );

            let mut blocks = cuda.blocks(format, len).unwrap();
            cuda.write(&bytes, blocks.bytes_mut()).unwrap();
            let mut room = cuda.zeros::<f16>(len).unwrap();
            cuda.decode_resident(&blocks, &mut room).unwrap();
            let mut found = vec![f16::ONE; len];
            cuda.read(&room, &mut found).unwrap();
            let narrow = expected.iter().map(|&x| f16::from_f32(x).to_bits());
            assert!(found.iter().map(|x| x.to_bits()).eq(narrow), "{format:?}");

            let mut room = cuda.zeros::<bf16>(len).unwrap();
            cuda.decode_resident(&blocks, &mut room).unwrap();
            let mut found = vec![bf16::ONE; len];
            cuda.read(&room, &mut found).unwrap();
            let narrow = expected.iter().map(|&x| bf16::from_f32(x).to_bits());
            assert!(found.iter().map(|x| x.to_bits()).eq(narrow), "{format:?}");

            // The first of the scales and minima that are not finite is named.
            let scale = format.scale_offset();
            let min = format.min_offset().unwrap_or(scale);
            for (block, at) in [(count.saturating_sub(1), min), (count / 2, scale)] {
                if let Some(block) = bytes.chunks_mut(format.bytes()).nth(block) {
                    block[at + 1] |= 0x7C;
                }
                let mut found = vec![1.0; len];
                let expected =
                    block::decode(format, &bytes, &mut expected).map_err(CudaError::from);
                assert_eq!(
                    cuda.decode_blocks(format, &bytes, &mut found),
                    expected,
                    "{format:?}"
                );
                let x = vec![1; len];
                let expected = block::dot(format, &bytes, &x, 1.0).map_err(CudaError::from);
                assert_eq!(
                    cuda.dot_blocks(format, &bytes, &x, 1.0),
                    expected,
                    "{format:?}"
                );
            }
        }
    }
}

#[test]
fn products_are_cores() {
    let Some(device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    for format in Format::ALL {
        for (seed, count) in (20..).zip(counts(format)) {
            device.set(&format!("seed={seed}"));
            let len = count * format.len();
            let values = values(seed, len, |i| [0, 2, 5][i / format.len() % 3]);
            let mut draw = Draw(seed);
            let bytes = blocks_of(format, &values, &mut draw);
            for extreme in [false, true] {
                let x: Vec<i8> = (0..len)
                    .map(|_| if extreme { -128 } else { draw.next() as i8 })
                    .collect();
                let expected = block::dot(format, &bytes, &x, 0.37).unwrap();
                let found = cuda.dot_blocks(format, &bytes, &x, 0.37).unwrap();
                assert_eq!(found.to_bits(), expected.to_bits(), "{format:?} × {count}");
                let mut blocks = cuda.blocks(format, len).unwrap();
                cuda.write(&bytes, blocks.bytes_mut()).unwrap();
                let x = cuda.upload(&x).unwrap();
                let found = cuda.dot_resident(&blocks, &x, 0.37).unwrap();
                assert_eq!(found.to_bits(), expected.to_bits(), "{format:?} × {count}");
            }
        }
    }
}

/// Sums of a warp's turn at the ends of 64 bits: every factor at its extreme.
#[test]
fn the_largest_blocks_of_parts_are_exact() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    for format in Format::ALL.into_iter().filter(|f| f.parts() > 1) {
        for (byte, factor) in [(0xFFu8, 0xFFu8), (0x00, 0x80), (0xFF, 0x7F)] {
            let mut block = vec![byte; format.bytes()];
            if format == Format::Q6K {
                block[192..208].fill(factor);
            }
            block[format.scale_offset()..][..2].copy_from_slice(&f16::MAX.to_le_bytes());
            if let Some(at) = format.min_offset() {
                block[at..][..2].copy_from_slice(&f16::MIN.to_le_bytes());
            }
            let bytes = block.repeat(65);
            for x in [-128, 127] {
                let x = vec![x; 65 * format.len()];
                let expected = block::dot(format, &bytes, &x, 1.0).unwrap();
                let found = cuda.dot_blocks(format, &bytes, &x, 1.0).unwrap();
                assert_eq!(found.to_bits(), expected.to_bits(), "{format:?}");
            }
        }
    }
}

/// Warps that have several turns each, the last ones with fewer values than the others.
#[test]
fn a_long_tensor_goes_around() {
    let Some(device) = device() else { return };
    device.set("multiprocessors=1");
    let mut cuda = Cuda::first().unwrap();
    device.set("multiprocessors=4");
    for (format, seed) in Format::ALL.into_iter().zip(30..) {
        let count = if checked() { 600 } else { 150_000 } / format.len();
        let values = values(seed, count * format.len(), |i| (i / 1000) as u64 % 7);
        let mut rules = Vec::new();
        if format.can_encode() {
            rules.push(Rule::AbsMax);
        }
        if format == Format::Tq2_0 {
            rules.push(Rule::AbsMean);
        }
        for rule in rules {
            let expected = of_core(format, rule, ScaleRule::Rule, &values).unwrap();
            let found = resident(&mut cuda, format, rule, ScaleRule::Rule, &values).unwrap();
            assert!(found == expected, "{format:?} {rule:?}");
        }
        let bytes = blocks_of(format, &values, &mut Draw(seed));
        let mut blocks = cuda.blocks(format, values.len()).unwrap();
        cuda.write(&bytes, blocks.bytes_mut()).unwrap();
        let mut room = cuda.zeros::<f32>(values.len()).unwrap();
        cuda.decode_resident(&blocks, &mut room).unwrap();
        let mut found = vec![1.0; values.len()];
        cuda.read(&room, &mut found).unwrap();
        let mut expected = vec![0.0; values.len()];
        block::decode(format, &bytes, &mut expected).unwrap();
        assert!(
            found
                .iter()
                .zip(&expected)
                .all(|(a, b)| a.to_bits() == b.to_bits()),
            "{format:?}"
        );
        let x: Vec<i8> = (0..values.len()).map(|i| (i * 37) as i8).collect();
        let there = cuda.upload(&x).unwrap();
        let found = cuda.dot_resident(&blocks, &there, 0.5).unwrap();
        let expected = block::dot(format, &bytes, &x, 0.5).unwrap();
        assert_eq!(found.to_bits(), expected.to_bits(), "{format:?}");
    }
}

#[test]
fn a_tensor_that_does_not_fit_passes_through() {
    let Some(_device) = device() else { return };
    let options = CudaOptions {
        memory: Some(1 << 20),
        ..CudaOptions::default()
    };
    let mut cuda = Cuda::new(&options).unwrap();
    let format = Format::Tq2_0;
    let values = values(1, 300 << 10, |_| 0);
    let expected = of_core(format, Rule::AbsMean, ScaleRule::Rule, &values).unwrap();
    let found = of_cuda(&mut cuda, format, Rule::AbsMean, ScaleRule::Rule, &values).unwrap();
    assert_eq!(found, expected);
    let mut back = vec![0.0; values.len()];
    cuda.decode_blocks(format, &found.1, &mut back).unwrap();
    let mut restored = vec![0.0; values.len()];
    block::decode(format, &found.1, &mut restored).unwrap();
    assert_eq!(back, restored);
    // An index counts from the tensor's start in every chunk.
    let mut values = values;
    values[290_000] = f32::NAN;
    let refused = of_cuda(&mut cuda, format, Rule::AbsMean, ScaleRule::Rule, &values).unwrap_err();
    assert_eq!(refused, BlockError::NotFinite { index: 290_000 }.into());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if checked() { 8 } else { 64 }))]

    #[test]
    fn any_blocks_are_encoded_as_by_core(
        seed in any::<u64>(),
        format in 0usize..5,
        rule in 0usize..4,
        scale in 0usize..2,
        count in 0usize..20,
        kind in 0..KINDS,
    ) {
        let Some(device) = device() else { return Ok(()) };
        device.set(&format!("seed={}", seed >> 40));
        let mut cuda = Cuda::first().unwrap();
        let format = Format::ALL[format];
        let values = values(seed, count * format.len(), |_| kind);
        compare(&mut cuda, format, RULES[rule], SCALES[scale], &values);
    }
}
