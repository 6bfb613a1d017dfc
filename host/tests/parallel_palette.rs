//! Palettes on threads have the bits of the reference engine.

use proptest::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tercet_core::engine::PaletteEngine;
use tercet_core::number::Random;
use tercet_core::palette::{Encoded, IndexMatrix, Output, Palette, PaletteError, Width};
use tercet_core::scalar::Scalar;
use tercet_host::parallel::Threads;

#[derive(Debug, PartialEq)]
struct Made {
    result: Result<Encoded, PaletteError>,
    indices: Vec<u8>,
    codebooks: Vec<i8>,
    scales: Vec<u32>,
    /// Decoded values and a product, as bits; empty where encoding failed.
    outputs: Vec<u32>,
}

/// Encodes, decodes and multiplies on one engine.
fn made<E: PaletteEngine<Error = PaletteError>>(
    engine: &mut E,
    layout: &IndexMatrix,
    values: &[f32],
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
    let result = engine.encode_palette(layout, values, importances, out, &mut scratch);
    let mut outputs = vec![0.0; layout.values() + layout.rows()];
    let (decoded, products) = outputs.split_at_mut(layout.values());
    let x: Vec<i8> = (0..layout.cols())
        .map(|i| (i * 37 % 256) as u8 as i8)
        .collect();
    let palette = Palette {
        layout: *layout,
        indices: &indices,
        codebooks: &codebooks,
        scales: &scales,
    };
    if result.is_ok() {
        engine.decode_palette(&palette, decoded).unwrap();
        engine
            .multiply_palette(&palette, &x, 0.37, products)
            .unwrap();
    }
    let refused = result.is_err();
    Made {
        result,
        // What buffers hold after a refusal is left open.
        indices: if refused { Vec::new() } else { indices },
        codebooks: if refused { Vec::new() } else { codebooks },
        scales: scales
            .iter()
            .filter(|_| !refused)
            .map(|x| x.to_bits())
            .collect(),
        outputs: outputs
            .iter()
            .filter(|_| !refused)
            .map(|x| x.to_bits())
            .collect(),
    }
}

fn pools() -> Vec<ThreadPool> {
    let pool = |threads| ThreadPoolBuilder::new().num_threads(threads).build();
    [1, 2, 3].map(|threads| pool(threads).unwrap()).into()
}

fn weights(len: usize) -> (Vec<f32>, Vec<u32>) {
    let mut random = Random::new(9);
    let values =
        (0..len).map(|_| (random.below(4001) as f32 - 2000.0) * (random.below(90) as f32) / 4096.0);
    let values = values.collect();
    (
        values,
        (0..len).map(|_| random.below(1 << 20) as u32).collect(),
    )
}

#[test]
fn bits_do_not_depend_on_threads_or_tiles() {
    let (rows, cols) = (37, 203);
    let (values, mut importances) = weights(rows * cols);
    // One group whose importances are all 0.
    importances[cols * 8..cols * 16].fill(0);
    for (bits, group_rows) in [(1, 37), (3, 8), (4, 37), (4, 1), (7, 20), (8, 37)] {
        let width = Width::new(bits).unwrap();
        let layout = IndexMatrix::with_rows(width, rows, cols, group_rows).unwrap();
        for importances in [&[][..], &importances] {
            let expected = made(&mut Scalar, &layout, &values, importances);
            assert!(expected.result.is_ok());
            for tile in [0, 8, 100, 1001, usize::MAX] {
                for pool in pools() {
                    let found = pool.install(|| {
                        made(&mut Threads::with_tile(tile), &layout, &values, importances)
                    });
                    assert!(
                        found == expected,
                        "{bits} bits, {group_rows} rows a group, tiles of {tile}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_lowest_bad_index_is_named() {
    let (mut values, _) = weights(40 * 50);
    values[1777] = f32::NAN;
    values[1203] = f32::INFINITY;
    values[1999] = f32::NAN;
    for group_rows in [1, 3, 40] {
        let layout = IndexMatrix::with_rows(Width::new(4).unwrap(), 40, 50, group_rows).unwrap();
        for tile in [8, 77, 1 << 16] {
            for pool in pools() {
                let found =
                    pool.install(|| made(&mut Threads::with_tile(tile), &layout, &values, &[]));
                assert_eq!(found.result, Err(PaletteError::NotFinite { index: 1203 }));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn small_matrices_agree(
        values in prop::collection::vec(any::<f32>().prop_filter("finite", |x| x.is_finite()), 1..600),
        bits in 1u8..=8, rows in 1usize..9, group_rows in 1usize..9, tile in 0usize..300, seed in any::<u64>(),
    ) {
        let cols = values.len() / rows;
        prop_assume!(cols > 0);
        let values = &values[..rows * cols];
        let layout = IndexMatrix::with_rows(Width::new(bits).unwrap(), rows, cols, group_rows).unwrap();
        let mut random = Random::new(seed);
        let importances: Vec<u32> = values.iter().map(|_| random.below(3) as u32).collect();
        for importances in [&[][..], &importances] {
            let expected = made(&mut Scalar, &layout, values, importances);
            prop_assert_eq!(made(&mut Threads::with_tile(tile), &layout, values, importances), expected);
        }
    }
}
