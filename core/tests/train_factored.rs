//! Second moments by rows and columns: their definition, and what an update makes of them.

use tercet_core::number::root::sqrt_f32;
use tercet_core::number::{Random, counter};
use tercet_core::train::{
    AdamW, FACTORED_COLUMNS, LEAN_BLOCK, LeanBlock, LeanSecond, Update, factor_mean, factored,
    lean_codes, lean_weights,
};

const ROWS: usize = 5;
const COLUMNS: usize = 100;
const UNIT: f32 = 1.0 / 1024.0;
const UPDATE: Update = Update {
    rate: 0.01,
    clip: 0.5,
    powers: [0.9, 0.95],
};

fn sums(seed: u64) -> Vec<i64> {
    let mut random = Random::new(seed);
    (0..ROWS * COLUMNS)
        .map(|_| random.below(2001) as i64 - 1000)
        .collect()
}

/// The factors of rows and of columns after steps with these sums.
fn factors(adamw: &AdamW, steps: &[Vec<i64>]) -> (Vec<f32>, Vec<f32>) {
    let (mut rows, mut columns) = (vec![0.0; ROWS], vec![0.0; COLUMNS]);
    for sums in steps {
        for (row, sums) in rows.iter_mut().zip(sums.chunks(COLUMNS)) {
            adamw.row_factor(&UPDATE, (sums, UNIT), row);
        }
        for (piece, columns) in columns.chunks_mut(FACTORED_COLUMNS).enumerate() {
            let place = (COLUMNS, piece * FACTORED_COLUMNS);
            adamw.column_factors(&UPDATE, (sums, UNIT), place, columns);
        }
    }
    (rows, columns)
}

#[test]
fn factors_are_averages_of_mean_squares() {
    let adamw = AdamW::DEFAULT;
    let steps = [sums(1), sums(2)];
    let (rows, columns) = factors(&adamw, &steps);
    let square = |step: usize, row: usize, column: usize| {
        let g = steps[step][row * COLUMNS + column] as f64 * f64::from(UNIT) * 0.5;
        g * g
    };
    let (kept, new) = (f64::from(adamw.beta2), f64::from(1.0 - adamw.beta2));
    let close = |found: f32, mean: &dyn Fn(usize) -> f64| {
        let expected = kept * (new * mean(0)) + new * mean(1);
        assert!(
            (f64::from(found) / expected - 1.0).abs() < 1e-6,
            "{found} {expected}"
        );
    };
    for (row, &factor) in rows.iter().enumerate() {
        close(factor, &|step| {
            (0..COLUMNS)
                .map(|column| square(step, row, column))
                .sum::<f64>()
                / COLUMNS as f64
        });
    }
    for (column, &factor) in columns.iter().enumerate() {
        close(factor, &|step| {
            (0..ROWS).map(|row| square(step, row, column)).sum::<f64>() / ROWS as f64
        });
    }
}

#[test]
fn moments_of_rank_one_are_kept_as_they_are() {
    // Squares of a product of a row's and a column's number are such.
    let of_row = |row: usize| [1, 3, 2, 7, 5][row];
    let sums: Vec<i64> = (0..ROWS * COLUMNS)
        .map(|at| of_row(at / COLUMNS) * (at % COLUMNS + 1) as i64)
        .collect();
    let adamw = AdamW::DEFAULT;
    let (rows, columns) = factors(&adamw, core::slice::from_ref(&sums));
    let mean = factor_mean(&rows);
    let mut moments = [0.0; COLUMNS];
    for (&row, sums) in rows.iter().zip(sums.chunks(COLUMNS)) {
        factored(row, mean, &columns, &mut moments);
        for (&moment, &sum) in moments.iter().zip(sums) {
            let g = sum as f32 * UNIT * 0.5;
            let expected = (1.0 - adamw.beta2) * (g * g);
            assert!(
                (moment / expected - 1.0).abs() < 1e-5,
                "{moment} {expected}"
            );
        }
    }
    factored(0.0, 0.0, &columns, &mut moments);
    assert_eq!(moments, [0.0; COLUMNS], "of a matrix without gradients");
}

#[test]
fn an_update_with_given_moments_is_adamw_s_and_leaves_them() {
    let own = &sums(3)[..LEAN_BLOCK];
    let start: Vec<f32> = (0..LEAN_BLOCK).map(|at| at as f32 / 64.0 - 0.5).collect();
    let given = AdamW {
        beta2: 1.0,
        ..AdamW::DEFAULT
    };
    let moments: Vec<f32> = (1..=LEAN_BLOCK).map(|at| at as f32 * 1e-3).collect();
    let (mut weights, mut first, mut second) = (start.clone(), [0.0; LEAN_BLOCK], moments.clone());
    let parts = (&mut first[..], &mut second[..]);
    given.update(sqrt_f32, &UPDATE, (own, UNIT), true, &mut weights, parts);
    assert_eq!(second, moments);
    for (at, (&weight, &before)) in weights.iter().zip(&start).enumerate() {
        let g = own[at] as f32 * UNIT * 0.5;
        let step = (0.1 * g / 0.1) / ((moments[at] / 0.05).sqrt() + 1e-8);
        let expected = before - 0.01 * 0.1 * before - 0.01 * step;
        assert!((weight - expected).abs() < 1e-6, "{weight} {expected}");
    }
    // A block of small codes does the same, up to their rounding.
    let mut codes = [0; LEAN_BLOCK];
    let mut exponent = lean_codes(&start, &mut codes);
    let block = LeanBlock {
        weights: &mut codes,
        exponent: &mut exponent,
        first: &mut [0; LEAN_BLOCK],
        second: LeanSecond::New(&moments),
        scales: &mut [0.0; 2],
    };
    let draws = |index: usize| counter(1, 4, index as u64);
    AdamW::DEFAULT.update_lean(sqrt_f32, &UPDATE, (own, UNIT), true, block, draws);
    let mut lean = [0.0; LEAN_BLOCK];
    lean_weights(&codes, exponent, &mut lean);
    let step = 2f32.powi(exponent.into());
    for ((&lean, &weight), &before) in lean.iter().zip(&weights).zip(&start) {
        let longest = (weight - before).abs() > 0.039;
        assert!(
            longest || (lean - weight).abs() <= 2.0 * step,
            "{lean} {weight}"
        );
    }
}
