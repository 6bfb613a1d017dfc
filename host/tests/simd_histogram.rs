//! Histograms counted by kernels are those of core, for every instruction set of this machine and any number of
//! threads.

use proptest::prelude::*;
use tercet_core::engine::QuantizeEngine;
use tercet_core::number::{Element, Random};
use tercet_core::quant::{HOST_BITS, Histogram, SMALL_BITS};
use tercet_core::{bf16, f16};
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

/// From here on threads count by themselves.
const LARGE: usize = 1 << 18;

/// Counts by every backend and by core, on top of what is there already, in buckets of as many bits, fewer and more.
fn check<T: Element>(values: &[T]) {
    check_in::<T, HOST_BITS>(values);
    check_in::<T, SMALL_BITS>(values);
    check_in::<T, 2>(values);
    check_in::<T, 17>(values);
}

fn check_in<T: Element, const B: u32>(values: &[T]) {
    let mut core = vec![0; Histogram::<B>::BUCKETS];
    let mut expected = Histogram::<B>::new(&mut core).unwrap();
    expected.push(&[1.0f32, -1.0]).unwrap();
    let expected_result = expected.push(values);
    for backend in Backend::all() {
        for threads in [1, 3] {
            let mut own = vec![0; Histogram::<B>::BUCKETS];
            let mut found = Histogram::<B>::new(&mut own).unwrap();
            found.push(&[1.0f32, -1.0]).unwrap();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let mut engine = Threads::default().with_backend(backend);
            let result = pool
                .build()
                .unwrap()
                .install(|| engine.histogram(values, &mut found));
            assert_eq!(result, expected_result, "{backend}, {threads}");
            assert!(found == expected, "{backend}, {threads}");
        }
        // One thread alone, through the engines' trait.
        let mut own = vec![0; Histogram::<B>::BUCKETS];
        let mut found = Histogram::<B>::new(&mut own).unwrap();
        found.push(&[1.0f32, -1.0]).unwrap();
        let mut alone = Threads::alone().with_backend(backend);
        let result = QuantizeEngine::histogram(&mut alone, values, &mut found);
        assert_eq!(result, expected_result, "{backend}, alone");
        assert!(found == expected, "{backend}, alone");
    }
}

/// Values of every kind, all finite: patterns at random, one bucket's, zeros of both signs, extremes.
fn mixed(len: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    let special = [
        0.0,
        -0.0,
        f32::MAX,
        f32::MIN,
        f32::from_bits(1),
        -f32::from_bits(1),
    ];
    let mut draw = || match random.below(4) {
        0 => {
            let x = f32::from_bits(random.next_u64() as u32);
            if x.is_finite() { x } else { 0.5 }
        }
        1 => 1.0 + random.below(100) as f32 / 1e5,
        2 => special[random.below(6) as usize],
        _ => 0.0,
    };
    (0..len).map(|_| draw()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counts_and_extremes_are_those_of_core(more in 0usize..9000, offset in 0usize..17, seed: u64) {
        let values = mixed(LARGE + more + offset, seed);
        check(&values[offset..]);
        let halves: Vec<f16> = values.iter().map(|&x| f16::from_f32(x % 60_000.0)).collect();
        check(&halves[offset..]);
        let brains: Vec<bf16> = values.iter().map(|&x| bf16::from_f32(x % 60_000.0)).collect();
        check(&brains[offset..]);
    }
}

#[test]
fn few_values_and_none_are_counted_too() {
    check::<f32>(&[]);
    check(&mixed(100, 3));
    check(&mixed(LARGE - 1, 4));
}

#[test]
fn one_sign_and_one_value_have_their_extremes() {
    check(&vec![0.0f32; 2 * LARGE]);
    check(&vec![-0.0f32; 2 * LARGE]);
    let negative: Vec<f32> = mixed(2 * LARGE, 5).iter().map(|x| -x.abs()).collect();
    check(&negative);
}

#[test]
fn the_first_that_is_not_finite_is_refused() {
    let values = mixed(4 * LARGE, 6);
    let places = [0, 1, 4095, 4096, 5000, LARGE, 2 * LARGE + 77, 4 * LARGE - 1];
    for (at, bad) in places.into_iter().zip(
        [f32::NAN, f32::INFINITY, -f32::INFINITY, -f32::NAN]
            .iter()
            .cycle(),
    ) {
        let mut values = values.clone();
        values[at] = *bad;
        // A later one does not show.
        values[4 * LARGE - 1] = f32::NAN;
        check(&values);
    }
}
