//! `tercet bench`.

use std::fs;

use serde_json::Value;

use super::support::{Folder, fields};

/// The two smallest operations there are, on few values.
const SMALL: [&str; 7] = [
    "bench",
    "--quick",
    "--size",
    "32768",
    "--op",
    "exact",
    "matvec q8_0",
];

fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SMALL.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn a_line_each_contender_under_one_head() {
    let folder = Folder::new();
    let text = folder.ok(&small(&["--threads", "1,2"]));
    let lines: Vec<&str> = text.lines().collect();
    let head = lines.iter().position(|line| line.starts_with("operation "));
    let rows = &lines[head.unwrap() + 1..];
    for (row, (operation, engine)) in rows.iter().zip([
        ("exact mean", "scalar"),
        ("exact mean", " × 1"),
        ("exact mean", " × 2"),
        ("matvec q8_0", "scalar"),
        ("matvec q8_0", " × 1"),
        ("matvec q8_0", " × 2"),
    ]) {
        assert!(row.starts_with(operation) && row.contains(engine), "{row}");
        assert!(row.contains(" %"), "{row}");
    }
    // Columns line up: the head's last word ends where each row does.
    let width = |line: &str| line.trim_end().chars().count();
    let head = lines[head.unwrap()];
    assert!(
        rows[..6].iter().all(|row| width(row) == width(head)),
        "{text}"
    );
    for ceiling in ["working set", "multiply-adds"] {
        assert!(
            lines
                .iter()
                .any(|line| line.trim_start().starts_with(ceiling)),
            "{text}"
        );
    }
    assert!(text.contains("\n2 cases, 6 contenders timed, "), "{text}");
}

#[test]
fn every_case_has_a_verdict_and_every_ceiling_one_row() {
    let folder = Folder::new();
    let by = ["--threads", "1", "--backend", "scalar"];
    let text = folder.ok(&small(&by));
    // The scalar engine and one thread without an instruction set have one ceiling.
    let ceilings = text
        .lines()
        .skip_while(|line| !line.starts_with("multiply-adds"));
    let ceilings: Vec<&str> = ceilings
        .skip(1)
        .take_while(|line| !line.is_empty())
        .collect();
    assert_eq!(ceilings.len(), 1, "{text}");
    assert!(ceilings[0].starts_with("scalar "), "{text}");
    let verdicts: Vec<&str> = text
        .lines()
        .filter(|line| line.contains(": fastest: "))
        .collect();
    assert_eq!(verdicts.len(), 2, "{text}");
    for (line, operation) in verdicts.iter().zip(["exact mean, ", "matvec q8_0, "]) {
        let (case, verdict) = line.split_once(": fastest: ").unwrap();
        assert!(case.starts_with(operation), "{line}");
        let (first, next) = match verdict.split_once("; ") {
            Some((first, rest)) => (first, rest.strip_suffix(" is within 5 %").unwrap()),
            None => {
                let (first, rest) = verdict.split_once(", ").unwrap();
                let (ratio, next) = rest.split_once(" times as fast as ").unwrap();
                assert!(ratio.parse::<f64>().unwrap() >= 1.05, "{line}");
                (first, next)
            }
        };
        let mut both = [first, next];
        both.sort_unstable();
        assert_eq!(both, ["scalar", "threads × 1"], "{line}");
        // It is the one with the least time of the table's rows.
        let speed_up = |engine: &str| {
            let is_row = |row: &&str| {
                row.starts_with(&operation[..operation.len() - 2]) && row.contains(engine)
            };
            let row = text.lines().find(is_row).unwrap();
            let words: Vec<&str> = row.split_whitespace().collect();
            let at = words.iter().rposition(|word| *word == "%").unwrap();
            words[at - 2].parse::<f64>().unwrap()
        };
        assert!(
            speed_up(&format!(" {first} ")) >= speed_up(&format!(" {next} ")),
            "{text}"
        );
    }
    let report = folder.json(&small(&[&by[..], &["--json"]].concat()));
    assert_eq!(report["peaks"].as_array().unwrap().len(), 1);
}

#[test]
fn the_json_is_as_the_help_says() {
    let folder = Folder::new();
    let report = folder.json(&small(&["--json", "--threads", "2", "--backend", "scalar"]));
    assert_eq!(
        fields(&report),
        [
            "bandwidth",
            "date",
            "device",
            "files",
            "left_out",
            "machine",
            "peaks",
            "quick",
            "results",
            "seconds",
            "version"
        ]
    );
    assert_eq!(
        fields(&report["machine"]),
        ["architecture", "backends", "processor", "system", "threads"]
    );
    assert_eq!(report["machine"]["threads"], 2);
    assert!(report["device"].is_null() && report["left_out"].as_array().unwrap().is_empty());
    let results = report["results"].as_array().unwrap();
    let engines: Vec<_> = results.iter().map(|found| &found["engine"]).collect();
    assert_eq!(engines, ["scalar", "threads", "scalar", "threads"]);
    assert_eq!(
        fields(&results[0]),
        [
            "added_memory",
            "arithmetic",
            "attainable_seconds",
            "backend",
            "bound",
            "bytes",
            "bytes_per_second",
            "device",
            "engine",
            "median_seconds",
            "operation",
            "peak_memory",
            "products",
            "products_per_second",
            "roofline",
            "samples",
            "seconds",
            "size",
            "speedup",
            "threads",
            "values",
            "values_per_second"
        ]
    );
    let help = folder.ok(&["bench", "--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for name in fields(&results[0]).into_iter().chain(fields(&report)) {
        assert!(help.contains(name), "--help does not name {name}");
    }
    for found in results {
        let number = |name: &str| found[name].as_f64().unwrap();
        assert_eq!(found["values"], 32768);
        assert!(number("seconds") > 0.0 && number("seconds") <= number("median_seconds"));
        let share = number("attainable_seconds") / number("seconds");
        assert!((number("roofline") - share).abs() < 1e-9);
        assert!(found["bound"] == "memory" || found["bound"] == "arithmetic");
    }
    // Reading the f32 values once, and the products of a matrix.
    assert_eq!(
        (&results[0]["bytes"], &results[0]["products"]),
        (&131072.into(), &0.into())
    );
    assert_eq!(results[2]["products"], 32768);
    assert_eq!(results[0]["speedup"], 1.0);
    for measured in report["bandwidth"].as_array().unwrap() {
        assert_eq!(
            fields(measured),
            [
                "bytes", "copy", "narrow", "read", "threads", "widen", "write"
            ]
        );
        assert!(
            measured["copy"]["plain"].as_f64().unwrap() > 1e7,
            "{measured}"
        );
        assert!(
            measured["copy"]["streamed"].as_f64().unwrap() > 1e7,
            "{measured}"
        );
    }
    let peaks = report["peaks"].as_array().unwrap();
    assert_eq!(
        fields(&peaks[0]),
        ["backend", "f32", "int8", "ternary", "threads"]
    );
}

#[test]
fn a_report_is_a_page_of_its_own_and_replaces_nothing() {
    let folder = Folder::new();
    let arguments = small(&["--report", "speed", "--threads", "1,2"]);
    let text = folder.ok(&arguments);
    assert!(
        text.contains("wrote speed/bench.html\nwrote speed/bench.json\n"),
        "{text}"
    );
    let page = fs::read_to_string(folder.path("speed/bench.html")).unwrap();
    for part in [
        "<!doctype html>",
        "Share of the roofline",
        "Times as fast as scalar",
        "Roofline of ",
        "Scaling of ",
        "Bandwidth of 2 threads",
        "</html>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // Whole, and nothing fetched from elsewhere.
    for bad in ["NaN", "inf\"", "<script", "<link", "src=", "url("] {
        assert!(!page.contains(bad), "{bad}");
    }
    assert!(
        !page
            .replace("http://www.w3.org/2000/svg", "")
            .contains("://")
    );
    balanced(&page);
    let json = fs::read(folder.path("speed/bench.json")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["results"].as_array().unwrap().len(), 6);
    assert_eq!(
        json["files"],
        serde_json::json!(["speed/bench.html", "speed/bench.json"])
    );

    let line = folder.fails(&arguments);
    assert!(
        line.contains("speed/bench.html") && line.contains("exists"),
        "{line}"
    );
    assert_eq!(
        fs::read_to_string(folder.path("speed/bench.html")).unwrap(),
        page
    );
    folder.ok(&small(&["--report", "speed", "--force"]));
    assert_eq!(fs::read_dir(folder.path("speed")).unwrap().count(), 2);
}

/// Every element that is opened is closed, in order, but for those that HTML closes itself.
fn balanced(page: &str) {
    let mut open = Vec::new();
    for tag in page.split('<').skip(1) {
        let (tag, _) = tag
            .split_once('>')
            .unwrap_or_else(|| panic!("no end: {tag}"));
        let name = tag.split([' ', '\n', '/']).next().unwrap();
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') && !name.starts_with('!') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_list_is_what_is_measured() {
    let folder = Folder::new();
    let list = folder.ok(&["bench", "--list"]);
    for operation in [
        "ternary absmean",
        "encode tq2_0",
        "matvec tq2_0",
        "k-means step",
        "search int8 dot",
    ] {
        assert!(
            list.lines().any(|line| line.starts_with(operation)),
            "{operation}"
        );
    }
    assert!(list.contains("100K × 128, k = 256"), "{list}");
    let one = folder.ok(&["bench", "--list", "--op", "SEED", "--size", "64K"]);
    assert_eq!(one.lines().count(), 2, "{one}");
    assert!(
        one.contains("1000 × 64, k = 64") || one.contains("1K × 64, k = 64"),
        "{one}"
    );
}

#[test]
fn options_that_are_none_are_refused() {
    let folder = Folder::new();
    for (arguments, words) in [
        (
            &["bench", "--op", "nothing-such"] as &[&str],
            "nothing-such",
        ),
        (&["bench", "--backend", "sse9"], "sse9"),
        (&["bench", "--size", "0"], "number of values"),
        (&["bench", "--size", "1.5M"], "number of values"),
        (&["bench", "--threads", "0"], "0"),
        (&["bench", "--threads", "1,x"], "x"),
        (&["bench", "--list", "--json"], "--json"),
        (&["inspect", "x.npy", "--threads", "1,2"], "one number"),
    ] {
        let run = folder.run(arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {run:?}");
        assert!(run.out.is_empty() && run.err.contains(words), "{run:?}");
    }
    assert!(folder.files().is_empty());
    fs::write(folder.path("file"), "").unwrap();
    let line = folder.fails(&small(&["--report", "file"]));
    assert!(line.contains("file"), "{line}");
}

/// Where this machine has no device, or the build no CUDA; `tests/cuda_command` has the others.
#[test]
fn a_device_that_is_named_must_be_there_and_all_are_those_that_are() {
    let folder = Folder::new();
    if !folder.json(&["info", "--json"])["no_gpu"].is_string() {
        return;
    }
    let line = folder.fails(&small(&["--backend", "cuda"]));
    assert!(line.starts_with("error: --backend cuda: "), "{line}");
    let report = folder.json(&small(&["--json", "--threads", "1", "--backend", "all"]));
    assert!(report["device"].is_null());
    let results = report["results"].as_array().unwrap();
    assert!(
        results.iter().all(|found| found["device"] == false),
        "{report}"
    );
}
