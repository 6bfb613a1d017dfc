//! Clustering by every backend gives the labels, distances, sums and centroids of the reference engine.

use proptest::prelude::*;
use rayon::ThreadPoolBuilder;
use tercet_core::cluster::{
    Init, Kmeans, Lloyd, MAX_DIMS, Points, Steps, Update, kmeans, normalize, seed,
};
use tercet_core::engine::{Assigned, Buffers, ClusterEngine, ClusterProblem, Farthest};
use tercet_core::number::Random;
use tercet_core::scalar::Scalar;
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

/// All that a problem can tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    /// What its functions gave, in order.
    told: Vec<u64>,
    labels: Vec<u32>,
    distances: Vec<u32>,
    centroids: Vec<i8>,
    sums: Vec<i64>,
    counts: Vec<u64>,
}

impl State {
    fn tell(&mut self, assigned: Assigned) {
        self.told.extend([assigned.inertia, assigned.changed]);
    }
}

/// Runs `script` over a problem of `engine` and reads its state.
fn state<E: ClusterEngine>(
    engine: &mut E,
    points: Points<'_>,
    k: usize,
    update: Update,
    script: impl Fn(&mut E::Clusters<'_>, &mut State) -> Result<(), E::Error>,
) -> State {
    let (n, table) = (points.len(), k * points.dims());
    let mut state = State {
        labels: vec![7; n],
        distances: vec![7; n],
        centroids: vec![7; table],
        sums: vec![7; table],
        counts: vec![7; k],
        ..State::default()
    };
    let mut told = State::default();
    let (mut kept, mut norms) = (vec![0; table], vec![0; k]);
    let buffers = Buffers {
        labels: &mut state.labels,
        distances: &mut state.distances,
        centroids: &mut state.centroids,
        kept: &mut kept,
        norms: &mut norms,
        sums: &mut state.sums,
        counts: &mut state.counts,
    };
    let done = engine
        .clusters(points, k, update, buffers)
        .and_then(|mut problem| script(&mut problem, &mut told));
    if let Err(error) = done {
        panic!("{error}");
    }
    state.told = told.told;
    state
}

/// Checks every backend, with tiles of several sizes, against the reference.
macro_rules! agree {
    ($points:expr, $k:expr, $update:expr, $script:expr) => {{
        let points: Points<'_> = $points;
        let expected = state(&mut Scalar, points, $k, $update, $script);
        for backend in Backend::all() {
            for tile in [1, 37 * points.dims(), 1 << 16] {
                let mut engine = Threads::with_tile(tile).with_backend(backend);
                let found = state(&mut engine, points, $k, $update, $script);
                let (n, dims) = (points.len(), points.dims());
                assert!(
                    found == expected,
                    "{backend}, tile {tile}, {n} × {dims}, k = {}",
                    $k
                );
            }
        }
    }};
}

/// Three steps, in which first all and then only changed points are summed, and an assignment.
macro_rules! steps {
    ($centroids:expr) => {
        |problem, told| {
            problem.set_centroids($centroids)?;
            for _ in 0..3 {
                told.tell(problem.assign_update()?);
            }
            // The same centroids: nothing changes but the sums' way.
            told.tell(problem.assign()?);
            told.tell(problem.assign()?);
            Ok(())
        }
    };
}

#[derive(Clone, Copy, Debug)]
enum Cloud {
    Even,
    /// Only −128 and 127.
    Ends,
    /// So few values that distances tie and points repeat.
    Ties,
    /// Every point the same, at the end of the range.
    Low,
    Groups,
}

const CLOUDS: [Cloud; 5] = [
    Cloud::Even,
    Cloud::Ends,
    Cloud::Ties,
    Cloud::Low,
    Cloud::Groups,
];

fn cloud(cloud: Cloud, n: usize, dims: usize, seed: u64) -> Vec<i8> {
    let mut random = Random::new(seed);
    let mut values = Vec::with_capacity(n * dims);
    for _ in 0..n {
        let group = random.below(9) as i64 * 20 - 80;
        for _ in 0..dims {
            let draw = random.next_u64() >> 32;
            values.push(match cloud {
                Cloud::Even => draw as i8,
                Cloud::Ends => [-128, 127][draw as usize % 2],
                Cloud::Ties => (draw % 3) as i8 - 1,
                Cloud::Low => -128,
                Cloud::Groups => (group + (draw % 19) as i64) as i8,
            });
        }
    }
    values
}

#[test]
fn steps_agree_for_every_size_of_point_and_number_of_clusters() {
    let dims = (1..=20).chain([31, 32, 33, 63, 64, 65, 96, 100, 127, 128, 129, 257]);
    for dims in dims {
        for (k, n) in [(1, 65), (2, 63), (5, 130), (7, 64), (13, 129), (40, 200)] {
            let cloud_of = CLOUDS[(dims + k) % CLOUDS.len()];
            let values = cloud(cloud_of, n, dims, (dims * k) as u64);
            let points = Points::new(&values, dims).unwrap();
            let start = &values[..k * dims];
            agree!(points, k, Update::Mean, steps!(start));
        }
    }
}

#[test]
fn steps_agree_on_every_cloud() {
    for cloud_of in CLOUDS {
        for (n, dims, k) in [(1, 3, 1), (300, 24, 17), (700, 50, 100)] {
            let values = cloud(cloud_of, n, dims, 5);
            let points = Points::new(&values, dims).unwrap();
            agree!(points, k, Update::Mean, steps!(&values[..k * dims]));
        }
    }
}

#[test]
fn ties_go_to_the_lowest_label_whatever_the_parity_of_lengths() {
    // Centroids at distance 1 on either side of the points, with even and odd squared lengths; some twice.
    let values = [3, 0, 3, 0, 3, 0, 3, 1];
    let points = Points::new(&values, 2).unwrap();
    let centroids = [2, 0, 4, 0, 3, 1, 3, -1, 2, 0, 4, 0];
    for first in 0..centroids.len() / 2 - 3 {
        agree!(
            points,
            4,
            Update::Mean,
            steps!(&centroids[2 * first..][..8])
        );
    }
    let (mut labels, mut distances) = ([9; 4], [9; 4]);
    let found = Threads::default().nearest(points, &centroids, &mut labels, &mut distances);
    found.unwrap();
    assert_eq!((labels, distances), ([0, 0, 0, 2], [1, 1, 1, 0]));
}

#[test]
fn extremes_of_the_longest_points_agree() {
    for (a, b) in [(-128, 127), (127, -128), (-128, -128), (127, 127)] {
        let values: Vec<i8> = [a, b, b]
            .into_iter()
            .flat_map(|x| std::iter::repeat_n(x, MAX_DIMS))
            .collect();
        let points = Points::new(&values, MAX_DIMS).unwrap();
        let start: Vec<i8> = [b; MAX_DIMS].into_iter().chain([a; MAX_DIMS]).collect();
        agree!(points, 2, Update::Mean, steps!(&start));
    }
}

#[test]
fn many_clusters_of_long_points_agree() {
    // Scores and labels together have more than 32 bits.
    let (n, dims, k) = (140, 3000, 130);
    for cloud_of in [Cloud::Ends, Cloud::Low] {
        let values = cloud(cloud_of, n, dims, 11);
        let points = Points::new(&values, dims).unwrap();
        agree!(points, k, Update::Mean, steps!(&values[..k * dims]));
    }
}

#[test]
fn short_sums_do_not_overflow() {
    // Thousands of points of −128 and of 127 in one cluster, then half of them away again.
    for x in [-128, 127] {
        let (n, dims) = (3000, 33);
        let mut values = vec![x; n * dims];
        values[..n / 2 * dims]
            .iter_mut()
            .step_by(2)
            .for_each(|y| *y = 0);
        let points = Points::new(&values, dims).unwrap();
        let far = [vec![x; dims], vec![!x; dims]].concat();
        let near = [vec![x; dims], values[..dims].to_vec()].concat();
        agree!(points, 2, Update::Mean, |problem, told| {
            problem.set_centroids(&far)?;
            told.tell(problem.assign()?);
            told.tell(problem.assign_update()?);
            told.tell(problem.assign()?);
            problem.set_centroids(&near)?;
            told.tell(problem.assign()?);
            Ok(())
        });
    }
}

#[test]
fn sums_agree_when_few_labels_change() {
    let (n, dims, k) = (2000, 20, 12);
    let values = cloud(Cloud::Groups, n, dims, 8);
    let weights: Vec<u32> = (0..n as u32).map(|i| i * 7919 % 5 * 1_000_003).collect();
    for points in [
        Points::new(&values, dims).unwrap(),
        Points::weighted(&values, dims, &weights).unwrap(),
    ] {
        agree!(points, k, Update::Mean, |problem, told| {
            problem.set_centroids(&values[..k * dims])?;
            for _ in 0..12 {
                told.tell(problem.assign_update()?);
                let (mut sums, mut counts) = (vec![0; k * dims], vec![0; k]);
                problem.read_sums(&mut sums, &mut counts)?;
                told.told.extend(sums.iter().map(|&sum| sum as u64));
                told.told.extend(counts);
            }
            // A label that no assignment gave, and labels that no sums were made of.
            problem.seed(3, 1999)?;
            told.tell(problem.assign()?);
            problem.place(0, 5)?;
            told.tell(problem.measure()?);
            told.tell(problem.assign()?);
            problem.start_batches()?;
            told.tell(problem.assign()?);
            Ok(())
        });
    }
}

#[test]
fn labels_agree_when_few_centroids_move() {
    for (cloud_of, n, dims, k) in [
        (Cloud::Groups, 1500, 10, 45),
        (Cloud::Ties, 700, 3, 40),
        (Cloud::Ends, 300, 5, 33),
    ] {
        let values = cloud(cloud_of, n, dims, 13);
        let weights: Vec<u32> = (0..n as u32).map(|i| i * 7919 % 3).collect();
        for points in [
            Points::new(&values, dims).unwrap(),
            Points::weighted(&values, dims, &weights).unwrap(),
        ] {
            agree!(points, k, Update::Mean, |problem, told| {
                problem.set_centroids(&values[..k * dims])?;
                for _ in 0..15 {
                    told.tell(problem.assign_update()?);
                }
                told.tell(problem.assign()?);
                // One goes onto another, two go far, one comes back; then none moves.
                for moves in [
                    &[(7, 11)][..],
                    &[(0, n - 1), (k - 1, n - 2)],
                    &[(7, 7)],
                    &[],
                ] {
                    for &(cluster, point) in moves {
                        problem.place(cluster, point)?;
                    }
                    told.tell(problem.measure()?);
                    let mut labels = vec![0; n];
                    problem.read_labels(&mut labels)?;
                    told.told.extend(labels.into_iter().map(u64::from));
                    for &(cluster, point) in moves {
                        problem.place(cluster, point + 1 - point % 2 * 2)?;
                    }
                    told.tell(problem.assign()?);
                    told.tell(problem.assign()?);
                }
                Ok(())
            });
        }
    }
}

#[test]
fn seeding_agrees() {
    for (cloud_of, n, dims, k) in [
        (Cloud::Even, 500, 19, 30),
        (Cloud::Ties, 300, 2, 40),
        (Cloud::Ends, 200, 64, 7),
    ] {
        let values = cloud(cloud_of, n, dims, 6);
        let weights: Vec<u32> = (0..n as u32).map(|i| i % 3 * 100_000).collect();
        for points in [
            Points::new(&values, dims).unwrap(),
            Points::weighted(&values, dims, &weights).unwrap(),
        ] {
            for init in [Init::Greedy, Init::PlusPlus, Init::Random] {
                agree!(points, k, Update::Mean, |problem, told| {
                    seed(problem, init, &mut Random::new(4))?;
                    let mut far: Option<Farthest> = None;
                    for _ in 0..3 {
                        far = problem.farthest(far)?;
                        told.told.extend(far.map(|far| far.index as u64));
                    }
                    let candidates: Vec<usize> = (0..24).map(|i| i * 7).collect();
                    let mut totals = vec![0; candidates.len()];
                    problem.potentials(&candidates, &mut totals)?;
                    told.told.extend(&totals);
                    let total = problem.shorten(1)?;
                    for r in [0, total / 3, total.saturating_sub(1), total] {
                        let picked = problem.pick(r)?;
                        told.told
                            .push(picked.map_or(u64::MAX, |index| index as u64));
                    }
                    Ok(())
                });
            }
        }
    }
}

#[test]
fn whole_runs_agree() {
    let (n, dims, k) = (900, 21, 25);
    let mut values = cloud(Cloud::Even, n, dims, 9);
    let weights: Vec<u32> = (0..n as u32).map(|i| i % 4).collect();
    let options = Kmeans {
        init: Init::Greedy,
        restarts: 2,
        lloyd: Lloyd {
            max_iter: 12,
            tol_ppm: 0,
        },
        seed: 17,
    };
    let weighted = Points::weighted(&values, dims, &weights).unwrap();
    for points in [Points::new(&values, dims).unwrap(), weighted] {
        agree!(points, k, Update::Mean, |problem, told| {
            let outcome = kmeans(problem, &options, &mut Steps::Full, &mut |_, _, _| ())?;
            told.told.extend([outcome.inertia, outcome.reseeded]);
            Ok(())
        });
        agree!(points, k, Update::Mean, |problem, told| {
            let mut batch = [0; 150];
            let mut steps = Steps::Batches {
                batch: &mut batch,
                cap: 64,
            };
            let outcome = kmeans(problem, &options, &mut steps, &mut |_, _, _| ())?;
            told.told.extend([outcome.inertia, outcome.reseeded]);
            Ok(())
        });
    }
    let sphere = normalize(&mut values, dims).unwrap();
    let points = Points::new(&values, dims).unwrap();
    agree!(points, k, Update::Sphere(sphere), |problem, told| {
        let outcome = kmeans(problem, &options, &mut Steps::Full, &mut |_, _, _| ())?;
        told.told.extend([outcome.inertia, outcome.reseeded]);
        Ok(())
    });
}

#[test]
fn means_of_large_sums_are_rounded_half_away_from_zero() {
    // Sums of weights around powers of two, up to beyond what 53 bits hold.
    for shift in [1, 8, 24, 31] {
        let heavy = ((1u64 << shift) + 1) as u32;
        let values = [-1, 1, 127, -128, 5, 0, 0, 126, -127, -6];
        let values = values.repeat(2);
        for weights in [[1, heavy, heavy, 1], [heavy, 1, 3, heavy - 2], [heavy; 4]] {
            let points = Points::weighted(&values, 5, &weights).unwrap();
            agree!(points, 1, Update::Mean, steps!(&values[..5]));
        }
    }
}

#[test]
fn bits_do_not_depend_on_thread_count() {
    // Enough work for several jobs.
    let (n, dims, k) = (9000, 64, 48);
    let values = cloud(Cloud::Groups, n, dims, 10);
    let points = Points::new(&values, dims).unwrap();
    let run = |threads: usize| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        let mut engine = Threads::default();
        pool.unwrap().install(|| {
            state(
                &mut engine,
                points,
                k,
                Update::Mean,
                steps!(&values[..k * dims]),
            )
        })
    };
    let expected = run(1);
    for threads in [2, 3, 7] {
        assert!(run(threads) == expected, "{threads}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_points_and_centroids_agree(
        values in prop::collection::vec(any::<i8>(), 1..3000), dims in 1usize..80, k in 1usize..30, offset in 0usize..16,
    ) {
        let values = &values[offset.min(values.len() - 1)..];
        let n = values.len() / dims;
        prop_assume!(n > 0);
        let k = k.min(n);
        let points = Points::new(&values[..n * dims], dims).unwrap();
        let start: Vec<i8> = values.iter().rev().copied().cycle().take(k * dims).collect();
        agree!(points, k, Update::Mean, steps!(&start));
    }

    /// More centroids than points, as a prediction may have; few of both, for which kernels are not begun.
    #[test]
    fn predictions_agree(
        values in prop::collection::vec(-3i8..3, 1..400), centroids in prop::collection::vec(-3i8..3, 9..1200), dims in 1usize..9,
        before in prop::collection::vec(0u32..4, 400), mut weights in prop::option::of(prop::collection::vec(0u32..3, 400)),
    ) {
        if let Some(weights) = &mut weights {
            // Not all may be 0.
            weights[0] = 2;
        }
        let n = values.len() / dims;
        prop_assume!(n > 0);
        let values = &values[..n * dims];
        let points = match &weights {
            Some(weights) => Points::weighted(values, dims, &weights[..n]).unwrap(),
            None => Points::new(values, dims).unwrap(),
        };
        let centroids = &centroids[..centroids.len() / dims * dims];
        let (mut labels, mut distances) = (before[..n].to_vec(), vec![0; n]);
        let mut expected = (vec![0; n], vec![0; n]);
        Threads::default().nearest(points, centroids, &mut labels, &mut distances).unwrap();
        tercet_core::cluster::predict(&points, centroids, &mut expected.0, &mut expected.1).unwrap();
        prop_assert_eq!((labels, distances), expected);
    }
}

#[test]
fn distances_that_a_step_left_for_later_are_there_for_all_that_need_them() {
    let values = cloud(Cloud::Groups, 300, 9, 11);
    let points = Points::new(&values, 9).unwrap();
    for need in 0..7 {
        agree!(points, 5, Update::Mean, |problem, told: &mut State| {
            problem.set_centroids(&values[..45])?;
            told.tell(problem.assign_update()?);
            told.tell(problem.assign_update()?);
            match need {
                0 => {
                    let far: Option<Farthest> = problem.farthest(None)?;
                    let far = far.map(|far| [far.index as u64, far.distance.into()]);
                    told.told.extend(far.into_iter().flatten());
                }
                1 => {
                    let picked = problem.pick(12_345)?;
                    told.told
                        .push(picked.map_or(u64::MAX, |point| point as u64));
                }
                2 => {
                    let mut totals = [0; 2];
                    problem.potentials(&[7, 250], &mut totals)?;
                    told.told.extend(totals);
                }
                3 => told.told.push(problem.shorten(3)?),
                4 => told.told.push(problem.seed(2, 100)?.into()),
                need => {
                    if need == 6 {
                        // They stay those of the centroids before.
                        problem.set_centroids(&values[45..90])?;
                    }
                    let mut distances = vec![0; 300];
                    problem.read_distances(&mut distances)?;
                    told.told.extend(distances.iter().map(|&d| u64::from(d)));
                }
            }
            Ok(())
        });
    }
}
