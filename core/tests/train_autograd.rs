//! The steps of training beside PyTorch's autograd in f64, without quantization: `benches/train/autograd.py` wrote
//! what it says, on the draws that are made again here.
//! `cargo test -p tercet-core --test laws autograd -- --nocapture` tells the largest differences.

use tercet_core::model::{Gate, nll};
use tercet_core::number::root::sqrt_f32;
use tercet_core::quant::activations::Norm;
use tercet_core::train::{
    self, AdamW, FREE_FLOOR, GAIN_UNIT, Inputs, Update, WEIGHT_FLOOR, power_row,
};

use crate::train_attention::{Case, HEADS, KV, LEN};
use crate::train_steps::{apart, weights};

const SAID: &str = include_str!("train_autograd.txt");

/// What PyTorch says of a tensor.
fn said(name: &str) -> Vec<f64> {
    let line = SAID
        .lines()
        .find(|line| line.split(' ').next() == Some(name));
    let values = line.expect("a tensor of the script").split(' ').skip(1);
    values.map(|value| value.parse().unwrap()).collect()
}

/// From −1 to 1 in steps of 2⁻²³, as the script draws them.
fn draws(seed: u32, count: usize) -> impl Iterator<Item = f32> {
    (0..count as u32).map(move |at| {
        let mut h = at
            .wrapping_mul(2_654_435_761)
            .wrapping_add(seed.wrapping_mul(40503));
        for (shift, factor) in [(15, 2_246_822_519), (13, 3_266_489_917)] {
            h = (h ^ h >> shift).wrapping_mul(factor);
        }
        h ^= h >> 16;
        ((h >> 8) as i32 - (1 << 23)) as f32 / (1 << 23) as f32
    })
}

fn codes(seed: u32, most: i32, count: usize) -> impl Iterator<Item = f32> {
    draws(seed, count).map(move |draw| (f64::from(draw) * f64::from(most) + 0.5).floor() as f32)
}

/// Scales about 2 over a power of two.
fn scales(seed: u32, count: usize, over: f32) -> Vec<f32> {
    draws(seed, count).map(|draw| (draw + 2.0) / over).collect()
}

/// Fails if the largest difference, of the largest magnitude, is not below a bound.
fn close(name: &str, found: &[f32], bound: f64) {
    let off = apart(found, &said(name));
    println!("{name}: {off:.1e}");
    assert!(off < bound, "{name}: {off:e}");
}

fn floats(sums: &[i64], unit: i32) -> Vec<f32> {
    let unit = 2f64.powi(unit);
    sums.iter().map(|&sum| (sum as f64 * unit) as f32).collect()
}

/// What has no codes agrees as f32 can; the bounds are what was found, a little widened.
#[test]
fn steps_in_floats_are_autograd_s() {
    let x: Vec<f32> = draws(1, 48).collect();
    let gains: Vec<f32> = draws(2, 48).map(|draw| draw + 1.0).collect();
    let dy: Vec<f32> = draws(3, 48).collect();
    let norm = Norm {
        gains: &gains,
        eps: 0.007_812_5,
    };
    let (mut dx, mut sums, mut scratch) = ([0.0; 48], [0; 48], [0.0; 48]);
    assert!(train::norm(
        &x,
        norm,
        &dy,
        (&mut dx, false),
        &mut sums,
        &mut scratch
    ));
    close("norm.x", &dx, 2e-7);
    close("norm.gains", &floats(&sums, GAIN_UNIT), 2e-7);

    for (gate, name) in [(Gate::Silu, "silu"), (Gate::SquaredRelu, "squared_relu")] {
        let mut x: Vec<f32> = draws(4, 64).map(|draw| draw * 8.0).collect();
        let mut up: Vec<f32> = draws(5, 64).collect();
        let dh: Vec<f32> = draws(6, 64).collect();
        train::gate(gate, &mut x, &mut up, &dh);
        close(&format!("{name}.x"), &x, 3e-7);
        close(&format!("{name}.up"), &up, 3e-7);
    }

    let mut logits: Vec<f32> = draws(7, 60).map(|draw| draw * 4.0).collect();
    let cost = nll(&logits, 7).unwrap();
    assert_eq!(train::loss(&mut logits, 7), Some(cost));
    close("loss.logits", &logits, 2e-7);
}

/// Gradients in int8 codes differ from floats by halves of codes.
#[test]
fn steps_in_codes_are_autograd_s_within_their_codes() {
    const ROWS: usize = 70;
    const COLS: usize = 24;
    const OUTPUTS: usize = 12;
    let x: Vec<i8> = codes(8, 127, ROWS * COLS).map(|code| code as i8).collect();
    let scales_of_x = scales(9, ROWS, 128.0);
    let matrix: Vec<f32> = codes(10, 1, OUTPUTS * COLS).collect();
    let dy: Vec<f32> = draws(11, ROWS * OUTPUTS).collect();
    let inputs = Inputs {
        codes: &x,
        scales: &scales_of_x,
        length: ROWS,
    };
    let sums = weights(&dy, OUTPUTS, &inputs).unwrap();
    close("linear.weights", &floats(&sums, WEIGHT_FLOOR), 1e-2);
    let mut dx = Vec::new();
    for row in dy.chunks(OUTPUTS) {
        let mut codes = [0; OUTPUTS];
        let power = power_row(row, FREE_FLOOR, &mut codes).unwrap();
        dx.extend((0..COLS).map(|col| {
            let products = codes.iter().zip(matrix[col..].iter().step_by(COLS));
            products.map(|(&code, w)| f32::from(code) * w).sum::<f32>() * 0.0625 * power
        }));
    }
    close("linear.x", &dx, 1e-2);

    let case = Case {
        length: ROWS,
        sequences: 1,
        queries: codes(12, 32767, ROWS * HEADS * LEN)
            .map(|code| code as i16)
            .collect(),
        query_scales: scales(13, ROWS * HEADS, 131_072.0),
        keys: codes(14, 127, ROWS * KV * LEN)
            .map(|code| code as i8)
            .collect(),
        key_scales: scales(15, ROWS * KV, 128.0),
        values: codes(16, 127, ROWS * KV * LEN)
            .map(|code| code as i8)
            .collect(),
        value_scales: scales(17, ROWS * KV, 128.0),
        d_out: draws(18, ROWS * HEADS * LEN).collect(),
    };
    let found = case.found().unwrap();
    for ((found, name), heads) in found
        .iter()
        .zip(["queries", "keys", "values"])
        .zip([HEADS, KV, KV])
    {
        let rows = [0, 1, 31, 63, 64, 69].map(|row| &found[row * heads * LEN..][..heads * LEN]);
        close(&format!("attention.{name}"), &rows.concat(), 3e-2);
    }
}

#[test]
fn updates_are_those_of_pytorch_s_adamw() {
    let adamw = AdamW {
        beta1: 0.875,
        beta2: 0.968_75,
        eps: 2f32.powi(-27),
        decay: 0.125,
        clip: 0.5,
    };
    let unit = train::unit(WEIGHT_FLOOR, 1);
    let mut values: Vec<f32> = draws(19, 40).map(|draw| draw / 16.0).collect();
    let (mut first, mut second) = ([0.0; 40], [0.0; 40]);
    let mut powers = [1.0; 2];
    for (step, (rate, size)) in [
        (0.007_812_5, 1.0),
        (0.015_625, 0.015_625),
        (0.003_906_25, 2.0),
    ]
    .into_iter()
    .enumerate()
    {
        // Draws are multiples of the unit.
        let sums: Vec<i64> = draws(20 + step as u32, 40)
            .map(|draw| (f64::from(draw * size) / f64::from(unit)) as i64)
            .collect();
        powers[0] *= f64::from(adamw.beta1);
        powers[1] *= f64::from(adamw.beta2);
        let clip = adamw.clip(train::squares(&sums, unit).into());
        let update = Update { rate, clip, powers };
        let moments = (&mut first[..], &mut second[..]);
        adamw.update(sqrt_f32, &update, (&sums, unit), true, &mut values, moments);
        // PyTorch adds 1e-6 to a norm before it divides by it.
        close(&format!("adamw.{}", step + 1), &values, 1e-6);
    }
}
