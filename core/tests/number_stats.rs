//! The fast pass against a plain one; elements, extremes and the order of patterns.

use std::fmt::Debug;

use half::{bf16, f16};
use proptest::prelude::*;
use tercet_core::number::{Element, Random, Stats, abs_max, bits, first_not_finite};

/// The definition, value by value.
fn plain<T: Element>(values: &[T]) -> Stats {
    let mut stats = Stats {
        count: values.len() as u64,
        ..Stats::EMPTY
    };
    for (index, value) in values.iter().enumerate() {
        let x = value.to_f32();
        if !x.is_finite() {
            return Stats {
                count: stats.count,
                first_bad: Some(index as u64),
                ..Stats::EMPTY
            };
        }
        stats.sum.add(x);
        if x.total_cmp(&stats.min).is_lt() {
            stats.min = x;
        }
        if x.total_cmp(&stats.max).is_gt() {
            stats.max = x;
        }
    }
    stats
}

/// Equal as bits: `==` does not tell −0 from +0.
fn same(a: &Stats, b: &Stats) -> bool {
    a == b && a.min.to_bits() == b.min.to_bits() && a.max.to_bits() == b.max.to_bits()
}

fn check<T: Element + Debug>(values: &[T]) {
    let (fast, truth) = (Stats::of(values), plain(values));
    assert!(same(&fast, &truth), "{fast:?} where {truth:?}");
    let bad = truth.first_bad.map(|index| index as usize);
    assert_eq!(first_not_finite(values), bad);
    let magnitudes = values.iter().map(|x| x.to_f32().abs());
    let largest = bad.is_none().then(|| magnitudes.fold(0.0, f32::max));
    assert_eq!(abs_max(values), largest);
    assert_eq!(fast.abs_max(), largest.unwrap_or(0.0));
    assert_eq!(
        fast.abs_mean().is_some(),
        bad.is_none() && !values.is_empty()
    );
}

/// As each type.
fn check_all(values: &[f32]) {
    check(values);
    check(&values.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>());
    check(
        &values
            .iter()
            .map(|&x| bf16::from_f32(x))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn one_pass_equals_the_definition_for_every_type() {
    let mut random = Random::new(1);
    for len in (0..70).chain([255, 256, 257, 511, 512, 513, 3000]) {
        let normals: Vec<f32> = (0..len).map(|_| random.normal()).collect();
        check_all(&normals);
        check_all(&normals.iter().map(|x| -x.abs()).collect::<Vec<_>>());
        check_all(&normals.iter().map(|x| x.abs()).collect::<Vec<_>>());
        check_all(&normals.iter().map(|x| x * 0.0).collect::<Vec<_>>());
        let any: Vec<u16> = (0..len).map(|_| random.next_u64() as u16).collect();
        check(
            &any.iter()
                .map(|&x| f16::from_bits(x & 0xBBFF))
                .collect::<Vec<_>>(),
        );
        check(
            &any.iter()
                .map(|&x| bf16::from_bits(x & 0xBF7F))
                .collect::<Vec<_>>(),
        );
    }
}

#[test]
fn the_first_bad_value_is_found_anywhere() {
    let mut random = Random::new(2);
    for len in [1usize, 2, 255, 256, 257, 600] {
        for index in 0..len {
            let kind = random.below(4) as usize;
            let mut values = vec![1.0f32; len];
            // One that comes later does not matter.
            values[index + random.below((len - index) as u64) as usize] = f32::NAN;
            values[index] = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY][kind];
            assert_eq!(first_not_finite(&values), Some(index));
            check_all(&values);
        }
    }
}

/// `half`'s own conversion is the reference, over every pattern there is.
#[test]
fn every_half_widens_exactly() {
    for pattern in 0..=u16::MAX {
        let (x, y) = (f16::from_bits(pattern), bf16::from_bits(pattern));
        let widened = [
            (Element::to_f32(x), f16::to_f32(x)),
            (Element::to_f32(y), bf16::to_f32(y)),
        ];
        for (wide, truth) in widened {
            let same = wide.to_bits() == truth.to_bits() || (wide.is_nan() && truth.is_nan());
            assert!(same, "{pattern:#x}: {wide} where {truth}");
        }
        let bytes = pattern.to_le_bytes();
        assert_eq!(
            <f16 as Element>::from_le_bytes(&bytes).map(f16::to_bits),
            Some(pattern)
        );
        assert_eq!(
            <bf16 as Element>::from_le_bytes(&bytes).map(bf16::to_bits),
            Some(pattern)
        );
    }
}

#[test]
fn only_whole_values_are_read() {
    assert_eq!(
        <f32 as Element>::from_le_bytes(&[0, 0, 0x80, 0x3F]),
        Some(1.0)
    );
    assert_eq!(<f32 as Element>::from_le_bytes(&[0; 3]), None);
    assert_eq!(<f16 as Element>::from_le_bytes(&[0; 4]), None);
    assert_eq!(<bf16 as Element>::from_le_bytes(&[]), None);
}

/// Counts of merged statistics end at the largest instead of wrapping.
#[test]
fn counts_do_not_wrap() {
    let mut stats = Stats {
        count: u64::MAX,
        ..Stats::of(&[1.0f32])
    };
    stats.merge(&Stats::of(&[f32::NAN]));
    assert_eq!(stats.count, u64::MAX);
    assert_eq!(stats.first_bad, Some(u64::MAX));
}

proptest! {
    #[test]
    fn merging_neighbours_is_taking_them_together(
        patterns in prop::collection::vec(any::<u32>(), 0..600),
        finite in any::<bool>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mask = if finite { 0xBFFF_FFFF } else { u32::MAX };
        let values: Vec<f32> = patterns.iter().map(|bits| f32::from_bits(bits & mask)).collect();
        let (left, right) = values.split_at(cut.index(values.len() + 1));
        let mut merged = Stats::of(left);
        merged.merge(&Stats::of(right));
        prop_assert!(same(&merged, &Stats::of(&values)));
        let mut with_empty = Stats::EMPTY;
        with_empty.merge(&merged);
        with_empty.merge(&Stats::EMPTY);
        prop_assert!(same(&with_empty, &merged));
    }

    #[test]
    fn keys_order_as_the_floats_do(a: u32, b: u32) {
        let (x, y) = (f32::from_bits(a), f32::from_bits(b));
        prop_assert_eq!(bits::ordered(x).cmp(&bits::ordered(y)), x.total_cmp(&y));
        prop_assert_eq!(bits::from_ordered(bits::ordered(x)).to_bits(), a);
        prop_assert_eq!(bits::magnitude(x), x.abs().to_bits());
    }

    #[test]
    fn mantissa_and_shift_are_the_value(pattern in 0..bits::INFINITE) {
        let unit = 2f64.powi(bits::shift(pattern) as i32 - 149);
        let value = f64::from(bits::mantissa(pattern)) * unit;
        prop_assert_eq!(value, f64::from(f32::from_bits(pattern)));
    }
}
