//! `tercet elbow`.

use std::fs;

use super::kmeans::{digits, groups};
use super::support::{Folder, fields};

#[test]
fn the_number_of_groups_has_the_highest_silhouette() {
    let folder = Folder::new();
    groups(&folder);
    let found = folder.json(&[
        "elbow",
        "groups.csv",
        "--k",
        "1..6",
        "--n-init",
        "3",
        "--report",
        "e.html",
        "--json",
    ]);
    assert_eq!(
        fields(&found),
        [
            "best",
            "data",
            "dims",
            "engine",
            "engine_note",
            "files",
            "points",
            "sampled",
            "seconds",
            "seed",
            "trials"
        ]
    );
    assert_eq!(
        (&found["best"], &found["sampled"]),
        (&3.into(), &serde_json::Value::Null)
    );
    let trials = found["trials"].as_array().unwrap();
    let ks: Vec<u64> = trials
        .iter()
        .map(|trial| trial["k"].as_u64().unwrap())
        .collect();
    assert_eq!(ks, [1, 2, 3, 4, 5, 6]);
    assert_eq!(
        fields(&trials[0]),
        [
            "davies_bouldin",
            "inertia",
            "iterations",
            "k",
            "silhouette",
            "stop"
        ]
    );
    assert!(trials[0]["silhouette"].is_null() && trials[0]["davies_bouldin"].is_null());
    let inertia = |k: usize| trials[k - 1]["inertia"].as_f64().unwrap();
    assert!(inertia(1) > inertia(2) && inertia(2) > 10.0 * inertia(3));
    let silhouette = trials[2]["silhouette"].as_f64().unwrap();
    assert!(silhouette > 0.9 && silhouette < 1.0);
    let html = fs::read_to_string(folder.path("e.html")).unwrap();
    assert!(html.contains(">k = 3</text>"));
}

#[test]
fn each_trial_is_the_clustering_of_its_k() {
    let folder = Folder::new();
    let digits = digits();
    let elbow = folder.json(&["elbow", &digits, "--k", "4..10:3", "--seed", "5", "--json"]);
    for trial in elbow["trials"].as_array().unwrap() {
        let k = trial["k"].to_string();
        let found = folder.json(&["kmeans", &digits, "-k", &k, "--seed", "5", "--json"]);
        assert_eq!(found["inertia"], trial["inertia"]);
        assert_eq!(found["iterations"], trial["iterations"]);
    }
    let text = folder.ok(&["elbow", &digits, "--k", "4..10:3", "--seed", "5"]);
    assert_eq!(text.matches("highest silhouette").count(), 1, "{text}");
}

#[test]
fn ranges_that_are_none_are_refused() {
    let folder = Folder::new();
    groups(&folder);
    for range in ["0..3", "5..2", "x", "2..8:0"] {
        let run = folder.run(&["elbow", "groups.csv", "--k", range]);
        assert_eq!(run.code, Some(2), "{range}");
        assert!(run.err.contains("FIRST..LAST"), "{}", run.err);
    }
    let line = folder.fails(&["elbow", "groups.csv", "--k", "2..99999999999"]);
    assert!(
        line.contains("99999999999 clusters asked for 12 points"),
        "{line}"
    );
    let line = folder.fails(&["elbow", "groups.csv", "--k", "2..3", "--report", "r.png"]);
    assert!(line.contains("must end in .html"), "{line}");
}
