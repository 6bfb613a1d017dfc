//! k-means against scikit-learn, on real data: digits, wrist motions, an embedding matrix.

use crate::support;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use tercet_core::cluster::float::Labelled;
use tercet_core::cluster::{Lloyd, Stop, means};
use tercet_core::quant::{Groups, int8};
use tercet_core::scalar::Tensor;
use tercet_host::cluster::{self, Clustering, KmeansOptions, kmeans};
use tercet_host::parallel::Threads;

/// What the script prints.
#[derive(Deserialize)]
struct Found {
    n: usize,
    d: usize,
    k: usize,
    seeds: Vec<Fits>,
}

/// Fits on codes and on floats.
#[derive(Deserialize)]
struct Fits {
    iterations: [u32; 2],
    inertia: [f64; 2],
}

fn read<const N: usize, T>(folder: &Path, name: &str, of: fn([u8; N]) -> T) -> Vec<T> {
    let bytes = fs::read(folder.join(name)).unwrap();
    bytes.as_chunks().0.iter().map(|&chunk| of(chunk)).collect()
}

/// ‖x − c‖² of a point and one of the centroids.
fn distance(codes: &[i8], centroids: &[i8], d: usize, point: usize, label: usize) -> i64 {
    let pairs = codes[point * d..][..d]
        .iter()
        .zip(&centroids[label * d..][..d]);
    pairs
        .map(|(&x, &c)| (i64::from(x) - i64::from(c)).pow(2))
        .sum()
}

fn against_scikit_learn(dataset: &str, seeds: usize) {
    let package = match dataset {
        "motions" => "sktime",
        "embeddings" => "wordllama",
        _ => "sklearn",
    };
    let modules = ["numpy", "sklearn", "safetensors", package];
    let Some(python) = support::python_with(&modules) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let arguments = [
        folder.as_os_str().to_owned(),
        dataset.into(),
        seeds.to_string().into(),
    ];
    let printed = support::run(&python, "cluster.py", arguments);
    let Found { n, d, k, seeds } = serde_json::from_str(&printed).unwrap();
    let values = read(folder, "values", f32::from_le_bytes);
    let codes = read(folder, "codes", i8::from_le_bytes);

    // The codes are those of Tercet's own grid.
    let (mut own, mut scale) = (vec![0; n * d], [0.0]);
    let groups = Groups::tensor(n * d).unwrap();
    let mut tensor = Tensor::new(&values, groups, &mut own, &mut scale, &mut []).unwrap();
    int8::symmetric(&mut tensor).unwrap();
    assert_eq!(own, codes);

    let mut best = [(f64::MAX, f64::MAX); 2];
    for (seed, fits) in seeds.iter().enumerate() {
        let init = read(folder, &format!("init.{seed}"), u32::from_le_bytes);
        let init: Vec<i8> = init
            .iter()
            .flat_map(|&i| codes[i as usize * d..][..d].to_vec())
            .collect();
        let mut options = KmeansOptions::new(k).with_centroids(init.clone());
        options.run.lloyd = Lloyd {
            max_iter: 1000,
            tol_ppm: 0,
        };
        let labels = read(folder, &format!("labels.{seed}"), i32::from_le_bytes);
        let ties = one_step(
            &codes,
            d,
            &init,
            &labels,
            &read(folder, &format!("centers.{seed}"), f64::from_le_bytes),
        );
        let done = kmeans(
            &mut Threads::default(),
            &codes,
            d,
            None,
            &options,
            &mut |_| (),
        )
        .unwrap();
        assert_ne!(done.outcome.stop, Stop::Iterations);
        let inertia = [
            done.outcome.inertia as f64,
            float_inertia(&values, d, scale[0], &done),
        ];
        let [same, float] = [0, 1].map(|on| inertia[on] / fits.inertia[on]);
        println!(
            "{dataset} {n} x {d}, k = {k}, seed {seed}: ties {ties:?}; inertia / scikit-learn's on the same int8 data \
             {same:.5} ({} and {} steps), on the floats {float:.5} ({} steps)",
            done.outcome.iterations, fits.iterations[0], fits.iterations[1],
        );
        // A tie or a rounding can send two runs to different minima, either of which may be the better.
        assert!(same < 1.01 && float < 1.02, "seed {seed}: {same}, {float}");
        for on in [0, 1] {
            best[on] = (
                f64::min(best[on].0, inertia[on]),
                f64::min(best[on].1, fits.inertia[on]),
            );
        }
    }
    let [same, float] = best.map(|(ours, theirs)| ours / theirs);
    println!(
        "{dataset}, best of {} seeds: {same:.5} and {float:.5}",
        seeds.len()
    );
    assert!(same < 1.001, "{same}");
    assert!(float < 1.005, "{float}");
}

/// One step of Lloyd's loop: labels equal but for ties, centroids equal to the last rounding but for those that ties
/// are between. Gives the points that are as near to several centroids.
fn one_step(codes: &[i8], d: usize, init: &[i8], labels: &[i32], centers: &[f64]) -> Vec<usize> {
    let found = cluster::assign(&mut Threads::default(), codes, d, init).unwrap();
    let (mut ties, mut moved) = (vec![], vec![false; init.len() / d]);
    for (point, (&ours, &theirs)) in found.labels.iter().zip(labels).enumerate() {
        let all: Vec<i64> = (0..moved.len())
            .map(|label| distance(codes, init, d, point, label))
            .collect();
        let least = all.iter().min().unwrap();
        let nearest: Vec<usize> = (0..all.len())
            .filter(|&label| all[label] == *least)
            .collect();
        assert_eq!(ours as usize, nearest[0], "ties go to the lowest");
        assert!(
            nearest.contains(&(theirs as usize)),
            "point {point}: {nearest:?}, scikit-learn {theirs}"
        );
        if nearest.len() > 1 {
            // scikit-learn takes the data's mean away before it fits, and roundings then decide.
            ties.push(point);
            nearest.iter().for_each(|&label| moved[label] = true);
        }
    }
    let k = init.len() / d;
    let mut options = KmeansOptions::new(k).with_centroids(init.to_vec());
    options.run.lloyd.max_iter = 1;
    let step = kmeans(
        &mut Threads::default(),
        codes,
        d,
        None,
        &options,
        &mut |_| (),
    )
    .unwrap();
    let (mut sums, mut counts) = (vec![0i64; k * d], vec![0u64; k]);
    for (row, &label) in codes.chunks(d).zip(&found.labels) {
        counts[label as usize] += 1;
        for (sum, &x) in sums[label as usize * d..].iter_mut().zip(row) {
            *sum += i64::from(x);
        }
    }
    let mut floats = vec![0.0; k * d];
    means(&sums, &counts, &mut floats).unwrap();
    for (i, (&mean, &center)) in floats.iter().zip(centers).enumerate() {
        if moved[i / d] {
            continue;
        }
        assert_eq!(mean, (sums[i] as f64 / counts[i / d] as f64) as f32);
        // scikit-learn takes the data's mean away first, and adds it again.
        assert!(
            (f64::from(mean) - center).abs() < 1e-5,
            "centroid {}: {mean}, {center}",
            i / d
        );
        let rounded = f64::from(step.centroids[i]);
        assert!(
            (rounded - center).abs() <= 0.5 + 1e-9,
            "centroid {}: {rounded}, {center}",
            i / d
        );
    }
    let compared = moved.iter().filter(|&&moved| !moved).count();
    assert!(
        compared * 2 >= k,
        "{compared} of {k} centroids are free of ties"
    );
    ties
}

/// Σ‖x − c‖² of the floats to the int8 centroids in their units.
fn float_inertia(values: &[f32], dims: usize, scale: f32, done: &Clustering) -> f64 {
    let centroids: Vec<f32> = done
        .centroids
        .iter()
        .map(|&c| f32::from(c) * scale)
        .collect();
    let labelled = Labelled {
        values,
        dims,
        weights: None,
        labels: &done.labels,
        centroids: &centroids,
    };
    cluster::inertia(&labelled).unwrap()
}

#[test]
fn digits_cluster_as_in_scikit_learn() {
    against_scikit_learn("digits", 6);
}

#[test]
fn wrist_motions_cluster_as_in_scikit_learn() {
    against_scikit_learn("motions", 6);
}

#[test]
fn an_embedding_matrix_clusters_as_in_scikit_learn() {
    against_scikit_learn("embeddings", 1);
}
