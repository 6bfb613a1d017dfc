//! `tercet assign`.

use std::fs;

use super::kmeans::{csv_labels, digits, groups, labels};
use super::support::{Folder, fields};

#[test]
fn points_get_the_labels_they_had() {
    let folder = Folder::new();
    groups(&folder);
    for data in [digits(), "groups.csv".to_owned()] {
        for file in ["c.npy", "c.csv", "c.safetensors"] {
            for more in [&[][..], &["--spherical"]] {
                let command = ["kmeans", &data, "-k", "3", "--force"];
                folder.ok(&[
                    &command[..],
                    &["--labels", "l.npy", "--centroids", file],
                    more,
                ]
                .concat());
                let command = ["assign", &data, "--centroids", file, "--force", "--json"];
                let found = folder.json(&[&command[..], &["--labels", "a.npy"], more].concat());
                let same = labels(&folder, "l.npy") == labels(&folder, "a.npy");
                assert!(same, "{data} {file} {more:?}");
                let counts = found["counts"].as_array().unwrap();
                let all: u64 = counts.iter().map(|count| count.as_u64().unwrap()).sum();
                assert_eq!(found["points"], all);
                assert_eq!(found["clipped"], 0);
            }
        }
    }
}

/// Centroids by text are those by bytes: the same labels and the same inertia, of other points too.
#[test]
fn csv_centroids_label_as_npy_centroids_do() {
    let folder = Folder::new();
    groups(&folder);
    fs::write(
        folder.path("others.csv"),
        "x,y\n3.1,-7\n-0.3,0.125\n9,9\n0.2,-30\n5.3,0.1\n",
    )
    .unwrap();
    let digits = digits();
    for (data, others) in [
        (digits.as_str(), digits.as_str()),
        ("groups.csv", "others.csv"),
    ] {
        let outputs = |to| ["kmeans", data, "-k", "3", "--centroids", to, "--force"];
        folder.ok(&outputs("c.npy"));
        folder.ok(&outputs("c.csv"));
        let assign = |centroids, to| {
            let command = ["assign", others, "--centroids", centroids, "--labels", to];
            folder.json(&[&command[..], &["--force", "--json"]].concat())
        };
        let by_npy = assign("c.npy", "l.npy");
        let by_csv = assign("c.csv", "l.csv");
        assert_eq!(
            csv_labels(&folder, "l.csv"),
            labels(&folder, "l.npy"),
            "{data}"
        );
        for field in ["inertia", "grid", "counts", "clipped"] {
            assert_eq!(by_csv[field], by_npy[field], "{data} {field}");
        }
        assert_eq!(by_csv["files"], serde_json::json!(["l.csv"]));
    }
    // A separator that is named is that of all files.
    fs::write(folder.path("s.csv"), "1;2\n3;4\n90;80\n").unwrap();
    let named = ["s.csv", "--delimiter", "semicolon", "--centroids", "sc.csv"];
    folder.ok(&[&["kmeans", "-k", "2"], &named[..]].concat());
    let found = folder.json(&[&["assign", "--json"], &named[..]].concat());
    assert_eq!(found["k"], 2);
}

/// One point a time, on the grid that came with the centroids, as among all.
#[test]
fn other_points_are_cut_up_in_the_same_way() {
    let folder = Folder::new();
    groups(&folder);
    folder.ok(&[
        "kmeans",
        "groups.csv",
        "-k",
        "3",
        "--labels",
        "l.npy",
        "--centroids",
        "c.safetensors",
    ]);
    let all = labels(&folder, "l.npy");
    let text = fs::read_to_string(folder.path("groups.csv")).unwrap();
    for (line, label) in text.lines().skip(1).zip(all) {
        fs::write(folder.path("one.csv"), line).unwrap();
        folder.ok(&[
            "assign",
            "one.csv",
            "--centroids",
            "c.safetensors",
            "--labels",
            "o.npy",
            "--force",
        ]);
        assert_eq!(labels(&folder, "o.npy"), [label]);
    }
}

#[test]
fn the_nearest_of_given_centroids_is_the_nearest() {
    let folder = Folder::new();
    fs::write(folder.path("c.csv"), "0,0\n10,10\n-300,0.5\n").unwrap();
    fs::write(folder.path("p.csv"), "1,1\n9,8\n5,5\n-200,0\n4,5\n").unwrap();
    let found = folder.json(&[
        "assign",
        "p.csv",
        "--centroids",
        "c.csv",
        "--labels",
        "l.npy",
        "--json",
    ]);
    // 5,5 lies in the middle: the lower index.
    assert_eq!(labels(&folder, "l.npy"), [0, 1, 0, 2, 0]);
    assert_eq!(found["counts"], serde_json::json!([3, 1, 1]));
    assert_eq!(
        fields(&found),
        [
            "clipped",
            "counts",
            "data",
            "dims",
            "engine",
            "engine_note",
            "files",
            "grid",
            "inertia",
            "k",
            "points",
            "seconds"
        ]
    );
    let inertia = 2.0 + (1.0 + 4.0) + 50.0 + (100.0 * 100.0 + 0.25) + 41.0;
    assert!(
        (found["inertia"].as_f64().unwrap() - inertia).abs() < 1e-9,
        "{found}"
    );
    let text = folder.ok(&["assign", "p.csv", "--centroids", "c.csv"]);
    assert!(text.contains("5 points of 2 values"), "{text}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let folder = Folder::new();
    fs::write(folder.path("c.csv"), "0,0\n").unwrap();
    fs::write(folder.path("p.csv"), "1\n").unwrap();
    let run = folder.run(&["assign", "p.csv", "--centroids", "c.csv"]);
    assert_eq!(run.code, Some(2));
    assert!(
        run.err
            .contains("the centroids have 2 values, but the points have 1"),
        "{}",
        run.err
    );
    let line = folder.fails(&["assign", "p.csv", "--centroids", "absent.csv"]);
    assert!(line.contains("absent.csv: cannot open"), "{line}");
    let line = folder.fails(&[
        "assign",
        "p.csv",
        "--centroids",
        "p.csv",
        "--labels",
        "l.txt",
    ]);
    assert!(line.contains("must end in .npy or .csv"), "{line}");
}
