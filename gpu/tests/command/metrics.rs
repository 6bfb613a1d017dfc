//! `--metrics FILE` and `--bottlenecks`.

use serde_json::Value;

use super::support::Folder;

const KMEANS: [&str; 5] = ["kmeans", "in.safetensors:wide.weight", "-k", "3", "--json"];

fn kmeans<'a>(more: &[&'a str]) -> Vec<&'a str> {
    KMEANS.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn a_file_of_metrics_has_what_the_command_did() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let plain = folder.ok(&kmeans(&[]));
    // The report is as it was, but for its times.
    let report: Value =
        serde_json::from_str(&folder.ok(&kmeans(&["--metrics", "m.prom"]))).unwrap();
    let before: Value = serde_json::from_str(&plain).unwrap();
    assert_eq!(report["clusters"], before["clusters"]);
    let text = std::fs::read_to_string(folder.path("m.prom")).unwrap();
    let counts = text
        .lines()
        .filter(|line| line.starts_with("tercet_call_seconds_count"));
    let counts: Vec<_> = counts.collect();
    assert_eq!(counts.len(), 1, "{text}");
    assert!(
        counts[0].contains(r#"operation="kmeans""#) && counts[0].ends_with(" 1"),
        "{text}"
    );
    // Each family has a sentence, and the families are in the order of their names.
    let families: Vec<_> = text.split_terminator("\n\n").collect();
    for family in &families {
        assert!(family.starts_with("# HELP tercet_"), "{family}");
    }
    assert!(families.len() > 5 && families.is_sorted(), "{text}");

    let elements = text
        .lines()
        .find(|line| line.starts_with("tercet_elements_total"));
    assert!(
        elements.unwrap().ends_with(&format!(" {}", 8 * 512)),
        "{text}"
    );
}

#[test]
fn a_name_that_asks_for_json_is_refused() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let run = folder.run(&kmeans(&["--metrics", "m.json"]));
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    assert!(
        run.err.contains("m.json: metrics are Prometheus text"),
        "{}",
        run.err
    );
    assert!(!folder.path("m.json").exists());
}

#[test]
fn a_file_that_is_there_is_kept_and_nothing_is_done() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    std::fs::write(folder.path("m.prom"), "mine").unwrap();
    let arguments = [
        "quantize",
        "in.safetensors",
        "-o",
        "o.gguf",
        "--to",
        "tq2_0",
        "--metrics",
        "m.prom",
    ];
    let line = folder.fails(&arguments);
    assert_eq!(
        line,
        "error: m.prom: exists already; metrics need a new file, so name another\n"
    );
    assert_eq!(std::fs::read(folder.path("m.prom")).unwrap(), b"mine");
}

#[test]
fn bottlenecks_are_told_on_stderr_in_words_or_as_json() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let run = folder.run(&kmeans(&["--bottlenecks"]));
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(
        serde_json::from_str::<Value>(&run.out).is_ok(),
        "{}",
        run.out
    );
    assert!(run.err.starts_with("bottlenecks in "), "{}", run.err);
    assert!(run.err.contains(": 1 call, "), "{}", run.err);
    assert!(run.err.contains("\n  100.0 %  kmeans on "), "{}", run.err);

    let run = folder.run(&kmeans(&["--bottlenecks=json"]));
    let report: Value = serde_json::from_str(&run.err).unwrap();
    let share = &report["shares"][0];
    assert_eq!(share["operation"], "kmeans");
    assert_eq!(
        (&share["share"], &report["calls"]),
        (&1.0.into(), &1.into())
    );
    assert!(share["bound"].is_string(), "{share}");

    // A command that has no choice of engines says so; what fails tells what it had done.
    let run = folder.run(&["info", "--json", "--bottlenecks"]);
    let line = "bottlenecks: this command did no work for which an engine is chosen\n";
    assert_eq!((run.code, run.err.as_str()), (Some(0), line));
    let run = folder.run(&["inspect", "in.safetensors", "--bottlenecks=xml"]);
    assert_eq!(run.code, Some(2));
}
