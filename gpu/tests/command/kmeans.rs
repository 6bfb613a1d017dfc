//! `tercet kmeans`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::support::{Folder, fields};

/// The bundled digits.
pub(super) fn digits() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/images.npy");
    path.to_str().unwrap().to_owned()
}

/// Three groups in a plane, four points each; the first of a group is its middle.
pub(super) fn groups(folder: &Folder) {
    let mut text = "x,y\n".to_owned();
    for (x, y) in [(0.0, 0.0), (10.5, 0.25), (0.5, -20.0)] {
        for (dx, dy) in [(0.0, 0.0), (0.25, 0.0), (0.0, 0.5), (-0.25, -0.5)] {
            text += &format!("{},{}\n", x + dx, y + dy);
        }
    }
    fs::write(folder.path("groups.csv"), text).unwrap();
}

/// The values of an npy file of `int32`.
pub(super) fn labels(folder: &Folder, name: &str) -> Vec<i32> {
    let bytes = fs::read(folder.path(name)).unwrap();
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]])) + 10;
    assert!(String::from_utf8_lossy(&bytes[..header]).contains("'<i4'"));
    let (values, rest) = bytes[header..].as_chunks();
    assert!(rest.is_empty());
    values
        .iter()
        .map(|&value| i32::from_le_bytes(value))
        .collect()
}

/// The lines of a CSV file of labels.
pub(super) fn csv_labels(folder: &Folder, name: &str) -> Vec<i32> {
    let text = fs::read_to_string(folder.path(name)).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

fn number(of: &Value) -> f64 {
    of.as_f64().unwrap_or_else(|| panic!("{of}"))
}

#[test]
fn groups_are_found_and_the_report_is_documented_whole() {
    let folder = Folder::new();
    groups(&folder);
    let found = folder.json(&[
        "kmeans",
        "groups.csv",
        "-k",
        "3",
        "--labels",
        "l.npy",
        "--json",
    ]);
    let labels = labels(&folder, "l.npy");
    for group in labels.chunks(4) {
        assert!(group.iter().all(|label| *label == group[0]), "{labels:?}");
    }
    assert_eq!(
        fields(&found),
        [
            "clusters",
            "columns",
            "curve",
            "data",
            "dims",
            "empty",
            "engine",
            "engine_note",
            "files",
            "grid",
            "inertia",
            "inertia_codes",
            "iterations",
            "k",
            "points",
            "reseeded",
            "seconds",
            "seed",
            "stop"
        ]
    );
    assert_eq!(found["columns"], serde_json::json!(["x", "y"]));
    assert_eq!((&found["points"], &found["dims"]), (&12.into(), &2.into()));
    assert_eq!(
        fields(&found["grid"]),
        ["clipped", "exact", "relative_error", "scale", "zero_point"]
    );
    assert_eq!(found["stop"], "labels");
    assert_eq!(found["files"], serde_json::json!(["l.npy"]));
    // Each group by hand: squares of the distances from its mean, 0.125 + 0.5 - 0.. in x and y.
    let spread = |offsets: [f64; 4]| {
        let mean = offsets.iter().sum::<f64>() / 4.0;
        offsets.iter().map(|x| (x - mean).powi(2)).sum::<f64>()
    };
    let float = 3.0 * (spread([0.0, 0.25, 0.0, -0.25]) + spread([0.0, 0.0, 0.5, -0.5]));
    let step = number(&found["grid"]["scale"]);
    // Centroids are rounded to the grid: at most half a step in each coordinate of each point.
    let inertia = number(&found["inertia"]);
    assert!(inertia >= float - 1e-6 && inertia <= float + 24.0 * step * step / 4.0 + 1e-6);
    for cluster in found["clusters"].as_array().unwrap() {
        assert_eq!(
            fields(cluster),
            ["points", "radius", "representative", "weight"]
        );
        assert_eq!(
            (&cluster["points"], &cluster["weight"]),
            (&4.into(), &4.into())
        );
        // Half a diagonal, and half a code.
        assert!(number(&cluster["radius"]) < 0.56 + 2.0 * step);
        assert_eq!(cluster["representative"].as_u64().unwrap() % 4, 0);
    }
    for step in found["curve"].as_array().unwrap() {
        assert_eq!(fields(step), ["inertia", "restart", "step"]);
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let folder = Folder::new();
    let digits = digits();
    let run = |threads: &str, more: &[&str]| {
        let outputs = [
            "--labels",
            "l.npy",
            "--centroids",
            "c.safetensors",
            "--report",
            "r.svg",
            "--representatives",
            "r.safetensors",
            "--force",
            "--json",
            "--threads",
            threads,
        ];
        let command = ["kmeans", digits.as_str(), "-k", "10"];
        let mut found = folder.json(&[&command[..], &outputs, more].concat());
        found.as_object_mut().unwrap().remove("seconds");
        (found, folder.files())
    };
    for more in [
        &["--n-init", "2"][..],
        &["--spherical", "--seed", "3"],
        &["--mini-batch", "256", "--max-iter", "5"],
        &["--init", "random", "--seed", "18446744073709551615"],
    ] {
        assert!(run("1", more) == run("3", more), "{more:?}");
    }
    assert!(run("2", &["--seed", "1"]).1 != run("2", &["--seed", "2"]).1);
}

#[test]
fn centroids_as_a_start_end_where_they_ended() {
    let folder = Folder::new();
    let digits = digits();
    for (file, more) in [
        ("c.npy", &[][..]),
        ("c.safetensors", &[]),
        ("s.npy", &["--spherical"]),
    ] {
        let command = ["kmeans", digits.as_str(), "-k", "10", "--json"];
        let outputs = ["--centroids", file, "--labels", "l.npy", "--force"];
        let first = folder.json(&[&command[..], &outputs, more].concat());
        let again = ["--init", file, "--labels", "again.npy", "--force"];
        let again = folder.json(&[&command[..], &again, more].concat());
        assert_eq!(first["inertia"], again["inertia"], "{file}");
        assert!(number(&again["iterations"]) <= 2.0, "{again}");
        assert_eq!(
            labels(&folder, "l.npy"),
            labels(&folder, "again.npy"),
            "{file}"
        );
    }
}

#[test]
fn weights_count_as_copies() {
    let folder = Folder::new();
    groups(&folder);
    let text = fs::read_to_string(folder.path("groups.csv")).unwrap();
    let weights: Vec<usize> = (0..12).map(|row| 1 + row % 3).collect();
    let copies: String = text
        .lines()
        .skip(1)
        .zip(&weights)
        .map(|(line, &weight)| format!("{line}\n").repeat(weight))
        .collect();
    fs::write(folder.path("copies.csv"), copies).unwrap();
    let column: String = weights.iter().map(|weight| format!("{weight}\n")).collect();
    fs::write(folder.path("weights.csv"), column).unwrap();
    fs::write(folder.path("start.csv"), "0,0\n10,0\n0,-20\n").unwrap();
    let run = |data: &str, more: &[&str]| {
        let command = ["kmeans", data, "-k", "3", "--init", "start.csv", "--json"];
        let outputs = ["--centroids", "c.npy", "--force"];
        let found = folder.json(&[&command[..], &outputs, more].concat());
        let weights: Vec<u64> = found["clusters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cluster| cluster["weight"].as_u64().unwrap())
            .collect();
        (
            weights,
            number(&found["inertia"]),
            fs::read(folder.path("c.npy")).unwrap(),
        )
    };
    let weighted = run("groups.csv", &["--weights", "weights.csv"]);
    let copied = run("copies.csv", &[]);
    assert_eq!((&weighted.0, &weighted.2), (&copied.0, &copied.2));
    assert!((weighted.1 - copied.1).abs() < 1e-9 * copied.1);
    assert_eq!(weighted.0.iter().sum::<u64>(), 24);
}

#[test]
fn representatives_are_real_points() {
    let folder = Folder::new();
    groups(&folder);
    let found = folder.json(&[
        "kmeans",
        "groups.csv",
        "-k",
        "3",
        "--representatives",
        "r.npy",
        "--json",
    ]);
    assert_eq!(found["files"].as_array().unwrap().len(), 3);
    // They make a smaller data set that clusters alike: each is its own cluster.
    let small = folder.json(&[
        "kmeans",
        "r.npy",
        "-k",
        "3",
        "--weights",
        "r.weights.npy",
        "--json",
    ]);
    assert_eq!(small["inertia_codes"], 0);
    for cluster in small["clusters"].as_array().unwrap() {
        assert_eq!(
            (&cluster["points"], &cluster["weight"]),
            (&1.into(), &4.into())
        );
    }
    let rows = folder.json(&["kmeans", "r.indices.npy", "-k", "1", "--json"]);
    assert_eq!(rows["points"], 3);
}

#[test]
fn csv_comes_out_as_it_went_in() {
    let folder = Folder::new();
    groups(&folder);
    let command = ["kmeans", "groups.csv", "-k", "3", "--json", "--force"];
    let npy = ["--labels", "l.npy", "--centroids", "c.npy"];
    folder.ok(&[&command[..], &npy].concat());
    let outputs = ["--labels", "l.csv", "--centroids", "c.csv"];
    let nearest = ["--representatives", "r.csv"];
    let found = folder.json(&[&command[..], &outputs, &nearest].concat());
    let files: Vec<&str> = found["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f.as_str().unwrap())
        .collect();
    assert_eq!(
        files,
        ["l.csv", "c.csv", "r.csv", "r.weights.csv", "r.indices.csv"]
    );
    let read = |name: &str| fs::read_to_string(folder.path(name)).unwrap();
    assert_eq!(csv_labels(&folder, "l.csv"), labels(&folder, "l.npy"));

    // The names of the columns, and the values of the npy file.
    let centroids = read("c.csv");
    let (header, rows) = centroids.split_once('\n').unwrap();
    assert_eq!(header, "x,y");
    let values: Vec<f32> = rows
        .split_terminator([',', '\n'])
        .map(|x| x.parse().unwrap())
        .collect();
    let floats: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!(values.len(), 6);
    assert!(fs::read(folder.path("c.npy")).unwrap().ends_with(&floats));

    // Real points: lines of the data.
    let data = read("groups.csv");
    let chosen = read("r.csv");
    assert!(
        chosen.starts_with("x,y\n") && chosen.lines().count() == 4,
        "{chosen}"
    );
    for (line, row) in chosen.lines().skip(1).zip(read("r.indices.csv").lines()) {
        let row: usize = row.parse().unwrap();
        assert_eq!(data.lines().nth(row + 1), Some(line));
    }
    assert_eq!(read("r.weights.csv"), "4\n4\n4\n");

    // As a start, they end where they ended.
    let again = folder.json(&[&command[..], &["--init", "c.csv"]].concat());
    assert_eq!(again["inertia"], found["inertia"]);
}

#[test]
fn options_go_by_the_names_of_the_library_too() {
    let folder = Folder::new();
    let digits = digits();
    let run = |options: &[&str]| {
        let command = ["kmeans", digits.as_str(), "-k", "10", "--json"];
        let mut found = folder.json(&[&command[..], options].concat());
        found.as_object_mut().unwrap().remove("seconds");
        found
    };
    let found = run(&["--n-init", "2", "--tol", "0.05"]);
    assert_eq!(run(&["--restarts", "2", "--tolerance", "0.05"]), found);
    assert_ne!(run(&["--restarts", "2"]), found);
    assert_ne!(run(&["--tolerance", "0.05"]), found);
    for command in ["kmeans", "elbow"] {
        let help = folder.ok(&[command, "--help"]);
        for alias in ["--restarts", "--tolerance"] {
            assert!(help.contains(alias), "{command}: {alias}");
        }
    }
}

#[test]
fn reports_are_pages_and_pictures() {
    let folder = Folder::new();
    let digits = digits();
    let command = ["kmeans", digits.as_str(), "-k", "10", "--max-iter", "3"];
    folder.ok(&[&command[..], &["--report", "r.html"]].concat());
    folder.ok(&[&command[..], &["--report", "r.svg"]].concat());
    let html = fs::read_to_string(folder.path("r.html")).unwrap();
    let svg = fs::read_to_string(folder.path("r.svg")).unwrap();
    assert!(html.contains(&svg) && svg.starts_with("<svg "));
    assert_eq!(svg.matches("<image ").count(), 10);
    folder.ok(&[&command[..], &["--report", "n.svg", "--image", "none"]].concat());
    let none = fs::read_to_string(folder.path("n.svg")).unwrap();
    assert_eq!(none.matches("<image ").count(), 0);
}

#[test]
fn the_table_tells_what_was_found() {
    let folder = Folder::new();
    groups(&folder);
    let text = folder.ok(&[
        "kmeans",
        "groups.csv",
        "-k",
        "3",
        "--n-init",
        "2",
        "--centroids",
        "c.npy",
    ]);
    for words in [
        "groups.csv: 12 points of 2 values (f32)",
        "x, y",
        "3 by k-means++, seed 0, best of 2",
        "no label changed",
        "33.33 %",
        "wrote c.npy",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // Far from 0 and narrow: the grid must hold 0 and has few codes left, which is said.
    fs::write(
        folder.path("kelvin.csv"),
        "293\n293.5\n295.25\n297.5\n297.75\n",
    )
    .unwrap();
    let text = folder.ok(&["kmeans", "kelvin.csv", "-k", "2"]);
    assert!(text.contains("coarse for this data"), "{text}");
}

#[test]
fn bad_requests_are_refused_before_anything_is_written() {
    let folder = Folder::new();
    groups(&folder);
    fs::write(folder.path("nan.csv"), "1,2\n3,nan\n").unwrap();
    fs::write(folder.path("ragged.csv"), "1,2\n3\n").unwrap();
    fs::write(folder.path("empty.csv"), "").unwrap();
    fs::write(folder.path("two.csv"), "1\n2\n").unwrap();
    fs::write(folder.path("minus.csv"), "-1\n".repeat(12)).unwrap();
    fs::write(folder.path("zeros.csv"), "0\n".repeat(12)).unwrap();
    fs::write(folder.path("there.npy"), "mine").unwrap();
    for (data, more, wanted) in [
        (
            "nan.csv",
            &["-k", "1"][..],
            "line 2, column 2: `nan` is not a finite f32",
        ),
        ("ragged.csv", &["-k", "1"], "line 2 has 1 fields"),
        ("empty.csv", &["-k", "1"], "it is empty"),
        ("absent.npy", &["-k", "1"], "absent.npy: cannot open"),
        (
            "groups.csv",
            &["-k", "13"],
            "13 clusters asked for 12 points",
        ),
        ("groups.csv", &["-k", "0"], "0 clusters asked for 12 points"),
        (
            "groups.csv",
            &["-k", "3", "--weights", "two.csv"],
            "2 weights for 12 points",
        ),
        (
            "groups.csv",
            &["-k", "3", "--weights", "minus.csv"],
            "weight -1 of row 0",
        ),
        (
            "groups.csv",
            &["-k", "3", "--weights", "zeros.csv"],
            "no points to cluster",
        ),
        (
            "groups.csv",
            &["-k", "3", "--init", "absent.npy"],
            "absent.npy: cannot open",
        ),
        (
            "groups.csv",
            &["-k", "3", "--labels", "l.txt"],
            "must end in .npy or .csv",
        ),
        (
            "groups.csv",
            &["-k", "3", "--centroids", "c.gguf"],
            "must end in .npy, .csv or .safetensors",
        ),
        (
            "groups.csv",
            &["-k", "3", "--report", "r.pdf"],
            "must end in .html, .htm or .svg",
        ),
        (
            "groups.csv",
            &["-k", "3", "--labels", "there.npy"],
            "exists already",
        ),
        (
            "groups.csv",
            &["-k", "3", "--labels", "no/l.npy"],
            "cannot create",
        ),
    ] {
        let line = folder.fails(&[&["kmeans", data], more].concat());
        assert!(line.contains(wanted), "{data} {more:?}: {line}");
    }
    for (more, wanted) in [
        (
            &["-k", "2", "--init", "two.csv"][..],
            "the first centroids are 2 points of 1 values, but 2 of 2 are needed",
        ),
        (&["-k", "2", "--tol", "-0.5"], "--tol"),
        (&["-k", "2", "--tol", "NaN"], "--tol"),
        (&["-k", "2", "--percent", "0"], "--percent"),
        (
            &["-k", "2", "--labels", "a.npy", "--centroids", "a.npy"],
            "named for two outputs",
        ),
        (
            &["-k", "2", "--report", "r.svg", "--image", "3x3"],
            "--image 3x3 has 9 values but a point has 2",
        ),
        (&["-k", "2", "--mini-batch", "0"], "--mini-batch"),
        (&["--seed", "1"], "-k"),
    ] {
        let before = folder.files();
        let run = folder.run(&[&["kmeans", "groups.csv"], more].concat());
        assert_eq!(run.code, Some(2), "{more:?}: {run:?}");
        assert!(run.err.contains(wanted), "{more:?}: {}", run.err);
        assert_eq!(folder.files(), before);
    }
    // --force replaces, but never an input.
    folder.ok(&[
        "kmeans",
        "groups.csv",
        "-k",
        "3",
        "--labels",
        "there.npy",
        "--force",
    ]);
    let line = folder.fails(&[
        "kmeans",
        "there.npy",
        "-k",
        "2",
        "--labels",
        "there.npy",
        "--force",
    ]);
    assert!(
        line.contains("output and input are the same file"),
        "{line}"
    );
}
