//! `tercet network`.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tercet_core::linear::Layout;
use tercet_host::simd::Backend;

use super::support::{Folder, fields};

/// The folder of the files that firmware carries.
fn carried(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../firmware/data")
        .join(name)
}

/// A folder after `tercet demo --out .`: the classifier and its inputs.
fn digits() -> Folder {
    let folder = Folder::new();
    folder.ok(&["demo", "--out", "."]);
    folder
}

const BUILD: [&str; 10] = [
    "network",
    "build",
    "digits-f32.safetensors",
    "--layer",
    "hidden:relu",
    "--layer",
    "head:int8",
    "--calibrate",
    "digits-train.npy",
    "--to",
];

fn build<'a>(more: &[&'a str]) -> Vec<&'a str> {
    BUILD.into_iter().chain(more.iter().copied()).collect()
}

/// The first 32 held-out images as an npy file, from the demo's.
fn first_images(test: &[u8]) -> Vec<u8> {
    let header = 10 + usize::from(u16::from_le_bytes([test[8], test[9]]));
    let text = std::str::from_utf8(&test[10..header]).unwrap();
    let text = text.trim_end().replace("(899, ", "(32, ");
    let mut file = test[..10].to_vec();
    file.extend(format!("{text:<width$}\n", width = header - 11).as_bytes());
    file.extend(&test[header..][..32 * 256]);
    file
}

/// Every board's digits are compared with the same file.
#[test]
fn digits_are_read_as_boards_read_them() {
    let (network, images) = (carried("digits.gguf"), carried("digits.npy"));
    let [network, images] = [&network, &images].map(|path| path.to_str().unwrap());
    let printed = Folder::new().ok(&["network", "run", network, images, "--digest"]);
    let committed = fs::read_to_string(carried("../snapshots/digits.txt")).unwrap();
    assert_eq!(printed, committed.replace("\r\n", "\n"));
}

/// Firmware carries what the commands make; `TERCET_OVERWRITE=1` renews it.
#[test]
fn what_firmware_carries_is_what_the_command_makes() {
    let folder = digits();
    folder.ok(&build(&["ternary_lanes", "-o", "net.gguf"]));
    let network = fs::read(folder.path("net.gguf")).unwrap();
    let images = first_images(&fs::read(folder.path("digits-test.npy")).unwrap());
    for (name, bytes) in [("digits.gguf", network), ("digits.npy", images)] {
        if std::env::var_os("TERCET_OVERWRITE").is_some() {
            fs::write(carried(name), &bytes).unwrap();
        }
        assert!(fs::read(carried(name)).unwrap() == bytes, "{name}");
    }
}

/// `firmware/data/motion.py` trains what goes in.
#[test]
fn the_motion_network_is_made_of_what_lies_beside_it() {
    let folder = Folder::new();
    let [weights, inputs] = ["motion.safetensors", "motion-calibrate.npy"].map(carried);
    let made = ["--to", "ternary_lanes", "-o", "motion.gguf"];
    let mut command = vec!["network", "build", weights.to_str().unwrap()];
    command.extend(["--layer", "hidden:relu", "--layer", "head"]);
    command.extend(["--calibrate", inputs.to_str().unwrap()]);
    command.extend(made);
    folder.ok(&command);
    let network = fs::read(folder.path("motion.gguf")).unwrap();
    assert!(fs::read(carried("motion.gguf")).unwrap() == network);
}

/// `firmware/data/motion_model.py` makes the text.
#[test]
fn the_model_of_motion_is_made_of_the_text_beside_it() {
    let folder = Folder::new();
    let text = carried("motion-text.txt");
    let mut command = vec!["train", text.to_str().unwrap(), "-o", "motion-model.gguf"];
    command.extend([
        "--preset",
        "micro",
        "--vocabulary",
        "259",
        "--context",
        "64",
    ]);
    command.extend([
        "--batch", "4", "--hold", "0.5", "--steps", "80", "--to", "tq1_0",
    ]);
    folder.ok(&command);
    let model = fs::read(folder.path("motion-model.gguf")).unwrap();
    assert!(fs::read(carried("motion-model.gguf")).unwrap() == model);
}

#[test]
fn the_demo_makes_the_same_networks() {
    let folder = digits();
    let layouts = Layout::ALL.into_iter().filter(|l| l.can_encode());
    for layout in layouts.map(Layout::name) {
        let summary = folder.ok(&build(&[layout, "-o", "net.gguf", "--force", "--json"]));
        let summary: Value = serde_json::from_str(&summary).unwrap();
        let file = format!("digits-network-{layout}.gguf");
        let bytes = fs::read(folder.path(&file)).unwrap();
        assert_eq!(summary["bytes"], bytes.len());
        assert!(
            fs::read(folder.path("net.gguf")).unwrap() == bytes,
            "{layout}"
        );
    }
}

#[test]
fn a_build_tells_what_it_made() {
    let folder = digits();
    let found = folder.json(&build(&["tq2_0", "-o", "net.gguf", "--json"]));
    assert_eq!(
        fields(&found),
        [
            "activations",
            "bits_per_weight",
            "bytes",
            "engine",
            "engine_note",
            "file",
            "input_scale",
            "layers",
            "scratch",
            "seconds"
        ]
    );
    // 64 rows of a block of 66 bytes; ten rows of 64 and a scale each.
    let bits = (64.0 * 66.0 + 640.0 + 40.0) * 8.0 / 17024.0;
    assert!((found["bits_per_weight"].as_f64().unwrap() - bits).abs() < 1e-12);
    assert_eq!(
        (
            &found["input_scale"],
            &found["activations"],
            &found["scratch"]
        ),
        (&1.0.into(), &64.into(), &544.into())
    );
    let layers = found["layers"].as_array().unwrap();
    assert_eq!(
        fields(&layers[0]),
        [
            "bias_shift",
            "bytes",
            "cols",
            "layout",
            "name",
            "output_scale",
            "relu",
            "rows"
        ]
    );
    let said = |layer: &Value| {
        (
            layer["name"].clone(),
            layer["layout"].clone(),
            layer["relu"].clone(),
            layer["bytes"].clone(),
        )
    };
    assert_eq!(
        said(&layers[0]),
        (
            "hidden".into(),
            "tq2_0".into(),
            true.into(),
            (64 * 66).into()
        )
    );
    assert_eq!(
        said(&layers[1]),
        ("head".into(), "int8".into(), false.into(), 680.into())
    );
    assert!(
        layers[0]["output_scale"].as_f64().unwrap() > 0.0 && layers[1]["output_scale"].is_null()
    );

    let text = folder.ok(&build(&["tq2_0", "-o", "again.gguf"]));
    assert!(
        text.contains("RAM of a run: 64 bytes of activations, 544 of scratch"),
        "{text}"
    );
    let tensors = folder.ok(&["inspect", "net.gguf"]);
    assert!(tensors.contains("network.0.multiplier") && !tensors.contains("network.1.multiplier"));
}

#[test]
fn a_run_counts_what_it_read_right() {
    let folder = digits();
    let run = [
        "network",
        "run",
        "digits-network-int8.gguf",
        "digits-test.npy",
    ];
    let labelled = [&run[..], &["--labels", "digits-test-labels.npy"]].concat();
    let found = folder.json(&[&labelled[..], &["--json"]].concat());
    assert_eq!(
        fields(&found),
        [
            "accuracy",
            "classes",
            "counts",
            "digest",
            "engine",
            "engine_note",
            "logits",
            "outputs",
            "points",
            "seconds",
            "sums"
        ]
    );
    assert_eq!(
        (&found["points"], &found["outputs"]),
        (&899.into(), &10.into())
    );
    let accuracy = found["accuracy"].as_f64().unwrap();
    assert!(accuracy > 0.92 && accuracy < 0.94, "{accuracy}");
    let rows = |field: &str| found[field].as_array().unwrap().clone();
    assert!(
        rows("sums").len() == 899 && rows("logits").len() == 899 && rows("classes").len() == 899
    );
    for ((logits, class), sums) in rows("logits").iter().zip(rows("classes")).zip(rows("sums")) {
        let logits: Vec<f64> = logits
            .as_array()
            .unwrap()
            .iter()
            .map(|l| l.as_f64().unwrap())
            .collect();
        let largest = logits[class.as_u64().unwrap() as usize];
        assert!(logits.iter().all(|&logit| logit <= largest) && logits.len() == 10);
        assert!(sums.as_array().unwrap().iter().all(Value::is_i64));
    }
    let counted: u64 = rows("counts")
        .iter()
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert_eq!(counted, 899);
    let text = folder.ok(&labelled);
    assert!(
        text.contains(&format!("{:.2} % right\n", accuracy * 100.0)),
        "{text}"
    );
    assert!(!folder.ok(&run).contains("right"));
}

#[test]
fn digests_are_those_of_the_demo_and_depend_on_no_threads() {
    let folder = digits();
    let run = |more: &[&str]| {
        folder.ok(&[
            &[
                "network",
                "run",
                "digits-network-tq1_0.gguf",
                "digits-test.npy",
            ],
            more,
        ]
        .concat())
    };
    let lines = run(&["--digest"]);
    assert_eq!(lines.lines().count(), 900);
    assert_eq!(run(&["--digest", "--threads", "1"]), lines);
    let found = folder.json(&["demo", "--out", ".", "--json"]);
    let networks = found["networks"].as_array().unwrap();
    let tq1_0 = networks
        .iter()
        .find(|network| network["hidden"] == "tq1_0")
        .unwrap();
    assert_eq!(
        lines.lines().last().unwrap(),
        format!("logits {}", tq1_0["digest"].as_str().unwrap())
    );
    // TQ1_0 holds the same codes and scales in fewer bytes.
    let tq2_0 = networks
        .iter()
        .find(|network| network["hidden"] == "tq2_0")
        .unwrap();
    assert_eq!(tq1_0["digest"], tq2_0["digest"]);
}

/// Floats get the scale of their range; the answers are those of a network built by hand.
#[test]
fn a_network_of_one_layer_computes_its_products() {
    let folder = Folder::new();
    folder.safetensors(
        "model.safetensors",
        &[
            ("out.bias", &[2], &[0.0, 1.0]),
            ("out.weight", &[2, 2], &[1.0, -1.0, 0.5, 0.5]),
        ],
    );
    fs::write(folder.path("points.csv"), "1,2\n-127,127\n3,0\n").unwrap();
    folder.ok(&[
        "network",
        "build",
        "model.safetensors",
        "--layer",
        "out",
        "--to",
        "int8",
        "--calibrate",
        "points.csv",
        "-o",
        "net.gguf",
    ]);
    let found = folder.json(&["network", "run", "net.gguf", "points.csv", "--json"]);
    // The input scale is 1; weights are 127 steps of 1/127 and 0.5/127; the bias of row 1 is 254 of the latter.
    assert_eq!(
        found["sums"],
        serde_json::json!([[-127, 635], [-32258, 254], [381, 635]])
    );
    assert_eq!(found["classes"], serde_json::json!([1, 1, 0]));
}

#[test]
fn a_row_of_zeros_keeps_its_bias() {
    let folder = Folder::new();
    folder.safetensors(
        "model.safetensors",
        &[
            ("a.bias", &[2], &[3.0, 0.0]),
            ("a.weight", &[2, 1], &[0.0, 1.0]),
            ("b.weight", &[1, 2], &[1.0, 1.0]),
        ],
    );
    fs::write(folder.path("points.csv"), "1\n5\n").unwrap();
    for layout in ["int8", "int8_pairs", "int4", "ternary_lanes", "five_trits"] {
        folder.ok(&[
            "network",
            "build",
            "model.safetensors",
            "--layer",
            "a",
            "--layer",
            "b",
            "--to",
            layout,
            "--calibrate",
            "points.csv",
            "-o",
            "net.gguf",
            "--force",
        ]);
        let found = folder.json(&["network", "run", "net.gguf", "points.csv", "--json"]);
        for (row, right) in [4.0, 8.0].into_iter().enumerate() {
            let logit = found["logits"][row][0].as_f64().unwrap();
            assert!((logit - right).abs() < 0.05, "{layout}: {logit}");
        }
    }
}

/// A report without what differs from engine to engine, and the engine.
fn lasting(mut report: Value) -> (Value, String) {
    let fields = report.as_object_mut().unwrap();
    assert!(fields.remove("seconds").unwrap().is_number());
    assert!(fields.remove("engine_note").unwrap().is_null());
    let engine = fields.remove("engine").unwrap();
    (report, engine.as_str().unwrap().to_owned())
}

#[test]
fn every_set_of_the_machine_builds_and_runs_the_same_network() {
    let folder = digits();
    // One layout with tiles, one without.
    for layout in ["ternary_lanes", "int8_pairs"] {
        let mut all = Vec::new();
        let sets: Vec<_> = Backend::all().map(|backend| backend.isa().name()).collect();
        let used = Backend::default().isa().name();
        for (choice, used) in [("auto", used)]
            .into_iter()
            .chain(sets.iter().map(|&name| (name, name)))
        {
            let more = [
                layout,
                "-o",
                "net.gguf",
                "--force",
                "--json",
                "--backend",
                choice,
            ];
            let (built, engine) = lasting(folder.json(&build(&more)));
            assert_eq!(engine, used);
            let run = ["network", "run", "net.gguf", "digits-test.npy"];
            let json = [&run[..], &["--json", "--backend", choice]].concat();
            let (ran, engine) = lasting(folder.json(&json));
            assert_eq!(engine, used);
            let text = folder.ok(&[&run[..], &["--backend", choice]].concat());
            assert!(text.contains(&format!(" s by {used}, logits ")), "{text}");
            let lines = folder.ok(&[&run[..], &["--digest", "--backend", choice]].concat());
            let network = fs::read(folder.path("net.gguf")).unwrap();
            all.push((network, built, ran, lines));
        }
        assert!(all.iter().all(|one| *one == all[0]), "{layout}");
    }
}

#[test]
fn an_explanation_tells_of_the_products() {
    let folder = digits();
    let run = [
        "network",
        "run",
        "digits-network-int8.gguf",
        "digits-test.npy",
        "--explain",
    ];
    let built = build(&["int8", "-o", "net.gguf", "--explain"]);
    // Both layers of 899 points; the hidden one of 898, twice.
    let weights = 64 * 256;
    let steps = [899 * (weights + 640), 2 * 898 * weights];
    for (arguments, steps) in [&run[..], &built].into_iter().zip(steps) {
        let run = folder.run(arguments);
        assert_eq!(run.code, Some(0), "{run:?}");
        let head = run.err.lines().next().unwrap();
        assert!(head.starts_with("matmul: "), "{head}");
        assert!(head.contains(&format!(", {steps} steps, ")), "{head}");
        for part in ["chosen: ", "matmul: 1 call by ", "recommended: "] {
            assert!(run.err.contains(part), "{}", run.err);
        }
    }
    let text = folder.ok(&["network", "run", "--help"]);
    assert!(text.contains("engine_note (null, or why"), "{text}");
}

/// Codes, activations, scratch and sums of a run; buckets and bins of a build beside them.
#[test]
fn a_network_too_large_for_a_microcontroller_is_refused_with_what_it_takes() {
    let folder = digits();
    let network = "digits-network-ternary_lanes.gguf";
    let run = ["network", "run", network, "digits-test.npy", "--digest"];
    // 256 columns in words of 64 and a sum each; ten sums of eight bytes.
    let run_bytes = 256 + 64 + 4 * (256 / 64 * 33) + 10 * 8;
    // Extremes need no buckets, and rows of 256 are sorted without bins. Other ranges are found in 2¹⁶ buckets of
    // eight bytes.
    let built = build(&["ternary_lanes", "-o", "net.gguf"]);
    let other = build(&["ternary_lanes", "-o", "other.gguf", "--method", "entropy"]);
    for (command, needed) in [
        (&run[..], run_bytes),
        (&built, run_bytes),
        (&other, run_bytes + (8 << 16)),
    ] {
        let before = folder.files();
        let ask = |bytes: usize| {
            let bytes = bytes.to_string();
            let edge = ["--profile", "edge", "--edge-memory", &bytes];
            folder.run(&[command, &edge].concat())
        };
        let short = ask(needed - 1);
        assert_eq!((short.code, short.out.as_str()), (Some(1), ""), "{short:?}");
        let told = format!("needs {needed} bytes of memory and has {}; ", needed - 1);
        assert!(short.err.contains(&told), "{}", short.err);
        assert_eq!(short.err.lines().count(), 1);
        assert_eq!(folder.files(), before);
        let enough = ask(needed);
        assert_eq!((enough.code, enough.err.as_str()), (Some(0), ""));
    }
    assert!(fs::read(folder.path("net.gguf")).unwrap() == fs::read(folder.path(network)).unwrap());
    // As on all threads.
    let edge = ["--profile", "edge"];
    assert_eq!(folder.ok(&[&run[..], &edge].concat()), folder.ok(&run));
    // One scale for all of a matrix, whose optimal rule counts 128 bins of 16 bytes.
    let whole = build(&["ternary_lanes", "-o", "whole.gguf", "--per-tensor"]);
    let least = ["--edge-memory", "1"];
    let line = folder.fails(&[&whole[..], &edge, &least].concat());
    let told = format!("needs {} bytes", run_bytes + 128 * 16);
    assert!(line.contains(&told), "{line}");
}

#[test]
fn what_cannot_be_built_is_told_in_one_line() {
    let folder = Folder::new();
    folder.model("model.safetensors");
    fs::write(folder.path("wide.csv"), "1,".repeat(511) + "2\n").unwrap();
    fs::write(folder.path("narrow.csv"), "1,2\n").unwrap();
    let fails = |layers: &[&str], to: &str, data: &str| {
        let mut arguments = vec![
            "network",
            "build",
            "model.safetensors",
            "--to",
            to,
            "--calibrate",
            data,
            "-o",
            "net.gguf",
        ];
        for layer in layers {
            arguments.extend(["--layer", layer]);
        }
        folder.fails(&arguments)
    };
    let line = fails(&["wid"], "int8", "wide.csv");
    assert!(
        line.contains("no tensor named `wid.weight`; the closest are `wide.weight`"),
        "{line}"
    );
    let line = fails(&["wide"], "int8", "narrow.csv");
    assert!(
        line.contains("narrow.csv: points have 2 values, but `wide.weight` takes 512"),
        "{line}"
    );
    let line = fails(&["wide:relu", "narrow"], "int8", "wide.csv");
    assert!(
        line.contains("`narrow.weight`: rows have 64 values, but the layer before gives 8"),
        "{line}"
    );
    let line = fails(&["narrow"], "tq2_0", "wide.csv");
    assert!(
        line.contains("narrow.csv") || line.contains("points have 512 values"),
        "{line}"
    );
    fs::write(folder.path("rows.csv"), "1,".repeat(63) + "2\n").unwrap();
    let line = fails(&["narrow"], "tq2_0", "rows.csv");
    assert!(
        line.contains(
            "`narrow.weight`: a row of 64 weights is no whole number of blocks of 256 in tq2_0"
        ),
        "{line}"
    );
    let line = fails(&["wide"], "int8", "missing.csv");
    assert!(line.contains("missing.csv"), "{line}");

    let usage = |arguments: &[&str]| {
        let run = folder.run(arguments);
        assert_eq!(run.code, Some(2), "{run:?}");
        run.err
    };
    let last = [
        "network",
        "build",
        "model.safetensors",
        "--layer",
        "wide:relu",
        "--to",
        "int8",
        "--calibrate",
        "wide.csv",
        "-o",
        "net.gguf",
    ];
    assert!(usage(&last).contains("`wide` is the last layer"));
    let scale = [
        &last[..3],
        &["--layer", "wide"],
        &last[5..],
        &["--input-scale", "0"],
    ]
    .concat();
    assert!(usage(&scale).contains("the input scale is 0"));
    let bad = [&last[..5], &["--to", "int9"], &last[7..]].concat();
    assert!(usage(&bad).contains("possible values: int8, int8_pairs"));
}

#[test]
fn outputs_are_whole_and_replace_nothing_unasked() {
    let folder = digits();
    fs::write(folder.path("net.gguf"), "mine").unwrap();
    let line = folder.fails(&build(&["int8", "-o", "net.gguf"]));
    assert!(line.contains("exists already"), "{line}");
    let line = folder.fails(&build(&["int8", "-o", "digits-f32.safetensors", "--force"]));
    assert!(line.contains("must end in .gguf"), "{line}");
    folder.ok(&build(&["int8", "-o", "net.gguf", "--force"]));
    assert!(
        fs::read(folder.path("net.gguf"))
            .unwrap()
            .starts_with(b"GGUF")
    );
}

#[test]
fn what_cannot_be_run_is_told_in_one_line() {
    let folder = digits();
    let net = "digits-network-int8.gguf";
    let fails = |arguments: &[&str]| folder.fails(&[&["network", "run"], arguments].concat());
    let line = fails(&["digits-tq2_0-absmax.gguf", "digits-test.npy"]);
    assert!(
        line.contains("bad network file: tercet.network.version is missing"),
        "{line}"
    );
    let line = fails(&["digits-f32.safetensors", "digits-test.npy"]);
    assert!(line.contains("bad network file"), "{line}");
    let line = fails(&[net, "digits-test-labels.npy"]);
    assert!(
        line.contains("points have 1 values, but digits-network-int8.gguf takes 256"),
        "{line}"
    );
    let line = fails(&[net, "digits-test.npy", "--labels", "digits-test.npy"]);
    assert!(line.contains("230144 labels for 899 points"), "{line}");
    fs::write(folder.path("labels.csv"), "0\n".repeat(898) + "1.5\n").unwrap();
    let line = fails(&[net, "digits-test.npy", "--labels", "labels.csv"]);
    assert!(
        line.contains("labels.csv: label 898 (from 0) is 1.5, which is not a class"),
        "{line}"
    );
}
