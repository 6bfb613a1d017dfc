//! Gradients of matrices have core's bits, for every instruction set, whatever the magnitudes of groups of rows.

use tercet_core::engine::{TrainEngine, WeightScratch};
use tercet_core::number::Random;
use tercet_core::scalar::Scalar;
use tercet_core::train::{GROUP, Inputs};
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

/// The sums that the gradients of some outputs are added to, and whether they are within their bounds.
fn gradient<E: TrainEngine>(
    engine: &mut E,
    dy: &[f32],
    (x, scales): (&[i8], &[f32]),
    length: usize,
) -> (Option<bool>, Vec<i64>) {
    let inputs = Inputs {
        codes: x,
        scales,
        length,
    };
    let (outputs, cols) = (dy.len() / scales.len(), inputs.cols());
    let mut sums: Vec<i64> = (0..outputs * cols).map(|at| at as i64 - 7).collect();
    let mut scratch = WeightScratch {
        codes: &mut vec![0; dy.len()],
        exponents: &mut vec![0; outputs * inputs.group_count()],
        partial: &mut vec![0; cols],
    };
    let within = engine.weight_gradient(dy, &inputs, &mut scratch, &mut sums);
    (within.ok(), sums)
}

#[test]
fn every_backend_gives_cores_gradients_for_groups_of_all_magnitudes() {
    let mut random = Random::new(77);
    // As many groups as are added in 32 bits, and more; whole strips of outputs and columns, and parts of them.
    for (length, sequences, outputs, cols) in [
        (GROUP, 1, 16, 64),
        (4 * GROUP, 2, 20, 70),
        (5 * GROUP + 3, 2, 33, 40),
        (17, 19, 16, 33),
    ] {
        let rows = length * sequences;
        // Groups alike, of near and of any magnitudes; and the largest sums of groups that are added in 32 bits, and of
        // some that would not fit.
        for (spread, largest) in [(0, false), (6, false), (40, false), (8, true), (9, true)] {
            let mut magnitude = 0;
            let mut magnitudes = Vec::new();
            for row in 0..rows {
                if row % length % GROUP == 0 {
                    magnitude = match largest {
                        true => spread * i32::from(row != 0),
                        false => random.below(spread as u64 + 1) as i32 - spread / 2,
                    };
                }
                magnitudes.push(2f32.powi(magnitude - 24));
            }
            let dy: Vec<f32> = (0..rows * outputs)
                .map(|at| match largest {
                    true => magnitudes[at / outputs] * (127.0 / 128.0),
                    false => magnitudes[at / outputs] * random.signed_f32(),
                })
                .collect();
            let x: Vec<i8> = (0..rows * cols)
                .map(|_| match largest {
                    true => 127,
                    false => random.below(255) as i8,
                })
                .collect();
            let scales = vec![0.5; rows];
            let expected = gradient(&mut Scalar, &dy, (&x, &scales), length);
            assert_eq!(expected.0, Some(true));
            for backend in Backend::all() {
                let mut engine = Threads::alone().with_backend(backend);
                let found = gradient(&mut engine, &dy, (&x, &scales), length);
                assert!(found == expected, "{backend:?} {length} {spread}");
            }
        }
    }
}
