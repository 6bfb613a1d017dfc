//! Training: its steps over awkward sizes, and a step of the whole ternary model.

use super::{Digest, input};
use crate::engine::{TrainEngine, WeightScratch};
use crate::model::Gate;
use crate::number::root::sqrt_f32;
use crate::number::{Random, counter};
use crate::quant::activations::Norm;
use crate::train::{
    self, Activations, AdamW, FACTORED_COLUMNS, Fall, GROUP, Inputs, LEAN_BLOCK, LeanBlock,
    LeanSecond, Schedule, Update, WEIGHT_FLOOR,
};

/// Numbers of rows into which values are divided.
const ROWS: [usize; 3] = [1, 3, 5];

/// Cases that do not depend on an engine.
pub(super) fn run(report: &mut dyn FnMut(&'static str, u64)) {
    report("train/loss", loss());
    report("train/update", update());
    report("train/lean", lean());
    report("train/factored", factored());
    report("train/kept", kept());
    report("train/codes", codes());
}

/// Cases for small machines: in at most 15.5 KiB.
pub(super) fn run_engine<E: TrainEngine>(
    engine: &mut E,
    report: &mut dyn FnMut(&'static str, u64),
) {
    report("train/power", power(engine));
    report("train/norm", norm(engine));
    report("train/gate", gate(engine));
    report("train/weights", weights(engine));
}

/// Digests floats. All NaNs count as one, since a NaN's bits depend on the processor.
pub(super) fn numbers(digest: &mut Digest, values: &[f32]) {
    for &value in values {
        digest.f32(if value.is_nan() { f32::NAN } else { value });
    }
}

#[inline(never)]
fn loss() -> u64 {
    let mut digest = Digest::new();
    input::for_each(80, &mut |values| {
        for target in [0, values.len() / 2, values.len()] {
            let mut logits = [0.0; input::MAX];
            let logits = logits.get_mut(..values.len()).unwrap_or_default();
            logits.copy_from_slice(values);
            let cost = train::loss(logits, target);
            digest.u64(cost.map_or(u64::MAX, |cost| cost as u64));
            if cost.is_some() {
                numbers(&mut digest, logits);
            }
        }
    });
    digest.value()
}

/// Three updates of weights whose gradients have all magnitudes, with and without decay and limit; and learning
/// rates.
#[inline(never)]
fn update() -> u64 {
    const COUNT: usize = 130;
    let mut digest = Digest::new();
    let mut random = Random::new(81);
    for (decays, clip) in [(true, 1.0), (false, 1.0), (true, f32::INFINITY)] {
        let adamw = AdamW {
            clip,
            ..AdamW::DEFAULT
        };
        let (mut weights, mut sums) = ([0.0; COUNT], [0i64; COUNT]);
        let (mut first, mut second) = ([0.0; COUNT], [0.0; COUNT]);
        input::Family::Bell.fill(82, &mut weights);
        let mut powers = [1.0; 2];
        for step in 0..3 {
            for sum in &mut sums {
                *sum = random.next_u64().cast_signed() >> (random.below(60) + 4);
            }
            let unit = train::unit(WEIGHT_FLOOR, 35);
            let squares = train::squares(&sums, unit);
            digest.f32(squares);
            powers[0] *= f64::from(adamw.beta1);
            powers[1] *= f64::from(adamw.beta2);
            let schedule = Schedule {
                fall: Fall::Cosine,
                rate: 3e-3,
                last: 0.1,
                warmup: 1,
                steps: 7,
            };
            let update = Update {
                rate: schedule.at(step),
                clip: adamw.clip(squares.into()),
                powers,
            };
            digest.f32s(&[update.rate, update.clip]);
            let moments = (&mut first[..], &mut second[..]);
            let own = (&sums[..], unit);
            apply(&adamw, &update, (own, decays), &mut weights, moments);
        }
        for values in [&weights, &first, &second] {
            digest.f32s(values);
        }
    }
    digest.value()
}

/// Does [`AdamW::update`], once in a program.
#[inline(never)]
pub(super) fn apply(
    adamw: &AdamW,
    update: &Update,
    (sums, decays): ((&[i64], f32), bool),
    weights: &mut [f32],
    moments: (&mut [f32], &mut [f32]),
) {
    adamw.update(sqrt_f32, update, sums, decays, weights, moments);
}

/// Does [`AdamW::update_lean`], once in a program.
#[inline(never)]
fn apply_lean(
    update: &Update,
    (sums, decays): ((&[i64], f32), bool),
    block: LeanBlock<'_>,
    (step, place): (u64, u64),
) {
    let draws = |index: usize| counter(step, 4, place + index as u64);
    AdamW::DEFAULT.update_lean(sqrt_f32, update, sums, decays, block, draws);
}

/// Six updates of blocks with a small state: gradients of all magnitudes, none, and a weight that is not finite.
#[inline(never)]
fn lean() -> u64 {
    let mut digest = Digest::new();
    let mut random = Random::new(93);
    for (place, count) in [(0, LEAN_BLOCK), (64, 30), (128, LEAN_BLOCK)] {
        let (mut weights, mut sums) = ([0.0; LEAN_BLOCK], [0i64; LEAN_BLOCK]);
        input::Family::Bell.fill(94 + place, &mut weights);
        if place == 128 {
            weights[7] = f32::INFINITY;
        }
        let (mut codes, mut first, mut second) =
            ([0; LEAN_BLOCK], [0; LEAN_BLOCK], [0; LEAN_BLOCK]);
        let mut exponent = train::lean_codes(&weights, &mut codes);
        let (mut scales, mut powers) = ([0.0; 2], [1.0; 2]);
        for step in 0..6 {
            for sum in &mut sums {
                *sum = random.next_u64().cast_signed() >> (random.below(60) + 4);
            }
            if step == 3 {
                sums.fill(0);
            }
            powers[0] *= f64::from(AdamW::DEFAULT.beta1);
            powers[1] *= f64::from(AdamW::DEFAULT.beta2);
            let update = Update {
                rate: 3e-3,
                clip: 0.5,
                powers,
            };
            let block = LeanBlock {
                weights: &mut codes,
                exponent: &mut exponent,
                first: &mut first,
                second: LeanSecond::Codes(&mut second),
                scales: &mut scales,
            };
            let own = (
                sums.get(..count).unwrap_or_default(),
                train::unit(WEIGHT_FLOOR, 35),
            );
            apply_lean(&update, (own, step < 5), block, (step, place));
        }
        for code in codes {
            digest.bytes(&code.to_le_bytes());
        }
        digest.i8s(&[exponent]);
        digest.i8s(&first);
        digest.bytes(&second);
        digest.f32s(&scales);
        train::lean_weights(&codes, exponent, &mut weights);
        digest.f32s(&weights);
    }
    digest.value()
}

/// Three updates of a small matrix whose second moments are factored, with all weights' states and with small ones.
#[inline(never)]
fn factored() -> u64 {
    const ROWS: usize = 3;
    const COLUMNS: usize = FACTORED_COLUMNS + 7;
    let mut digest = Digest::new();
    let mut random = Random::new(95);
    let adamw = AdamW::DEFAULT;
    let without = AdamW {
        beta2: 1.0,
        ..adamw
    };
    let (mut weights, mut first) = ([[0.0; COLUMNS]; ROWS], [[0.0; COLUMNS]; ROWS]);
    input::Family::Bell.fill(96, weights.as_flattened_mut());
    let (mut codes, mut small) = ([0; LEAN_BLOCK], [0; LEAN_BLOCK]);
    let ([start, ..], _) = weights.as_flattened().as_chunks::<LEAN_BLOCK>() else {
        return digest.value();
    };
    let mut exponent = train::lean_codes(start, &mut codes);
    let (mut rows, mut columns) = ([0.0; ROWS], [0.0; COLUMNS]);
    let (mut scales, mut powers) = ([0.0; 2], [1.0; 2]);
    for step in 0..3 {
        let mut sums = [0i64; ROWS * COLUMNS];
        for sum in sums.iter_mut().filter(|_| step != 1) {
            *sum = random.next_u64().cast_signed() >> (random.below(60) + 4);
        }
        powers[0] *= f64::from(adamw.beta1);
        powers[1] *= f64::from(adamw.beta2);
        let update = Update {
            rate: 3e-3,
            clip: 0.5,
            powers,
        };
        let unit = train::unit(WEIGHT_FLOOR, 35);
        for (row, sums) in rows.iter_mut().zip(sums.chunks(COLUMNS)) {
            adamw.row_factor(&update, (sums, unit), row);
        }
        for (piece, columns) in columns.chunks_mut(FACTORED_COLUMNS).enumerate() {
            let place = (COLUMNS, piece * FACTORED_COLUMNS);
            adamw.column_factors(&update, (&sums, unit), place, columns);
        }
        let mean = train::factor_mean(&rows);
        digest.f32(mean);
        let matrix = weights.iter_mut().zip(&mut first).zip(rows);
        for (((weights, first), row), sums) in matrix.zip(sums.chunks(COLUMNS)) {
            let mut second = [0.0; COLUMNS];
            train::factored(row, mean, &columns, &mut second);
            digest.f32s(&second);
            let moments = (&mut first[..], &mut second[..]);
            apply(&without, &update, ((sums, unit), true), weights, moments);
        }
        let mut second = [0.0; LEAN_BLOCK];
        train::factored(rows[0], mean, &columns, &mut second);
        let block = LeanBlock {
            weights: &mut codes,
            exponent: &mut exponent,
            first: &mut small,
            second: LeanSecond::New(&second),
            scales: &mut scales,
        };
        let own = (sums.get(..LEAN_BLOCK).unwrap_or_default(), unit);
        apply_lean(&update, (own, true), block, (step, 0));
    }
    for values in [&weights, &first] {
        digest.f32s(values.as_flattened());
    }
    digest.f32s(&rows);
    digest.f32s(&columns);
    for code in codes {
        digest.bytes(&code.to_le_bytes());
    }
    digest.i8s(&[exponent]);
    digest.i8s(&small);
    digest.f32s(&scales);
    digest.value()
}

/// Values that were kept in fewer bits.
#[inline(never)]
fn kept() -> u64 {
    let mut digest = Digest::new();
    rows_of(97, &mut |values, rows| {
        for activations in [Activations::Bf16, Activations::Int8] {
            let (mut bytes, mut found) = ([0; 2 * input::MAX], [0.0; input::MAX]);
            let needs = activations.bytes(values.len(), rows);
            let found = found.get_mut(..values.len()).unwrap_or_default();
            let bytes = bytes.get_mut(..needs).unwrap_or_default();
            activations.pack(values, rows, bytes);
            activations.unpack(bytes, rows, found);
            numbers(&mut digest, found);
        }
    });
    digest.value()
}

/// Codes of master weights, also transposed.
#[inline(never)]
fn codes() -> u64 {
    let mut digest = Digest::new();
    input::for_each(83, &mut |values| {
        let (mut codes, mut bytes) = ([0; input::MAX], [0; input::MAX]);
        let codes = codes.get_mut(..values.len()).unwrap_or_default();
        for of in [train::ternary, train::row_codes] {
            let scale = of(values, codes);
            digest.u64(scale.map_or(u64::MAX, |scale| scale.to_bits().into()));
            if scale.is_some() {
                digest.i8s(codes);
                train::transpose(codes, 5, &mut bytes);
                digest.bytes(&bytes);
            }
        }
    });
    digest.value()
}

/// Calls `each` with every input in each of these numbers of rows.
fn rows_of(seed: u64, each: &mut dyn FnMut(&[f32], usize)) {
    input::for_each(seed, &mut |values| {
        for rows in ROWS {
            let len = values.len() / rows * rows;
            each(values.get(..len).unwrap_or_default(), rows);
        }
    });
}

#[inline(never)]
fn power<E: TrainEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    rows_of(84, &mut |values, rows| {
        let mut codes = [0; 2 * input::MAX];
        let mut scales = [0.0; 5];
        let scales = scales.get_mut(..rows).unwrap_or_default();
        for planes in 1..=2 {
            let codes = codes.get_mut(..planes * values.len()).unwrap_or_default();
            let within = match planes {
                1 => engine.power_rows(values, codes, scales),
                _ => engine.power_planes(values, codes, scales),
            };
            if digest.outcome(within) == Some(true) && !values.is_empty() {
                digest.i8s(codes);
                digest.f32s(scales);
            }
        }
    });
    digest.value()
}

/// Written and added.
#[inline(never)]
fn norm<E: TrainEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    rows_of(85, &mut |values, rows| {
        let cols = values.len() / rows;
        let (mut gains, mut dy) = ([0.0; input::MAX], [0.0; input::MAX]);
        input::Family::Bell.fill(86, &mut gains);
        input::Family::Bell.fill(87, &mut dy);
        let norm = Norm {
            gains: gains.get(..cols).unwrap_or_default(),
            eps: 1.0e-5,
        };
        let (mut dx, mut scratch, mut sums) =
            ([0.25; input::MAX], [0.0; input::MAX], [7; input::MAX]);
        let (Some(dy), Some(dx), Some(sums), Some(scratch)) = (
            dy.get(..values.len()),
            dx.get_mut(..values.len()),
            sums.get_mut(..cols),
            scratch.get_mut(..cols),
        ) else {
            return;
        };
        for adds in [true, false] {
            let within = engine.norm_gradient((values, norm), dy, (dx, adds), sums, scratch);
            if digest.outcome(within) == Some(true) {
                numbers(&mut digest, dx);
                sums.iter().for_each(|&sum| digest.u64(sum as u64));
            }
        }
    });
    digest.value()
}

#[inline(never)]
fn gate<E: TrainEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    input::for_each(88, &mut |values| {
        for gate in [Gate::Silu, Gate::SquaredRelu] {
            let (mut x, mut up, mut dh) = ([0.0; input::MAX], [0.0; input::MAX], [0.0; input::MAX]);
            let (Some(x), Some(up), Some(dh)) = (
                x.get_mut(..values.len()),
                up.get_mut(..values.len()),
                dh.get_mut(..values.len()),
            ) else {
                continue;
            };
            x.copy_from_slice(values);
            input::Family::Bell.fill(89, up);
            input::Family::Ties.fill(90, dh);
            digest.outcome(engine.gate_gradient(gate, x, up, dh));
            numbers(&mut digest, x);
            numbers(&mut digest, up);
        }
    });
    digest.value()
}

/// Rows of a sequence, all rows, outputs and columns: at most a group, a group and a row, a part of a sequence, parts
/// of vectors.
const SHAPES: [(usize, usize, usize, usize); 7] = [
    (1, 1, 1, 1),
    (5, 10, 3, 7),
    (3, 6, 17, 33),
    (63, 63, 2, 5),
    (64, 64, 2, 16),
    (65, 65, 3, 17),
    (64, 6, 5, 9),
];

#[inline(never)]
fn weights<E: TrainEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    for shape in SHAPES {
        let mut room = Weights {
            dy: &mut [0.0; 195],
            x: &mut [0; 1105],
            scales: &mut [0.0; 65],
            codes: &mut [0; 195],
            exponents: &mut [0; 34],
            partial: &mut [0; 33],
            sums: &mut [0; 561],
        };
        room.gradient(engine, shape, &mut digest);
    }
    digest.value()
}

/// Memory for the gradient of a matrix.
pub(super) struct Weights<'r> {
    pub(super) dy: &'r mut [f32],
    pub(super) x: &'r mut [i8],
    pub(super) scales: &'r mut [f32],
    pub(super) codes: &'r mut [i8],
    pub(super) exponents: &'r mut [i32],
    pub(super) partial: &'r mut [i32],
    pub(super) sums: &'r mut [i64],
}

impl Weights<'_> {
    /// Digests the numbers added to sums: for gradients within their bounds and for gradients below all floors, and
    /// the flag for one above them.
    #[inline(never)]
    pub(super) fn gradient<E: TrainEngine>(
        &mut self,
        engine: &mut E,
        (length, rows, outputs, cols): (usize, usize, usize, usize),
        digest: &mut Digest,
    ) {
        let groups = rows / length * length.div_ceil(GROUP) + (rows % length).div_ceil(GROUP);
        let (Some(dy), Some(x), Some(scales), Some(codes), Some(exponents), Some(sums)) = (
            self.dy.get_mut(..rows * outputs),
            self.x.get_mut(..rows * cols),
            self.scales.get_mut(..rows),
            self.codes.get_mut(..rows * outputs),
            self.exponents.get_mut(..outputs * groups),
            self.sums.get_mut(..outputs * cols),
        ) else {
            // A shape that does not fit is an error in this file.
            return digest.u64(u64::MAX);
        };
        let mut random = Random::new(91);
        for code in x.iter_mut() {
            *code = (random.below(255) as i32 - 127) as i8;
        }
        input::Family::Bell.fill(92, scales);
        for (scale, factor) in scales
            .iter_mut()
            .zip([0.5, 0.0, 1.0e-3].into_iter().cycle())
        {
            *scale = scale.abs() * factor;
        }
        sums.fill(-3);
        for (unit, last) in [(0.01, 0.0), (1.0e-9, 0.0), (1.0, 1.0e9), (1.0, f32::NAN)] {
            input::Family::Bell.fill(93, dy);
            dy.iter_mut().for_each(|dy| *dy *= unit);
            if let Some(dy) = dy.last_mut().filter(|_| last != 0.0) {
                *dy = last;
            }
            let inputs = Inputs {
                codes: x,
                scales,
                length,
            };
            let mut scratch = WeightScratch {
                codes,
                exponents,
                partial: self.partial,
            };
            let within = engine.weight_gradient(dy, &inputs, &mut scratch, sums);
            if let Some(within) = digest.outcome(within) {
                digest.u64(within.into());
                if within {
                    sums.iter().for_each(|&sum| digest.u64(sum as u64));
                } else {
                    sums.fill(-3);
                }
            }
        }
    }
}
