//! AdamW with a small state: what its blocks keep, and that its rounding is right on average.

use tercet_core::number::root::sqrt_f32;
use tercet_core::number::{Random, counter};
use tercet_core::train::{self, AdamW, LEAN_BLOCK, LeanBlock, LeanSecond, Update, WEIGHT_FLOOR};

use crate::train_steps::normal;

/// Many updates of one block with a small state, each rounded by draws of its own.
struct Lean {
    weights: Vec<i16>,
    exponent: i8,
    first: [i8; LEAN_BLOCK],
    second: [u8; LEAN_BLOCK],
    scales: [f32; 2],
    powers: [f64; 2],
    steps: u64,
}

impl Lean {
    fn new(weights: &[f32]) -> Self {
        let mut codes = vec![0; weights.len()];
        let exponent = train::lean_codes(weights, &mut codes);
        Self {
            weights: codes,
            exponent,
            first: [0; LEAN_BLOCK],
            second: [0; LEAN_BLOCK],
            scales: [0.0; 2],
            powers: [1.0; 2],
            steps: 0,
        }
    }

    fn update(&mut self, adamw: &AdamW, (rate, seed): (f32, u64), own: (&[i64], f32)) -> Update {
        self.powers[0] *= f64::from(adamw.beta1);
        self.powers[1] *= f64::from(adamw.beta2);
        let (clip, powers) = (1.0, self.powers);
        let update = Update { rate, clip, powers };
        let first = self.steps * LEAN_BLOCK as u64;
        let block = LeanBlock {
            weights: &mut self.weights,
            exponent: &mut self.exponent,
            first: &mut self.first,
            second: LeanSecond::Codes(&mut self.second),
            scales: &mut self.scales,
        };
        let draws = |index: usize| counter(seed, 4, first + index as u64);
        adamw.update_lean(sqrt_f32, &update, own, true, block, draws);
        self.steps += 1;
        update
    }

    fn weights(&self) -> Vec<f32> {
        let mut weights = vec![0.0; self.weights.len()];
        train::lean_weights(&self.weights, self.exponent, &mut weights);
        weights
    }
}

#[test]
fn a_lean_block_keeps_weights_to_sixteen_bits_and_says_which_are_not_finite() {
    let mut random = Random::new(21);
    for scale in [1e-24f32, 1e-8, 0.02, 1.0, 3e30] {
        let weights = normal(&mut random, 50, scale);
        let most = weights.iter().fold(0f32, |most, w| most.max(w.abs()));
        let back = Lean::new(&weights).weights();
        for (found, expected) in back.iter().zip(&weights) {
            assert!((found - expected).abs() <= most / 32_767.0, "{scale:e}");
        }
    }
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut lean = Lean::new(&[0.5, bad, 0.0]);
        assert!(lean.weights().iter().all(|w| !w.is_finite()));
        lean.update(&AdamW::DEFAULT, (1e-3, 0), (&[1, 2, 3], 1e-3));
        assert!(lean.weights().iter().all(|w| !w.is_finite()), "it stays");
    }
    assert_eq!(Lean::new(&[0.0; 5]).weights(), [0.0; 5]);
}

/// Against AdamW of all digits with the same gradients, for many draws: each step's rounding is small, and is
/// right on average.
#[test]
fn a_lean_update_is_adamw_s_on_average() {
    const RUNS: u64 = 400;
    let (mut random, unit, rate) = (Random::new(22), train::unit(WEIGHT_FLOOR, 100), 1e-6);
    let start = normal(&mut random, LEAN_BLOCK, 0.02);
    // A signal each, and noise.
    let steps: Vec<Vec<i64>> = (0..6)
        .map(|_| {
            (0..LEAN_BLOCK)
                .map(|at| ((at as f32 - 31.5 + 8.0 * random.normal()) * 1e9) as i64)
                .collect()
        })
        .collect();
    let adamw = AdamW::DEFAULT;
    let mut exact = Lean::new(&start).weights();
    let begin = exact.clone();
    let (mut m, mut v) = (vec![0.0; LEAN_BLOCK], vec![0.0; LEAN_BLOCK]);
    let mut runs: Vec<Lean> = (0..RUNS).map(|_| Lean::new(&start)).collect();
    for sums in &steps {
        let all = (0..RUNS).zip(&mut runs);
        let updates = all.map(|(seed, run)| run.update(&adamw, (rate, seed), (sums, unit)));
        let update = updates.last().unwrap();
        let moments = (&mut m[..], &mut v[..]);
        adamw.update(sqrt_f32, &update, (sums, unit), true, &mut exact, moments);
    }
    // A step is at most about half of a code: only the mean can show what several were.
    let code = 2f32.powi(runs[0].exponent.into());
    assert!(code > 0.5 * rate, "{code:e}");
    for at in 0..LEAN_BLOCK {
        let mean: f64 = runs
            .iter()
            .map(|run| f64::from(run.weights()[at]))
            .sum::<f64>()
            / RUNS as f64;
        let (moved, expected) = (
            mean - f64::from(begin[at]),
            f64::from(exact[at] - begin[at]),
        );
        let spread = 0.5 * f64::from(code) * (6.0 / RUNS as f64).sqrt();
        assert!(
            (moved - expected).abs() < 5.0 * spread + 0.1 * expected.abs(),
            "{at}: {moved:e} {expected:e}, {spread:e}"
        );
        for run in &runs {
            assert!((run.weights()[at] - exact[at]).abs() <= 7.0 * code);
        }
    }
}

#[test]
fn a_lean_step_is_never_longer_than_four_rates() {
    // A gradient once, then none: the second moments of the smaller ones round to 0 before the first ones do.
    let mut lean = Lean::new(&[0.5; LEAN_BLOCK]);
    let rate = 1e-2;
    for step in 0..200 {
        let sums: Vec<i64> = (0..LEAN_BLOCK)
            .map(|at| match step {
                0 => 1i64 << (at / 2),
                _ => 0,
            })
            .collect();
        let before = lean.weights();
        lean.update(&AdamW::DEFAULT, (rate, 5), (&sums, 1.0));
        for (after, before) in lean.weights().iter().zip(before) {
            let most = 4.0 * rate + rate * 0.1 * before.abs() + 2f32.powi(lean.exponent.into());
            assert!((after - before).abs() <= most, "step {step}");
        }
    }
}
