//! 2 to a negative power, over all arguments.

use tercet_core::number::exp2_neg;

const WHOLE: u32 = 1 << 20;

#[test]
fn every_argument_of_the_first_whole_is_within_its_bound_and_falls() {
    let mut last = u32::MAX;
    for u in 0..=WHOLE {
        let found = exp2_neg(u);
        let exact = (31.0 - f64::from(u) / f64::from(WHOLE)).exp2();
        let off = (f64::from(found) - exact).abs() / exact;
        assert!(off <= (-26f64).exp2(), "{u}: {found}, {exact}");
        assert!(found < last, "{u}");
        last = found;
    }
}

#[test]
fn each_whole_more_shifts_by_a_bit() {
    for u in 0..32 * WHOLE {
        assert_eq!(exp2_neg(u), exp2_neg(u % WHOLE) >> (u / WHOLE), "{u}");
    }
}

#[test]
fn beyond_is_nothing() {
    for u in [1 << 25, (1 << 25) + 1, 1 << 26, u32::MAX] {
        assert_eq!(exp2_neg(u), 0);
    }
}

/// What every machine has to give.
#[test]
fn all_results_have_one_digest() {
    let digest = (0..1 << 25).fold(0xcbf2_9ce4_8422_2325, |digest: u64, u| {
        (digest ^ u64::from(exp2_neg(u))).wrapping_mul(0x100_0000_01b3)
    });
    assert_eq!(format!("{digest:016x}"), "148ff180c42a3e61");
}
