//! Block kernels of every backend give core's bytes, floats, sums and errors.

use proptest::prelude::*;
use tercet_core::block::{self, BlockError, Encoded, Format};
use tercet_core::engine::BlockEngine;
use tercet_core::number::{Element, Random};
use tercet_core::quant::{Rule, ScaleRule};
use tercet_core::{bf16, f16};
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

const RULES: [Rule; 4] = [Rule::AbsMax, Rule::AbsMean, Rule::Twn, Rule::Optimal];
const SCALES: [ScaleRule; 2] = [ScaleRule::Rule, ScaleRule::LeastSquares];

/// Bytes that a result leaves, where it is one.
type Outcome = Result<(Encoded, Vec<u8>), BlockError>;

fn encode<T: Element>(
    format: Format,
    values: &[T],
    run: impl FnOnce(&mut [u8]) -> Result<Encoded, BlockError>,
) -> Outcome {
    let mut out = vec![0xA5; values.len() / format.len() * format.bytes()];
    run(&mut out).map(|done| (done, out))
}

/// Every backend, format and rule against core.
fn encoders_agree<T: Element + std::fmt::Debug>(values: &[T]) {
    for format in Format::ALL {
        let values = &values[..values.len() / format.len() * format.len()];
        for (rule, scale) in RULES
            .iter()
            .flat_map(|&rule| SCALES.map(|scale| (rule, scale)))
        {
            let expected = encode(format, values, |out| {
                block::encode(format, rule, scale, values, out)
            });
            for backend in Backend::all() {
                let found = encode(format, values, |out| {
                    let mut engine = Threads::default().with_backend(backend);
                    engine.encode_blocks(format, rule, scale, values, out)
                });
                if found != expected {
                    differ(format, rule, scale, backend, values, &found, &expected);
                }
            }
        }
    }
}

fn differ<T: Element + std::fmt::Debug>(
    format: Format,
    rule: Rule,
    scale: ScaleRule,
    backend: Backend,
    values: &[T],
    found: &Outcome,
    expected: &Outcome,
) -> ! {
    let what = format!("{} {rule:?} {scale:?} on {backend}", format.name());
    if let (Ok((_, found)), Ok((_, expected))) = (found, expected) {
        let mut blocks = values.chunks(format.len()).zip(
            found
                .chunks(format.bytes())
                .zip(expected.chunks(format.bytes())),
        );
        if let Some((values, (found, expected))) = blocks.find(|(_, (a, b))| a != b) {
            panic!("{what}: {found:?} for {expected:?} of {values:?}");
        }
    }
    let head = |outcome: &Outcome| outcome.as_ref().map(|(done, _)| *done).map_err(|e| *e);
    panic!("{what}: {:?} for {:?}", head(found), head(expected));
}

/// Values of one character, for whole blocks of every format.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A bell about 0.
    Bell,
    /// Multiples of 1/4, so that ties abound.
    Quarters,
    /// Two magnitudes only.
    Two,
    /// Any finite pattern.
    Patterns,
    /// Subnormals and the smallest normals.
    Tiny,
    /// Around the edges of f16: 2⁻²⁴ and 65,504.
    HalfEdges,
    /// A bell with one huge value.
    Outlier,
    /// Mostly zeros of both signs.
    Sparse,
    /// Exponents over sixty powers of two.
    Wide,
}

const KINDS: [Kind; 9] = [
    Kind::Bell,
    Kind::Quarters,
    Kind::Two,
    Kind::Patterns,
    Kind::Tiny,
    Kind::HalfEdges,
    Kind::Outlier,
    Kind::Sparse,
    Kind::Wide,
];

fn values(kind: Kind, len: usize, random: &mut Random) -> Vec<f32> {
    let bell = |random: &mut Random| {
        let draw = random.next_u64().to_le_bytes();
        (draw.iter().map(|&byte| f32::from(byte)).sum::<f32>() - 1020.0) / 256.0
            + random.below(1000) as f32 * 1e-6
    };
    let outlier = random.below(256) as usize;
    let size = f32::from_bits((random.below(200) as u32 + 20) << 23);
    (0..len)
        .map(|index| {
            let draw = random.next_u64() as u32;
            match kind {
                Kind::Bell => bell(random) * 0.02,
                Kind::Quarters => (draw % 65) as f32 * 0.25 - 8.0,
                Kind::Two => [1.0f32, -1.0, 0.3, -0.3][draw as usize % 4] * size,
                Kind::Patterns => match f32::from_bits(draw) {
                    x if x.is_finite() && x.abs() < 1e35 => x,
                    _ => 0.5,
                },
                Kind::Tiny => f32::from_bits(draw & 0x80FF_FFFF),
                Kind::HalfEdges => {
                    // A block of 256 is all of one size.
                    let size = [2.98e-8f32, 5.96e-8, 6.1e-5, 65504.0, 65519.99][index / 256 % 5];
                    bell(random).clamp(-1.0, 1.0) * size
                }
                Kind::Outlier if index % 256 == outlier => bell(random) * size,
                Kind::Outlier => bell(random),
                Kind::Sparse if !draw.is_multiple_of(16) => f32::from_bits(draw & 0x8000_0000),
                Kind::Sparse => bell(random),
                Kind::Wide => f32::from_bits(draw & 0x807F_FFFF | (97 + (draw >> 8) % 60) << 23),
            }
        })
        .collect()
}

/// 16 blocks of 256, 512 of 32 and a few more.
const LEN: usize = 256 * 18;

#[test]
fn encoders_give_cores_bytes() {
    let mut random = Random::new(1);
    for kind in KINDS {
        for _ in 0..6 {
            encoders_agree(&values(kind, LEN, &mut random));
        }
        encoders_agree(&values(kind, 256, &mut random));
        for blocks in 0..40 {
            let values = values(kind, 32 * blocks, &mut random);
            encoders_agree(&values);
        }
    }
}

#[test]
fn halves_give_the_bytes_of_their_widened_copies() {
    let mut random = Random::new(2);
    let values = values(Kind::Bell, LEN, &mut random);
    encoders_agree(&values.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>());
    encoders_agree(
        &values
            .iter()
            .map(|&x| bf16::from_f32(x))
            .collect::<Vec<_>>(),
    );
}

/// Every quotient just at, before and after a half, under scales that put it there.
#[test]
fn ties_go_where_core_sends_them() {
    for scale in [1.0f32, 0.1, 3.0, 1.0e-3, 0.9999999] {
        let mut values = Vec::new();
        for half in 0..127 {
            for step in -2i32..=2 {
                let x = ((half as f32 + 0.5) * scale)
                    .to_bits()
                    .wrapping_add_signed(step);
                for x in [f32::from_bits(x), -f32::from_bits(x)] {
                    if values.len().is_multiple_of(32) {
                        values.push(127.0 * scale);
                    }
                    values.push(x);
                }
            }
        }
        values.resize(values.len().next_multiple_of(256), 0.0);
        encoders_agree(&values);
        // The same under a largest magnitude of 8 and of 1, for nibbles and for ternary codes.
        for largest in [8.0, -8.0, 1.0] {
            let mut values: Vec<f32> = (0..256)
                .map(|i| {
                    let at = (i % 17) as f32 / 2.0 * largest / 8.0;
                    f32::from_bits((at * scale).to_bits().saturating_add_signed(i / 17 - 7))
                })
                .collect();
            values[5] = largest * scale;
            encoders_agree(&values);
        }
    }
}

/// Both signs of the largest magnitude in one block: Q4_0 takes the first.
#[test]
fn the_first_of_equal_magnitudes_decides() {
    let mut random = Random::new(3);
    for _ in 0..50 {
        let mut values = values(Kind::Bell, 1024, &mut random);
        for block in values.chunks_mut(32) {
            for _ in 0..3 {
                let sign = if random.below(2) == 0 { 9.0 } else { -9.0 };
                block[random.below(32) as usize] = sign;
            }
        }
        encoders_agree(&values);
    }
}

#[test]
fn what_is_not_finite_is_named_at_every_place() {
    let mut random = Random::new(4);
    let values = values(Kind::Bell, 1024, &mut random);
    for (at, bad) in (0..1024).zip(
        [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN]
            .into_iter()
            .cycle(),
    ) {
        let mut values = values.clone();
        values[at] = bad;
        // A later one must not be the one that is named.
        if at % 3 == 0 {
            values[1023 - random.below(1024 - at as u64) as usize] = f32::NAN;
        }
        for format in Format::ALL {
            let mut out = vec![0; format.encoded_len(1024).unwrap()];
            for rule in [Rule::AbsMax, Rule::Optimal] {
                let expected = block::encode(format, rule, ScaleRule::Rule, &values, &mut out);
                for backend in Backend::all() {
                    let mut engine = Threads::default().with_backend(backend);
                    let found =
                        engine.encode_blocks(format, rule, ScaleRule::Rule, &values, &mut out);
                    assert_eq!(found, expected, "{} on {backend}", format.name());
                }
            }
        }
    }
}

/// Scales that overflow f16, and blocks too small for a reciprocal, each at every block.
#[test]
fn scales_beyond_their_type_are_refused_or_flushed() {
    let mut random = Random::new(5);
    let bell = values(Kind::Bell, 256 * 4, &mut random);
    for at in 0..bell.len() / 32 {
        for x in [65_519.0f32, 65_520.0, -1e30, f32::MAX, 8.4e6, 524_160.0] {
            let mut values = bell.clone();
            values[at * 32 + at] = x;
            encoders_agree(&values);
        }
        for tiny in [1e-45f32, 1e-40, 2.0f32.powi(-128), 2.0f32.powi(-127), 1e-36] {
            let mut values = bell.clone();
            values[at / 8 * 256..][..256].fill(0.0);
            values[at * 32 + at] = -tiny;
            encoders_agree(&values);
        }
    }
}

/// Every byte in every place, under scales of every kind.
#[test]
fn decoders_give_cores_floats() {
    let scales = [
        0x3C00u16, 0xBC00, 0, 0x8000, 1, 0x83FF, 0x7BFF, 0xFBFF, 0x1234,
    ];
    for format in Format::ALL {
        let bytes = format.bytes();
        let mut blocks = Vec::new();
        for first in 0..=255u8 {
            let mut block: Vec<u8> = (0..bytes)
                .map(|i| first.wrapping_add((i as u8).wrapping_mul(7)))
                .collect();
            let [scale, min] =
                [0, 4].map(|from| scales[(usize::from(first) + from) % scales.len()]);
            put_scales(format, &mut block, scale, min);
            blocks.extend(block);
        }
        decoders_agree(format, &blocks);
        for bad in [0x7C00u16, 0xFC00, 0x7E01] {
            for place in [0, 1, 7, 100, 254, 255] {
                let error = BlockError::ScaleNotFinite { block: place };
                refused(
                    format,
                    &blocks,
                    [place, 255],
                    format.scale_offset(),
                    bad,
                    error,
                );
                if let Some(at) = format.min_offset() {
                    let error = BlockError::MinNotFinite { block: place };
                    refused(format, &blocks, [place, 255], at, bad, error);
                }
            }
        }
    }
}

/// Puts bits that are not finite into blocks, which nothing decodes or multiplies then.
fn refused(
    format: Format,
    blocks: &[u8],
    places: [usize; 2],
    at: usize,
    bad: u16,
    error: BlockError,
) {
    let mut blocks = blocks[..256 * format.bytes()].to_vec();
    for place in places {
        blocks[place * format.bytes() + at..][..2].copy_from_slice(&bad.to_le_bytes());
    }
    decoders_agree(format, &blocks);
    let x = vec![1; 256 * format.len()];
    for backend in Backend::all() {
        let mut engine = Threads::default().with_backend(backend);
        let found = engine.dot_blocks(format, &blocks, &x, 1.0);
        assert_eq!(found, Err(error), "{} on {backend}", format.name());
    }
}

fn decoders_agree(format: Format, bytes: &[u8]) {
    let len = bytes.len() / format.bytes() * format.len();
    let (mut expected, mut found) = (vec![0.0f32; len], vec![0.0f32; len]);
    let core = block::decode(format, bytes, &mut expected);
    for backend in Backend::all() {
        found.fill(f32::NAN);
        let mut engine = Threads::default().with_backend(backend);
        assert_eq!(engine.decode_blocks(format, bytes, &mut found), core);
        if core.is_ok() {
            let differs = found
                .iter()
                .zip(&expected)
                .position(|(a, b)| a.to_bits() != b.to_bits());
            assert_eq!(differs, None, "{} on {backend}", format.name());
        }
    }
}

/// Outputs that are written past the caches, at places that split lines; then with a last block whose scale is not
/// finite.
#[test]
fn large_outputs_decode_alike_wherever_they_lie() {
    const LARGE: usize = (4 << 20) + 256;
    let mut random = Random::new(7);
    // Room for a place of its own for each backend.
    let mut out = vec![0.0f32; LARGE + 3 * Backend::all().count() + 1];
    for format in Format::ALL {
        let mut bytes: Vec<u8> = (0..format.encoded_len(LARGE).unwrap())
            .map(|_| random.next_u64() as u8)
            .collect();
        for block in bytes.chunks_mut(format.bytes()) {
            make_finite(format, block);
        }
        let mut expected = vec![0.0f32; LARGE];
        block::decode(format, &bytes, &mut expected).unwrap();
        for (place, backend) in Backend::all().enumerate() {
            out.fill(f32::NAN);
            let mut engine = Threads::default().with_backend(backend);
            let (before, rest) = out.split_at_mut(3 * place + 1);
            let (found, after) = rest.split_at_mut(LARGE);
            engine.decode_blocks(format, &bytes, found).unwrap();
            let same = (found.iter().zip(&expected)).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{} on {backend}", format.name());
            assert!(before.iter().chain(&*after).all(|x| x.is_nan()));
        }
        let last = bytes.len() - format.bytes();
        bytes[last + format.scale_offset() + 1] = 0x7C;
        for backend in Backend::all() {
            let mut engine = Threads::default().with_backend(backend);
            let found = engine.decode_blocks(format, &bytes, &mut out[..LARGE]);
            let block = LARGE / format.len() - 1;
            assert_eq!(found, Err(BlockError::ScaleNotFinite { block }));
        }
    }
}

/// Gives a block a scale and, where it has one, a minimum.
fn put_scales(format: Format, block: &mut [u8], scale: u16, min: u16) {
    block[format.scale_offset()..][..2].copy_from_slice(&scale.to_le_bytes());
    if let Some(at) = format.min_offset() {
        block[at..][..2].copy_from_slice(&min.to_le_bytes());
    }
}

/// Clears a bit of each exponent of a block's scale and minimum.
fn make_finite(format: Format, block: &mut [u8]) {
    block[format.scale_offset() + 1] &= 0xBB;
    if let Some(at) = format.min_offset() {
        block[at + 1] &= 0xBB;
    }
}

/// Sums are largest where every code and activation is at its end: also over more blocks than 64 bits hold.
#[test]
fn products_are_exact_at_the_ends() {
    for format in Format::ALL {
        let (len, bytes) = format.layout();
        for (byte, x) in [
            (0u8, -128i8),
            (0xFF, -128),
            (0x80, -128),
            (0xFF, 127),
            (0xAA, 1),
            (0x55, -1),
            (0x7F, 127),
        ] {
            for scale in [0x7BFFu16, 0xFBFF, 1] {
                let mut block = vec![byte; bytes];
                put_scales(format, &mut block, scale, scale);
                let blocks = block.repeat(300);
                products_agree(format, &blocks, &vec![x; len * 300]);
            }
        }
        // Every byte in every place against activations that tell the places apart.
        let mut random = Random::new(6);
        for first in 0..=255u8 {
            let mut block: Vec<u8> = (0..bytes)
                .map(|i| first.wrapping_add((i as u8).wrapping_mul(7)))
                .collect();
            put_scales(format, &mut block, 0x3C00, 0x3C00);
            let x: Vec<i8> = (0..len).map(|_| random.next_u64() as i8).collect();
            products_agree(format, &block, &x);
        }
    }
}

fn products_agree(format: Format, bytes: &[u8], x: &[i8]) {
    let expected = block::dot(format, bytes, x, 1.0).unwrap();
    for backend in Backend::all() {
        let found = Threads::default()
            .with_backend(backend)
            .dot_blocks(format, bytes, x, 1.0);
        assert_eq!(
            found.unwrap().to_bits(),
            expected.to_bits(),
            "{} on {backend}",
            format.name()
        );
    }
}

#[test]
fn lengths_that_do_not_fit_are_refused_as_core_does() {
    for backend in Backend::all() {
        let mut engine = Threads::default().with_backend(backend);
        for format in Format::ALL {
            let (len, bytes) = format.layout();
            for (values, room) in [(len, bytes + 1), (len + 1, bytes), (2 * len, bytes), (0, 0)] {
                let (mut x, mut out) = (vec![1.0f32; values], vec![0; room]);
                let expected = block::encode(format, Rule::AbsMax, ScaleRule::Rule, &x, &mut out);
                let found =
                    engine.encode_blocks(format, Rule::AbsMax, ScaleRule::Rule, &x, &mut out);
                assert_eq!(found, expected);
                out.fill(0);
                let expected = block::decode(format, &out, &mut x);
                assert_eq!(engine.decode_blocks(format, &out, &mut x), expected);
                let x = vec![0; values];
                let expected = block::dot(format, &out, &x, 1.0);
                assert_eq!(engine.dot_blocks(format, &out, &x, 1.0), expected);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_values_give_cores_bytes(
        seed in any::<u64>(),
        kind in 0..KINDS.len(),
        blocks in 0usize..70,
    ) {
        let mut random = Random::new(seed);
        encoders_agree(&values(KINDS[kind], blocks * 32, &mut random));
    }

    #[test]
    fn any_mixture_gives_cores_bytes(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let mut mixed = Vec::new();
        for _ in 0..24 {
            let kind = KINDS[random.below(KINDS.len() as u64) as usize];
            mixed.extend(values(kind, 64, &mut random));
        }
        encoders_agree(&mixed);
    }

    #[test]
    fn any_bytes_decode_and_multiply_as_cores(seed in any::<u64>(), blocks in 0usize..40) {
        let mut random = Random::new(seed);
        for format in Format::ALL {
            let mut bytes: Vec<u8> =
                (0..blocks * format.bytes()).map(|_| random.next_u64() as u8).collect();
            for block in bytes.chunks_mut(format.bytes()) {
                // A finite scale.
                make_finite(format, block);
            }
            decoders_agree(format, &bytes);
            let x: Vec<i8> = (0..blocks * format.len()).map(|_| random.next_u64() as i8).collect();
            products_agree(format, &bytes, &x);
        }
    }
}
