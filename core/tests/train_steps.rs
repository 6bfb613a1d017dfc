//! The steps of training, each against the exact derivative in f64 with no rounding on the way. Bounds are what was
//! found, a little widened.

use tercet_core::model::{Gate, nll};
use tercet_core::number::Random;
use tercet_core::number::root::sqrt_f32;
use tercet_core::quant::activations::Norm;
use tercet_core::train::{
    self, AdamW, FREE_FLOOR, Fall, GAIN_UNIT, GROUP, Inputs, LEAST_SCALE, Schedule, SoftTargets,
    Update, WEIGHT_FLOOR, power_row, power_row_wide,
};

/// The largest difference, as a part of the largest magnitude.
pub(crate) fn apart(found: &[f32], exact: &[f64]) -> f64 {
    assert_eq!(found.len(), exact.len());
    let most = exact.iter().fold(0f64, |most, x| most.max(x.abs()));
    let pairs = found.iter().zip(exact);
    let worst = pairs.fold(0f64, |worst, (&found, exact)| {
        let own = (f64::from(found) - exact).abs();
        // NaN is apart from all.
        if own <= worst { worst } else { own }
    });
    worst / most
}

pub(crate) fn normal(random: &mut Random, count: usize, scale: f32) -> Vec<f32> {
    (0..count).map(|_| random.normal() * scale).collect()
}

/// The derivative of a function in an element, by a step to both sides.
fn slope(f: impl Fn(&[f64]) -> f64, at: &[f64], element: usize) -> f64 {
    const STEP: f64 = 1e-5;
    let moved = |by: f64| {
        let mut at = at.to_vec();
        at[element] += by;
        f(&at)
    };
    (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| value.into()).collect()
}

#[test]
fn a_norm_s_gradients_are_the_slopes() {
    const EPS: f32 = 1e-2;
    let mut random = Random::new(1);
    for cols in [1usize, 5, 64, 130] {
        let (x, dy) = (
            normal(&mut random, cols, 2.0),
            normal(&mut random, cols, 1e-3),
        );
        let gains: Vec<f32> = (0..cols).map(|_| 0.5 + random.unit_f32()).collect();
        let cost = |x: &[f64], gains: &[f64]| -> f64 {
            let mean = x.iter().map(|x| x * x).sum::<f64>() / cols as f64;
            let root = (mean + f64::from(EPS)).sqrt();
            let rows = x.iter().zip(gains).zip(&dy);
            rows.map(|((x, gain), &dy)| x * gain / root * f64::from(dy))
                .sum()
        };
        let (wide_x, wide_gains) = (wide(&x), wide(&gains));
        let each = 0..cols;
        let exact: Vec<f64> = (each.clone())
            .map(|i| slope(|x| cost(x, &wide_gains), &wide_x, i))
            .collect();
        let of_gains: Vec<f64> = each
            .map(|i| slope(|gains| cost(&wide_x, gains), &wide_gains, i))
            .collect();
        let root =
            (wide_x.iter().map(|x| x * x).sum::<f64>() / cols as f64 + f64::from(EPS)).sqrt();
        let most = dy.iter().zip(&gains).fold(0f64, |most, (dy, gain)| {
            most.max(f64::from(dy * gain).abs() / root)
        });
        let norm = Norm {
            gains: &gains,
            eps: EPS,
        };
        let (mut dx, mut sums) = (vec![0.0; cols], vec![0; cols]);
        let mut scratch = vec![0.0; cols];
        assert!(train::norm(
            &x,
            norm,
            &dy,
            (&mut dx, false),
            &mut sums,
            &mut scratch
        ));
        // Of the largest dy · g / r, since of one column all but ε cancels: 8.2e-8 was found.
        for (&dx, exact) in dx.iter().zip(&exact) {
            let off = (f64::from(dx) - exact).abs() / most;
            assert!(off < 2e-7, "{cols}: {off:e}");
        }
        let unit = 2f64.powi(GAIN_UNIT);
        for (&sum, exact) in sums.iter().zip(&of_gains) {
            let off = (sum as f64 * unit - exact).abs();
            assert!(off < unit + 2e-7 * exact.abs(), "{off:e} {exact:e}");
        }
        // Added, the gradients of the residual stay.
        let mut added = vec![0.25; cols];
        let _ = train::norm(&x, norm, &dy, (&mut added, true), &mut sums, &mut scratch);
        let expected: Vec<f32> = dx.iter().map(|dx| 0.25 + dx).collect();
        assert_eq!(added, expected);
    }
}

#[test]
fn a_gain_s_gradient_beyond_its_units_is_told() {
    let norm = Norm {
        gains: &[1.0, 1.0],
        eps: 0.0,
    };
    for (dy, within) in [(2047.0, true), (2048.0, false), (f32::NAN, false)] {
        let (mut dx, mut sums, mut scratch) = ([0.0; 2], [0; 2], [0.0; 2]);
        let found = train::norm(
            &[1.0, 1.0],
            norm,
            &[dy, 0.0],
            (&mut dx, false),
            &mut sums,
            &mut scratch,
        );
        assert_eq!(found, within, "{dy}");
    }
}

#[test]
fn a_gate_s_gradients_are_the_slopes() {
    let mut random = Random::new(2);
    let x: Vec<f32> = (0..2000).map(|i| (i - 1000) as f32 / 50.0).collect();
    let up = normal(&mut random, x.len(), 1.0);
    let dh = normal(&mut random, x.len(), 1e-2);
    for gate in [Gate::Silu, Gate::SquaredRelu] {
        // The activation and its derivative.
        let of = |x: f64| match gate {
            Gate::Silu => {
                let sigmoid = 1.0 / (1.0 + (-x).exp());
                (x * sigmoid, sigmoid * (1.0 + x * (1.0 - sigmoid)))
            }
            Gate::SquaredRelu => (x.max(0.0) * x.max(0.0), 2.0 * x.max(0.0)),
        };
        let (mut dx, mut dup) = (x.clone(), up.clone());
        train::gate(gate, &mut dx, &mut dup, &dh);
        for (at, &x) in x.iter().enumerate() {
            let (up, dh, x) = (f64::from(up[at]), f64::from(dh[at]), f64::from(x));
            let (value, own) = of(x);
            let (exact_up, exact_x) = (dh * value, dh * up * own);
            // 2.0e-7 and 2.2e-7 were found.
            let off = (f64::from(dx[at]) - exact_x).abs() / (dh * up * own.abs().max(1.0)).abs();
            let off_up = (f64::from(dup[at]) - exact_up).abs() / (dh * value.abs().max(1.0)).abs();
            assert!(
                off < 4e-7 && off_up < 4e-7,
                "{gate:?} {x}: {off:e} {off_up:e}"
            );
        }
    }
}

#[test]
fn cross_entropy_s_gradients_are_softmax_less_the_target() {
    let mut random = Random::new(3);
    for count in [1usize, 2, 259, 4096] {
        let logits = normal(&mut random, count, 3.0);
        let target = random.below(count as u64) as usize;
        let largest = logits.iter().fold(f64::MIN, |most, &x| most.max(x.into()));
        let powers: Vec<f64> = (logits.iter())
            .map(|&x| (f64::from(x) - largest).exp())
            .collect();
        let total: f64 = powers.iter().sum();
        let exact: Vec<f64> = (powers.iter().enumerate())
            .map(|(at, power)| power / total - f64::from(at == target))
            .collect();
        let mut found = logits.clone();
        assert_eq!(
            train::loss(&mut found, target),
            Some(nll(&logits, target).unwrap())
        );
        // 6.0e-8 of a whole were found, of their sum too.
        for (&found, exact) in found.iter().zip(&exact) {
            let off = (f64::from(found) - exact).abs();
            assert!(off < 2e-7, "{count}: {off:e}");
        }
        let sum: f64 = found.iter().map(|&x| f64::from(x)).sum();
        assert!(sum.abs() < 5e-7, "{count}: {sum:e}");
    }
    assert_eq!(train::loss(&mut [1.0, f32::NAN], 0), None);
    assert_eq!(train::loss(&mut [1.0, 2.0], 2), None);
}

/// The distribution of logits at a temperature.
fn softmax(logits: &[f32], temperature: f64) -> Vec<f64> {
    let largest = logits.iter().fold(f64::MIN, |most, &x| most.max(x.into()));
    let powers: Vec<f64> = (logits.iter())
        .map(|&x| ((f64::from(x) - largest) / temperature).exp())
        .collect();
    let total: f64 = powers.iter().sum();
    powers.iter().map(|power| power / total).collect()
}

#[test]
fn a_teacher_s_gradients_are_those_of_both_costs() {
    let mut random = Random::new(5);
    for (temperature, share) in [(1.0, 1.0), (2.0, 0.5), (0.7, 0.25), (4.0, 0.9)] {
        for count in [1usize, 2, 259, 4096] {
            let logits = normal(&mut random, count, 3.0);
            let teacher = normal(&mut random, 2 * count, 3.0);
            let target = random.below(count as u64) as usize;
            let (hard, soft) = (f64::from(share), f64::from(temperature));
            let parts = softmax(&logits, 1.0).into_iter().enumerate();
            let student = softmax(&logits, soft);
            let of_teacher = softmax(&teacher[count..], soft);
            let exact: Vec<f64> = parts
                .map(|(at, p)| {
                    (1.0 - hard) * (p - f64::from(at == target))
                        + hard * soft * (student[at] - of_teacher[at])
                })
                .collect();
            let mut probabilities = teacher.clone();
            for row in probabilities.chunks_mut(count) {
                assert!(train::soften(row, temperature));
            }
            let targets = SoftTargets::new(&probabilities, temperature, share).unwrap();
            let mut found = logits.clone();
            // The reported cost is the target's.
            let cost = targets.loss(&mut found, 1, target);
            assert_eq!(cost, Some(nll(&logits, target).unwrap()));
            for (&found, exact) in found.iter().zip(&exact) {
                let off = (f64::from(found) - exact).abs();
                assert!(off < 5e-7 * soft.max(1.0), "{count}: {off:e}");
            }
        }
    }
}

#[test]
fn a_teacher_without_a_share_changes_nothing() {
    let mut random = Random::new(6);
    let logits = normal(&mut random, 259, 3.0);
    let mut teacher = normal(&mut random, 259, 3.0);
    assert!(train::soften(&mut teacher, 3.0));
    let (mut plain, mut beside) = (logits.clone(), logits);
    let targets = SoftTargets::new(&teacher, 3.0, 0.0).unwrap();
    let cost = targets.loss(&mut beside, 0, 7);
    assert_eq!(cost, train::loss(&mut plain, 7));
    assert_eq!(plain, beside);
}

#[test]
fn a_teacher_that_cannot_be_learned_from_is_refused() {
    for (temperature, share) in [(0.0, 0.5), (f32::NAN, 0.5), (f32::INFINITY, 0.5)] {
        assert!(SoftTargets::new(&[], temperature, share).is_none());
    }
    for share in [-0.1, 1.1, f32::NAN] {
        assert!(SoftTargets::new(&[], 1.0, share).is_none());
    }
    // A row that is not there, or only a part of it.
    let targets = SoftTargets::new(&[0.25; 6], 1.0, 0.5).unwrap();
    assert!(targets.loss(&mut [0.5; 4], 0, 2).is_some());
    assert_eq!(targets.loss(&mut [0.5; 4], 1, 2), None);
    assert_eq!(targets.loss(&mut [0.5; 4], usize::MAX, 2), None);
    let mut torn = [1.0, f32::NAN];
    assert!(!train::soften(&mut torn, 1.0));
    assert_eq!(torn[0], 1.0);
}

/// Of some shape: gradients of outputs, codes and scales of inputs.
fn shape(rows: usize, outputs: usize, cols: usize) -> (Vec<f32>, Vec<i8>, Vec<f32>) {
    let mut random = Random::new((rows * outputs * cols) as u64);
    let dy = normal(&mut random, rows * outputs, 1e-2);
    let codes = (0..rows * cols).map(|_| (random.below(255) as i64 - 127) as i8);
    let codes = codes.collect();
    let scales = (0..rows).map(|_| random.unit_f32() / 50.0).collect();
    (dy, codes, scales)
}

/// The sums of gradients of a matrix.
pub(crate) fn weights(dy: &[f32], outputs: usize, x: &Inputs<'_>) -> Option<Vec<i64>> {
    let (rows, cols) = (x.scales.len(), x.cols());
    let (mut codes, mut exponents) = (vec![99; dy.len()], vec![99; outputs * x.group_count()]);
    let within = train::quantize(dy, outputs, x, &mut codes, &mut exponents);
    let (mut sums, mut partial) = (vec![0; outputs * cols], vec![77; cols]);
    let all = codes.chunks(rows).zip(exponents.chunks(x.group_count()));
    for ((codes, exponents), sums) in all.zip(sums.chunks_mut(cols)) {
        train::accumulate(codes, exponents, x, &mut partial, sums);
    }
    within.then_some(sums)
}

#[test]
fn gradients_of_weights_are_the_products_within_half_a_code() {
    let unit = 2f64.powi(WEIGHT_FLOOR);
    // The last two have a last sequence of fewer rows.
    let sizes = [
        (1, 3),
        (63, 63),
        (64, 128),
        (65, 130),
        (130, 130),
        (64, 6),
        (70, 145),
    ];
    for (length, rows) in sizes {
        for (outputs, cols) in [(1, 1), (17, 33)] {
            let (dy, codes, scales) = shape(rows, outputs, cols);
            let x = Inputs {
                codes: &codes,
                scales: &scales,
                length,
            };
            let sums = weights(&dy, outputs, &x).unwrap();
            for output in 0..outputs {
                let of = |row: usize| f64::from(dy[row * outputs + output] * scales[row]);
                for col in 0..cols {
                    let (mut exact, mut bound) = (0.0, 0.0);
                    for range in x.groups() {
                        let most = range
                            .clone()
                            .fold(0f64, |most, row| most.max(of(row).abs()));
                        // The least power of two whose 127 hold it, no less than the floor.
                        let power = (most / 127.0).log2().ceil().max(WEIGHT_FLOOR.into()).exp2();
                        for row in range {
                            let code = f64::from(codes[row * cols + col]);
                            exact += of(row) * code;
                            bound += power / 2.0 * code.abs();
                        }
                    }
                    let found = sums[output * cols + col] as f64 * unit;
                    assert!(
                        (found - exact).abs() <= bound,
                        "{found:e} {exact:e} {bound:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn no_split_of_sequences_shows_in_gradients_of_weights() {
    const LENGTH: usize = GROUP + 6;
    let (dy, codes, scales) = shape(3 * LENGTH, 5, 7);
    let of = |sequences: core::ops::Range<usize>| {
        let rows = sequences.start * LENGTH..sequences.end * LENGTH;
        let x = Inputs {
            codes: &codes[rows.start * 7..rows.end * 7],
            scales: &scales[rows.clone()],
            length: LENGTH,
        };
        weights(&dy[rows.start * 5..rows.end * 5], 5, &x).unwrap()
    };
    let parts = of(0..1).into_iter().zip(of(1..3)).map(|(a, b)| a + b);
    assert_eq!(parts.collect::<Vec<_>>(), of(0..3));
}

#[test]
fn gradients_of_weights_above_the_ceiling_are_told() {
    let x = Inputs {
        codes: &[1],
        scales: &[1.0],
        length: 1,
    };
    // 127 · 2⁻⁴ is the most.
    assert_eq!(weights(&[127.0 / 16.0], 1, &x), Some(vec![127 << 29]));
    for dy in [127.1 / 16.0, f32::INFINITY, f32::NAN] {
        assert_eq!(weights(&[dy], 1, &x), None, "{dy}");
    }
}

#[test]
fn codes_of_a_row_are_within_half_of_their_power() {
    let mut random = Random::new(5);
    for scale in [1e-20, 1e-3, 1.0, 1e9] {
        let dy = normal(&mut random, 200, scale);
        let (mut codes, mut high, mut low) = ([0; 200], [0; 200], [0; 200]);
        let narrow = power_row(&dy, FREE_FLOOR, &mut codes).unwrap();
        let fine = power_row_wide(&dy, &mut high, &mut low).unwrap();
        assert_eq!(fine * 256.0, narrow);
        for (at, &dy) in dy.iter().enumerate() {
            let code = f32::from(codes[at]) * narrow;
            assert!((code - dy).abs() <= narrow / 2.0);
            let code = (255 * i32::from(high[at]) + i32::from(low[at])) as f32 * fine;
            assert!((code - dy).abs() <= fine / 2.0);
        }
    }
}

#[test]
fn an_update_is_adamw_s() {
    let mut random = Random::new(6);
    const COUNT: usize = 300;
    let unit = train::unit(WEIGHT_FLOOR, 640);
    let adamw = AdamW {
        clip: 0.5,
        ..AdamW::DEFAULT
    };
    for decays in [true, false] {
        let mut weights = normal(&mut random, COUNT, 0.02);
        let (mut first, mut second) = (vec![0f32; COUNT], vec![0f32; COUNT]);
        let (mut w, mut m, mut v) = (wide(&weights), vec![0f64; COUNT], vec![0f64; COUNT]);
        let [beta1, beta2] = [adamw.beta1, adamw.beta2].map(f64::from);
        let mut powers = [1.0; 2];
        for step in 1..=5 {
            let sums: Vec<i64> = (0..COUNT)
                .map(|_| (random.normal() * 1e11) as i64)
                .collect();
            let squares = train::squares(&sums, unit);
            let g: Vec<f64> = sums
                .iter()
                .map(|&sum| sum as f64 * f64::from(unit))
                .collect();
            let exact: f64 = g.iter().map(|g| g * g).sum();
            assert!((f64::from(squares) / exact - 1.0).abs() < 1e-6);
            powers[0] *= beta1;
            powers[1] *= beta2;
            let clip = adamw.clip(squares.into());
            assert!((f64::from(clip) - (0.5 / exact.sqrt()).min(1.0)).abs() < 1e-6);
            let rate = 1e-3 / step as f32;
            let update = Update { rate, clip, powers };
            let moments = (&mut first[..], &mut second[..]);
            adamw.update(
                sqrt_f32,
                &update,
                (&sums, unit),
                decays,
                &mut weights,
                moments,
            );
            let before = w.clone();
            let decay = if decays { f64::from(adamw.decay) } else { 0.0 };
            for at in 0..COUNT {
                let g = g[at] * f64::from(clip);
                m[at] = beta1 * m[at] + (1.0 - beta1) * g;
                v[at] = beta2 * v[at] + (1.0 - beta2) * g * g;
                let own = (m[at] / (1.0 - powers[0])) / ((v[at] / (1.0 - powers[1])).sqrt() + 1e-8);
                w[at] -= f64::from(rate) * (decay * w[at] + own);
            }
            let off = weights.iter().zip(&w).fold(0f64, |most, (&found, exact)| {
                most.max((f64::from(found) - exact).abs())
            });
            // 6.7e-9: two roundings a step of weights below 0.1.
            assert!(off < 1e-8, "step {step}: {off:e}");
            assert_ne!(before, w);
        }
    }
    // Never longer, and all of it where nothing is cut.
    assert_eq!(adamw.clip(0.0), 1.0);
    assert_eq!(adamw.clip(1e-9), 1.0);
    let none = AdamW {
        clip: f32::INFINITY,
        ..adamw
    };
    assert_eq!(none.clip(1e30), 1.0);
}

#[test]
fn a_rate_rises_in_a_line_and_falls_as_a_cosine() {
    let schedule = Schedule {
        fall: Fall::Cosine,
        rate: 3e-3,
        last: 0.1,
        warmup: 20,
        steps: 300,
    };
    for step in 0..=320u64 {
        let exact = if step < 20 {
            3e-3 * (step + 1) as f64 / 20.0
        } else {
            let gone = (step.min(300) - 20) as f64 / 280.0;
            3e-3 * (0.1 + 0.9 * 0.5 * (1.0 + (core::f64::consts::PI * gone).cos()))
        };
        // 1.5e-7 was found.
        let off = (f64::from(schedule.at(step)) / exact - 1.0).abs();
        assert!(off < 4e-7, "{step}: {off:e}");
    }
}

#[test]
fn a_second_stage_takes_two_thirds_of_a_line_without_decay() {
    let schedule = Schedule {
        fall: Fall::TwoStage,
        rate: 3e-3,
        last: 0.1,
        warmup: 20,
        steps: 301,
    };
    for step in 0..=320u64 {
        let gone = (step.clamp(20, 301) - 20) as f64 / 281.0;
        let exact = match step {
            0..20 => 3e-3 * (step + 1) as f64 / 20.0,
            20..150 => 3e-3 * (0.1 + 0.9 * (1.0 - gone)),
            _ => 2e-3 * (0.1 + 0.9 * (1.0 - gone)),
        };
        let off = (f64::from(schedule.at(step)) / exact - 1.0).abs();
        assert!(off < 4e-7, "{step}: {off:e}");
        assert_eq!(schedule.decays(step), step < 150);
    }
    // A warm-up that never ends has no line to fall along.
    let all = Schedule {
        warmup: 301,
        ..schedule
    };
    assert!((all.at(301) / 2e-4 - 1.0).abs() < 1e-6);
}

#[test]
fn ternary_codes_are_those_of_the_mean_magnitude() {
    let mut random = Random::new(7);
    let weights = normal(&mut random, 1000, 0.02);
    let mut codes = vec![9; 1000];
    let scale = train::ternary(&weights, &mut codes).unwrap().to_f64();
    let mean = weights.iter().map(|&w| f64::from(w).abs()).sum::<f64>() / 1000.0;
    // f16 has 11 bits.
    assert!(
        (scale / mean - 1.0).abs() <= 2f64.powi(-11),
        "{scale} {mean}"
    );
    for (&w, &code) in weights.iter().zip(&codes) {
        let exact = f64::from(w) / scale;
        let wanted = (exact.abs() > 0.5) as i8 * exact.signum() as i8;
        assert!(
            code == wanted || (exact.abs() - 0.5).abs() < 1e-6,
            "{exact}"
        );
    }
    // Halves go to the even, which is 0 and not 1.
    let (mut codes, below) = ([9; 4], LEAST_SCALE * 0.99);
    let scale = train::ternary(&[0.5, -0.5, 1.5, -1.5], &mut codes);
    assert_eq!((scale.unwrap().to_f32(), codes), (1.0, [0, 0, 1, -1]));
    for weights in [[below; 4], [f32::NAN; 4], [0.0; 4], [1e6; 4]] {
        assert_eq!(train::ternary(&weights, &mut codes), None, "{weights:?}");
    }
}

#[test]
fn codes_of_an_embedding_s_row_are_the_nearest() {
    let mut random = Random::new(8);
    for deviation in [1e-4, 0.02, 30.0] {
        let weights = normal(&mut random, 100, deviation);
        let mut codes = [9; 100];
        let scale = train::row_codes(&weights, &mut codes).unwrap().to_f32();
        for (&w, &code) in weights.iter().zip(&codes) {
            let off = (f32::from(code) * scale - w).abs();
            // A scale that f16 rounds down cuts the largest.
            assert!(off <= scale * 0.5001 || code.unsigned_abs() == 127, "{off}");
        }
    }
    let mut codes = [9; 2];
    for (weights, scale) in [
        ([0.0; 2], Some(0.0)),
        ([1e-9; 2], Some(0.0)),
        ([1e9; 2], None),
    ] {
        let found = train::row_codes(&weights, &mut codes);
        assert_eq!(found.map(|scale| scale.to_f32()), scale, "{weights:?}");
    }
    assert_eq!(train::row_codes(&[f32::NAN, 1.0], &mut codes), None);
}
