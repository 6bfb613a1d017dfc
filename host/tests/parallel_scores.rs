//! Scores on threads have the bits of core's.

use proptest::prelude::*;
use tercet_core::cluster::Points;
use tercet_core::cluster::score::{SILHOUETTE_EXACT, silhouette, silhouette_scratch};
use tercet_core::number::Random;
use tercet_host::cluster;

fn on(
    threads: usize,
    points: Points<'_>,
    labels: &[u32],
    k: usize,
    seed: u64,
) -> Result<(u64, usize), String> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap();
    let found = pool.install(|| cluster::silhouette(&points, labels, k, seed));
    found
        .map(|found| (found.score.to_bits(), found.points))
        .map_err(|error| error.to_string())
}

fn in_core(
    points: Points<'_>,
    labels: &[u32],
    k: usize,
    seed: u64,
) -> Result<(u64, usize), String> {
    let mut scratch = vec![0; silhouette_scratch(points.len(), k)];
    let found = silhouette(&points, labels, k, seed, &mut scratch);
    found
        .map(|found| (found.score.to_bits(), found.points))
        .map_err(|error| error.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bits_do_not_depend_on_thread_count(
        values in prop::collection::vec(any::<i8>(), 3..900),
        draws in prop::collection::vec(0u32..5, 300),
        weights in prop::collection::vec(0u32..4, 300),
    ) {
        let count = values.len() / 3;
        let (values, labels, weights) = (&values[..3 * count], &draws[..count], &weights[..count]);
        let plain = Points::new(values, 3).unwrap();
        let weighted = Points::weighted(values, 3, weights);
        for points in [Some(plain), weighted.ok()].into_iter().flatten() {
            let expected = in_core(points, labels, 5, 0);
            for threads in [1, 2, 5] {
                prop_assert_eq!(&on(threads, points, labels, 5, 0), &expected);
            }
        }
    }
}

#[test]
fn a_sample_is_the_same_on_threads() {
    let mut random = Random::new(4);
    let values: Vec<i8> = (0..2 * SILHOUETTE_EXACT)
        .map(|_| random.next_u64() as i8)
        .collect();
    let labels: Vec<u32> = values.iter().map(|&x| u32::from(x > 0)).collect();
    let points = Points::new(&values, 1).unwrap();
    let expected = in_core(points, &labels, 2, 8);
    assert_eq!(expected.as_ref().unwrap().1, SILHOUETTE_EXACT);
    assert_eq!(on(3, points, &labels, 2, 8), expected);
}
