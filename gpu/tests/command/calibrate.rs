//! `tercet calibrate`.

use super::support::{Folder, fields, noise};

#[test]
fn the_largest_magnitude_sets_the_absmax_scale() {
    let folder = Folder::new();
    folder.npy("a.npy", &[0.5, -2.54, 1.0]);
    folder.npy("b.npy", &[1.25]);
    let found = folder.json(&[
        "calibrate",
        "a.npy",
        "b.npy",
        "--method",
        "absmax",
        "--json",
    ]);
    assert_eq!(
        fields(&found),
        [
            "count",
            "engine",
            "engine_note",
            "high",
            "low",
            "max",
            "min",
            "scale",
            "zero_point"
        ]
    );
    assert_eq!(
        (&found["count"], &found["zero_point"]),
        (&4.into(), &0.into())
    );
    assert!(
        (found["scale"].as_f64().unwrap() - 0.02).abs() < 1e-8,
        "{found}"
    );
    assert!(
        (found["min"].as_f64().unwrap() + 2.54).abs() < 1e-6 && found["max"] == 1.25,
        "{found}"
    );
}

#[test]
fn an_affine_grid_covers_zero_and_both_ends() {
    let folder = Folder::new();
    folder.npy("a.npy", &[-1.0, 0.0, 4.0]);
    let found = folder.json(&[
        "calibrate",
        "a.npy",
        "--method",
        "minmax",
        "--grid",
        "affine",
        "--json",
    ]);
    let scale = found["scale"].as_f64().unwrap();
    let zero_point = found["zero_point"].as_i64().unwrap() as f64;
    assert!((scale - 5.0 / 255.0).abs() < 1e-7, "{found}");
    assert!((zero_point - (-128.0 + 51.0)).abs() <= 1.0, "{found}");
}

#[test]
fn the_order_of_the_files_does_not_show() {
    let folder = Folder::new();
    for (name, seed) in [("a.npy", 1), ("b.npy", 2), ("c.npy", 3)] {
        folder.npy(name, &noise(seed, 5000));
    }
    for method in ["absmax", "minmax", "percentile", "mse", "entropy"] {
        for grid in ["symmetric", "affine"] {
            let run = |a, b, c| {
                folder.ok(&[
                    "calibrate",
                    a,
                    b,
                    c,
                    "--method",
                    method,
                    "--grid",
                    grid,
                    "--json",
                ])
            };
            assert_eq!(
                run("a.npy", "b.npy", "c.npy"),
                run("c.npy", "a.npy", "b.npy"),
                "{method} {grid}"
            );
        }
    }
}

#[test]
fn a_percentile_leaves_outliers_out() {
    let folder = Folder::new();
    let mut values = noise(1, 9_999);
    values.push(1e6);
    folder.npy("a.npy", &values);
    let high = |percent: &str| {
        let found = folder.json(&[
            "calibrate",
            "a.npy",
            "--method",
            "percentile",
            "--percent",
            percent,
            "--json",
        ]);
        found["high"].as_f64().unwrap()
    };
    assert!(high("99.9") < 0.5);
    assert_eq!(high("100"), 1e6);
    for percent in ["0", "100.5", "NaN"] {
        let run = folder.run(&[
            "calibrate",
            "a.npy",
            "--method",
            "percentile",
            "--percent",
            percent,
        ]);
        assert_eq!(run.code, Some(2), "{percent}: {run:?}");
    }
}

#[test]
fn people_get_every_figure() {
    let folder = Folder::new();
    folder.npy("a.npy", &[-1.0, 1.0]);
    let text = folder.ok(&["calibrate", "a.npy", "--method", "absmax"]);
    let heads: Vec<&str> = text
        .lines()
        .map(|line| line.split("  ").next().unwrap())
        .collect();
    assert_eq!(
        heads,
        [
            "values",
            "smallest",
            "largest",
            "range",
            "scale",
            "zero point",
            "engine"
        ]
    );
}

#[test]
fn a_value_that_is_not_finite_is_named() {
    let folder = Folder::new();
    folder.npy("a.npy", &[1.0, f32::INFINITY]);
    let line = folder.fails(&["calibrate", "a.npy", "--method", "mse"]);
    assert!(
        line.contains("a.npy") && line.contains("value 1 "),
        "{line}"
    );
}

#[test]
fn engines_give_the_same_figures_and_are_named() {
    let folder = Folder::new();
    folder.npy("a.npy", &noise(4, 30_001));
    for method in ["minmax", "percentile", "mse", "entropy"] {
        let command = ["calibrate", "a.npy", "--method", method, "--json"];
        let mut expected = folder.json(&command);
        assert!(expected["engine_note"].is_null(), "{expected}");
        for backend in ["scalar", "auto"] {
            let found = folder.json(&[&command[..], &["--backend", backend]].concat());
            if backend == "scalar" {
                assert_eq!(found["engine"], "scalar");
            }
            expected["engine"] = found["engine"].clone();
            assert_eq!(found, expected, "{method} {backend}");
        }
    }
}

#[test]
fn the_choice_of_an_engine_is_explained() {
    let folder = Folder::new();
    folder.npy("a.npy", &noise(5, 1000));
    let run = folder.run(&["calibrate", "a.npy", "--method", "absmax", "--explain"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.err.starts_with("histogram: 1000 elements, 4000 bytes"),
        "{}",
        run.err
    );
    assert!(run.err.contains("histogram: 1 call by "), "{}", run.err);
}
