//! The logarithm against a 200-bit fixed-point truth, and against std over a wide sweep.

use num_bigint::BigInt;
use tercet_core::number::{Random, log2};

const BITS: u32 = 200;

/// atanh(n / d) in units of 2⁻²⁰⁰, by its series in integers.
fn atanh(n: &BigInt, d: &BigInt) -> BigInt {
    let ratio = (n << BITS) / d;
    let square: BigInt = (&ratio * &ratio) >> BITS;
    let (mut power, mut sum, mut odd) = (ratio, BigInt::ZERO, 1);
    while power != BigInt::ZERO {
        sum += &power / odd;
        power = (power * &square) >> BITS;
        odd += 2;
    }
    sum
}

/// |found − log₂(x)| / |log₂(x)| of a normal positive x.
fn relative_error(x: f64, found: f64, ln2: &BigInt) -> f64 {
    let exponent = (x.to_bits() >> 52) as i64 - 1023;
    let mantissa = BigInt::from((x.to_bits() & ((1 << 52) - 1)) | 1 << 52);
    let one = BigInt::from(1u64 << 52);
    // ln m = 2 atanh((m − 1)/(m + 1)), m in [1, 2).
    let ln_m: BigInt = 2 * atanh(&(&mantissa - &one), &(&mantissa + &one));
    let truth = (BigInt::from(exponent) << BITS) + (ln_m << BITS) / ln2;
    // found as an integer of the same units; every f64 at or above 2⁻¹⁰⁰ fits.
    let bits = found.abs().to_bits();
    let shift = (bits >> 52) as i64 - 1075 + i64::from(BITS);
    let mut fixed = BigInt::from((bits & ((1 << 52) - 1)) | 1 << 52);
    if shift >= 0 {
        fixed <<= shift;
    } else {
        fixed >>= -shift;
    }
    let signed = if found < 0.0 { -fixed } else { fixed };
    let difference: BigInt = signed - &truth;
    // Both fit f64's range after dropping 100 bits; enough for a ratio.
    let scaled: BigInt = (difference << 80) / truth;
    let ratio: i128 = scaled.try_into().expect("a relative error below 2^47");
    (ratio as f64 / 2f64.powi(80)).abs()
}

#[test]
fn log2_keeps_its_bound_against_200_bit_integers() {
    let ln2 = 2 * atanh(&BigInt::from(1), &BigInt::from(3));
    let mut random = Random::new(2);
    let mut worst = 0.0_f64;
    for i in 0..6000 {
        let mantissa = random.next_u64() >> 12;
        // A third over all exponents, a third in [½, 2), a third crowding at 1 from both sides.
        let exponent = if i % 3 == 0 {
            1 + random.below(2046)
        } else {
            1022 + random.below(2)
        };
        let bits = exponent << 52 | mantissa;
        let x = if i % 3 == 2 {
            let step = random.next_u64() >> (12 + random.below(52));
            if i % 2 == 0 {
                f64::from_bits(1.0f64.to_bits() + step)
            } else {
                f64::from_bits(1.0f64.to_bits() - step / 2)
            }
        } else {
            f64::from_bits(bits)
        };
        if x == 1.0 {
            continue;
        }
        worst = worst.max(relative_error(x, log2(x), &ln2));
    }
    println!("worst relative error: 2^{:.2}", worst.log2());
    assert!(worst < 2f64.powi(-50), "{worst:e}");
    assert!(
        worst > 2f64.powi(-56),
        "the measure itself is broken: {worst:e}"
    );
}

#[test]
fn log2_agrees_with_std_over_a_wide_sweep() {
    let mut bits = 1u64;
    while bits < f64::INFINITY.to_bits() {
        let x = f64::from_bits(bits);
        let truth = x.log2();
        assert!(
            (log2(x) - truth).abs() <= truth.abs() * 2f64.powi(-50),
            "{x:e}"
        );
        bits += 9_007_199_254_741;
    }
}

#[test]
fn log2_is_exact_at_powers_of_two_and_named_at_the_ends() {
    for exponent in -1074..=1023 {
        let x = if exponent < -1022 {
            f64::from_bits(1 << (exponent + 1074))
        } else {
            f64::from_bits(((exponent + 1023) as u64) << 52)
        };
        assert_eq!(log2(x), f64::from(exponent));
    }
    assert_eq!(log2(0.0), f64::NEG_INFINITY);
    assert_eq!(log2(-0.0), f64::NEG_INFINITY);
    assert_eq!(log2(f64::INFINITY), f64::INFINITY);
    assert!(log2(-1.0).is_nan() && log2(f64::NAN).is_nan());
}
