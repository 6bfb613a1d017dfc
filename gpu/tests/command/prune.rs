//! `tercet prune`: what stays, what it is worth, and that it runs.

use std::fs;

use serde_json::Value;
use tercet_core::block::Format;
use tercet_core::gguf::{Reader, TensorType};
use tercet_host::language::tiny;
use tercet_host::{DType, TensorFile};

use super::support::{Folder, fields, lasting};

/// `floats.gguf`, a llama of f32 with biases, 8 query heads on 2 key heads of 4 values, 64 channels, and `inputs.gguf`,
/// what its matrices receive on `text`.
fn floats() -> Folder {
    let folder = Folder::new();
    folder.languages();
    folder.ok(&["dequantize", "llama.gguf", "-o", "floats.gguf"]);
    record(&folder, "floats.gguf", "inputs.gguf");
    folder
}

fn record(folder: &Folder, model: &str, out: &str) {
    folder.ok(&["perplexity", model, "text", "--record", out]);
}

/// The values of a tensor of f32.
fn values(folder: &Folder, file: &str, tensor: &str) -> Vec<f32> {
    let model = TensorFile::open(folder.path(file)).unwrap();
    let found = model.get(tensor).unwrap_or_else(|| panic!("no {tensor}"));
    assert_eq!(found.dtype, DType::F32, "{tensor}");
    let bytes = found.bytes.as_chunks().0.iter();
    bytes.map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

/// The values of a tensor of any float type as their bytes.
fn cells(folder: &Folder, file: &str, tensor: &str) -> Vec<Vec<u8>> {
    let model = TensorFile::open(folder.path(file)).unwrap();
    let found = model.get(tensor).unwrap_or_else(|| panic!("no {tensor}"));
    assert!(found.dtype.is_float(), "{tensor}");
    let size = found.bytes.len() / found.values();
    found.bytes.chunks_exact(size).map(<[u8]>::to_vec).collect()
}

fn indices(list: &Value) -> Vec<usize> {
    let list = list.as_array().unwrap().iter();
    list.map(|index| index.as_u64().unwrap() as usize).collect()
}

/// The mean square of each input of a matrix, by a recording.
fn means(folder: &Folder, inputs: &str, matrix: &str) -> Vec<f64> {
    let rows = values(folder, inputs, &format!("{matrix}.counts"))[0];
    let sums = values(folder, inputs, &format!("{matrix}.in_sum2"));
    let mean = |&sum: &f32| f64::from(sum) / f64::from(rows);
    sums.iter().map(mean).collect()
}

/// What each group of so many columns contributes, from its definition.
fn importance(folder: &Folder, matrix: &str, group: usize) -> Vec<f64> {
    let means = means(folder, "inputs.gguf", matrix);
    let weights = values(folder, "floats.gguf", matrix);
    let column = |col: usize| {
        let column = weights.iter().skip(col).step_by(means.len());
        means[col] * column.map(|&w| f64::from(w).powi(2)).sum::<f64>()
    };
    let group_of = |first: usize| (first..first + group).map(column).sum();
    (0..means.len()).step_by(group).map(group_of).collect()
}

/// True if no index outside the list has more.
fn are_largest(kept: &[usize], all: &[f64]) -> bool {
    let least = kept
        .iter()
        .map(|&index| all[index])
        .fold(f64::MAX, f64::min);
    (0..all.len()).all(|index| kept.contains(&index) || all[index] <= least)
}

#[test]
fn the_heads_and_channels_that_contribute_most_stay_as_they_are() {
    let folder = floats();
    let arguments = [
        "prune",
        "floats.gguf",
        "-o",
        "small.gguf",
        "--importance",
        "inputs.gguf",
        "--heads",
        "1",
        "--feed-forward",
        "41",
        "--json",
    ];
    let report = folder.json(&arguments);
    assert_eq!(
        fields(&report),
        [
            "bytes_after",
            "bytes_before",
            "feed_forward_length",
            "head_count",
            "head_count_kv",
            "layers",
            "seconds",
            "weights_after",
            "weights_before",
        ]
    );
    assert_eq!(report["head_count"], 4);
    assert_eq!(report["head_count_kv"], 1);
    assert_eq!(report["feed_forward_length"], 41);
    let layer = &report["layers"][0];
    let (heads, channels) = (indices(&layer["heads"]), indices(&layer["channels"]));
    assert_eq!((heads.len(), channels.len()), (1, 41));
    for (kept, matrix, group, share) in [
        (&heads, "attn_output", 16, &layer["heads_importance"]),
        (&channels, "ffn_down", 1, &layer["channels_importance"]),
    ] {
        let all = importance(&folder, &format!("blk.0.{matrix}.weight"), group);
        assert!(are_largest(kept, &all), "{matrix}");
        let sum: f64 = kept.iter().map(|&index| all[index]).sum();
        let expected = sum / all.iter().sum::<f64>();
        assert!(
            (share.as_f64().unwrap() - expected).abs() < 1e-9,
            "{matrix}"
        );
    }
    // Each tensor is what its indices say; those that are not named are whole.
    let spread = |each: usize| -> Vec<usize> {
        let values = heads
            .iter()
            .flat_map(|&head| head * each..(head + 1) * each);
        values.collect()
    };
    let (queries, keys) = (spread(16), spread(4));
    let (before, after) = ["floats.gguf", "small.gguf"]
        .map(|name| TensorFile::open(folder.path(name)).unwrap())
        .into();
    let mut weights = 0;
    for tensor in before.tensors() {
        let name = tensor.name;
        let whole = cells(&folder, "floats.gguf", name);
        let found = cells(&folder, "small.gguf", name);
        let part = name.split('.').nth(2).unwrap_or_default();
        let kept = match part {
            "attn_q" | "attn_output" => &queries,
            "attn_k" | "attn_v" => &keys,
            "ffn_gate" | "ffn_up" | "ffn_down" => &channels,
            _ => {
                assert!(found == whole, "{name}");
                continue;
            }
        };
        let inner = *tensor.shape.last().unwrap();
        let by_columns = ["attn_output", "ffn_down"].contains(&part);
        let expected: Vec<Vec<u8>> = match (tensor.shape.len(), by_columns) {
            (1, true) => whole.clone(),
            (1, false) => kept.iter().map(|&index| whole[index].clone()).collect(),
            (_, false) => (kept.iter())
                .flat_map(|&row| &whole[row * inner..(row + 1) * inner])
                .cloned()
                .collect(),
            (_, true) => (whole.chunks_exact(inner))
                .flat_map(|row| kept.iter().map(|&col| row[col].clone()))
                .collect(),
        };
        assert!(found == expected, "{name}");
        if tensor.shape.len() == 2 {
            weights += found.len() as u64;
        }
    }
    assert_eq!(layer["weights"], weights);
    let count = |model: &TensorFile| model.tensors().map(|t| t.values() as u64).sum::<u64>();
    assert_eq!(report["weights_before"], count(&before));
    assert_eq!(report["weights_after"], count(&after));
    assert_eq!(report["bytes_after"], folder.written("small.gguf").len());

    // It runs, and its other keys are those of the input.
    let key = |name: &str, key: &str| {
        let bytes = folder.written(name);
        let reader = Reader::new(&bytes).unwrap();
        reader.get(key).map(|value| format!("{value:?}"))
    };
    for name in [
        "tokenizer.ggml.eos_token_id",
        "general.file_type",
        "llama.context_length",
    ] {
        assert_eq!(key("small.gguf", name), key("floats.gguf", name), "{name}");
    }
    let digests = ["1", "2"].map(|threads| {
        let run = ["generate", "small.gguf", "-p", "the", "-n", "4", "--digest"];
        folder.ok(&[&run[..], &["--threads", threads]].concat())
    });
    assert_eq!(digests[0], digests[1]);
    let once = folder.written("small.gguf");
    let again = folder.json(&[&arguments[..], &["--force", "--threads", "1"]].concat());
    assert_eq!(lasting(&again), lasting(&report));
    assert!(folder.written("small.gguf") == once);
}

#[test]
fn channels_that_contribute_nothing_are_not_missed() {
    let folder = floats();
    // 24 columns of zeros in the matrix after them.
    let mut bytes = folder.written("floats.gguf");
    let reader = Reader::new(&bytes).unwrap();
    let down = reader.tensor("blk.0.ffn_down.weight").unwrap().data;
    let (start, len) = (down.as_ptr().addr() - bytes.as_ptr().addr(), down.len());
    for (index, value) in bytes[start..start + len].chunks_exact_mut(4).enumerate() {
        if index % 64 % 8 < 3 {
            value.fill(0);
        }
    }
    fs::write(folder.path("dead.gguf"), &bytes).unwrap();
    record(&folder, "dead.gguf", "dead-inputs.gguf");
    let arguments = [
        "prune",
        "dead.gguf",
        "-o",
        "alive.gguf",
        "--importance",
        "dead-inputs.gguf",
        "--feed-forward",
        "40",
        "--perplexity",
        "text",
    ];
    let said = folder.ok(&arguments);
    assert!(said.contains(" 40    100.00 %"), "{said}");
    let report = folder.json(&[&arguments[..], &["--json", "--force"]].concat());
    let channels = indices(&report["layers"][0]["channels"]);
    assert!(
        channels.iter().all(|channel| channel % 8 >= 3),
        "{channels:?}"
    );
    let scores = &report["perplexity"];
    assert_eq!(
        fields(scores),
        ["after", "before", "context", "count", "tokens"]
    );
    let [before, after] = ["before", "after"].map(|when| scores[when]["mean"].as_f64().unwrap());
    assert!((before - after).abs() < 1e-5, "{before}, {after}");
    // The figures are those of `tercet perplexity`.
    for (model, when) in [("dead.gguf", "before"), ("alive.gguf", "after")] {
        let found = folder.json(&["perplexity", model, "text", "--json"]);
        for field in ["sum", "mean", "perplexity", "bits_per_byte"] {
            assert_eq!(scores[when][field], found[field], "{model} {field}");
        }
        for field in ["tokens", "count", "context"] {
            assert_eq!(scores[field], found[field], "{model} {field}");
        }
    }
}

#[test]
fn a_ternary_matrix_keeps_its_codes_and_a_norm_its_outputs() {
    let folder = Folder::new();
    folder.languages();
    let parameters = tiny::BITNET;
    let blocks = [Format::Tq1_0, Format::Tq2_0].map(DType::Block);
    for (name, dtype) in [
        ("tq1_0", blocks[0]),
        ("tq2_0", blocks[1]),
        ("f32", DType::F32),
    ] {
        tiny::bitnet(&folder.path(name), parameters, 3, dtype, false).unwrap();
    }
    record(&folder, "f32", "inputs.gguf");
    let prune = |name: &str| {
        let out = format!("{name}.small.gguf");
        let more = [
            "--importance",
            "inputs.gguf",
            "--feed-forward",
            "256",
            "--json",
        ];
        let report = folder.json(&[&["prune", name, "-o", &out][..], &more].concat());
        (out, report["layers"].clone())
    };
    let (expected, layers) = prune("f32");
    for name in ["tq1_0", "tq2_0"] {
        let (found, own) = prune(name);
        assert_eq!(own, layers, "{name}");
        // Exactly the values of the floats.
        let restored = format!("{name}.f32.gguf");
        folder.ok(&["dequantize", &found, "-o", &restored]);
        for layer in 0..2 {
            for part in ["ffn_gate", "ffn_up", "ffn_down", "ffn_sub_norm", "attn_q"] {
                let tensor = format!("blk.{layer}.{part}.weight");
                let [own, floats] =
                    [&restored, &expected].map(|file| values(&folder, file, &tensor));
                assert!(own == floats, "{name} {tensor}");
            }
        }
        let bytes = folder.written(&found);
        let reader = Reader::new(&bytes).unwrap();
        let kind = reader.tensor("blk.1.ffn_down.weight").unwrap().kind;
        let format = Format::from_name(name).unwrap();
        assert_eq!(kind, TensorType(format.gguf_type()));
        folder.ok(&["generate", &found, "-p", "the", "-n", "3", "--digest"]);
    }
    // The first layer sees the same text: what its norm gives is as large as before.
    let tensor = "blk.0.ffn_sub_norm.weight";
    let kept = indices(&layers[0]["channels"]);
    let [before, after] = ["f32", &expected].map(|file| values(&folder, file, tensor));
    let factors = kept
        .iter()
        .zip(&after)
        .map(|(&at, after)| after / before[at]);
    let (least, most) = factors.fold((f32::MAX, 0.0f32), |(a, b), x| (a.min(x), b.max(x)));
    assert!(least > 1.1 && most / least < 1.000_001, "{least} to {most}");
    record(&folder, &expected, "after.gguf");
    let matrix = "blk.0.ffn_down.weight";
    let (all, own) = (
        means(&folder, "inputs.gguf", matrix),
        means(&folder, "after.gguf", matrix),
    );
    let before: f64 = kept.iter().map(|&at| all[at]).sum();
    let change = own.iter().sum::<f64>() / before;
    assert!((change - 1.0).abs() < 0.05, "{change}");
}

#[test]
fn a_removed_head_of_a_bitnet_is_zeros_in_its_place() {
    let folder = Folder::new();
    folder.languages();
    let matrices = DType::Block(Format::Tq2_0);
    for (name, dtype) in [("tq2_0", matrices), ("f32", DType::F32)] {
        tiny::bitnet(&folder.path(name), tiny::BITNET, 3, dtype, false).unwrap();
        let out = format!("{name}.small.gguf");
        record(&folder, name, "inputs.gguf");
        let more = [
            "--importance",
            "inputs.gguf",
            "--heads",
            "1",
            "--json",
            "--force",
        ];
        let report = folder.json(&[&["prune", name, "-o", &out][..], &more].concat());
        assert_eq!(
            (&report["head_count"], &report["head_count_kv"]),
            (&4.into(), &2.into())
        );
        assert_eq!(report["weights_after"], report["weights_before"]);
        let restored = format!("{name}.restored.gguf");
        let whole = format!("{name}.whole.gguf");
        for (from, to) in [(&*out, &restored), (name, &whole)] {
            folder.ok(&["dequantize", from, "-o", to]);
        }
        for (layer, of) in report["layers"].as_array().unwrap().iter().enumerate() {
            // One of two, with two query heads of 64 values.
            let kept = indices(&of["heads"])[0];
            let mut zeroed = 0;
            for (part, rows, len) in [
                ("attn_q", true, 128),
                ("attn_k", true, 64),
                ("attn_v", true, 64),
                ("attn_output", false, 128),
                ("attn_sub_norm", false, 128),
            ] {
                let tensor = format!("blk.{layer}.{part}.weight");
                let [before, after] =
                    [&whole, &restored].map(|file| values(&folder, file, &tensor));
                let mut factors = Vec::new();
                for (index, (before, after)) in before.iter().zip(&after).enumerate() {
                    let stays = (if rows { index / 256 } else { index % 256 }) / len == kept;
                    match stays {
                        true if part == "attn_sub_norm" => factors.push(after / before),
                        true => assert!(after == before, "{tensor} {index}"),
                        false => assert!(*after == 0.0, "{tensor} {index}"),
                    }
                    zeroed += usize::from(part != "attn_sub_norm" && !stays && *before != 0.0);
                }
                // The norm divides by the root mean square of half as many values.
                let (least, most) =
                    (factors.iter()).fold((f32::MAX, 0.0f32), |(a, b), x| (a.min(*x), b.max(*x)));
                assert!(
                    factors.is_empty() || (least > 0.5 && most < 1.0 && most / least < 1.000_001)
                );
            }
            assert_eq!(of["zeroed"], zeroed);
        }
        folder.ok(&["generate", &out, "-p", "the", "-n", "3", "--digest"]);
        record(&folder, &out, "after.gguf");
        let matrix = "blk.0.attn_output.weight";
        let kept = indices(&report["layers"][0]["heads"])[0];
        let [before, after] = ["inputs.gguf", "after.gguf"].map(|inputs| {
            let means = means(&folder, inputs, matrix);
            means[kept * 128..][..128].iter().sum::<f64>()
        });
        assert!((after / before - 1.0).abs() < 0.05, "{before} {after}");
        fs::remove_file(folder.path("after.gguf")).unwrap();
        fs::remove_file(folder.path("inputs.gguf")).unwrap();
    }
}

#[test]
fn the_least_of_each_row_become_zero() {
    let folder = floats();
    let matrix = "blk.0.ffn_down.weight";
    let whole = values(&folder, "floats.gguf", matrix);
    let inputs = means(&folder, "inputs.gguf", matrix);
    for (out, more, means) in [
        ("plain.gguf", &[][..], None),
        ("wanda.gguf", &["--importance", "inputs.gguf"], Some(inputs)),
    ] {
        let arguments = [
            "prune",
            "floats.gguf",
            "-o",
            out,
            "--sparsity",
            "0.3",
            "--json",
        ];
        let report = folder.json(&[&arguments[..], more].concat());
        let found = values(&folder, out, matrix);
        for (row, (found, whole)) in found.chunks(64).zip(whole.chunks(64)).enumerate() {
            let score = |col: usize| {
                let mean = means.as_ref().map_or(1.0, |means: &Vec<f64>| means[col]);
                f64::from(whole[col]).powi(2) * mean
            };
            let (gone, kept): (Vec<usize>, Vec<usize>) =
                (0..64).partition(|&col| found[col] == 0.0);
            // ⌊0.3 · 64⌋
            assert_eq!(gone.len(), 19, "{out} row {row}");
            assert!(kept.iter().all(|&col| found[col] == whole[col]));
            let most = gone.iter().map(|&col| score(col)).fold(0.0, f64::max);
            assert!(
                kept.iter().all(|&col| score(col) >= most),
                "{out} row {row}"
            );
        }
        let mut zeroed = 0;
        for part in [
            "attn_q",
            "attn_k",
            "attn_v",
            "attn_output",
            "ffn_gate",
            "ffn_up",
            "ffn_down",
        ] {
            let tensor = format!("blk.0.{part}.weight");
            let [before, after] = ["floats.gguf", out].map(|file| cells(&folder, file, &tensor));
            // The sign of a zero does not count.
            let is_zero = |cell: &Vec<u8>| {
                let (last, rest) = cell.split_last().unwrap();
                last & 0x7f == 0 && rest.iter().all(|&byte| byte == 0)
            };
            for (before, after) in before.iter().zip(&after) {
                assert!(after == before || is_zero(after), "{tensor}");
                zeroed += usize::from(is_zero(after) && !is_zero(before));
            }
            let cols = if part == "ffn_down" { 64 } else { 32 };
            for row in after.chunks(cols) {
                // ⌊0.3 · columns⌋
                assert!(
                    row.iter().filter(|cell| is_zero(cell)).count() >= cols * 3 / 10,
                    "{tensor}"
                );
            }
        }
        let layer = &report["layers"][0];
        assert_eq!(layer["zeroed"], zeroed);
        assert_eq!(layer["heads"], serde_json::json!([0, 1]));
        assert_eq!(report["weights_after"], report["weights_before"]);
        folder.ok(&["generate", out, "-p", "the", "-n", "3", "--digest"]);
    }
    assert!(folder.written("plain.gguf") != folder.written("wanda.gguf"));
}

#[test]
fn what_cannot_be_pruned_is_refused_by_name_and_nothing_is_written() {
    let folder = floats();
    record(&folder, "bitnet.gguf", "bitnet-inputs.gguf");
    let (llama, bitnet) = ("inputs.gguf", "bitnet-inputs.gguf");
    for (model, importance, options, says) in [
        (
            "bitnet.gguf",
            bitnet,
            "--heads 1",
            "1 key and value heads cannot be kept of 1",
        ),
        (
            "floats.gguf",
            llama,
            "--heads 2",
            "2 key and value heads cannot be kept of 2",
        ),
        (
            "floats.gguf",
            llama,
            "--feed-forward 0",
            "0 feed-forward channels cannot be kept of 64",
        ),
        (
            "floats.gguf",
            llama,
            "--sparsity 1",
            "a sparsity of 1 is not between 0 and 1",
        ),
        (
            "floats.gguf",
            llama,
            "--sparsity NaN",
            "not between 0 and 1",
        ),
        ("floats.gguf", llama, "", "nothing to prune"),
        ("llama.gguf", llama, "--heads 1", "blk.0.attn_output.weight"),
        ("llama.gguf", llama, "--sparsity 0.5", "it is q8_0"),
        (
            "bitnet.gguf",
            bitnet,
            "--feed-forward 33",
            "33 channels do not divide into q2_0 blocks",
        ),
        ("floats.gguf", bitnet, "--heads 1", "it has 64 values"),
        (
            "floats.gguf",
            "floats.gguf",
            "--heads 1",
            "attn_output.weight.counts",
        ),
        ("text", llama, "--heads 1", "text"),
    ] {
        let mut arguments = vec!["prune", model, "-o", "out.gguf", "--importance", importance];
        arguments.extend(options.split_whitespace());
        let run = folder.run(&arguments);
        assert!(run.err.contains(says), "{options}: {}", run.err);
        assert_eq!(run.err.lines().count(), 1, "{options}: {}", run.err);
        assert!(run.out.is_empty() && run.code != Some(0), "{options}");
        assert!(!folder.path("out.gguf").exists(), "{options}");
    }
    // All its weights are alike without a text.
    let arguments = [
        "prune",
        "bitnet.gguf",
        "-o",
        "out.gguf",
        "--sparsity",
        "0.5",
    ];
    let said = folder.fails(&arguments);
    assert!(said.contains("give an importance file"), "{said}");
    folder.ok(&[&arguments[..], &["--importance", bitnet]].concat());
    // Files that exist.
    let said = folder.fails(&[&arguments[..], &["--importance", bitnet]].concat());
    assert!(said.contains("exists"), "{said}");
    for (out, says) in [
        ("inputs.gguf", "output and input are the same file"),
        ("out.safetensors", "name the output *.gguf"),
    ] {
        let own = [
            "prune",
            "floats.gguf",
            "-o",
            out,
            "--force",
            "--sparsity",
            "0.5",
        ];
        let said = folder.fails(&[&own[..], &["--importance", llama]].concat());
        assert!(said.contains(says), "{said}");
    }
}
