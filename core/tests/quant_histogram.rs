//! The streaming histogram against a sort of all values.

use proptest::prelude::*;
use tercet_core::number::bits::ordered;
use tercet_core::quant::{Bucket, HOST_BITS, Histogram, QuantError, SMALL_BITS};

fn values() -> impl Strategy<Value = Vec<f32>> {
    let any_finite = any::<f32>().prop_filter("finite", |x| x.is_finite());
    let special = prop::sample::select(vec![
        0.0,
        -0.0,
        f32::MAX,
        f32::MIN,
        f32::from_bits(1),
        1.0,
        -1.0,
    ]);
    prop::collection::vec(prop_oneof![any_finite, special, -2.0f32..2.0], 1..300)
}

fn buckets<const B: u32>() -> Vec<u64> {
    vec![u64::MAX; Histogram::<B>::BUCKETS]
}

/// −0 before +0, as the patterns order.
fn sorted(values: &[f32]) -> Vec<f32> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f32::total_cmp);
    sorted
}

fn holds<const B: u32>(values: &[f32]) -> Result<(), TestCaseError> {
    let mut memory = buckets::<B>();
    let mut histogram = Histogram::<B>::new(&mut memory).unwrap();
    histogram.push(values).unwrap();
    let sorted = sorted(values);
    prop_assert_eq!(histogram.count(), values.len() as u64);
    let (low, high) = histogram.range().unwrap();
    prop_assert_eq!(low.to_bits(), sorted[0].to_bits());
    prop_assert_eq!(high.to_bits(), sorted[sorted.len() - 1].to_bits());
    let mut magnitudes: Vec<f32> = values.iter().map(|x| x.abs()).collect();
    magnitudes.sort_by(f32::total_cmp);
    prop_assert_eq!(histogram.abs_max(), magnitudes[magnitudes.len() - 1]);

    let in_use: Vec<Bucket> = histogram.iter().collect();
    prop_assert_eq!(
        in_use.iter().map(|b| b.count).sum::<u64>(),
        values.len() as u64
    );
    for pair in in_use.windows(2) {
        prop_assert!(pair[0].high.total_cmp(&pair[1].low).is_lt());
    }
    for bucket in &in_use {
        let inside = sorted
            .iter()
            .filter(|x| x.total_cmp(&bucket.low).is_ge() && x.total_cmp(&bucket.high).is_le());
        prop_assert_eq!(inside.count() as u64, bucket.count);
    }
    for (rank, value) in sorted.iter().enumerate() {
        let bucket = histogram.at_rank(rank as u64).unwrap();
        prop_assert!(bucket.low.total_cmp(value).is_le() && bucket.high.total_cmp(value).is_ge());
        let bound = histogram.upper_magnitude(rank as u64).unwrap();
        let exact = magnitudes[rank];
        prop_assert!(bound >= exact && bound <= magnitudes[magnitudes.len() - 1]);
        // The same bucket: no pattern bits above the shift differ.
        prop_assert_eq!(bound.to_bits() >> (32 - B), exact.to_bits() >> (32 - B));
    }
    prop_assert_eq!(histogram.at_rank(values.len() as u64), None);
    prop_assert_eq!(histogram.upper_magnitude(values.len() as u64), None);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ranks_and_buckets_agree_with_a_sort(values in values()) {
        holds::<2>(&values)?;
        holds::<9>(&values)?;
        holds::<SMALL_BITS>(&values)?;
    }

    #[test]
    fn order_chunks_and_merges_do_not_show(values in values(), at in 0usize..300, seed: u64) {
        let (mut a, mut b, mut c) = (buckets::<SMALL_BITS>(), buckets::<SMALL_BITS>(), buckets::<SMALL_BITS>());
        let mut whole = Histogram::<SMALL_BITS>::new(&mut a).unwrap();
        whole.push(&values).unwrap();
        let mut shuffled = values.clone();
        let mut random = tercet_core::number::Random::new(seed);
        for i in (1..shuffled.len()).rev() {
            shuffled.swap(i, random.below(i as u64 + 1) as usize);
        }
        let (head, tail) = shuffled.split_at(at.min(values.len()));
        let mut left = Histogram::<SMALL_BITS>::new(&mut b).unwrap();
        for chunk in head.chunks(7) {
            left.push(chunk).unwrap();
        }
        let mut right = Histogram::<SMALL_BITS>::new(&mut c).unwrap();
        right.push(tail).unwrap();
        right.merge(&left);
        prop_assert_eq!(whole, right);
    }
}

#[test]
fn ranks_hold_at_host_resolution() {
    let values: Vec<f32> = (0..200).map(|i| (i as f32 - 120.0) * 0.37).collect();
    holds::<HOST_BITS>(&values).unwrap();
}

#[test]
fn empty_and_refused_input_is_named() {
    let mut memory = buckets::<9>();
    let mut histogram = Histogram::<9>::new(&mut memory).unwrap();
    assert_eq!(
        (
            histogram.range(),
            histogram.abs_max(),
            histogram.iter().count()
        ),
        (None, 0.0, 0)
    );
    assert_eq!(histogram.at_rank(0), None);
    histogram.push(&[1.0f32, 2.0]).unwrap();
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let count = histogram.count();
        let refused = histogram.push(&[3.0, bad, 4.0]);
        assert_eq!(refused, Err(QuantError::NotFinite { index: count + 1 }));
    }
    let refused = Histogram::<9>::new(&mut [0; 511]).err();
    assert_eq!(
        refused,
        Some(QuantError::Length {
            expected: 512,
            found: 511
        })
    );
}

#[test]
fn counts_made_elsewhere_are_as_pushed_values() {
    let values = [-3.0f32, 0.25, 0.25, -0.0, 7.5];
    let (mut a, mut b) = (buckets::<9>(), buckets::<9>());
    let mut pushed = Histogram::<9>::new(&mut a).unwrap();
    pushed.push(&[1.0f32, -9.0]).unwrap();
    let mut added = Histogram::<9>::new(&mut b).unwrap();
    added.push(&[1.0f32, -9.0]).unwrap();
    pushed.push(&values).unwrap();
    let mut counts = vec![0; 512];
    added.add_counts(&counts, f32::NAN, f32::NAN).unwrap();
    for value in values {
        counts[(ordered(value) >> 23) as usize] += 1;
    }
    added.add_counts(&counts, -3.0, 7.5).unwrap();
    assert_eq!(added, pushed);

    for (min, max) in [
        (7.5, -3.0),
        (-3.0, 8.0),
        (-1.5, 7.5),
        (f32::NAN, 7.5),
        (-3.0, f32::INFINITY),
    ] {
        let refused = added.add_counts(&counts, min, max);
        assert_eq!(refused, Err(QuantError::Range), "{min} {max}");
    }
    counts.pop();
    let (expected, found) = (512, 511);
    let refused = added.add_counts(&counts, -3.0, 7.5);
    assert_eq!(refused, Err(QuantError::Length { expected, found }));
    assert_eq!(added, pushed);
}
