//! `tercet search`.

use std::fs;

use super::support::{Folder, fields, noise};

/// Five points on a plane and two queries.
fn points(folder: &Folder) {
    let base = "x,y\n1,0\n0,1\n10,1\n-3,0\n1,0\n";
    fs::write(folder.path("base.csv"), base).unwrap();
    fs::write(folder.path("queries.csv"), "2,0\n0,-1\n").unwrap();
}

/// The rows found, query by query.
fn indices(report: &serde_json::Value) -> Vec<Vec<u64>> {
    let queries = report["hits"].as_array().unwrap();
    let rows = |hits: &serde_json::Value| {
        let hits = hits.as_array().unwrap().iter();
        hits.map(|hit| hit["index"].as_u64().unwrap()).collect()
    };
    queries.iter().map(rows).collect()
}

fn args<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let all = ["search", "base.csv", "queries.csv", "--json"];
    all.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn the_nearest_rows_come_first_and_ties_by_row() {
    let folder = Folder::new();
    points(&folder);
    for storage in ["int8", "f16", "f32"] {
        let find = |metric, k| {
            let report = folder.json(&args(&["--storage", storage, "--metric", metric, "-k", k]));
            assert_eq!(report["recall"], 1.0, "{report}");
            assert_eq!(report["exact"], true, "{report}");
            report
        };
        let cosine = find("cosine", "4");
        assert_eq!(indices(&cosine), [[0, 4, 2, 1], [0, 3, 4, 2]], "{storage}");
        assert_eq!(cosine["hits"][0][0]["score"], 1.0);
        let dot = find("dot", "3");
        assert_eq!(indices(&dot), [[2, 0, 4], [0, 3, 4]], "{storage}");
        assert_eq!(dot["hits"][0][0]["score"], 20.0);
        let l2 = find("l2", "5");
        assert_eq!(
            indices(&l2),
            [[0, 4, 1, 3, 2], [0, 4, 1, 3, 2]],
            "{storage}"
        );
        assert_eq!(l2["hits"][1][3]["score"], 10.0);
    }
}

#[test]
fn a_threshold_finds_every_row_in_order() {
    let folder = Folder::new();
    points(&folder);
    let found = |metric, threshold| {
        let report = folder.json(&args(&["--metric", metric, "--threshold", threshold]));
        assert!(report["recall"].is_null(), "{report}");
        indices(&report)
    };
    assert_eq!(found("l2", "5"), [vec![0, 1, 4], vec![0, 1, 4]]);
    assert_eq!(found("l2", "4.999"), [vec![0, 4], vec![0, 1, 4]]);
    assert_eq!(found("cosine", "1"), [vec![0, 4], vec![]]);
    assert_eq!(found("dot", "-1"), [vec![0, 1, 2, 4], vec![0, 1, 2, 3, 4]]);
    // More rows than there is room for at first.
    let many = "1,2\n".repeat(3000);
    fs::write(folder.path("base.csv"), many).unwrap();
    let all = found("dot", "-9");
    assert!(all.iter().all(|rows| rows.iter().copied().eq(0..3000)));
}

#[test]
fn a_report_says_what_was_held_and_what_it_cost() {
    let folder = Folder::new();
    let (base, queries) = (noise(1, 500 * 24), noise(2, 7 * 24));
    folder.safetensors(
        "base.safetensors",
        &[("rows", &[500, 24], &base), ("bias", &[24], &base[..24])],
    );
    folder.safetensors("queries.safetensors", &[("q", &[7, 24], &queries)]);
    let run = |more: &[&str]| {
        let mut all = vec![
            "search",
            "base.safetensors:rows",
            "queries.safetensors",
            "--json",
        ];
        all.extend(more);
        folder.json(&all)
    };
    let report = run(&["-k", "5"]);
    let all = [
        "dims",
        "engine",
        "engine_note",
        "exact",
        "hits",
        "metric",
        "queries",
        "recall",
        "reranked",
        "rows",
        "storage",
        "storage_bytes",
    ];
    assert_eq!(fields(&report), all);
    assert_eq!(
        (&report["rows"], &report["dims"]),
        (&500.into(), &24.into())
    );
    assert_eq!(
        (&report["exact"], &report["queries"]),
        (&false.into(), &7.into())
    );
    // 24 ternary codes take 6 bytes, and the row's magnitude one.
    for (storage, bytes) in [("ternary", 7), ("int8", 24), ("f16", 48), ("f32", 96)] {
        let report = run(&["-k", "5", "--storage", storage, "--metric", "l2"]);
        assert_eq!(report["storage_bytes"], 500 * bytes, "{storage}");
    }
    let truth = run(&["-k", "5", "--storage", "f32"]);
    for storage in ["ternary", "int8", "f16"] {
        for metric in ["dot", "l2", "cosine"] {
            let options = ["-k", "5", "--storage", storage, "--metric", metric];
            let plain = run(&options);
            let few = run(&[&options[..], &["--rerank", "20"]].concat());
            let recall = |report: &serde_json::Value| report["recall"].as_f64().unwrap();
            assert!(recall(&few) >= recall(&plain), "{storage} {metric}");
            // With every row a candidate the hits and their scores are those of the floats.
            let every = run(&[&options[..], &["--rerank", "900"]].concat());
            assert_eq!((&every["reranked"], recall(&every)), (&500.into(), 1.0));
            if metric == "cosine" {
                assert_eq!(every["hits"], truth["hits"], "{storage}");
            }
        }
    }
    let unmeasured = run(&["-k", "5", "--no-recall"]);
    assert!(unmeasured["recall"].is_null());
    assert_eq!(unmeasured["hits"], report["hits"]);
}

/// Scores of codes come back in the data's own units.
#[test]
fn scores_are_near_those_of_the_floats() {
    let folder = Folder::new();
    let (base, queries) = (noise(3, 60 * 16), noise(4, 3 * 16));
    folder.safetensors("base.safetensors", &[("b", &[60, 16], &base)]);
    folder.safetensors("queries.safetensors", &[("q", &[3, 16], &queries)]);
    for (metric, tolerance) in [("dot", 0.01), ("l2", 0.03), ("cosine", 0.02)] {
        let scores = |storage| {
            let report = folder.json(&[
                "search",
                "base.safetensors",
                "queries.safetensors",
                "-k",
                "60",
                "--json",
                "--metric",
                metric,
                "--storage",
                storage,
            ]);
            let mut scores = vec![0.0; 3 * 60];
            for (query, hits) in report["hits"].as_array().unwrap().iter().enumerate() {
                for hit in hits.as_array().unwrap() {
                    let index = hit["index"].as_u64().unwrap() as usize;
                    scores[query * 60 + index] = hit["score"].as_f64().unwrap();
                }
            }
            scores
        };
        let (truth, int8, ternary) = (scores("f32"), scores("int8"), scores("ternary"));
        let error = |found: &[f64]| {
            let both = found.iter().zip(&truth);
            both.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        assert!(error(&int8) < tolerance, "{metric}: {}", error(&int8));
        // Three values a code are far coarser, but in the same units.
        assert!(
            error(&ternary) < 25.0 * tolerance,
            "{metric}: {}",
            error(&ternary)
        );
        assert!(truth.iter().any(|score| score.abs() > 10.0 * tolerance));
    }
}

#[test]
fn hits_go_to_arrays() {
    let folder = Folder::new();
    points(&folder);
    let files = ["--indices", "i.npy", "--scores", "s.npy", "-k", "2"];
    let report = folder.json(&args(&files));
    let array = |name: &str| {
        let file = fs::read(folder.path(name)).unwrap();
        let end = file.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        let header = String::from_utf8_lossy(&file[..end]).into_owned();
        (header, file[end..].to_vec())
    };
    let (header, bytes) = array("i.npy");
    assert!(
        header.contains("'<i8'") && header.contains("(2, 2,"),
        "{header}"
    );
    let rows = bytes
        .chunks(8)
        .map(|row| i64::from_le_bytes(row.try_into().unwrap()) as u64);
    assert!(rows.eq(indices(&report).concat()));
    let (header, bytes) = array("s.npy");
    assert!(
        header.contains("'<f4'") && header.contains("(2, 2,"),
        "{header}"
    );
    assert_eq!(bytes[..4], 1f32.to_le_bytes());

    let line = folder.fails(&args(&files));
    assert!(line.contains("i.npy: exists already"), "{line}");
    folder.json(&args(&[&files[..], &["--force"]].concat()));
    let line = folder.fails(&args(&["-k", "2", "--scores", "s.bin"]));
    assert!(line.contains("s.bin") && line.contains(".npy"), "{line}");
    let line = folder.fails(&args(&["-k", "2", "--indices", "queries.csv", "--force"]));
    assert!(line.contains("queries.csv"), "{line}");
}

#[test]
fn people_get_the_recall_and_the_first_hits() {
    let folder = Folder::new();
    points(&folder);
    fs::write(folder.path("queries.csv"), "2,0\n".repeat(22)).unwrap();
    let text = folder.ok(&[
        "search",
        "base.csv",
        "queries.csv",
        "-k",
        "5",
        "--rerank",
        "5",
    ]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "base      5 x 2, int8 in 10 B, nothing rounded");
    assert_eq!(
        lines[1..4],
        [
            "metric    cosine",
            "reranked  5 candidates per query, by f32",
            "recall    1.0000"
        ]
    );
    assert!(
        lines[7].contains("0 (1.000)  4 (1.000)  2 (0.9950)  1 (0)  3 (-1.000)"),
        "{text}"
    );
    assert_eq!(
        lines.last(),
        Some(&"… 2 more queries; --json and --indices give all of them")
    );
    let text = folder.ok(&["search", "base.csv", "queries.csv", "--threshold", "1.5"]);
    assert!(text.contains("none") && !text.contains("recall"), "{text}");
}

#[test]
fn what_cannot_be_searched_is_told() {
    let folder = Folder::new();
    points(&folder);
    let line = folder.fails(&args(&["-k", "6"]));
    assert!(
        line.contains("base.csv") && line.contains("k is 6") && line.contains("5 rows"),
        "{line}"
    );
    fs::write(folder.path("wide.csv"), "1,2,3\n").unwrap();
    let line = folder.fails(&["search", "base.csv", "wide.csv", "-k", "1"]);
    assert!(
        line.contains("rows of 2 values cannot be compared with queries of 3"),
        "{line}"
    );
    let mut values = noise(1, 6);
    values[3] = f32::NAN;
    folder.safetensors("nan.safetensors", &[("w", &[3, 2], &values)]);
    for pair in [
        ["nan.safetensors", "queries.csv"],
        ["base.csv", "nan.safetensors"],
    ] {
        let line = folder.fails(&["search", pair[0], pair[1], "-k", "1"]);
        assert!(
            line.contains("row 1, column 1") && line.contains("not finite"),
            "{line}"
        );
    }
    fs::write(folder.path("huge.csv"), "1,2\n3,1e6\n").unwrap();
    let line = folder.fails(&[
        "search",
        "huge.csv",
        "queries.csv",
        "-k",
        "1",
        "--storage",
        "f16",
    ]);
    assert!(
        line.contains("row 1, column 1") && line.contains("f16"),
        "{line}"
    );
    folder.safetensors(
        "long.safetensors",
        &[("w", &[1, 43_691], &noise(1, 43_691))],
    );
    let long = ["search", "long.safetensors", "long.safetensors", "-k", "1"];
    let line = folder.fails(&long);
    assert!(line.contains("43691") && line.contains("43690"), "{line}");
    folder.ok(&[&long[..], &["--storage", "f32"]].concat());
    fs::write(folder.path("empty.csv"), "").unwrap();
    folder.fails(&["search", "empty.csv", "queries.csv"]);
}

#[test]
fn options_that_contradict_each_other_are_usage() {
    let folder = Folder::new();
    points(&folder);
    for more in [
        &["-k", "0"][..],
        &["-k", "3", "--rerank", "2"],
        &["-k", "3", "--threshold", "1"],
        &["--threshold", "NaN"],
        &["--threshold", "1", "--rerank", "3"],
        &["--threshold", "1", "--indices", "i.npy"],
        &["-k", "2", "--indices", "o.npy", "--scores", "o.npy"],
        &["--metric", "manhattan"],
        &["--storage", "int2"],
    ] {
        let run = folder.run(&args(more));
        assert_eq!(
            (run.code, run.out.as_str()),
            (Some(2), ""),
            "{more:?}: {run:?}"
        );
    }
}

#[test]
fn hits_do_not_depend_on_threads() {
    let folder = Folder::new();
    folder.safetensors("b.safetensors", &[("b", &[700, 30], &noise(5, 700 * 30))]);
    folder.safetensors("q.safetensors", &[("q", &[40, 30], &noise(6, 40 * 30))]);
    for storage in ["int8", "ternary", "f32"] {
        let run = |threads| {
            let options = [
                "--storage",
                storage,
                "--rerank",
                "30",
                "--json",
                "--threads",
                threads,
            ];
            folder.ok(&[&["search", "b.safetensors", "q.safetensors"], &options[..]].concat())
        };
        assert_eq!(run("1"), run("3"), "{storage}");
    }
}
