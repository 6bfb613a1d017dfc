//! `tercet train`.

use std::fs;

use serde_json::Value;

use super::support::Folder;

const TEXT: &str = "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse, and \
    nothing particular to interest me on shore, I thought I would sail about a little and see the watery part of the world. It is a \
    way I have of driving off the spleen and regulating the circulation. Whenever I find myself growing grim about the mouth; whenever \
    it is a damp, drizzly November in my soul; then, I account it high time to get to sea as soon as I can.";

/// A folder with a text.
pub(super) fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("text.txt"), TEXT).unwrap();
    folder
}

/// A short run, and options of one's own.
pub(super) fn arguments<'a>(out: &'a str, own: &[&'a str]) -> Vec<&'a str> {
    let common = [
        "train",
        "text.txt",
        "-o",
        out,
        "--steps",
        "3",
        "--batch",
        "4",
        "--context",
        "16",
        "--every",
        "2",
    ];
    [&common[..], own].concat()
}

/// The lines that a run prints.
pub(super) fn lines(folder: &Folder, arguments: &[&str]) -> Vec<Value> {
    let out = folder.ok(&[arguments, &["--json"]].concat());
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub(super) fn bytes(folder: &Folder, name: &str) -> Vec<u8> {
    fs::read(folder.path(name)).unwrap()
}

#[test]
fn a_run_tells_what_it_does_and_evaluates_as_perplexity_does() {
    let folder = folder();
    let own = ["--vocabulary", "280", "--report", "run"];
    let lines = lines(&folder, &arguments("model.gguf", &own));
    let names = |line: &Value| {
        line.as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    let firsts: Vec<String> = lines.iter().map(|line| names(line)[0].clone()).collect();
    assert_eq!(
        firsts,
        [
            "begun",
            "step",
            "step",
            "evaluated",
            "step",
            "evaluated",
            "done"
        ]
    );
    assert_eq!(
        names(&lines[0]),
        [
            "begun",
            "parameters",
            "tokens",
            "held_out_tokens",
            "steps",
            "batch",
            "rate",
            "teacher",
            "teacher_cache",
            "kept",
            "pruned",
            "kept_heads",
            "adapters",
            "converted"
        ]
    );
    assert_eq!(
        names(&lines[1]),
        [
            "step",
            "loss",
            "targets",
            "mean",
            "rate",
            "norm",
            "tokens_per_second",
            "memory"
        ]
    );
    assert_eq!(
        names(&lines[3]),
        [
            "evaluated",
            "sum",
            "count",
            "bytes",
            "mean",
            "bits_per_byte",
            "verdict"
        ]
    );
    assert_eq!(
        names(&lines[6]),
        [
            "done", "kept", "file", "digest", "bytes", "memory", "seconds"
        ]
    );
    assert_eq!(lines[6]["kept"], 3);
    // The root of 4 sequences by 16.
    assert_eq!(lines[0]["rate"], 0.001);
    let vocabulary = lines[0]["parameters"]["vocab_size"].as_u64().unwrap();
    assert!(vocabulary > 259 && vocabulary <= 280, "{vocabulary}");
    assert_eq!(lines[6]["bytes"], bytes(&folder, "model.gguf").len() as u64);
    let held_out = bytes(&folder, "run/held-out.txt");
    assert!(TEXT.as_bytes().ends_with(&held_out) && held_out.len() == TEXT.len() / 20);
    let scored = folder.json(&["perplexity", "model.gguf", "run/held-out.txt", "--json"]);
    for field in ["sum", "count", "bytes", "bits_per_byte"] {
        assert_eq!(lines[5][field], scored[field], "{field}");
    }
    let page = String::from_utf8(bytes(&folder, "run/report.html")).unwrap();
    assert!(page.contains("held out, bits per byte"));
    let again = arguments("again.gguf", &["--report", "run"]);
    let refused = folder.fails(&again);
    assert!(
        refused.contains("held-out.txt: exists already"),
        "{refused}"
    );
    // The other type is the same model.
    let own = ["--vocabulary", "280", "--to", "tq1_0"];
    folder.ok(&arguments("small.gguf", &own));
    assert!(bytes(&folder, "small.gguf").len() < bytes(&folder, "model.gguf").len());
    let small = folder.json(&["perplexity", "small.gguf", "run/held-out.txt", "--json"]);
    assert_eq!(small["sum"], scored["sum"]);
    // A vocabulary that another model has.
    let own = ["--tokenizer", "model.gguf"];
    folder.ok(&arguments("other.gguf", &own));
    assert!(bytes(&folder, "other.gguf") == bytes(&folder, "model.gguf"));
}

#[test]
fn people_read_figures_times_and_a_next_step() {
    let folder = folder();
    let out = folder.ok(&arguments("my model.gguf", &["--vocabulary", "259"]));
    let told: Vec<&str> = out
        .lines()
        .filter(|line| line.starts_with("step "))
        .collect();
    assert_eq!(told.len(), 2, "{out}");
    let held_out = TEXT.len() - TEXT.len() / 20;
    fs::write(folder.path("held-out.txt"), &TEXT[held_out..]).unwrap();
    let scored = folder.json(&["perplexity", "my model.gguf", "held-out.txt", "--json"]);
    let number = |name: &str| scored[name].as_f64().unwrap();
    let digits = format!(
        "held out {:.4} bits per byte, perplexity {}",
        number("bits_per_byte"),
        &number("perplexity").to_string()[..4]
    );
    assert!(told[1].contains(&digits), "{digits}: {}", told[1]);
    assert!(
        told[0].contains(", about ") && told[0].ends_with(" s left"),
        "{}",
        told[0]
    );
    assert!(told[1].ends_with(" s") && !out.contains("sum "), "{out}");
    let next = "\ntry: tercet generate 'my model.gguf' -p \"The \" --temp 0.8\n";
    assert!(out.ends_with(next), "{out}");
    let command = [
        "generate",
        "my model.gguf",
        "-p",
        "The ",
        "--temp",
        "0.8",
        "-n",
        "3",
    ];
    assert_eq!(folder.run(&command).code, Some(0));
}

/// The number of steps is fixed by an estimate, which is said, and with which the run can be repeated.
#[test]
fn a_run_by_the_clock_is_one_by_its_steps() {
    let folder = folder();
    let options = ["--batch", "2", "--context", "16", "--vocabulary", "259"];
    let run = |out: &str, by: &[&str]| {
        let command = ["train", "text.txt", "-o", out];
        folder.run(&[&command[..], &options, by].concat())
    };
    let by_time = run("time.gguf", &["--minutes", "0.005"]);
    assert_eq!(by_time.code, Some(0), "{by_time:?}");
    let (steps, rest) = by_time.err.split_once(" step").unwrap();
    for part in [
        ", about 1 s: an estimate from 3 steps of 0.",
        "makes it longer",
    ] {
        assert!(rest.contains(part), "{}", by_time.err);
    }
    let planned = format!("; {steps} steps of 2 x 16,");
    assert!(by_time.out.contains(&planned), "{planned}: {}", by_time.out);
    let by_steps = run("steps.gguf", &["--steps", steps]);
    assert_eq!((by_steps.code, by_steps.err.as_str()), (Some(0), ""));
    assert!(bytes(&folder, "steps.gguf") == bytes(&folder, "time.gguf"));
}

#[test]
fn threads_parts_and_interruptions_do_not_show_in_the_file() {
    let folder = folder();
    let of = |out: &str, own: &[&str]| {
        folder.ok(&arguments(out, &[&["--vocabulary", "259"], own].concat()))
    };
    of("model.gguf", &["--threads", "1"]);
    let expected = bytes(&folder, "model.gguf");
    of(
        "parts.gguf",
        &["--threads", "3", "--accumulate", "4", "--recompute"],
    );
    assert!(bytes(&folder, "parts.gguf") == expected);
    of("scalar.gguf", &["--backend", "scalar", "--accumulate", "2"]);
    assert!(bytes(&folder, "scalar.gguf") == expected);
    let out = of(
        "stopped.gguf",
        &["--checkpoint", "run", "--stop-after", "1"],
    );
    assert!(
        out.ends_with("stopped after step 1; --resume continues\n"),
        "{out}"
    );
    assert!(!folder.path("stopped.gguf").exists());
    let again = arguments(
        "stopped.gguf",
        &["--vocabulary", "259", "--checkpoint", "run"],
    );
    let refused = folder.fails(&again);
    assert!(refused.contains("--resume continues it"), "{refused}");
    let mut other = [&again[..], &["--resume"]].concat();
    other[5] = "4";
    let refused = folder.fails(&other);
    assert!(refused.contains("its steps is `3`, not `4`"), "{refused}");
    folder.ok(&[&again[..], &["--resume", "--threads", "2"]].concat());
    assert!(bytes(&folder, "stopped.gguf") == expected);
    let refused = folder.fails(&arguments("model.gguf", &[]));
    assert!(refused.contains("--force overwrites"), "{refused}");
}

#[test]
fn texts_are_files_folders_and_standard_input_in_their_order() {
    let folder = folder();
    fs::create_dir_all(folder.path("texts/b")).unwrap();
    let (first, second) = TEXT.split_at(200);
    fs::write(folder.path("texts/a.txt"), first).unwrap();
    fs::write(folder.path("texts/b/c.txt"), second).unwrap();
    let run = |data: &[&str], out: &str| {
        let tail = arguments(out, &["--vocabulary", "259", "--steps", "1"]);
        let tail: Vec<&str> = tail
            .into_iter()
            .skip(2)
            .filter(|&word| word != "3")
            .collect();
        // The first `--steps` is left out with its number.
        let at = tail.iter().position(|&word| word == "--steps").unwrap();
        let tail = [&tail[..at], &tail[at + 1..]].concat();
        folder.ok(&[&["train"], data, &tail].concat());
        bytes(&folder, out)
    };
    let together = run(&["texts"], "folder.gguf");
    assert!(run(&["texts/a.txt", "texts/b/c.txt"], "files.gguf") == together);
    assert!(run(&["texts/b/c.txt", "texts/a.txt"], "turned.gguf") != together);
}

#[test]
fn texts_that_cannot_be_trained_on_are_refused() {
    let folder = folder();
    fs::write(folder.path("empty.txt"), "").unwrap();
    fs::write(folder.path("byte.txt"), "x").unwrap();
    let fails = |data: &str| folder.fails(&["train", data, "-o", "out.gguf"]);
    assert!(fails("empty.txt").contains("the texts are empty"));
    let missing = fails("missing.txt");
    assert!(missing.contains("missing.txt: cannot read"), "{missing}");
    let run = folder.run(&["train", "byte.txt", "-o", "out.gguf"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("0 tokens is too short"), "{}", run.err);
    // Bytes that are no text are bytes.
    let noise: Vec<u8> = (0..1000u32).map(|at| (at * at % 251) as u8).collect();
    fs::write(folder.path("text.txt"), noise).unwrap();
    folder.ok(&arguments(
        "noise.gguf",
        &["--stop-after", "1", "--checkpoint", "run"],
    ));
    for (option, value) in [
        ("--hold", "1"),
        ("--rate", "0"),
        ("--context", "1"),
        ("--minutes", "-1"),
    ] {
        let run = folder.run(&["train", "text.txt", "-o", "out.gguf", option, value]);
        assert_eq!(run.code, Some(2), "{option}: {run:?}");
    }
}

#[test]
fn a_model_is_trained_on_until_it_gets_no_better() {
    let folder = folder();
    folder.ok(&arguments("first.gguf", &["--vocabulary", "270"]));
    // No step changes a weight, so that none gets better.
    let own = [
        "--from",
        "first.gguf",
        "--rate",
        "1e-30",
        "--steps",
        "9",
        "--every",
        "1",
        "--plateau",
        "2",
        "--patience",
        "3",
    ];
    let all = [
        &["train", "text.txt", "-o", "second.gguf", "--batch", "4"],
        &own[..],
    ]
    .concat();
    let told = lines(&folder, &all);
    assert_eq!(told[0]["parameters"]["context_length"], 16);
    let verdicts: Vec<&Value> = told.iter().filter_map(|line| line.get("verdict")).collect();
    assert_eq!(verdicts, ["best", "waited", "halved", "over"]);
    let rates: Vec<f64> = told
        .iter()
        .filter_map(|line| line["rate"].as_f64())
        .skip(1)
        .collect();
    assert!(rates[3] < rates[2] * 0.6, "{rates:?}");
    let done = told.last().unwrap();
    assert_eq!((&done["done"], &done["kept"]), (&4.into(), &1.into()));
    assert!(bytes(&folder, "second.gguf") == bytes(&folder, "first.gguf"));
    let out = folder.ok(&[&all[..], &["--force"]].concat());
    assert!(
        out.contains("; not the best, so the learning rate is halved\n"),
        "{out}"
    );
    assert!(
        out.contains("4 steps in ") && out.contains(", as it was after step 1"),
        "{out}"
    );
    // What is no bitnet, and no llama that becomes one, is not trained on.
    fs::write(folder.path("none.gguf"), b"GGUF").unwrap();
    let llama = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../core/src/conformance/models/llama.gguf"
    );
    for (from, reason) in [
        ("none.gguf", "none.gguf: "),
        (llama, "llama.gguf: tensor `rope_freqs.weight`: "),
    ] {
        let run = folder.run(&["train", "text.txt", "-o", "third.gguf", "--from", from]);
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.err.contains(reason), "{run:?}");
        assert!(!folder.path("third.gguf").exists());
    }
    // A stage of its own, and a decay that ends.
    let schedule = |fall: &str, out: &str| {
        folder.ok(&arguments(
            out,
            &["--vocabulary", "270", "--schedule", fall],
        ));
        bytes(&folder, out)
    };
    assert!(schedule("cosine", "cosine.gguf") == bytes(&folder, "first.gguf"));
    assert!(schedule("two-stage", "stages.gguf") != bytes(&folder, "first.gguf"));
    let options = ["--vocabulary", "270", "--rule", "optimal"];
    folder.ok(&arguments("optimal.gguf", &options));
    assert!(bytes(&folder, "optimal.gguf") != bytes(&folder, "first.gguf"));
}

#[test]
fn a_model_learns_from_a_teacher() {
    let folder = folder();
    folder.ok(&arguments("large.gguf", &["--vocabulary", "270"]));
    let taught = |out: &str, own: &[&str]| {
        let all = [&["--teacher", "large.gguf"], own].concat();
        let told = lines(&folder, &arguments(out, &all));
        assert_eq!(told[0]["teacher"], "large.gguf");
        bytes(&folder, out)
    };
    // By default half of what is learned, at a temperature of 2, with the teacher's tokens.
    let found = taught("small.gguf", &[]);
    let named = ["--temperature", "2", "--teacher-share", "0.5"];
    let split = ["--threads", "2", "--accumulate", "4", "--recompute"];
    assert!(found == taught("named.gguf", &[&named[..], &split].concat()));
    assert!(taught("none.gguf", &["--teacher-share", "0"]) == bytes(&folder, "large.gguf"));
    for other in [["--temperature", "1"], ["--teacher-share", "0.9"]] {
        assert!(taught("other.gguf", &[&other[..], &["--force"]].concat()) != found);
    }
    let out = folder.ok(&arguments("again.gguf", &["--teacher", "large.gguf"]));
    assert!(out.contains("; large.gguf teaches\n"), "{out}");
    // The teacher's time is told apart.
    let own = ["--teacher", "large.gguf", "--bottlenecks"];
    let run = folder.run(&arguments("timed.gguf", &own));
    assert!(run.err.contains("the teacher: "), "{run:?}");
    // Its memory is planned: probabilities in all the run, its own while it reads.
    let plan = |own: &[&str]| {
        let ask = ["train", "text.txt", "--context", "16", "--threads", "2"];
        folder.json(&[&ask[..], own, &["--plan", "--json"]].concat())
    };
    let planned = plan(&["--teacher", "large.gguf"]);
    let part = |name: &str| planned[name].as_u64().unwrap();
    assert_eq!(part("probabilities"), 4 * 16 * 270 * part("micro"));
    let added = part("total") - part("kept");
    assert!(part("teacher") > 0 && added >= 2 * part("teacher"));
    let alone = plan(&["--vocabulary", "270"]);
    assert_eq!(
        (&alone["probabilities"], &alone["teacher"]),
        (&0.into(), &0.into())
    );
    let table = ["train", "text.txt", "--context", "16", "--plan"];
    let table = folder.ok(&[&table[..], &["--teacher", "large.gguf"]].concat());
    assert!(table.contains("the teacher's, of a part"), "{table}");
    for (own, reason) in [
        (&["--temperature", "1"][..], "--teacher <MODEL>"),
        (
            &["--teacher", "large.gguf", "--context", "17", "--plan"],
            "17 tokens, but its context has 16",
        ),
        (
            &["--teacher", "large.gguf", "--temperature", "0"],
            "above 0",
        ),
        (
            &["--teacher", "large.gguf", "--context", "17"],
            "17 tokens, but its context has 16",
        ),
        (&["--teacher", "gone.gguf"], "gone.gguf"),
    ] {
        let run = folder.run(&[&["train", "text.txt", "-o", "bad.gguf"], own].concat());
        assert_ne!(run.code, Some(0), "{run:?}");
        assert!(run.err.contains(reason), "{run:?}");
        assert!(!folder.path("bad.gguf").exists());
    }
}

#[test]
fn tokens_are_written_once() {
    let folder = folder();
    let run = ["--vocabulary", "270", "--checkpoint", "run"];
    folder.ok(&arguments(
        "model.gguf",
        &[&run[..], &["--stop-after", "1"]].concat(),
    ));
    let tokens = folder.path("run/tokens.bin");
    let written = fs::metadata(&tokens).unwrap().modified().unwrap();
    let again = [&run[..], &["--resume"]].concat();
    folder.ok(&arguments("model.gguf", &again));
    assert_eq!(fs::metadata(&tokens).unwrap().modified().unwrap(), written);
    folder.ok(&arguments("plain.gguf", &["--vocabulary", "270"]));
    assert!(bytes(&folder, "model.gguf") == bytes(&folder, "plain.gguf"));
    // A torn file is refused by name, and nothing is lost.
    let whole = fs::read(&tokens).unwrap();
    fs::write(&tokens, &whole[..whole.len() - 1]).unwrap();
    let refused = folder.fails(&arguments("other.gguf", &again));
    assert!(
        refused.contains("tokens.bin") && refused.contains("ends before"),
        "{refused}"
    );
}

#[test]
fn memory_is_planned_and_a_batch_is_found_without_a_run() {
    let folder = folder();
    fs::create_dir(folder.path("run")).unwrap();
    let before = folder.files();
    fn ask<'a>(own: &[&'a str]) -> Vec<&'a str> {
        let options = [
            "train",
            "text.txt",
            "--vocabulary",
            "259",
            "--context",
            "32",
        ];
        [&options[..], own].concat()
    }
    let plan = folder.json(&ask(&["--plan", "--threads", "2", "--json"]));
    let part = |plan: &Value, name: &str| plan[name].as_u64().unwrap();
    for (name, expected) in [
        ("batch", 16),
        ("micro", 4),
        ("workers", 2),
        ("accumulate", 4),
    ] {
        assert_eq!(part(&plan, name), expected, "{name}");
    }
    let once = [
        "weights",
        "best",
        "moments",
        "transposed",
        "file",
        "tokens",
        "batches",
    ];
    let kept: u64 = once.iter().map(|name| part(&plan, name)).sum();
    let kept = kept + part(&plan, "process");
    let each = part(&plan, "sums") + part(&plan, "activations");
    assert_eq!(kept + 2 * each, part(&plan, "kept"));
    let added = part(&plan, "total") - part(&plan, "kept");
    assert_eq!(added, part(&plan, "writing").max(part(&plan, "evaluation")));
    let own = ["--plan", "--threads", "1", "--recompute", "--json"];
    let less = folder.json(&ask(&own));
    assert_eq!(part(&less, "workers"), 1);
    assert!(part(&less, "activations") < part(&plan, "activations"));
    // With a folder, tokens are mapped, and checkpoints are written.
    let saves = ["--plan", "--threads", "2", "--checkpoint", "run", "--json"];
    let saves = folder.json(&ask(&saves));
    assert_eq!(part(&saves, "checkpoint"), 3 * part(&plan, "weights"));
    assert!(part(&saves, "tokens") < part(&plan, "tokens"));
    let words = folder.ok(&ask(&["--plan", "--threads", "2"]));
    for words_of in [
        "2 x ",
        "a thread's 4 sequences at a time",
        "total ",
        "\nless: ",
    ] {
        assert!(words.contains(words_of), "{words_of}: {words}");
    }

    // What the process has differs a little from run to run.
    let (most, budget) = (
        2 * part(&plan, "total"),
        (2 * part(&plan, "total")).to_string(),
    );
    let find = ["--find-batch", &budget, "--threads", "2"];
    let found = folder.json(&ask(&[&find[..], &["--json"]].concat()));
    let (batch, parts) = (part(&found, "batch"), part(&found, "accumulate"));
    assert_eq!((batch, parts), (2 * part(&found, "micro"), 2));
    assert!(batch > 8 && part(&found, "total") <= most, "{found}");
    let words = folder.ok(&ask(&[&find[..], &["--accumulate", "3"]].concat()));
    let (_, used) = words.split_once(" is the largest in 3 parts: ").unwrap();
    let (_, used) = used.split_once("\nuse: --batch ").unwrap();
    let (batch, parts) = used.trim_end().split_once(" --accumulate ").unwrap();
    // The batch that was found has the plan that it was found by.
    let own = ["--batch", batch, "--accumulate", parts, "--plan", "--json"];
    let used = folder.json(&ask(&[&own[..], &["--threads", "2"]].concat()));
    assert_eq!(3 * part(&used, "micro"), part(&used, "batch"));
    assert!(part(&used, "total") < most + (most >> 5), "{used}");
    let run = folder.run(&ask(&["--find-batch", "1000", "--threads", "1"]));
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("parts of one sequence need "), "{run:?}");
    for own in [
        &["--find-batch", "0"][..],
        &["--find-batch", "4 GB"],
        &["--find-batch", "9", "--batch", "2"],
        &["--find-batch", "9", "--plan"],
        &[],
    ] {
        assert_eq!(folder.run(&ask(own)).code, Some(2), "{own:?}");
    }
    assert_eq!(folder.files(), before);
}

#[test]
fn bottlenecks_and_a_trace_show_a_step_and_change_no_bit() {
    let folder = folder();
    let own = ["--vocabulary", "259", "--threads", "2"];
    let run = |out, more: &[&str]| {
        let run = folder.run(&arguments(out, &[&own[..], more].concat()));
        assert_eq!(run.code, Some(0), "{run:?}");
        run.err
    };
    run("model.gguf", &[]);
    let expected = bytes(&folder, "model.gguf");
    let told = run("text.gguf", &["--bottlenecks", "--accumulate", "2"]);
    let first = told.lines().next().unwrap();
    assert!(
        first.starts_with("bottlenecks in ") && first.contains(": 3 steps, "),
        "{told}"
    );
    assert!(first.ends_with(" ms each, by 2 workers"), "{told}");
    for part in [
        " %  gradients of matrices: ",
        " %  products: ",
        " % of the peak\n",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let last = told.lines().last().unwrap();
    assert!(
        last.starts_with("  would help most: ") && last.ends_with(" times as fast"),
        "{told}"
    );
    assert!(bytes(&folder, "text.gguf") == expected);
    let told = run("json.gguf", &["--bottlenecks=json"]);
    let report: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (&report["steps"], &report["workers"]),
        (&3.into(), &1.into())
    );
    let shares = report["shares"].as_array().unwrap();
    let sum: f64 = shares.iter().map(|it| it["share"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-6, "{report}");
    for share in shares {
        let rate = &share["multiply_adds_per_second"];
        assert_eq!(rate.is_null(), share["multiply_adds"] == 0, "{share}");
        assert_eq!(rate.is_null(), share["of_peak"].is_null(), "{share}");
    }
    let most = &report["change"]["operation"];
    assert!(
        [&shares[0], &shares[1]]
            .iter()
            .any(|it| it["operation"] == *most)
    );
    assert!(bytes(&folder, "json.gguf") == expected);

    run("trace.gguf", &["--trace", "t.json", "--accumulate", "2"]);
    let trace: Value = serde_json::from_slice(&bytes(&folder, "t.json")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let named = |name: &str| events.iter().filter(|event| event["name"] == name).count();
    for (name, times) in [
        ("training_step", 3),
        ("passes", 3),
        ("part", 6),
        ("update", 3),
        ("encode", 3),
    ] {
        assert_eq!(named(name), times, "{name}");
    }
    // Seven matrices in each of two layers, and the head for each of two sequences.
    assert_eq!(named("weight_gradient"), 6 * 16);
    assert!(named("product") > 0 && named("attention_gradient") > 0);
    assert!(bytes(&folder, "trace.gguf") == expected);
}

#[test]
fn a_learning_rate_is_found_and_nothing_is_written() {
    let folder = folder();
    let before = folder.files();
    let command = [
        "train",
        "text.txt",
        "--vocabulary",
        "259",
        "--context",
        "16",
    ];
    let own = ["--batch", "4", "--find-lr=12"];
    let command = [&command[..], &own].concat();
    let told = lines(&folder, &command);
    let (found, points) = told.split_last().unwrap();
    assert_eq!(found["steps"], points.len() as u64);
    let rate = |point: &Value| point["rate"].as_f64().unwrap();
    assert!((rate(&points[0]) * 1e5 - 1.0).abs() < 1e-5, "{}", points[0]);
    let smooth = |point: &Value| point["smooth"].as_f64().unwrap();
    let least = points.iter().min_by(|a, b| smooth(a).total_cmp(&smooth(b)));
    assert_eq!(&found["least"], least.unwrap());
    let proposed = found["proposed"].as_f64().unwrap();
    assert!((proposed * 10.0 / rate(least.unwrap()) - 1.0).abs() < 1e-5);
    let words = folder.ok(&command);
    assert!(
        words.contains(" least\n") && words.contains("\nuse: --rate "),
        "{words}"
    );
    assert!(words.starts_with("step"), "{words}");
    for own in [&["--find-lr=1"][..], &["--find-lr=5", "--rate", "1"]] {
        let command = ["train", "text.txt"];
        let run = folder.run(&[&command[..], own].concat());
        assert_eq!(run.code, Some(2), "{own:?}");
    }
    assert_eq!(folder.files(), before);
}

/// A limit to what files may take is what a full disk is to a program: a write that fails.
#[cfg(unix)]
#[test]
fn a_disk_that_fills_leaves_what_was_there() {
    use std::process::Command;

    let folder = folder();
    let own = ["--vocabulary", "259", "--checkpoint", "run"];
    folder.ok(&arguments(
        "model.gguf",
        &[&own[..], &["--stop-after", "1"]].concat(),
    ));
    let before = bytes(&folder, "run/checkpoint.safetensors");
    let resumed = arguments("model.gguf", &[&own[..], &["--resume"]].concat());
    let command = folder.command(&resumed);
    let program = command.get_program().to_str().unwrap().to_owned();
    // 64 blocks of 512 bytes at least; the signal that would end the program is ignored.
    let mut limited = Command::new("sh");
    limited.args([
        "-c",
        "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"",
        &program,
    ]);
    limited.args(command.get_args());
    limited.current_dir(command.get_current_dir().unwrap());
    let ended = limited.output().unwrap();
    let error = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{error}");
    assert!(
        error.contains("checkpoint.safetensors") && error.contains("cannot write"),
        "{error}"
    );
    assert!(bytes(&folder, "run/checkpoint.safetensors") == before);
    let left: Vec<_> = fs::read_dir(folder.path("run")).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(!folder.path("model.gguf").exists());
    folder.ok(&resumed);
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_a_checkpoint_to_go_on_from() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};

    use super::signals::interruptible;

    let folder = folder();
    // More steps than it will take.
    let run = |name| {
        let mut run = arguments(
            "model.gguf",
            &["--vocabulary", "259", "--json", "--checkpoint", name],
        );
        run[5] = "100000";
        run
    };
    let mut command = folder.command(&run("run"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = interruptible(&mut command).spawn().unwrap();
    // From the line of how it begins on, it is patient.
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    out.read_to_string(&mut String::new()).unwrap();
    let ended = child.wait_with_output().unwrap();
    let error = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{error}");
    let number: String = error.chars().filter(char::is_ascii_digit).collect();
    assert_eq!(
        error,
        format!(
            "error: interrupted after step {number}; the same command with --resume continues\n"
        )
    );
    assert!(!folder.path("model.gguf").exists());
    // What it left is what a run leaves that is to stop there.
    folder.ok(&[&run("other")[..], &["--stop-after", &number]].concat());
    let checkpoint = |name: &str| bytes(&folder, &format!("{name}/checkpoint.safetensors"));
    assert!(checkpoint("run") == checkpoint("other"));
}
