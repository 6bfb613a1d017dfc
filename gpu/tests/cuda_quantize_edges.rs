//! Where a fast way ends: values beside ties and beyond a grid, scales without a reciprocal, sums that a window of
//! bits does not hold. Each has to be seen and taken the slow way.

use crate::support::draw::Draw;
use crate::support::emulator::device;
use crate::support::quantize::{compare, compare_steps, halves, values};
use half::{bf16, f16};
use tercet_core::number::{Element, Stats};
use tercet_core::quant::{Grid, Groups, Method, Rule, ScaleRule};
use tercet_gpu::engine::Cuda;

/// Scales of any size, and those at the ends of what has a normal reciprocal.
fn scales(draw: &mut Draw) -> Vec<f32> {
    let ends = [
        1.0,
        f32::MIN_POSITIVE,
        f32::MIN_POSITIVE / 2.0,
        f32::MIN_POSITIVE / 4.0,
        f32::MIN_POSITIVE / 4.0 * (1.0 - f32::EPSILON * 2.0),
        f32::from_bits(1),
        f32::from_bits(3),
        2f32.powi(126),
        2f32.powi(126) * (1.0 + f32::EPSILON),
        f32::MAX,
    ];
    // Most between 2⁻¹²⁰ and 2¹¹⁶.
    let any = (0..20).map(|_| f32::from_bits((draw.below(236 << 23) as u32) + (7 << 23)));
    ends.into_iter().chain(any).collect()
}

/// The product that is nearest to (k + ½) · scale, up to four patterns off, with either sign.
fn beside_tie(draw: &mut Draw, scale: f32, most: u64) -> f32 {
    let tie = (draw.below(most) as f64 + 0.5) * f64::from(scale);
    let pattern = (tie.min(f64::from(f32::MAX)) as f32).to_bits();
    let off = (pattern + draw.below(9) as u32).saturating_sub(4);
    let x = f32::from_bits(off.min(f32::MAX.to_bits()));
    if draw.below(2) == 0 { x } else { -x }
}

#[test]
fn values_beside_ties_get_cores_codes() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let mut draw = Draw(11);
    for scale in scales(&mut draw) {
        for (low, high, zero_point) in [
            (-127, 127, 0),
            (-7, 7, 0),
            (-128, 127, -128),
            (-100, 90, 33),
        ] {
            let reach = u64::from((i32::from(high) - i32::from(low)).unsigned_abs());
            let values: Vec<f32> = (0..1500)
                .map(|_| beside_tie(&mut draw, scale, reach + 3))
                .collect();
            let grid = Grid {
                scale,
                zero_point,
                low,
                high,
            };
            let groups = Groups::rows(3, 500).unwrap();
            compare(&mut cuda, &values, groups, Method::Fixed(grid), true);
        }
    }
}

/// The largest value makes the scale; all others lie beside a tie of it.
fn row_with_ties(draw: &mut Draw, limit: u64, scale: f32, len: usize) -> Vec<f32> {
    let largest = (limit as f32 * scale).min(f32::MAX);
    let scale = largest / limit as f32;
    let mut row: Vec<f32> = (0..len)
        .map(|_| beside_tie(draw, scale, limit).clamp(-largest, largest))
        .collect();
    row[len / 3] = largest;
    row
}

#[test]
fn rows_of_ties_get_cores_codes() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let mut draw = Draw(12);
    for (rows, cols) in [(5, 300), (2, 2500), (1, 40_003)] {
        for limit in [127, 7, 1] {
            let few: Vec<f32> = scales(&mut draw).into_iter().take(12 / rows + 4).collect();
            for scale in few {
                let values: Vec<f32> = (0..rows)
                    .flat_map(|_| row_with_ties(&mut draw, limit, scale, cols))
                    .collect();
                let groups = Groups::rows(rows, cols).unwrap();
                let symmetric = Method::Symmetric { limit: limit as i8 };
                compare(&mut cuda, &values, groups, symmetric, false);
                compare(&mut cuda, &values, groups, Method::Affine, true);
                // Both halves of each value lie there too.
                let narrow = halves(&values, bf16::from_f32);
                compare(&mut cuda, &narrow, groups, symmetric, false);
            }
        }
    }
    // Integers and halves, as trained integers are: every second one a tie.
    let values: Vec<f16> = (0..3000)
        .map(|_| f16::from_f32(draw.below(510) as f32 / 2.0 - 127.0))
        .collect();
    let groups = Groups::rows(2, 1500).unwrap();
    compare(
        &mut cuda,
        &values,
        groups,
        Method::Symmetric { limit: 127 },
        false,
    );
    compare(&mut cuda, &values, groups, Method::Affine, true);
}

#[test]
fn what_is_not_finite_gets_cores_codes() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let mut values = vec![0.25; 600];
    for (at, bad) in [f32::INFINITY, f32::NEG_INFINITY].into_iter().enumerate() {
        values[17 + 60 * at] = bad;
    }
    let groups = Groups::tensor(600).unwrap();
    let grid = Grid {
        scale: 0.5,
        zero_point: 3,
        low: -128,
        high: 127,
    };
    for method in [Method::Fixed(grid), Method::Affine] {
        compare_steps(&mut cuda, &values, groups, method);
        compare(&mut cuda, &values, groups, method, true);
    }
}

/// Values for which a window of 44 bits has to move or to give up, by what a thread meets first: tiles are of 16
/// values, 4 or 8 a vector.
fn hard_sums(draw: &mut Draw, kind: u64, len: usize) -> Vec<f32> {
    let power = |exponent: i32| f32::from_bits(((exponent + 127) as u32) << 23);
    (0..len)
        .map(|index| {
            let part = index * 8 / len.max(8);
            let mantissa = draw.next() as u32 & 0x007F_FFFF;
            let with = |exponent: i32| f32::from_bits(power(exponent).to_bits() | mantissa);
            let x = match kind {
                // Growing by 2¹⁵ an eighth, and falling.
                0 => with(15 * part as i32 - 100),
                1 => with(100 - 15 * part as i32),
                // Far apart in every tile.
                2 => with(draw.below(253) as i32 - 126),
                // At the ends of what a window holds: 2²⁰ and more below the top.
                3 => with(-(draw.below(26) as i32)),
                // The largest, whose window would be infinite; and the smallest.
                4 => with(127 - draw.below(5) as i32),
                5 => f32::from_bits(mantissa >> draw.below(23)),
                // Large ones, seldom a subnormal.
                6 if draw.below(100) == 0 => f32::from_bits(1 + mantissa % 3),
                6 => with(3),
                // Zeros first.
                _ if index < len / 2 => 0.0,
                _ => with(draw.below(4) as i32),
            };
            if draw.below(2) == 0 { x } else { -x }
        })
        .collect()
}

fn check_stats<T: Element>(cuda: &mut Cuda, values: &[T]) {
    let there = cuda.upload(values).unwrap();
    assert_eq!(
        cuda.stats(&there).unwrap(),
        Stats::of(values),
        "{:?}",
        T::KIND
    );
}

#[test]
fn sums_that_leave_their_window_are_exact() {
    let Some(device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let mut draw = Draw(13);
    for len in [1, 4, 15, 16, 31, 500, 2048, 2049, 16_411, 70_001] {
        device.set(&format!("seed={len}"));
        for kind in 0..8 {
            let values = hard_sums(&mut draw, kind, len);
            check_stats(&mut cuda, &values);
            check_stats(&mut cuda, &halves(&values, bf16::from_f32));
            check_stats(&mut cuda, &halves(&values, f16::from_f32));
            if len == 500 || len == 16_411 {
                let groups = Groups::tensor(len).unwrap();
                for (rule, scale_rule) in [
                    (Rule::AbsMean, ScaleRule::Rule),
                    (Rule::Twn, ScaleRule::LeastSquares),
                    (Rule::AbsMax, ScaleRule::LeastSquares),
                ] {
                    let method = Method::Ternary { rule, scale_rule };
                    compare(&mut cuda, &values, groups, method, false);
                }
            }
        }
    }
}

/// Codes alone, codes with their sum, and codes of a grid have kernels of their own for each type.
#[test]
fn long_groups_of_every_type_are_quantized_as_by_core() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let values = values(21, 0, 40_019);
    let (f16s, bf16s) = (
        halves(&values, f16::from_f32),
        halves(&values, bf16::from_f32),
    );
    let groups = Groups::tensor(values.len()).unwrap();
    let ternary = |rule, scale_rule| Method::Ternary { rule, scale_rule };
    for method in [
        ternary(Rule::AbsMax, ScaleRule::Rule),
        ternary(Rule::AbsMean, ScaleRule::LeastSquares),
        Method::Symmetric { limit: 127 },
    ] {
        compare(&mut cuda, &values, groups, method, false);
        compare(&mut cuda, &f16s, groups, method, false);
        compare(&mut cuda, &bf16s, groups, method, false);
    }
}
