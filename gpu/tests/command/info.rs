//! `tercet info`.

use tercet_host::simd::Backend;

use super::support::{Folder, fields, finish};

#[test]
fn the_processor_is_told_with_and_without_a_gpu() {
    let folder = Folder::new();
    let found = folder.json(&["info", "--json"]);
    assert_eq!(
        fields(&found),
        [
            "gpus",
            "instruction_sets",
            "no_gpu",
            "processor",
            "threads",
            "tuning",
            "version"
        ]
    );
    assert_eq!(found["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(found["processor"]["architecture"], std::env::consts::ARCH);
    assert!(!found["processor"]["name"].as_str().unwrap().is_empty());
    let sets = &found["instruction_sets"];
    let names: Vec<_> = Backend::all().map(|backend| backend.isa().name()).collect();
    assert_eq!(sets["found"], serde_json::json!(names));
    // Either devices, or one reason.
    let gpus = found["gpus"].as_array().unwrap();
    assert_eq!(gpus.is_empty(), found["no_gpu"].is_string(), "{found}");

    let text = folder.ok(&["info"]);
    for line in [
        "tercet            ",
        "processor         ",
        "instruction sets  scalar",
        "used              ",
        "tuning            ",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let told = match found["no_gpu"].as_str() {
        Some(reason) => format!("GPUs              none: {reason}\n"),
        None => format!("\n{}", gpus[0]["name"].as_str().unwrap()),
    };
    assert!(text.contains(&told), "{text}");
}

#[test]
fn what_is_used_and_why() {
    let folder = Folder::new();
    let ask = |variable: &str| {
        let mut command = folder.command(&["info", "--json", "--threads", "3"]);
        finish(command.env("TERCET_BACKEND", variable))
    };
    for (variable, used, why) in [
        ("", Backend::best().isa().name(), "best"),
        ("Scalar", "scalar", "TERCET_BACKEND"),
    ] {
        let run = ask(variable);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
        let found: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(found["instruction_sets"]["used"], used);
        assert_eq!(found["instruction_sets"]["why"], why);
        assert_eq!(found["threads"], 3);
    }
    let run = ask("sse9");
    assert_eq!(run.code, Some(2));
    assert!(
        run.err.contains("TERCET_BACKEND: sse9 is not an"),
        "{}",
        run.err
    );
}
