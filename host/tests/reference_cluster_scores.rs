//! Silhouette and Davies–Bouldin index against scikit-learn.

use crate::support;
use std::fs;

use serde::Deserialize;
use tercet_core::cluster::Points;
use tercet_core::cluster::score::{davies_bouldin, davies_bouldin_scratch};
use tercet_host::cluster::silhouette;

/// A line of what the script prints.
#[derive(Deserialize)]
struct Case {
    name: String,
    d: usize,
    k: usize,
    silhouette: f64,
    davies_bouldin: f64,
}

#[test]
fn scores_equal_scikit_learn() {
    let Some(python) = support::python_with(&["numpy", "sklearn"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let printed = support::run(&python, "cluster_scores.py", [folder.path()]);
    let mut cases = 0;
    for (index, line) in printed.lines().enumerate() {
        let case: Case = serde_json::from_str(line).unwrap();
        let read = |name: &str| fs::read(folder.path().join(format!("{index}.{name}"))).unwrap();
        let values: Vec<i8> = read("points").into_iter().map(|byte| byte as i8).collect();
        let labels: Vec<u32> = read("labels")
            .as_chunks()
            .0
            .iter()
            .map(|&x| u32::from_le_bytes(x))
            .collect();
        let points = Points::new(&values, case.d).unwrap();
        let found = silhouette(&points, &labels, case.k, 0).unwrap();
        assert!(!found.sampled);
        let mut scratch = vec![0; davies_bouldin_scratch(case.k, case.d)];
        let index = davies_bouldin(&points, &labels, case.k, &mut scratch).unwrap();
        println!(
            "{}: silhouette {:.6} ({:+.1e}), Davies-Bouldin {:.6} ({:+.1e})",
            case.name,
            found.score,
            found.score - case.silhouette,
            index,
            index - case.davies_bouldin
        );
        assert!(
            (found.score - case.silhouette).abs() < 1e-5,
            "{}",
            case.name
        );
        assert!(
            (index - case.davies_bouldin).abs() < 1e-4 * case.davies_bouldin.max(1.0),
            "{}",
            case.name
        );
        cases += 1;
    }
    assert_eq!(cases, 9);
}
