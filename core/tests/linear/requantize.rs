//! Scales as multipliers and shifts.

use proptest::prelude::*;
use tercet_core::linear::{LinearError, MAX_SHIFT, Requantize};

use crate::support::cases;

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn apply_is_the_exact_rule(
        sum in prop_oneof![any::<i64>(), any::<i32>().prop_map(i64::from), -1000i64..1000],
        multiplier in 1i32 << 30..=i32::MAX,
        shift in 1..=MAX_SHIFT,
    ) {
        prop_assume!(sum != i64::MIN);
        let product = i128::from(sum) * i128::from(multiplier) + (1i128 << (shift - 1));
        let expected = (product >> shift).clamp(-127, 127);
        let found = Requantize::new(multiplier, shift).unwrap().apply(sum);
        prop_assert_eq!(i128::from(found), expected);
    }

    #[test]
    fn every_f32_in_range_is_met_exactly(mantissa in 0u32..1 << 23, exponent in -64i32..29) {
        let scale = f32::from_bits((((exponent + 127) as u32) << 23) | mantissa);
        let found = Requantize::from_scale(scale.into()).unwrap();
        let back = f64::from(found.multiplier()) * 2f64.powi(-i32::from(found.shift()));
        prop_assert_eq!(back, f64::from(scale));
    }

    #[test]
    fn a_double_is_rounded_to_the_nearest(mantissa in 0u64..1 << 52, exponent in -64i64..29) {
        let scale = f64::from_bits((((exponent + 1023) as u64) << 52) | mantissa);
        let found = Requantize::from_scale(scale).unwrap();
        prop_assert!(Requantize::new(found.multiplier(), found.shift()) == Ok(found));
        let back = f64::from(found.multiplier()) * 2f64.powi(-i32::from(found.shift()));
        // Half a unit of 31 bits.
        let half = 2f64.powi(exponent as i32 - 31);
        prop_assert!((back - scale).abs() <= half);
        if (back - scale).abs() == half {
            prop_assert!(found.multiplier() % 2 == 0);
        }
    }
}

#[test]
fn scales_out_of_range_are_refused() {
    let largest = 2f64.powi(30) - 0.25;
    for scale in [
        0.0,
        -0.0,
        -1.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        2f64.powi(-65),
        5e-324,
        largest,
        2f64.powi(30),
    ] {
        assert_eq!(
            Requantize::from_scale(scale),
            Err(LinearError::Scale),
            "{scale}"
        );
    }
    let below = f64::from_bits(largest.to_bits() - 1);
    assert_eq!(Requantize::from_scale(below).unwrap().shift(), 1);
    assert_eq!(
        Requantize::from_scale(2f64.powi(-64)).unwrap().shift(),
        MAX_SHIFT
    );
}

#[test]
fn a_carry_of_the_rounding_gives_a_power_of_two() {
    let below_one = f64::from_bits(1f64.to_bits() - 1);
    let one = Requantize::from_scale(1.0).unwrap();
    assert_eq!(Requantize::from_scale(below_one), Ok(one));
    assert_eq!((one.multiplier(), one.shift()), (1 << 30, 30));
}
