//! Checks that [`Threads`] gives core's results on this machine, for sizes and values beyond those of core's
//! conformance suite.
//!
//! [`tercet_core::conformance::run_engine`] has one digest per operation, of inputs that fit a microcontroller. This
//! module tests the operations whose kernels treat short and long inputs differently. Both the engine and core run them
//! on awkward sizes, on more than one tile and on values that are not numbers, and the results are compared to the bit.
//! `extremes` is a step of a tensor and has no digest of its own.
//!
//! ```
//! use tercet_host::conformance;
//! use tercet_host::parallel::Threads;
//!
//! conformance::run(&Threads::default(), &mut |operation, agrees| assert!(agrees, "{operation}"));
//! ```

use tercet_core::block::{
    self, bitnet_hf,
    i2_s::{self, Interleave},
};
use tercet_core::engine::{BlockEngine, LinearEngine, QuantizeEngine};
use tercet_core::linear::{self, I8Sym, Layer, Matrix, Requantize, Rescale, Table};
use tercet_core::number::{Element, RUN, Random, Stats};
use tercet_core::quant::fp8::Fp8;
use tercet_core::quant::{
    Codes, Comparison, Groups, HOST_BITS, Histogram, Rule, SMALL_BITS, ScaleRule, int8,
};
use tercet_core::scalar::Scalar;
use tercet_core::{bf16, f16};

use crate::parallel::Threads;

/// None, fewer than a vector, whole vectors, a few more, and more than a tile.
const SIZES: [usize; 13] = [
    0, 1, 7, 31, 63, 64, 65, 255, 257, 1000, 4099, 65_536, 70_001,
];
/// Enough values for threads to count separately, and for several runs of sums.
const LARGE: usize = (1 << 18) + 4 * RUN + 77;

/// Runs every operation by `engine` and by core. Reports each operation's name, and true if all results and refusals
/// are the same. Takes under a second on one core of a desktop, and 20 MB of memory.
pub fn run(engine: &Threads, report: &mut dyn FnMut(&'static str, bool)) {
    report("extremes", sizes(|values| extremes(*engine, values)));
    report("fp8", sizes(|values| fp8(*engine, values)));
    report("dequantize", sizes(|values| dequantize(*engine, values)));
    report("histogram", histogram(*engine));
    report("compare", compare(*engine));
    report("i2_s", i2_s(*engine));
    report("bitnet_hf", bitnet_hf(*engine));
    report("dense_many", dense_many(*engine));
}

/// Returns true if a check holds for values of every size, both as they are and with a NaN as the last value.
fn sizes(check: impl Fn(&[f32]) -> bool) -> bool {
    SIZES.into_iter().all(|size| {
        let mut values = patterns(size, size as u64);
        let mut agrees = check(&values);
        if let Some(last) = values.last_mut() {
            *last = f32::NAN;
            agrees &= check(&values);
        }
        agrees
    })
}

/// Returns finite values: seven of eight of ordinary magnitude, the others of any exponent.
fn patterns(len: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    let mut draw = || {
        let pattern = random.next_u64() as u32;
        let exponent = match random.below(8) {
            0 => random.below(255),
            _ => 110 + random.below(30),
        };
        f32::from_bits(pattern & 0x807F_FFFF | (exponent as u32) << 23)
    };
    (0..len).map(|_| draw()).collect()
}

fn halves<T: Element>(values: &[f32], narrow: fn(f32) -> T) -> Vec<T> {
    values.iter().map(|&x| narrow(x % 60_000.0)).collect()
}

/// Compares floats by their bits: −0 and +0 differ, but all NaNs are equal.
fn same(a: &[f32], b: &[f32]) -> bool {
    let bits = |x: &f32| match x.is_nan() {
        true => u32::MAX,
        false => x.to_bits(),
    };
    a.iter().map(bits).eq(b.iter().map(bits))
}

fn extremes(engine: Threads, values: &[f32]) -> bool {
    let brains = halves(values, bf16::from_f32);
    engine.extremes(values) == Stats::extremes_of(values)
        && engine.extremes(&brains) == Stats::extremes_of(&brains)
}

/// Tries both formats and both scales for fewer values than a tile, and one of each for more: neither changes the tiles.
fn fp8(engine: Threads, values: &[f32]) -> bool {
    let count = if values.len() < 1 << 16 { 2 } else { 1 };
    let formats = &[Fp8::E4M3, Fp8::E5M2][..count];
    let scales = &[0.037, 1.0][..count];
    let (half, brain) = (
        halves(values, f16::from_f32),
        halves(values, bf16::from_f32),
    );
    formats.iter().all(|&format| {
        scales.iter().all(|&scale| {
            fp8_of(engine, format, scale, values)
                && fp8_of(engine, format, scale, &half)
                && fp8_of(engine, format, scale, &brain)
        })
    })
}

fn fp8_of<T: Element>(mut engine: Threads, format: Fp8, scale: f32, values: &[T]) -> bool {
    let (mut found, mut expected) = (vec![0; values.len()], vec![0; values.len()]);
    let of = engine.quantize_fp8(format, scale, values, &mut found);
    if of != format.quantize(scale, values, &mut expected) {
        return false;
    }
    // If a value is refused, the contents of the output are unspecified.
    let codes = match of {
        Ok(()) if found != expected => return false,
        _ => expected,
    };
    let (mut found, mut expected) = (vec![0.0; codes.len()], vec![0.0; codes.len()]);
    engine.dequantize_fp8(format, scale, &codes, &mut found) == Ok(())
        && format.dequantize(scale, &codes, &mut expected) == Ok(())
        && same(&found, &expected)
}

fn dequantize(mut engine: Threads, values: &[f32]) -> bool {
    let codes: Vec<i8> = values.iter().map(|x| (x.to_bits() >> 7) as i8).collect();
    let Ok(groups) = Groups::tensor(codes.len()) else {
        return codes.is_empty();
    };
    let codes = Codes {
        groups,
        codes: &codes,
        scales: &[0.037],
        zero_points: &[-3],
    };
    let (mut found, mut expected) = (vec![0.0; values.len()], vec![0.0; values.len()]);
    engine.dequantize(codes, int8::RANGE, &mut found) == int8::dequantize(codes, &mut expected)
        && same(&found, &expected)
}

fn histogram(engine: Threads) -> bool {
    let values = patterns(LARGE, 1);
    histogram_of::<_, HOST_BITS>(engine, &values)
        && histogram_of::<_, SMALL_BITS>(engine, &values)
        && histogram_of::<_, HOST_BITS>(engine, &halves(&values, f16::from_f32))
        && histogram_of::<_, HOST_BITS>(engine, &halves(&values, bf16::from_f32))
}

fn histogram_of<T: Element, const B: u32>(mut engine: Threads, values: &[T]) -> bool {
    let mut buckets = [(); 2].map(|()| vec![0; Histogram::<B>::BUCKETS]);
    let [found, expected] = &mut buckets;
    let (Ok(mut found), Ok(mut expected)) = (Histogram::<B>::new(found), Histogram::new(expected))
    else {
        return false;
    };
    engine.histogram(values, &mut found) == expected.push(values) && found == expected
}

fn compare(engine: Threads) -> bool {
    let original = patterns(LARGE, 2);
    let restored: Vec<f32> = original.iter().map(|x| x * 0.9375).collect();
    let halves = halves(&restored, f16::from_f32);
    compare_with(engine, &original, &restored)
        && compare_with(engine, &original, &halves)
        && SIZES[..11].iter().all(|&size| {
            // Starts beside a vector's boundary.
            let (original, halves) = (&original[1..], &halves[1..]);
            compare_with(engine, &original[..size], &halves[..size])
        })
}

fn compare_with<T: Element>(mut engine: Threads, original: &[f32], restored: &[T]) -> bool {
    let (mut found, mut expected) = (Comparison::new(), Comparison::new());
    // Debug prints floats so that they read back to the same bits, including the sign of zero.
    engine.compare(&mut found, original, restored) == expected.push(original, restored)
        && format!("{found:?}") == format!("{expected:?}")
}

/// Returns bytes in which no pair of bits is 3, except that every hundredth seed allows them.
fn two_bits(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let most = if seed.is_multiple_of(100) { 4 } else { 3 };
    let mut pair = || random.below(most) as u8;
    (0..len)
        .map(|_| pair() | pair() << 2 | pair() << 4 | pair() << 6)
        .collect()
}

fn i2_s(mut engine: Threads) -> bool {
    [Interleave::X86x128, Interleave::Arm64]
        .into_iter()
        .all(|layout| {
            [0, 1, 2, 7, 33, 100].into_iter().all(|groups| {
                let len = groups * layout.group();
                let mut bytes = two_bits(len / 4, groups as u64 + 1);
                bytes.extend(0.5f32.to_le_bytes());
                bytes.extend([0; 28]);
                let (mut found, mut expected) = (vec![0.0; len], vec![0.0; len]);
                let of = engine.decode_i2_s(layout, &bytes, &mut found);
                of == i2_s::decode(layout, &bytes, &mut expected)
                    && (of.is_err() || same(&found, &expected))
            })
        })
}

fn bitnet_hf(engine: Threads) -> bool {
    let shapes = [
        (4, 1),
        (4, 7),
        (8, 63),
        (8, 65),
        (12, 1000),
        (6, 5),
        (100, 64),
    ];
    shapes.into_iter().all(|(rows, cols)| {
        let weights: Vec<f32> = (patterns(rows * cols, cols as u64).iter())
            .map(|x| x % 2.0)
            .collect();
        bitnet_hf_of(engine, rows, cols, &weights)
            && bitnet_hf_of(engine, rows, cols, &halves(&weights, bf16::from_f32))
    })
}

fn bitnet_hf_of<T: Element>(mut engine: Threads, rows: usize, cols: usize, weights: &[T]) -> bool {
    let Ok(len) = bitnet_hf::packed_len(rows, cols) else {
        return false;
    };
    let (mut found, mut expected) = (vec![0; len], vec![0; len]);
    let mut codes = vec![0; weights.len()];
    let of_core = bitnet_hf::quantize(weights, 1.25, &mut codes)
        .and_then(|_| bitnet_hf::pack(rows, cols, &codes, &mut expected));
    let of = engine.encode_bitnet_hf(rows, cols, weights, 1.25, &mut found);
    if of != of_core || of.is_ok() && found != expected {
        return false;
    }
    [expected, two_bits(len, 100)].into_iter().all(|packed| {
        let (mut found, mut expected) = (vec![0.0; weights.len()], vec![0.0; weights.len()]);
        let of = engine.decode_bitnet_hf(rows, cols, &packed, 0.8, &mut found);
        of == bitnet_hf::decode(rows, cols, &packed, 0.8, &mut expected)
            && (of.is_err() || same(&found, &expected))
    })
}

/// Rows and columns of weights, rows of activations: none, one, too few for tiles, parts of tiles, and more than enough
/// to wake threads.
const LAYERS: [(usize, usize, usize); 7] = [
    (0, 4, 3),
    (2, 3, 0),
    (9, 17, 1),
    (33, 5, 4),
    (50, 66, 7),
    (3, 129, 40),
    (130, 260, 70),
];

fn dense_many(engine: Threads) -> bool {
    linear::Layout::ALL.into_iter().all(|layout| {
        LAYERS.into_iter().all(|(rows, cols, count)| {
            let cols = match layout {
                linear::Layout::Block(format) => cols.next_multiple_of(format.len()),
                _ => cols,
            };
            dense_many_of(engine, layout, (rows, cols, count)).unwrap_or(false)
        })
    })
}

/// Compares layers with one scale and a bias from a table of words, and with one scale per row and no bias, including
/// refusals.
fn dense_many_of(
    mut engine: Threads,
    layout: linear::Layout,
    (rows, cols, count): (usize, usize, usize),
) -> Result<bool, linear::LinearError> {
    let mut random = Random::new((rows * cols + count) as u64);
    let mut bytes = vec![0; layout.bytes(rows, cols)?];
    if let linear::Layout::Block(format) = layout
        && !format.can_encode()
    {
        // Any codes and factors, but with scales and minima of 1/16.
        bytes.fill_with(|| random.next_u64() as u8);
        for block in bytes.chunks_exact_mut(format.bytes()) {
            for at in [Some(format.scale_offset()), format.min_offset()]
                .into_iter()
                .flatten()
            {
                block[at..at + 2].copy_from_slice(&0x2C00u16.to_le_bytes());
            }
        }
    } else if let linear::Layout::Block(format) = layout {
        let values: Vec<f32> = (0..rows * cols)
            .map(|_| random.below(2001) as f32 / 1e3 - 1.0)
            .collect();
        let (rule, scale) = (Rule::AbsMax, ScaleRule::Rule);
        if block::encode(format, rule, scale, &values, &mut bytes).is_err() {
            return Ok(false);
        }
    } else {
        let (lowest, highest) = layout.codes();
        let span = (i64::from(highest) - i64::from(lowest) + 1) as u64;
        let mut code = || (i64::from(lowest) + random.below(span) as i64) as i8;
        let codes: Vec<i8> = (0..rows * cols).map(|_| code()).collect();
        linear::pack::pack(layout, rows, cols, &codes, &mut bytes)?;
    }
    let mut x: Vec<i8> = (0..count * cols)
        .map(|_| (random.below(255) as i64 - 127) as i8)
        .collect();
    let bias: Vec<i32> = (0..rows).map(|_| random.next_u64() as i32 >> 18).collect();
    let (multipliers, shifts): (Vec<i32>, Vec<u8>) = (0..rows)
        .map(|row| ((1 << 30) + row as i32 * 77_777, 38 + (row % 3) as u8))
        .unzip();
    let weights = Matrix::new(layout, rows, cols, &bytes)?;
    let plain = Layer::new(weights);
    let biased = plain.with_bias(Table::Words(&bias), 2)?;
    let one = Rescale::one(Requantize::new(1_500_000_001, 40)?).with_relu();
    let by_rows = Rescale::rows(Table::Words(&multipliers), &shifts)?;
    let other = Rescale::rows(Table::Words(&[1 << 30; 11]), &[40; 11])?;
    let mut scratch = vec![0; weights.scratch_len()];
    let mut same = true;
    for (layer, rescale) in [(&biased, &one), (&plain, &by_rows), (&plain, &other)] {
        let (mut found, mut expected) = (vec![1; rows * count], vec![2; rows * count]);
        let codes = I8Sym::new(&x)?;
        let of = engine.dense_many(layer, rescale, codes, &mut found, &mut scratch);
        same &= of == Scalar.dense_many(layer, rescale, codes, &mut expected, &mut scratch);
        same &= of.is_err() || found == expected;
    }
    // The activations are no whole rows now.
    x.push(1);
    let mut out = vec![0; rows * count];
    let codes = I8Sym::new(&x)?;
    let of = engine.dense_many(&plain, &one, codes, &mut out, &mut scratch);
    Ok(same && of == Scalar.dense_many(&plain, &one, codes, &mut out, &mut scratch))
}
