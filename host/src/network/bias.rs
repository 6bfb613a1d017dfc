//! Biases in the units of a layer's exact sums.

use tercet_core::linear::MAX_BIAS_SHIFT;

use super::encode::Weights;

/// Gives a row of zeros, which has scale 0, a scale in which its bias is 2¹⁶: the bias of the row still counts, in that
/// scale.
pub(super) fn give_empty_rows_a_scale(weights: &mut Weights, bias: &[f32], x_scale: f32) {
    let one = weights.scales.len() == 1;
    let largest = bias.iter().fold(0f32, |max, b| max.max(b.abs()));
    for (row, scale) in weights.scales.iter_mut().enumerate() {
        if *scale == 0.0 {
            let bias = if one {
                largest
            } else {
                bias.get(row).map_or(0.0, |b| b.abs())
            };
            let needed = (f64::from(bias) / f64::from(x_scale) / 65_536.0) as f32;
            *scale = if needed.is_normal() { needed } else { 1.0 };
        }
    }
}

/// Returns the biases in units of the sums, with the least shift that brings all into 32 bits; `None` if none does.
pub(super) fn integers(bias: &[f32], units: &[f64]) -> Option<(Vec<i32>, u8)> {
    (0..=MAX_BIAS_SHIFT).find_map(|shift| {
        let scaled = bias.iter().zip(units).map(|(&bias, unit)| {
            let value = f64::from(bias) / (unit * f64::from(1u32 << shift));
            let value = value.round_ties_even();
            (value.abs() <= f64::from(i32::MAX)).then_some(value as i32)
        });
        Some((scaled.collect::<Option<Vec<i32>>>()?, shift))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn biases_round_half_to_even_and_shift_as_little_as_they_can() {
        assert_eq!(
            integers(&[1.25, -1.25, 0.75], &[0.5; 3]),
            Some((vec![2, -2, 2], 0))
        );
        assert_eq!(
            integers(&[2147483648.0, 2.0], &[1.0; 2]),
            Some((vec![1 << 30, 1], 1))
        );
        assert_eq!(integers(&[1e30], &[1e-9]), None);
        assert_eq!(integers(&[], &[]), Some((vec![], 0)));
    }
}
