//! Palette kernels of every backend give core's indices, floats, products and errors.

use proptest::prelude::*;
use tercet_core::engine::PaletteEngine;
use tercet_core::number::{Element, Random};
use tercet_core::palette::{
    self, Encoded, IndexMatrix, MAX_DOT, Output, Palette, PaletteError, Width,
};
use tercet_core::scalar::Scalar;
use tercet_core::{bf16, f16};
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

fn engines() -> impl Iterator<Item = (Backend, Threads)> {
    Backend::all().flat_map(|backend| {
        [Threads::default(), Threads::with_tile(72)]
            .map(|threads| (backend, threads.with_backend(backend)))
    })
}

/// A matrix of any indices and codebooks, each part at an odd place in its buffer.
struct Coded {
    layout: IndexMatrix,
    indices: Vec<u8>,
    codebooks: Vec<i8>,
    scales: Vec<f32>,
}

impl Coded {
    fn new(layout: IndexMatrix, random: &mut Random) -> Self {
        let extremes = [i8::MIN, -127, 0, 127];
        let entry = |random: &mut Random| match random.below(8) {
            at @ 0..4 => extremes[at as usize],
            _ => random.next_u64() as i8,
        };
        Self {
            indices: (0..layout.index_bytes() + 1)
                .map(|_| random.next_u64() as u8)
                .collect(),
            codebooks: (0..layout.codebook_len() + 1)
                .map(|_| entry(random))
                .collect(),
            scales: (0..layout.groups())
                .map(|_| f32::from_bits(random.below(255 << 23) as u32))
                .collect(),
            layout,
        }
    }

    fn view(&self) -> Palette<'_> {
        Palette {
            layout: self.layout,
            indices: &self.indices[1..],
            codebooks: &self.codebooks[1..],
            scales: &self.scales,
        }
    }

    /// The values and the products with `x`, as bits.
    fn read<E: PaletteEngine<Error = PaletteError>>(
        &self,
        engine: &mut E,
        x: &[i8],
    ) -> (Vec<u32>, Vec<u32>) {
        let mut values = vec![f32::NAN; self.layout.values() + 1];
        engine
            .decode_palette(&self.view(), &mut values[1..])
            .unwrap();
        let mut products = vec![f32::NAN; self.layout.rows()];
        engine
            .multiply_palette(&self.view(), x, 0.37, &mut products)
            .unwrap();
        let bits = |floats: &[f32]| floats.iter().map(|x| x.to_bits()).collect();
        (bits(&values[1..]), bits(&products))
    }
}

/// Activations with many extremes.
fn activations(len: usize, random: &mut Random) -> Vec<i8> {
    let x = |_| match random.below(4) {
        0 => i8::MIN,
        1 => i8::MAX,
        _ => random.next_u64() as i8,
    };
    (0..len).map(x).collect()
}

#[test]
fn every_width_and_length_is_read_as_core_reads_it() {
    let mut random = Random::new(4);
    for width in Width::ALL {
        for cols in (1..=140).chain([191, 192, 193, 255, 256, 257, 511, 513, 1029]) {
            let rows = 1 + random.below(11) as usize;
            let layout = IndexMatrix::with_rows(width, rows, cols, 1 + random.below(9) as usize);
            let coded = Coded::new(layout.unwrap(), &mut random);
            let x = activations(cols + 1, &mut random);
            let expected = coded.read(&mut Scalar, &x[1..]);
            for (backend, mut engine) in engines() {
                assert!(
                    coded.read(&mut engine, &x[1..]) == expected,
                    "{} bits, {rows} × {cols} on {backend}",
                    width.bits()
                );
            }
        }
    }
}

#[test]
fn the_largest_products_do_not_wrap() {
    for (entry, x) in [(-128, -128), (-128, 127), (127, -128), (127, 127)] {
        for width in Width::ALL {
            let layout = IndexMatrix::new(width, 1, MAX_DOT, 1).unwrap();
            let coded = Coded {
                layout,
                indices: vec![0xFF; layout.index_bytes() + 1],
                codebooks: vec![entry; layout.codebook_len() + 1],
                scales: vec![1.0],
            };
            let exact = i64::from(entry) * i64::from(x) * MAX_DOT as i64;
            for (backend, mut engine) in engines() {
                let mut y = [0.0];
                let x = vec![x; MAX_DOT];
                engine
                    .multiply_palette(&coded.view(), &x, 1.0, &mut y)
                    .unwrap();
                assert_eq!(y, [exact as f32], "{} bits on {backend}", width.bits());
            }
        }
    }
}

/// What encoding leaves, where it succeeds.
type Made = Result<(Encoded, Vec<u8>, Vec<i8>, Vec<u32>), PaletteError>;

fn encode<T: Element>(
    engine: &mut impl PaletteEngine<Error = PaletteError>,
    layout: &IndexMatrix,
    values: &[T],
    importances: &[u32],
) -> Made {
    let mut indices = vec![0xA5; layout.index_bytes()];
    let mut codebooks = vec![77; layout.codebook_len()];
    let mut scales = vec![f32::NAN; layout.groups()];
    let out = Output {
        indices: &mut indices,
        codebooks: &mut codebooks,
        scales: &mut scales,
    };
    let mut scratch = vec![3; layout.scratch_len()];
    let done = engine.encode_palette(layout, values, importances, out, &mut scratch)?;
    let scales = scales.iter().map(|scale| scale.to_bits()).collect();
    Ok((done, indices, codebooks, scales))
}

fn encoders_agree<T: Element>(layout: &IndexMatrix, values: &[T], importances: &[u32]) {
    let expected = encode(&mut Scalar, layout, values, importances);
    for (backend, mut engine) in engines() {
        let found = encode(&mut engine, layout, values, importances);
        assert!(found == expected, "{layout:?} on {backend}");
    }
}

#[test]
fn every_width_and_length_is_written_as_core_writes_it() {
    let mut random = Random::new(5);
    for width in Width::ALL {
        for cols in (1..=140).chain([192, 257, 1029]) {
            let rows = 1 + random.below(7) as usize;
            let layout = IndexMatrix::with_rows(width, rows, cols, 1 + random.below(4) as usize);
            let values: Vec<f32> = (0..rows * cols)
                .map(|_| (random.below(2001) as f32 - 1000.0) * f32::from(random.next_u64() as i8))
                .collect();
            encoders_agree(&layout.unwrap(), &values, &[]);
        }
    }
}

#[test]
fn a_group_of_zeros_and_one_too_small_have_index_zero() {
    let layout = IndexMatrix::with_rows(Width::new(3).unwrap(), 6, 67, 2).unwrap();
    let mut values = vec![0.0; 6 * 67];
    values[2 * 67 + 5] = f32::from_bits(3);
    values[5 * 67] = -1.0;
    encoders_agree(&layout, &values, &[]);
}

#[test]
fn halves_are_encoded_as_they_are() {
    let mut random = Random::new(6);
    let layout = IndexMatrix::with_rows(Width::new(4).unwrap(), 9, 173, 4).unwrap();
    let bits: Vec<u16> = (0..9 * 173).map(|_| random.next_u64() as u16).collect();
    let finite = |x: f32| if x.is_finite() { x } else { 0.25 };
    let values: Vec<f16> = (bits.iter())
        .map(|&bits| f16::from_f32(finite(f16::from_bits(bits).to_f32())))
        .collect();
    encoders_agree(&layout, &values, &[]);
    let values: Vec<bf16> = (bits.iter())
        .map(|&bits| bf16::from_f32(finite(bf16::from_bits(bits).to_f32())))
        .collect();
    encoders_agree(&layout, &values, &[]);
}

#[test]
fn what_does_not_fit_is_refused_by_every_backend() {
    let layout = IndexMatrix::new(Width::new(4).unwrap(), 2, 64, 1).unwrap();
    let mut random = Random::new(8);
    let mut coded = Coded::new(layout, &mut random);
    let x = activations(64, &mut random);
    for (_, mut engine) in engines() {
        let short = engine.decode_palette(&coded.view(), &mut [0.0; 127]);
        assert!(matches!(short, Err(PaletteError::Length { .. })));
        let short = engine.multiply_palette(&coded.view(), &x[1..], 1.0, &mut [0.0; 2]);
        assert!(matches!(short, Err(PaletteError::Length { .. })));
        let short = engine.multiply_palette(&coded.view(), &x, 1.0, &mut [0.0; 3]);
        assert!(matches!(short, Err(PaletteError::Length { .. })));
    }
    coded.scales[0] = f32::INFINITY;
    let mut values = [0.0; 128];
    let expected = palette::decode(&coded.view(), &mut values);
    assert_eq!(expected, Err(PaletteError::ScaleNotFinite { group: 0 }));
    for (_, mut engine) in engines() {
        assert_eq!(engine.decode_palette(&coded.view(), &mut values), expected);
        assert_eq!(
            engine.multiply_palette(&coded.view(), &x, 1.0, &mut [0.0; 2]),
            expected
        );
    }
    let layout = IndexMatrix::new(Width::new(1).unwrap(), 1, MAX_DOT + 1, 1).unwrap();
    let coded = Coded::new(layout, &mut random);
    let x = vec![0; MAX_DOT + 1];
    let mut y = [0.0];
    let expected = palette::matvec(&coded.view(), &x, 1.0, &mut y);
    assert!(matches!(expected, Err(PaletteError::DotLength { .. })));
    for (_, mut engine) in engines() {
        assert_eq!(
            engine.multiply_palette(&coded.view(), &x, 1.0, &mut y),
            expected
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_values_are_written_as_core_writes_them(
        values in prop::collection::vec(any::<f32>(), 1..700),
        bits in 1u8..=8, rows in 1usize..9, group_rows in 1usize..9, seed in any::<u64>(), keep in any::<bool>(),
    ) {
        let cols = values.len() / rows;
        prop_assume!(cols > 0);
        let values: Vec<f32> = (values[..rows * cols].iter())
            .map(|&x| if keep || x.is_finite() { x } else { 1.5 })
            .collect();
        let layout = IndexMatrix::with_rows(Width::new(bits).unwrap(), rows, cols, group_rows).unwrap();
        let mut random = Random::new(seed);
        let importances: Vec<u32> = values.iter().map(|_| random.below(3) as u32).collect();
        encoders_agree(&layout, &values, &[]);
        encoders_agree(&layout, &values, &importances);
    }
}
