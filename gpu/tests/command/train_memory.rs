//! `tercet train` in less memory: adapters, the sums of few tensors, activations in a file.

use serde_json::{Value, json};

use super::train::{arguments, bytes, folder, lines};

#[test]
fn adapters_change_a_model_and_take_a_fraction_of_its_state() {
    let folder = folder();
    folder.ok(&arguments("base.gguf", &[]));
    let own = ["--from", "base.gguf", "--adapters", "2"];
    let lines = lines(&folder, &arguments("new.gguf", &own));
    // A value per row and per column of the seven matrices of both layers, for a rank of 2.
    let begun = &lines[0]["adapters"];
    assert_eq!(begun, &json!({"rank": 2, "values": 2 * 2 * 4096}));
    let plan = |own: &[&str]| -> Value {
        let plan = ["train", "text.txt", "--context", "16", "--plan", "--json"];
        folder.json(&[&plan[..], own].concat())
    };
    let planned = plan(&own);
    assert_eq!(planned["adapters"], 12 * 2 * 2 * 4096);
    let all = plan(&["--from", "base.gguf"]);
    let state = |plan: &Value| {
        let parts = ["weights", "adapters", "moments"];
        parts
            .map(|part| plan[part].as_f64().unwrap())
            .iter()
            .sum::<f64>()
    };
    assert!(state(&planned) < state(&all) / 2.5, "{planned} {all}");
    // The file is a whole model, and the same one for any threads and parts.
    let new = bytes(&folder, "new.gguf");
    assert_eq!(new.len(), bytes(&folder, "base.gguf").len());
    assert!(new != bytes(&folder, "base.gguf"));
    let parts = [&own[..], &["--accumulate", "4", "--threads", "2"]].concat();
    folder.ok(&arguments("parts.gguf", &parts));
    assert!(bytes(&folder, "parts.gguf") == new);
    let people = folder.ok(&[&arguments("people.gguf", &own)[..], &["--force"]].concat());
    assert!(people.contains("trains adapters of rank 2: "), "{people}");
    // What they change must be named.
    let alone = folder.run(&arguments("no.gguf", &["--adapters", "2"]));
    assert_eq!(alone.code, Some(2), "{alone:?}");
    assert!(alone.err.contains("--from"), "{alone:?}");
    let wide = ["--from", "base.gguf", "--adapters", "257"];
    let wide = folder.run(&arguments("no.gguf", &wide));
    assert!(wide.err.contains("from 1 to 256"), "{wide:?}");
}

#[test]
fn without_a_limit_one_part_has_the_sums_of_two_tensors() {
    let folder = folder();
    let whole = ["--clip", "none", "--accumulate", "1"];
    folder.ok(&arguments("whole.gguf", &whole));
    let parts = ["--clip", "none", "--accumulate", "4", "--threads", "2"];
    folder.ok(&arguments("parts.gguf", &parts));
    assert!(bytes(&folder, "whole.gguf") == bytes(&folder, "parts.gguf"));
    let plan = ["train", "text.txt", "--context", "16", "--plan"];
    let sums = |own: &[&str]| {
        let plan = folder.json(&[&plan[..], own, &["--json"]].concat());
        plan["sums"].as_u64().unwrap()
    };
    let all = sums(&["--clip", "none"]);
    assert!(sums(&whole) * 3 < all, "{} {all}", sums(&whole));
    let table = folder.ok(&[&plan[..], &whole].concat());
    assert!(
        table.contains("gradients of the embedding, and of a tensor at a time"),
        "{table}"
    );
    let table = folder.ok(&plan);
    assert!(table.contains("with --accumulate 1 --clip none"), "{table}");
    let refused = folder.run(&arguments("no.gguf", &["--clip", "0"]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused
            .err
            .contains("a number above 0, or none, is expected"),
        "{refused:?}"
    );
}

/// A limit of the process's own memory, which does not count mapped files.
#[cfg(target_os = "linux")]
#[test]
fn activations_in_a_file_fit_where_they_would_not_in_memory() {
    let folder = folder();
    let shape = ["--context", "128", "--batch", "32", "--accumulate", "1"];
    let own = ["--threads", "1", "--vocabulary", "259"];
    let common = [&["train", "text.txt"], &shape[..], &own].concat();
    let plan = |own: &[&str]| folder.json(&[&common[..], own, &["--plan", "--json"]].concat());
    let (all, offloaded) = (plan(&[]), plan(&["--offload", "."]));
    let bytes_of = |plan: &Value, part: &str| plan[part].as_u64().unwrap();
    let file = bytes_of(&offloaded, "offloaded");
    assert_eq!(bytes_of(&all, "offloaded"), 0);
    for part in ["activations", "total"] {
        let less = bytes_of(&all, part).abs_diff(bytes_of(&offloaded, part) + file);
        // The process itself is measured anew.
        assert!(less < file / 20, "{part}: {all} {offloaded}");
    }
    let table = folder.ok(&[&common[..], &["--offload", ".", "--plan"]].concat());
    assert!(table.contains("activations, with --offload"), "{table}");
    // A batch that is found with files has more sequences in the same memory.
    let budget = bytes_of(&all, "total").to_string();
    let found = |own: &[&str]| {
        let ask = ["train", "text.txt", "--context", "128"];
        let find = ["--accumulate", "1", "--find-batch", &budget, "--json"];
        folder.json(
            &[
                &ask[..],
                &["--threads", "1", "--vocabulary", "259"],
                own,
                &find,
            ]
            .concat(),
        )
    };
    let (fewer, more) = (found(&[]), found(&["--offload", "."]));
    assert!(bytes_of(&fewer, "batch") < bytes_of(&more, "batch"));
    assert!(
        bytes_of(&more, "total") <= bytes_of(&all, "total"),
        "{more}"
    );
    let limit = (bytes_of(&all, "total") - file / 2) >> 10;
    let run = |out: &str, own: &[&str]| {
        let rest = ["-o", out, "--steps", "1"];
        let limited = std::process::Command::new("sh")
            .args(["-c", &format!("ulimit -d {limit}; exec \"$@\""), "sh"])
            .arg(env!("CARGO_BIN_EXE_tercet"))
            .args([&common[..], &rest, own].concat())
            .current_dir(folder.path("."))
            .output();
        limited.unwrap()
    };
    let found = run("memory.gguf", &[]);
    assert!(!found.status.success(), "{found:?}");
    // Without memory a process ends at once; with a file it leaves nothing of it.
    let left = || {
        let all = std::fs::read_dir(folder.path(".")).unwrap();
        let names = all.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(".tercet")).count()
    };
    let before = left();
    let found = run("file.gguf", &["--offload", "."]);
    assert!(found.status.success(), "{found:?}");
    folder.ok(&[&common[..], &["-o", "free.gguf", "--steps", "1"]].concat());
    assert!(bytes(&folder, "file.gguf") == bytes(&folder, "free.gguf"));
    assert_eq!(left(), before);
    let no_folder = ["-o", "no.gguf", "--offload", "text.txt"];
    let no_folder = folder.fails(&[&common[..], &no_folder].concat());
    assert!(no_folder.contains("text.txt: cannot create"), "{no_folder}");
}

#[test]
fn moments_and_activations_take_less_when_they_are_kept_in_fewer_numbers() {
    let folder = folder();
    folder.ok(&arguments("all.gguf", &[]));
    let own = ["--factored", "--activations", "int8"];
    folder.ok(&arguments("fewer.gguf", &own));
    let parts = [&own[..], &["--accumulate", "4", "--threads", "2"]].concat();
    folder.ok(&arguments("parts.gguf", &parts));
    let fewer = bytes(&folder, "fewer.gguf");
    assert!(fewer == bytes(&folder, "parts.gguf"));
    assert!(fewer != bytes(&folder, "all.gguf"));
    // Four layers: what one of them takes while it is computed does not shrink.
    let shape = ["--context", "64", "--preset", "tiny"];
    let plan = |own: &[&str]| -> Value {
        let plan = [&["train", "text.txt", "--plan", "--json"], &shape[..], own].concat();
        folder.json(&plan)
    };
    let (all, fewer) = (plan(&[]), plan(&own));
    let share = |part: &str| fewer[part].as_f64().unwrap() / all[part].as_f64().unwrap();
    assert!(share("moments") < 0.52, "{all} {fewer}");
    assert!(share("activations") < 0.8, "{all} {fewer}");
    let table = [&["train", "text.txt", "--plan"], &shape[..], &own].concat();
    let table = folder.ok(&table);
    for what in ["f32, the second by rows and columns", "at a time, in int8"] {
        assert!(table.contains(what), "{table}");
    }
    let table = folder.ok(&[&["train", "text.txt", "--plan"], &shape[..]].concat());
    for way in ["with --factored", "with --activations int8"] {
        assert!(table.contains(way), "{table}");
    }
    let both = ["--from", "all.gguf", "--adapters", "2", "--factored"];
    let refused = folder.run(&arguments("no.gguf", &both));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("--factored"), "{refused:?}");
}
