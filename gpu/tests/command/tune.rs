//! `tercet tune`, the file it keeps, and what other commands make of it.

use std::fs;

use serde_json::Value;

use super::support::{Folder, Run, finish};

/// Runs a command whose costs are kept in `t/tuning.json` of its folder.
fn tuned(folder: &Folder, arguments: &[&str]) -> Run {
    let mut command = folder.command(arguments);
    finish(command.env("TERCET_TUNING", folder.path("t/tuning.json")))
}

fn json(run: &Run) -> Value {
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    serde_json::from_str(&run.out).unwrap()
}

#[test]
fn costs_are_measured_kept_drawn_and_forgotten() {
    let folder = Folder::new();
    let file = folder.path("t/tuning.json");
    let info = |folder: &Folder| json(&tuned(folder, &["info", "--json"]))["tuning"].clone();
    let before = info(&folder);
    assert_eq!(before["file"], file.to_str().unwrap());
    assert!(
        before["made"].is_null() && before["refused"].is_null(),
        "{before}"
    );

    let report = json(&tuned(&folder, &["tune", "--quick", "--json"]));
    assert_eq!(report["file"], file.to_str().unwrap());
    let choices = report["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 12);
    for choice in choices {
        let steps = choice["steps"].as_array().unwrap();
        assert_eq!(steps[0]["elements"], 0, "{choice}");
        assert!(
            steps
                .windows(2)
                .all(|pair| pair[0]["engine"] != pair[1]["engine"])
        );
    }
    assert!(report["check"].is_null());
    assert!(report["seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(info(&folder)["made"], report["made"]);

    let drawn = tuned(&folder, &["tune", "--show", "costs.svg"]);
    assert_eq!((drawn.code, drawn.err.as_str()), (Some(0), ""));
    assert!(
        drawn
            .out
            .starts_with("wrote costs.svg (costs measured here on "),
        "{}",
        drawn.out
    );
    let svg = fs::read_to_string(folder.path("costs.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains(">quantize_optimal<"));
    let again = tuned(&folder, &["tune", "--show", "costs.svg"]);
    assert_eq!(again.code, Some(1));
    assert!(again.err.contains("exists already"), "{}", again.err);
    let page = tuned(&folder, &["tune", "--show", "costs.html", "--json"]);
    assert_eq!(json(&page)["drawn"], "costs.html");

    let reset = json(&tuned(&folder, &["tune", "--reset", "--json"]));
    assert_eq!(reset["removed"], true);
    assert!(!file.exists());
    let reset = tuned(&folder, &["tune", "--reset"]);
    assert!(reset.out.starts_with("there is no "), "{}", reset.out);
}

#[test]
fn a_file_that_cannot_be_used_is_a_warning_and_no_more() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    fs::create_dir(folder.path("t")).unwrap();
    let foreign =
        r#"{"key":{"version":"0.0.0","processor":"Z80","sets":[],"threads":1,"system":"CP/M"}}"#;
    for (text, why) in [
        ("{", "not a tuning file: "),
        (foreign, "from another machine: tercet: 0.0.0 there, "),
    ] {
        fs::write(folder.path("t/tuning.json"), text).unwrap();
        let search = [
            "search",
            "in.safetensors:wide.weight",
            "in.safetensors:wide.weight",
            "-k",
            "2",
        ];
        let run = tuned(&folder, &search);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(run.err.starts_with("warning: tuning: "), "{}", run.err);
        assert!(
            run.err.contains(why) && run.err.ends_with("; built-in costs apply\n"),
            "{}",
            run.err
        );
        assert_eq!(run.err.lines().count(), 1);
        let info = json(&tuned(&folder, &["info", "--json"]));
        assert!(
            info["tuning"]["refused"].as_str().unwrap().contains(why),
            "{info}"
        );
        let text = tuned(&folder, &["info"]).out;
        assert!(text.contains("tuning            not used: "), "{text}");
    }
}

#[test]
fn wrong_usage_is_told() {
    let folder = Folder::new();
    for arguments in [
        &["tune", "--reset", "--quick"][..],
        &["tune", "--show", "a.svg", "--check"],
        &["tune", "--force"],
        &["tune", "--report", "check.md"],
        &["tune", "--check", "--report", "check.md", "--show", "a.svg"],
    ] {
        assert_eq!(tuned(&folder, arguments).code, Some(2), "{arguments:?}");
    }
    let mut command = folder.command(&["tune"]);
    let run = finish(command.env("TERCET_TUNING", "off"));
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("TERCET_TUNING is off"), "{}", run.err);
    let mut command = folder.command(&["info"]);
    let run = finish(command.env("TERCET_VERBOSE", "loud"));
    assert_eq!(run.code, Some(2));
    assert!(
        run.err.contains("TERCET_VERBOSE: loud is not 0"),
        "{}",
        run.err
    );
    // Before anything is measured.
    let run = tuned(&folder, &["tune", "--check", "--report", "check.html"]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.err.contains("check.html") && run.err.contains(".md"),
        "{}",
        run.err
    );
    let run = tuned(&folder, &["tune", "--show", "costs.png"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("costs.png"), "{}", run.err);
}
