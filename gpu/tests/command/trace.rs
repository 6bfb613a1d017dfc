//! `--trace FILE`.

use serde_json::Value;
use tercet_host::language::tiny;

use super::support::Folder;

/// The events of a trace with a length.
fn complete(trace: &Value) -> Vec<&Value> {
    let events = trace["traceEvents"].as_array().expect("a list");
    events.iter().filter(|event| event["ph"] == "X").collect()
}

/// The one event of this name.
fn only<'a>(events: &[&'a Value], name: &str) -> &'a Value {
    let mut found = events.iter().filter(|event| event["name"] == name);
    let first = found.next().unwrap_or_else(|| panic!("no {name}"));
    assert!(found.next().is_none(), "more than one {name}");
    first
}

/// When an event began and ended, in microseconds.
fn times(event: &Value) -> (f64, f64) {
    let start = event["ts"].as_f64().expect("a number");
    (start, start + event["dur"].as_f64().expect("a number"))
}

#[test]
fn a_trace_shows_what_threads_did_within_the_flow() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let arguments = [
        "kmeans",
        "in.safetensors:wide.weight",
        "-k",
        "3",
        "--json",
        "--trace",
        "t.json",
    ];
    let run = folder.run(&arguments);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(
        run.err.starts_with("t.json: ") && run.err.ends_with(" events\n"),
        "{}",
        run.err
    );
    // The report is as it was.
    let report: Value = serde_json::from_str(&run.out).expect("JSON alone");
    assert_eq!(report["clusters"].as_array().map(Vec::len), Some(3));

    let text = std::fs::read_to_string(folder.path("t.json")).expect("it was written");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    let events = complete(&trace);
    let fit = only(&events, "fit");
    assert_eq!(fit["args"]["clusters"], 3);
    let (begin, end) = times(fit);
    // It is in the dispatcher's call.
    let call = only(&events, "call");
    assert_eq!(call["args"]["operation"], "kmeans");
    assert!(
        times(call).0 <= begin && end <= times(call).1,
        "{call}, {fit}"
    );
    let within = |name: &str, (begin, end): (f64, f64)| {
        let all = events.iter().filter(|event| event["name"] == name);
        let all: Vec<_> = all.collect();
        assert!(!all.is_empty(), "{name}");
        for event in all {
            let (start, stop) = times(event);
            assert!(begin <= start && stop <= end, "{event} outside");
        }
    };
    // What the flow's time goes to, one after another, and the threads' jobs in it.
    let parts = ["codes", "kmeans", "measure"];
    for part in parts {
        within(part, (begin, end));
    }
    let [codes, kmeans, measure] = parts.map(|part| times(only(&events, part)));
    assert!(codes.1 <= kmeans.0 && kmeans.1 <= measure.0);
    for step in ["seed", "assign", "job"] {
        within(step, kmeans);
    }
    // The file, and tiles of it on the threads.
    let reads = events.iter().filter(|event| event["name"] == "read");
    let (files, tiles): (Vec<&Value>, Vec<_>) =
        reads.partition(|event| event["args"]["file"].is_string());
    let read = times(only(&files, "read"));
    assert!(read.1 <= begin && !tiles.is_empty());
    for tile in tiles {
        assert!(
            read.0 <= times(tile).0 && times(tile).1 <= read.1,
            "{tile} outside"
        );
    }
}

#[test]
fn a_file_that_is_there_is_kept_and_nothing_is_done() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    std::fs::write(folder.path("t.json"), "mine").unwrap();
    let arguments = [
        "quantize",
        "in.safetensors",
        "-o",
        "o.gguf",
        "--to",
        "tq2_0",
        "--trace",
        "t.json",
    ];
    let run = folder.run(&arguments);
    let line = "error: t.json: exists already; a trace needs a new file, so name another\n";
    assert_eq!((run.code, run.err.as_str()), (Some(1), line));
    assert_eq!(std::fs::read(folder.path("t.json")).unwrap(), b"mine");
    assert!(!folder.path("o.gguf").exists());
}

#[test]
fn a_trace_shows_the_steps_of_a_text() {
    let folder = Folder::new();
    let path = folder.path("tiny.gguf");
    tiny::llama(&path, tiny::LLAMA_32, 3, false).expect("it is written");
    let arguments = [
        "generate",
        "tiny.gguf",
        "-p",
        "the",
        "-n",
        "3",
        "--trace",
        "t.json",
    ];
    let run = folder.run(&arguments);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let text = std::fs::read_to_string(folder.path("t.json")).expect("it was written");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    let events = complete(&trace);
    let named = |name: &str| events.iter().filter(|event| event["name"] == name).count();
    // The prompt, and each token but the last.
    assert_eq!(named("step"), 3);
    // Of its one layer seven matrices, and the head.
    assert_eq!(named("product"), 3 * 8);
    assert_eq!(named("attend"), 3);
}
