//! `tercet quantize --to i2_s`: language models for bitnet.cpp.

use tercet_core::gguf::{Reader, TensorType};

use super::support::{Folder, named, noise};

const NANO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/nano.gguf");

#[test]
fn a_trained_model_keeps_its_weights() {
    let folder = Folder::new();
    let quantize = ["quantize", NANO, "-o", "out.gguf", "--to", "i2_s"];
    let report = folder.json(&[&quantize[..], &["--json"]].concat());
    let (before, after) = (std::fs::read(NANO).unwrap(), folder.written("out.gguf"));
    let (before, after) = (Reader::new(&before).unwrap(), Reader::new(&after).unwrap());
    assert_eq!(after.get("general.file_type"), Some(40u32.into()));
    for tensor in before.tensors() {
        let (reported, written) = (
            named(&report["tensors"], tensor.name),
            after.tensor(tensor.name).unwrap(),
        );
        if tensor.kind == TensorType(34) {
            assert_eq!(written.kind, TensorType::I2_S);
            assert_eq!(
                (&reported["from"], &reported["to"]),
                (&"tq1_0".into(), &"i2_s".into())
            );
            assert_eq!(reported["relative_error"], 0.0);
            let bits = 2.0 + 32.0 * 8.0 / tensor.shape.elements() as f64;
            assert_eq!(reported["bits_per_weight"], bits);
        } else {
            assert_eq!((written.kind, written.data), (tensor.kind, tensor.data));
        }
    }
    // The command reads it back, as long as it is told the layout.
    let compare = ["compare", NANO, "out.gguf", "--json"];
    let compared = folder.json(&[&compare[..], &["--i2-s", "x86-128"]].concat());
    let tensors = compared["tensors"].as_array().unwrap();
    assert_eq!(tensors.len(), 24);
    for tensor in tensors {
        assert_eq!(tensor["measures"]["max_error"], 0.0, "{tensor}");
    }
    // Whoever works, the bytes are the same; people read the same types.
    let force = ["--force", "--backend", "scalar", "--threads", "1"];
    let written = folder.written("out.gguf");
    let said = folder.ok(&[&quantize[..], &force].concat());
    assert!(folder.written("out.gguf") == written);
    let line = said
        .lines()
        .find(|line| line.starts_with("blk.0.attn_q.weight"));
    let words: Vec<&str> = line.unwrap().split_whitespace().collect();
    assert_eq!(words[4..6], ["tq1_0", "i2_s"], "{said}");
    assert!(said.contains("bits/weight where quantized"), "{said}");
}

#[test]
fn what_it_is_not_for_is_refused() {
    let folder = Folder::new();
    folder.languages();
    folder.safetensors("in.safetensors", &[("w", &[4, 128], &noise(1, 512))]);
    let to = ["-o", "out.gguf", "--to", "i2_s"];
    let line = folder.fails(&[&["quantize", "in.safetensors"][..], &to].concat());
    assert!(
        line.contains("in.safetensors: ") && line.contains("i2_s is for bitnet.cpp"),
        "{line}"
    );
    // Rows of 64 and of 32.
    for (model, tensor) in [
        ("bitnet.gguf", "blk.0.attn_q.weight"),
        ("llama.gguf", "blk.0.attn_v.weight"),
    ] {
        let line = folder.fails(&[&["quantize", model][..], &to].concat());
        let named = format!("{model}: tensor `{tensor}`: rows of ");
        assert!(
            line.contains(&named) && line.contains("exclude it"),
            "{line}"
        );
    }
    // It runs elsewhere only, and has one rule.
    for (more, reason) in [
        (
            ["--rule", "absmean"],
            "a ternary rule does not apply to i2_s",
        ),
        (
            ["--perplexity", "text"],
            "--perplexity: tercet does not run i2_s",
        ),
    ] {
        let run = folder.run(&[&["quantize", NANO][..], &more, &to].concat());
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.err.contains(reason), "{run:?}");
    }
    assert!(!folder.path("out.gguf").exists());
    folder.ok(&[&["quantize", NANO][..], &to].concat());
    let line = folder.fails(&["generate", "out.gguf", "-p", "a", "-n", "1"]);
    assert!(
        line.contains("out.gguf: tensor blk.0.attn_q.weight"),
        "{line}"
    );
    // The layout is asked for by the names that the option takes.
    let line = folder.fails(&["dequantize", "out.gguf", "-o", "floats.gguf"]);
    assert!(
        line.contains("name its layout, x86-128 or arm-64"),
        "{line}"
    );
}
