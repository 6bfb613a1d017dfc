//! `tercet train` of few values, and with the sums of few tensors.

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
