//! Checks that calls through the C API return the same bits as calls from Rust.

use core::ptr::{null, null_mut};
use std::fs;

use tercet_c::*;
use tercet_core::cluster;
use tercet_core::linear::I8Sym;
use tercet_core::linear::network::{Buffers, Network as CoreNetwork};
use tercet_core::number::Random;
use tercet_core::quant::{self, Groups, Method};
use tercet_core::scalar::{Scalar, Tensor};

/// Returns difficult floats: of every exponent, with zeros, and rows of zeros only.
fn floats(random: &mut Random, len: usize) -> Vec<f32> {
    let wide = random.below(2) == 0;
    (0..len)
        .map(|_| match random.below(8) {
            0 => 0.0,
            _ if wide => {
                f32::from_bits(random.next_u64() as u32 & 0x807F_FFFF)
                    + random.normal() * 2f32.powi(random.below(250) as i32 - 130)
            }
            _ => random.normal(),
        })
        .collect()
}

#[test]
fn int8_is_that_of_the_driver() {
    let mut random = Random::new(1);
    for round in 0..400 {
        let (count, len) = (1 + round % 4, 1 + random.below(40) as usize);
        let mut values = floats(&mut random, count * len);
        if round % 5 == 0 {
            values[..len].fill(-0.0);
        }
        let grid = quant::Grid {
            scale: 0.37,
            zero_point: 3,
            low: -100,
            high: 101,
        };
        let methods = [
            Method::Symmetric { limit: 127 },
            Method::Symmetric { limit: 7 },
            Method::Affine,
            Method::Fixed(grid),
        ];
        for method in methods {
            let fixed = matches!(method, Method::Fixed(_));
            let count = if fixed { 1 } else { count };
            let len = values.len() / count;
            let mut expected = (vec![0; values.len()], vec![0.0; count], vec![0; count]);
            let (codes, scales, points) = &mut expected;
            let groups = Groups { count, len };
            let mut tensor = Tensor::new(&values, groups, codes, scales, points).unwrap();
            let report = quant::quantize(&mut tensor, method, &mut []).unwrap();

            let mut found = (vec![0; values.len()], vec![0.0; count], vec![0; count]);
            let mut counted = QuantizeReport::default();
            let (from, n) = (values.as_ptr(), values.len());
            let (codes, scales) = (found.0.as_mut_ptr(), found.1.as_mut_ptr());
            // SAFETY: all buffers are this test's own, of the lengths given.
            let status = unsafe {
                match method {
                    Method::Symmetric { limit } => tercet_quantize_symmetric(
                        from,
                        codes,
                        n,
                        limit,
                        scales,
                        count,
                        &mut counted,
                    ),
                    Method::Affine => {
                        let points = found.2.as_mut_ptr();
                        tercet_quantize_affine(from, codes, n, scales, points, count, &mut counted)
                    }
                    _ => {
                        let grid = Grid {
                            scale: grid.scale,
                            zero_point: grid.zero_point,
                            low: grid.low,
                            high: grid.high,
                        };
                        expected.1.clone_from(&found.1);
                        expected.2.clone_from(&found.2);
                        tercet_quantize_fixed(from, codes, n, &grid, &mut counted)
                    }
                }
            };
            assert_eq!(status, Status::Ok);
            assert_eq!(found, expected, "{method:?}");
            let counts = [
                (counted.groups, report.groups),
                (counted.zero, report.zero),
                (counted.flushed, report.flushed),
                (counted.coded, report.coded),
                (counted.clipped, report.clipped),
            ];
            for (found, expected) in counts {
                assert_eq!(found, expected, "{method:?}");
            }
        }
    }
}

#[test]
fn the_first_value_that_is_not_finite_is_named() {
    for at in [0, 5, 300, 511] {
        let mut values = vec![1.0; 512];
        values[at] = f32::INFINITY;
        let (mut codes, mut scales) = (vec![0; 512], [0.0; 2]);
        let mut report = QuantizeReport::default();
        // SAFETY: all buffers are this test's own, of the lengths given.
        let status = unsafe {
            let (codes, scales) = (codes.as_mut_ptr(), scales.as_mut_ptr());
            tercet_quantize_symmetric(values.as_ptr(), codes, 512, 127, scales, 2, &mut report)
        };
        assert_eq!((status, report.not_finite), (Status::NotFinite, at as u64));
    }
}

#[test]
fn clusters_are_saved_as_rust_saves_them() {
    const K: usize = 5;
    const D: usize = 7;
    let mut random = Random::new(2);
    let mut expected = cluster::Online::<K, D>::new();
    let mut memory = vec![0; 5 + K * D + K + (K * D).div_ceil(4)];
    let mut clusters = null_mut();
    // SAFETY: all buffers are this test's own, of the lengths given.
    unsafe {
        let status = tercet_online_init(memory.as_mut_ptr(), memory.len(), K, D, &mut clusters);
        assert_eq!(status, Status::Ok);
        expected.set_cap(20).unwrap();
        assert_eq!(tercet_online_set_cap(clusters, 20), Status::Ok);
        for _ in 0..200 {
            let x = [(); D].map(|()| random.next_u64() as i8 / 4);
            let mut seen = Observation::default();
            assert_eq!(
                tercet_online_observe(clusters, x.as_ptr(), D, &mut seen),
                Status::Ok
            );
            let known = expected.observe(&x);
            assert_eq!(
                (seen.label, seen.distance, seen.seed),
                (known.label, known.distance, known.seed)
            );
        }
        let (mut found, mut saved) = ([0; 20 + K * (5 * D + 4)], [0; 20 + K * (5 * D + 4)]);
        let status = tercet_online_save(clusters, found.as_mut_ptr(), found.len());
        assert_eq!(status, Status::Ok);
        expected.save(&mut saved).unwrap();
        assert_eq!(found, saved);
        let centroids = [[3; D]; K];
        let status = tercet_online_restart(clusters, centroids.as_flattened().as_ptr(), K * D, 20);
        assert_eq!(status, Status::Argument);
        let status = tercet_online_restart(clusters, centroids.as_flattened().as_ptr(), K * D, 2);
        assert_eq!(status, Status::Ok);
        let mut view = core::mem::zeroed();
        assert_eq!(tercet_online_view(clusters, &mut view), Status::Ok);
        assert_eq!(
            (view.used, *view.counts, *view.sums, view.cap),
            (K, 2, 6, 20)
        );
    }
}

#[test]
fn k_means_restarts_and_scratch() {
    let mut random = Random::new(3);
    let points: Vec<i8> = (0..60).map(|_| random.next_u64() as i8).collect();
    let options = KmeansOptions {
        seed: 9,
        init: KmeansInit::PlusPlus as u32,
        restarts: 4,
        max_iter: 100,
        tol_ppm: 0,
    };
    let words = 4 + (5 * 4 * 3 + 4 * 4_usize).div_ceil(8);
    let (mut centroids, mut labels, mut distances) = ([0; 12], [0; 20], [0; 20]);
    let mut run = |scratch: &mut [u64], options: *const KmeansOptions| {
        let mut outcome = KmeansOutcome::default();
        // SAFETY: all buffers are this test's own, of the lengths given.
        let status = unsafe {
            tercet_kmeans(
                points.as_ptr(),
                20,
                3,
                4,
                options,
                centroids.as_mut_ptr(),
                labels.as_mut_ptr(),
                distances.as_mut_ptr(),
                scratch.as_mut_ptr(),
                scratch.len(),
                &mut outcome,
            )
        };
        (status, outcome)
    };
    let (status, best) = run(&mut vec![u64::MAX; words], &options);
    assert_eq!(status, Status::Ok);
    let (status, one) = run(
        &mut vec![u64::MAX; words],
        &KmeansOptions {
            restarts: 1,
            ..options
        },
    );
    assert_eq!(status, Status::Ok);
    assert!(best.inertia <= one.inertia);
    let (status, _) = run(&mut vec![0; words], null());
    assert_eq!(status, Status::Ok);
    assert_eq!(run(&mut vec![0; words - 1], &options).0, Status::Scratch);
    let strange = KmeansOptions { init: 3, ..options };
    assert_eq!(run(&mut vec![0; words], &strange).0, Status::Argument);
}

/// Returns memory for a network, aligned.
fn network() -> Vec<usize> {
    vec![0; size_of::<Network>() / size_of::<usize>()]
}

#[test]
fn a_network_runs_from_any_address() {
    let file = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.gguf")).unwrap();
    let core = CoreNetwork::<2>::new(&file).unwrap();
    let x: Vec<i8> = (0..core.inputs()).map(|i| (i % 17) as i8 - 8).collect();
    let mut expected = vec![0; core.outputs()];
    let mut buffers = Buffers {
        activations: &mut vec![0; core.activations_len()],
        scratch: &mut vec![0; core.scratch_len()],
    };
    core.run(
        &mut Scalar,
        I8Sym::new(&x).unwrap(),
        &mut buffers,
        &mut expected,
    )
    .unwrap();
    for shift in 0..5 {
        let mut moved = vec![0; shift];
        moved.extend(&file);
        let mut memory = network();
        let network = memory.as_mut_ptr().cast::<Network>();
        // SAFETY: all buffers are this test's own, of the lengths given, and the file outlives the network.
        unsafe {
            let start = moved.as_ptr().wrapping_add(shift);
            assert_eq!(tercet_network_open(network, start, file.len()), Status::Ok);
            let mut sizes = NetworkSizes::default();
            assert_eq!(tercet_network_sizes(network, &mut sizes), Status::Ok);
            let mut sums = vec![0; sizes.outputs];
            let run = |words: usize, x: &[i8], sums: &mut [i64]| {
                let mut scratch = vec![u32::MAX; words];
                let (x, inputs) = (x.as_ptr(), x.len());
                let (scratch, len) = (scratch.as_mut_ptr(), scratch.len());
                tercet_network_run(
                    network,
                    x,
                    inputs,
                    scratch,
                    len,
                    sums.as_mut_ptr(),
                    sums.len(),
                )
            };
            assert_eq!(run(sizes.words, &x, &mut sums), Status::Ok);
            assert_eq!(sums, expected);
            assert_eq!(run(sizes.fast_words + 9, &x, &mut sums), Status::Ok);
            assert_eq!(sums, expected);
            assert_eq!(run(sizes.words - 1, &x, &mut sums), Status::Scratch);
            assert_eq!(run(sizes.words, &x[1..], &mut sums), Status::Length);
            assert_eq!(run(sizes.words, &x, &mut [0]), Status::Length);
            let low = vec![-128; sizes.inputs];
            assert_eq!(run(sizes.words, &low, &mut sums), Status::NotSymmetric);
            let (mut label, n) = (9, sizes.outputs);
            let status = tercet_network_class(network, expected.as_ptr(), n, &mut label);
            assert_eq!((status, label), (Status::Ok, core.class(&expected)));
            let mut logits = vec![0.0; n];
            let status = tercet_network_logits(network, expected.as_ptr(), logits.as_mut_ptr(), n);
            assert_eq!(
                (status, logits[3]),
                (Status::Ok, core.logit(3, expected[3]))
            );
        }
    }
}

#[test]
fn hostile_files_are_refused() {
    let whole = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.gguf")).unwrap();
    let mut files: Vec<Vec<u8>> = (0..whole.len())
        .step_by(97)
        .map(|len| whole[..len].to_vec())
        .collect();
    let hostile = concat!(env!("CARGO_MANIFEST_DIR"), "/../../core/tests/hostile");
    for entry in fs::read_dir(hostile).unwrap() {
        files.push(fs::read(entry.unwrap().path()).unwrap());
    }
    for file in files {
        let mut memory = network();
        // SAFETY: the memory is this test's own, and the file's length is its own.
        let status =
            unsafe { tercet_network_open(memory.as_mut_ptr().cast(), file.as_ptr(), file.len()) };
        assert!(
            matches!(status, Status::File | Status::Network),
            "{status:?}"
        );
    }
}
