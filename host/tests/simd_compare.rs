//! Comparisons by kernels give the bits of core's, for every instruction set of this machine.

use proptest::prelude::*;
use tercet_core::engine::QuantizeEngine;
use tercet_core::number::{Element, RUN, Random};
use tercet_core::quant::{Comparison, QuantError};
use tercet_core::{bf16, f16};
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

/// Goes on by every backend, in chunks, and by core; all states must be one.
fn check<A: Element, B: Element>(original: &[A], restored: &[B], chunks: &[usize]) {
    for backend in Backend::all() {
        let mut threads = Threads::default().with_backend(backend);
        let (mut found, mut expected) = (Comparison::new(), Comparison::new());
        let (mut a, mut b) = (original, restored);
        for &chunk in chunks.iter().chain([&usize::MAX]) {
            let (a_now, a_next) = a.split_at(chunk.min(a.len()));
            let (b_now, b_next) = b.split_at(chunk.min(b.len()));
            let of = threads.compare(&mut found, a_now, b_now);
            assert_eq!(of, expected.push(a_now, b_now), "{backend}");
            // Debug prints floats so that they read back to the same bits, also those of a zero.
            assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{backend}");
            (a, b) = (a_next, b_next);
        }
    }
}

fn finite() -> impl Strategy<Value = f32> {
    let any_finite = any::<f32>().prop_filter("finite", |x| x.is_finite());
    let special = prop::sample::select(vec![
        0.0,
        -0.0,
        f32::MAX,
        f32::MIN,
        f32::from_bits(1),
        -f32::from_bits(1),
        f32::MIN_POSITIVE,
    ]);
    prop_oneof![any_finite, special, -2.0f32..2.0]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sums_and_largest_errors_are_those_of_core(
        pairs in prop::collection::vec((finite(), finite()), 0..700),
        offset in 0usize..17,
        chunks in prop::collection::vec(0usize..300, 0..4),
    ) {
        let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        // At every alignment.
        let (a, b) = (&a[offset.min(a.len())..], &b[offset.min(b.len())..]);
        check(a, b, &chunks);
        let halves: Vec<f16> = b.iter().map(|&x| f16::from_f32(x % 1000.0)).collect();
        let brains: Vec<bf16> = a.iter().map(|&x| bf16::from_f32(x % 1000.0)).collect();
        check(a, &halves, &chunks);
        check(&brains, &halves, &chunks);
    }
}

fn normals(len: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    let mut draw = || random.below(1 << 24) as f32 / (1 << 24) as f32 - 0.5;
    (0..len).map(|_| draw() + draw() + draw()).collect()
}

#[test]
fn runs_end_where_the_rules_end_them() {
    let a = normals(3 * RUN + 777, 1);
    let b: Vec<f32> = a.iter().map(|x| (x * 20.0).round() / 20.0).collect();
    check(&a, &b, &[]);
    check(&a, &b, &[5, RUN - 5, RUN + 64, RUN - 63]);
    check(&a, &b, &[RUN / 2, 64, 1, 63]);
}

/// The lowest of equal errors, in every block and at both ends of a row.
#[test]
fn the_lowest_index_of_the_largest_error_wins() {
    let zeros = vec![0.0f32; 5000];
    for at in [0, 1, 63, 64, 1023, 1024, 1087, 4095, 4096, 4999] {
        let mut b = zeros.clone();
        b[at] = -3.0;
        b[4999] = 3.0;
        check(&zeros, &b, &[]);
        check(&zeros, &b, &[70, 1000]);
    }
}

#[test]
fn what_is_not_finite_is_refused_and_nothing_added() {
    let ones = vec![1.0f32; 3000];
    for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for at in [0, 1, 63, 64, 1000, 2047, 2048, 2999] {
            let mut b = ones.clone();
            b[at] = bad;
            check(&ones, &b, &[]);
            check(&b, &ones, &[100]);
            // An infinity less itself is none.
            check(&b, &b, &[64]);
        }
    }
    let mut threads = Threads::default();
    let (expected, found) = (2, 1);
    let refused = threads.compare(&mut Comparison::new(), &ones[..2], &ones[..1]);
    assert_eq!(refused, Err(QuantError::Length { expected, found }));
}

/// No product or sum of largest values passes f64's range.
#[test]
fn extremes_stay_finite() {
    let (a, b) = (vec![f32::MAX; RUN + 64], vec![f32::MIN; RUN + 64]);
    check(&a, &b, &[]);
    let tiny = vec![f32::from_bits(1); RUN];
    check(&tiny, &vec![-f32::from_bits(3); RUN], &[]);
}
