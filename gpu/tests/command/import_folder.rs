//! `tercet import` of folders as Hugging Face's `transformers` saves them.

use std::fs;

use half::f16;
use serde_json::json;
use tercet_core::block::{Format, decode};
use tercet_core::gguf::{Reader, TensorType, Value};

use super::checkpoints::{Hf, Stored, TOKENS};
use super::support::{Folder, named};

const IMPORT: [&str; 4] = ["import", "model", "-o", "out.gguf"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&IMPORT, more].concat()
}

/// The values of a tensor of f32.
fn floats(reader: &Reader<'_>, name: &str) -> Vec<f32> {
    let tensor = reader.tensor(name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(tensor.kind, TensorType::F32, "{name}");
    let words = tensor.data.as_chunks().0.iter();
    words.map(|&word| f32::from_le_bytes(word)).collect()
}

/// The tokens of a text.
fn ids(folder: &Folder, text: &str) -> Vec<u64> {
    let report = folder.json(&["tokenize", "out.gguf", text, "--json"]);
    let tokens = report["tokens"].as_array().unwrap().iter();
    tokens.map(|token| token["id"].as_u64().unwrap()).collect()
}

/// Rows of heads of 16 with each half's values in turn: 0, 8, 1, 9, …
fn paired(values: &[f32], cols: usize) -> Vec<f32> {
    let rows = values.len() / cols;
    let stored = |row: usize| row / 16 * 16 + row % 2 * 8 + row % 16 / 2;
    (0..rows)
        .flat_map(|row| &values[stored(row) * cols..][..cols])
        .copied()
        .collect()
}

#[test]
fn rows_of_queries_and_keys_go_from_halves_to_neighbours_and_all_else_stays() {
    let folder = Folder::new();
    let checkpoint = Hf::llama();
    checkpoint.write(&folder, "model", 1);
    let report = folder.json(&with(&["--to", "f32", "--json"]));
    assert_eq!(report["format"], "Hugging Face LlamaForCausalLM");
    assert_eq!(report["tied"], false);
    let bytes = folder.written("out.gguf");
    let reader = Reader::new(&bytes).unwrap();
    assert_eq!(reader.tensors().len(), checkpoint.tensors.len());
    for (ours, theirs) in [
        ("token_embd.weight", "model.embed_tokens.weight"),
        ("output.weight", "lm_head.weight"),
        ("output_norm.weight", "model.norm.weight"),
    ] {
        assert_eq!(floats(&reader, ours), checkpoint.values(theirs), "{ours}");
    }
    for layer in 0..2 {
        for (ours, theirs) in [
            ("attn_norm.weight", "input_layernorm.weight"),
            ("attn_q.weight", "self_attn.q_proj.weight"),
            ("attn_q.bias", "self_attn.q_proj.bias"),
            ("attn_k.weight", "self_attn.k_proj.weight"),
            ("attn_k.bias", "self_attn.k_proj.bias"),
            ("attn_v.weight", "self_attn.v_proj.weight"),
            ("attn_v.bias", "self_attn.v_proj.bias"),
            ("attn_output.weight", "self_attn.o_proj.weight"),
            ("attn_output.bias", "self_attn.o_proj.bias"),
            ("ffn_norm.weight", "post_attention_layernorm.weight"),
            ("ffn_gate.weight", "mlp.gate_proj.weight"),
            ("ffn_up.weight", "mlp.up_proj.weight"),
            ("ffn_down.weight", "mlp.down_proj.weight"),
        ] {
            let mut wanted = checkpoint.values(&format!("model.layers.{layer}.{theirs}"));
            if ours.starts_with("attn_q") || ours.starts_with("attn_k") {
                wanted = paired(&wanted, if ours.ends_with("bias") { 1 } else { 64 });
            }
            let ours = format!("blk.{layer}.{ours}");
            assert_eq!(floats(&reader, &ours), wanted, "{ours}");
        }
    }
}

#[test]
fn metadata_and_vocabulary_are_those_of_the_folder() {
    let folder = Folder::new();
    Hf::llama().write(&folder, "model", 1);
    let generation = json!({"eos_token_id": [259, 0]}).to_string();
    fs::write(folder.path("model/generation_config.json"), generation).unwrap();
    let said = folder.ok(&IMPORT);
    assert!(
        said.contains("width 64, feed-forward 96, 2 layers, heads 4:2, 261 tokens, context 128, a head of its own"),
        "{said}"
    );
    let bytes = folder.written("out.gguf");
    let reader = Reader::new(&bytes).unwrap();
    for (key, value) in [
        ("general.architecture", Value::from("llama")),
        ("general.file_type", 1u32.into()),
        ("llama.attention.key_length", 16u32.into()),
        ("llama.attention.layer_norm_rms_epsilon", 1e-6f32.into()),
        ("llama.rope.freq_base", 50_000f32.into()),
        ("llama.rope.dimension_count", 16u32.into()),
        ("tokenizer.ggml.model", "gpt2".into()),
        ("tokenizer.ggml.pre", "gpt-2".into()),
        ("tokenizer.ggml.bos_token_id", 258u32.into()),
        ("tokenizer.ggml.eos_token_id", 259u32.into()),
        ("tokenizer.ggml.eot_token_id", 0u32.into()),
        ("tokenizer.ggml.add_bos_token", true.into()),
        (
            "tokenizer.chat_template",
            "{{ messages[0]['content'] }}".into(),
        ),
    ] {
        assert_eq!(reader.get(key), Some(value), "{key}");
    }
    let list = |key: &str| reader.get(key).unwrap().as_array().unwrap();
    let tokens: Vec<&str> = list("tokenizer.ggml.tokens").strings().collect();
    assert_eq!(tokens[255..], ["ÿ", "th", "Ġth", "<s>", "</s>", "[PAD260]"]);
    let kinds: Vec<Value<'_>> = list("tokenizer.ggml.token_type").iter().collect();
    assert_eq!(kinds[255..], [1, 1, 1, 3, 3, 5].map(Value::I32));
    let merges: Vec<&str> = list("tokenizer.ggml.merges").strings().collect();
    assert_eq!(merges, ["t h", "Ġ th"]);
    assert_eq!(ids(&folder, "the th"), [258, 256, 101, 257]);
}

#[test]
fn shards_and_one_file_give_the_same_bytes_with_any_number_of_threads() {
    let folder = Folder::new();
    for (checkpoint, name) in [(Hf::llama(), "llama"), (Hf::bitnet(), "bitnet")] {
        let files = [1, 3].map(|shards| {
            let model = format!("{name}{shards}");
            checkpoint.write(&folder, &model, shards);
            let out = format!("{model}.gguf");
            let threads = shards.to_string();
            folder.ok(&["import", &model, "-o", &out, "--threads", &threads]);
            folder.written(&out)
        });
        assert!(files[0] == files[1], "{name}");
        let text = files[0].windows(folder.path("").as_os_str().len());
        let place = folder.path("");
        let place = place.as_os_str().as_encoded_bytes();
        assert!(text.into_iter().all(|part| part != place), "{name}");
    }
}

#[test]
fn floats_of_sixteen_bits_keep_what_the_type_keeps() {
    let folder = Folder::new();
    let mut checkpoint = Hf::llama();
    let name = "model.layers.0.mlp.up_proj.weight";
    // 2⁻²⁶ has no f16, 1 + 2⁻⁷ has a bf16.
    let mut values = vec![1.0078125; 96 * 64];
    values[7] = 2f32.powi(-26);
    checkpoint
        .tensors
        .insert(name.into(), Stored::bf16(&[96, 64], &values));
    let name = "model.layers.0.mlp.gate_proj.weight";
    checkpoint
        .tensors
        .insert(name.into(), Stored::f16(&[96, 64], &vec![0.1; 96 * 64]));
    checkpoint.write(&folder, "model", 1);
    let said = folder.ok(&IMPORT);
    assert!(
        said.contains("rounded values below 6e-5 in 1 tensors"),
        "{said}"
    );
    let report = folder.json(&with(&["--force", "--json"]));
    let lost = |report: &serde_json::Value, name: &str| {
        named(&report["tensors"], name)["relative_error"].clone()
    };
    assert_eq!(
        named(&report["tensors"], "blk.0.ffn_up.weight")["from"],
        "bf16"
    );
    assert!(lost(&report, "blk.0.ffn_up.weight").as_f64().unwrap() > 0.0);
    assert_eq!(lost(&report, "blk.0.ffn_gate.weight"), 0.0);
    let report = folder.json(&with(&["--to", "bf16", "--force", "--json"]));
    assert_eq!(lost(&report, "blk.0.ffn_up.weight"), 0.0);
    values[7] = 1e5;
    let name = "model.layers.0.mlp.up_proj.weight";
    checkpoint
        .tensors
        .insert(name.into(), Stored::bf16(&[96, 64], &values));
    checkpoint.write(&folder, "model", 1);
    let line = folder.fails(&with(&["--force"]));
    assert!(
        line.contains(
            "tensor `model.layers.0.mlp.up_proj.weight`: value 7 is 99840, too large for f16"
        ),
        "{line}"
    );
}

#[test]
fn frequencies_of_llama3_become_a_tensor_and_a_linear_factor_a_key() {
    let folder = Folder::new();
    let mut checkpoint = Hf::llama();
    checkpoint.config["rope_scaling"] = json!({
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    });
    checkpoint.write(&folder, "model", 1);
    folder.ok(&IMPORT);
    let bytes = folder.written("out.gguf");
    let reader = Reader::new(&bytes).unwrap();
    let factors = floats(&reader, "rope_freqs.weight");
    // transformers' `_compute_llama3_parameters`, in floats of 64 bits.
    for (pair, factor) in factors.iter().enumerate() {
        let frequency = 50_000f64.powf(-(2.0 * pair as f64) / 16.0);
        let wave = std::f64::consts::TAU / frequency;
        let smooth = (64.0 / wave - 1.0) / 3.0;
        let wanted = match wave {
            wave if wave < 16.0 => 1.0,
            wave if wave > 64.0 => 8.0,
            _ => 1.0 / ((1.0 - smooth) / 8.0 + smooth),
        };
        assert!(
            (f64::from(*factor) / wanted - 1.0).abs() < 1e-6,
            "{pair}: {factor} and {wanted}"
        );
    }
    assert!(
        factors[0] == 1.0 && factors[7] == 8.0 && factors[1] > 1.0 && factors[1] < 8.0,
        "{factors:?}"
    );
    folder.ok(&["generate", "out.gguf", "-p", "the", "-n", "3", "--digest"]);
    checkpoint.config["rope_scaling"] = json!({"type": "linear", "factor": 2.0});
    checkpoint.write(&folder, "model", 1);
    folder.ok(&with(&["--force"]));
    let bytes = folder.written("out.gguf");
    let reader = Reader::new(&bytes).unwrap();
    assert!(reader.tensor("rope_freqs.weight").is_none());
    assert_eq!(
        reader.get("llama.rope.scaling.factor"),
        Some(Value::F32(2.0))
    );
}

/// Codes of a bitnet's matrix and its scale, from its blocks.
fn codes(reader: &Reader<'_>, name: &str) -> (Vec<i8>, f32) {
    let tensor = reader.tensor(name).unwrap();
    assert_eq!(tensor.kind, TensorType(42), "{name}: q2_0");
    let mut values = vec![0.0; tensor.shape.elements() as usize];
    decode(Format::Q2_0, tensor.data, &mut values).unwrap();
    let scale = values.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    (values.iter().map(|x| (x / scale) as i8).collect(), scale)
}

#[test]
fn master_weights_become_ternary_by_their_mean_magnitude_and_the_embedding_has_a_scale_a_row() {
    let folder = Folder::new();
    let checkpoint = Hf::bitnet();
    checkpoint.write(&folder, "model", 1);
    let report = folder.json(&with(&["--json"]));
    assert_eq!(
        report["format"],
        "Hugging Face BitNetForCausalLM, master weights by their mean magnitude"
    );
    assert_eq!(report["parameters"]["architecture"], "bitnet");
    let bytes = folder.written("out.gguf");
    let reader = Reader::new(&bytes).unwrap();
    let bf16s = |name: &str| -> Vec<f32> {
        let halves = checkpoint.tensors[name].bytes.as_chunks().0.iter();
        halves
            .map(|&half| half::bf16::from_le_bytes(half).to_f32())
            .collect()
    };
    let weights = bf16s("model.layers.1.self_attn.q_proj.weight");
    let mean = weights.iter().map(|x| f64::from(x.abs())).sum::<f64>() / weights.len() as f64;
    let scale = f16::from_f64(mean).to_f32();
    let wanted: Vec<i8> = (weights.iter())
        .map(|x| (x * (1.0 / scale)).round_ties_even().clamp(-1.0, 1.0) as i8)
        .collect();
    assert_eq!(
        codes(&reader, "blk.1.attn_q.weight"),
        (wanted, scale),
        "in their own order"
    );
    let embedding = reader.tensor("token_embd.weight").unwrap();
    assert_eq!(embedding.kind, TensorType(8), "q8_0");
    let rows = bf16s("model.embed_tokens.weight");
    for (row, blocks) in rows.chunks(64).zip(embedding.data.chunks(68)) {
        let most = row.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        let scale = f16::from_f32(most / 127.0);
        for (values, block) in row.chunks(32).zip(blocks.chunks(34)) {
            assert_eq!(block[..2], scale.to_le_bytes());
            let inverse = 1.0 / scale.to_f32();
            let wanted = values
                .iter()
                .map(|x| (x * inverse).round().clamp(-127.0, 127.0) as i8 as u8);
            assert!(wanted.eq(block[2..].iter().copied()));
        }
    }
    let digests = ["1", "2"].map(|threads| {
        folder.ok(&[
            "generate",
            "out.gguf",
            "-p",
            "the",
            "-n",
            "4",
            "--digest",
            "--threads",
            threads,
        ])
    });
    assert_eq!(digests[0], digests[1]);
    // The same values in floats; none of them in what does not hold them.
    folder.ok(&with(&["--to", "f32", "--force"]));
    let bytes = folder.written("out.gguf");
    let reader = Reader::new(&bytes).unwrap();
    let values = floats(&reader, "blk.1.attn_q.weight");
    assert!(values.iter().all(|x| *x == 0.0 || x.abs() == scale));
    for to in ["q8_0", "bf16", "q4_0"] {
        let run = folder.run(&with(&["--to", to, "--force"]));
        let said = format!("are not exact in {to}; use tq1_0");
        assert!(run.code == Some(2) && run.err.contains(&said), "{run:?}");
    }
    let line = folder.fails(&with(&["--to", "tq2_0", "--force"]));
    assert!(
        line.contains("64 elements") && line.contains("256"),
        "{line}"
    );
}

/// Packs the codes of four rows a byte, and the scale in either of its two meanings.
fn packed(checkpoint: &mut Hf, by_factor: bool) {
    let linear_class = if by_factor {
        "autobitlinear"
    } else {
        "bitlinear"
    };
    checkpoint.config["quantization_config"] = json!({
        "quant_method": "bitnet", "linear_class": linear_class, "quantization_mode": "offline",
        "modules_to_not_convert": ["lm_head"],
    });
    let matrices = checkpoint
        .tensors
        .keys()
        .filter(|name| name.ends_with("_proj.weight"));
    for (seed, name) in matrices
        .cloned()
        .collect::<Vec<_>>()
        .into_iter()
        .enumerate()
    {
        let shape = checkpoint.tensors[&name].shape.clone();
        let (rows, cols) = (shape[0] / 4, shape[1]);
        let code = |row: usize, col: usize| code(seed, row, col) + 1;
        let byte = |index: usize| {
            let (row, col) = (index / cols, index % cols);
            (0..4).fold(0, |byte, lane| {
                byte | (code(row + lane * rows, col) as u8) << (2 * lane)
            })
        };
        let bytes = (0..rows * cols).map(byte).collect();
        let stored = Stored {
            dtype: safetensors::Dtype::U8,
            shape: vec![rows, cols],
            bytes,
        };
        checkpoint.tensors.insert(name.clone(), stored);
        let scale = if by_factor { 0.25 } else { 4.0 };
        checkpoint
            .tensors
            .insert(format!("{name}_scale"), Stored::bf16(&[1], &[scale]));
    }
}

fn code(seed: usize, row: usize, col: usize) -> i8 {
    ((seed + row * 7 + col * 5 + row * col) % 3) as i8 - 1
}

#[test]
fn packed_codes_stay_and_their_scale_divides_or_multiplies_by_the_class() {
    let folder = Folder::new();
    let files = [false, true].map(|by_factor| {
        let mut checkpoint = Hf::bitnet();
        packed(&mut checkpoint, by_factor);
        checkpoint.write(&folder, "model", 2);
        let report = folder.json(&with(&["--force", "--json"]));
        assert_eq!(
            report["format"],
            "Hugging Face BitNetForCausalLM, packed codes"
        );
        folder.written("out.gguf")
    });
    assert!(files[0] == files[1], "a quarter, as 1/4 or as 4");
    let reader = Reader::new(&files[0]).unwrap();
    // The names in order: of layer 0 down, gate, up, k, o, q, v.
    let wanted: Vec<i8> = (0..64 * 64).map(|at| code(5, at / 64, at % 64)).collect();
    assert_eq!(codes(&reader, "blk.0.attn_q.weight"), (wanted, 0.25));
    // A llama has them too, with rows of heads paired.
    let mut checkpoint = Hf::llama();
    packed(&mut checkpoint, true);
    checkpoint.config["intermediate_size"] = json!(64);
    for layer in 0..2 {
        for (part, shape) in [("gate", [16, 64]), ("up", [16, 64]), ("down", [16, 64])] {
            let name = format!("model.layers.{layer}.mlp.{part}_proj.weight");
            let stored = Stored {
                dtype: safetensors::Dtype::U8,
                shape: shape.to_vec(),
                bytes: vec![0x55; 1024],
            };
            checkpoint.tensors.insert(name, stored);
        }
    }
    checkpoint.write(&folder, "llama", 1);
    folder.ok(&["import", "llama", "-o", "llama.gguf"]);
    let bytes = folder.written("llama.gguf");
    let reader = Reader::new(&bytes).unwrap();
    let stored = |row: usize| row / 16 * 16 + row % 2 * 8 + row % 16 / 2;
    let wanted: Vec<i8> = (0..64 * 64)
        .map(|at| code(5, stored(at / 64), at % 64))
        .collect();
    assert_eq!(codes(&reader, "blk.0.attn_q.weight"), (wanted, 0.25));
    folder.ok(&["generate", "llama.gguf", "-p", "the", "-n", "3", "--digest"]);
}

#[test]
fn the_square_of_relu_is_another_architecture() {
    let folder = Folder::new();
    let mut checkpoint = Hf::bitnet();
    checkpoint.config["hidden_act"] = json!("relu2");
    // Tied all the same: the head's bytes are the embedding's.
    checkpoint.config["tie_word_embeddings"] = json!(false);
    let embedding = checkpoint.tensors["model.embed_tokens.weight"].clone();
    checkpoint
        .tensors
        .insert("lm_head.weight".into(), embedding);
    checkpoint.write(&folder, "model", 1);
    let report = folder.json(&with(&["--json"]));
    assert_eq!(report["parameters"]["architecture"], "bitnet-b1.58");
    assert_eq!(report["tied"], true);
    let bytes = folder.written("out.gguf");
    let reader = Reader::new(&bytes).unwrap();
    assert_eq!(
        reader.get("general.architecture"),
        Some(Value::from("bitnet-b1.58"))
    );
    assert_eq!(
        reader.get("bitnet-b1.58.hidden_activation"),
        Some(Value::from("relu2"))
    );
    assert!(reader.tensor("output.weight").is_none());
    folder.ok(&["generate", "out.gguf", "-p", "the", "-n", "3", "--digest"]);
}

/// A SentencePiece model: its pieces, then the kind and the rules that blanks go by.
fn sentencepiece(pieces: &[(&str, f32, u8)], kind: u8, normalizer: &[u8]) -> Vec<u8> {
    let message =
        |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
    let mut model = Vec::new();
    for (text, score, kind) in pieces {
        let mut piece = message(1, text.as_bytes());
        piece.push(2 << 3 | 5);
        piece.extend(score.to_le_bytes());
        piece.extend([3 << 3, *kind]);
        model.extend(message(1, &piece));
    }
    model.extend(message(2, &[3 << 3, kind]));
    model.extend(message(3, normalizer));
    model
}

/// Pieces of such a model: marks, bytes, letters and what they make.
fn pieces() -> Vec<(String, f32, u8)> {
    let mut all: Vec<(String, f32, u8)> = [("<unk>", 2), ("<s>", 3), ("</s>", 3)]
        .map(|(text, kind)| (text.into(), 0.0, kind))
        .into();
    all.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), 0.0, 6)));
    all.extend(
        [("▁t", -1.0, 1), ("▁", -2.0, 1)].map(|(text, score, kind)| (text.into(), score, kind)),
    );
    all
}

fn model_of(normalizer: &[u8], kind: u8) -> Vec<u8> {
    let pieces = pieces();
    let pieces: Vec<(&str, f32, u8)> = pieces
        .iter()
        .map(|(text, score, kind)| (text.as_str(), *score, *kind))
        .collect();
    sentencepiece(&pieces, kind, normalizer)
}

#[test]
fn a_sentencepiece_model_counts_before_the_json_and_keeps_its_scores() {
    let folder = Folder::new();
    let mut checkpoint = Hf::llama();
    checkpoint.settings = json!({"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": true,
        "pad_token": "<pad>", "added_tokens_decoder": {"261": {"content": "<pad>", "special": true}}});
    checkpoint.write(&folder, "model", 1);
    // No blanks are taken away, one is put before a text.
    fs::write(
        folder.path("model/tokenizer.model"),
        model_of(&[3 << 3, 1, 4 << 3, 0], 2),
    )
    .unwrap();
    folder.ok(&IMPORT);
    let bytes = folder.written("out.gguf");
    let reader = Reader::new(&bytes).unwrap();
    assert_eq!(
        reader.get("tokenizer.ggml.model"),
        Some(Value::from("llama"))
    );
    assert_eq!(
        reader.get("tokenizer.ggml.add_space_prefix"),
        Some(Value::from(true))
    );
    assert_eq!(
        reader.get("tokenizer.ggml.padding_token_id"),
        None,
        "no row of the embedding"
    );
    let scores = reader
        .get("tokenizer.ggml.scores")
        .unwrap()
        .as_array()
        .unwrap();
    let last: Vec<Value<'_>> = scores.iter().skip(258).collect();
    assert_eq!(last, [0.0, -1.0, -2.0].map(Value::F32));
    assert_eq!(scores.len(), TOKENS);
    for (model, said) in [
        (model_of(&[4 << 3, 0], 1), "kind unigram"),
        (model_of(&[4 << 3, 1], 2), "remove_extra_whitespaces"),
        (
            model_of(&[2 << 3 | 2, 1, 0, 4 << 3, 0], 2),
            "precompiled_charsmap",
        ),
        (b"".to_vec(), "it has no pieces"),
        (vec![10, 200], "no field of a message begins at its byte 0"),
        (vec![10, 3, 10, 1, 0xff], "piece 0: its text is not UTF-8"),
    ] {
        fs::write(folder.path("model/tokenizer.model"), model).unwrap();
        let line = folder.fails(&with(&["--force"]));
        assert!(
            line.contains("tokenizer.model") && line.contains(said),
            "{line}"
        );
    }
}

#[test]
fn merges_of_characters_become_scores() {
    let folder = Folder::new();
    let mut checkpoint = Hf::llama();
    let mut vocab = serde_json::Map::new();
    for (id, (text, ..)) in pieces().into_iter().enumerate() {
        vocab.insert(text, json!(id));
    }
    // In place of the byte 255.
    vocab.insert("t".into(), json!(258));
    vocab.remove("<0xFF>");
    checkpoint.tokenizer = json!({
        "added_tokens": [
            {"id": 0, "content": "<unk>", "special": true}, {"id": 1, "content": "<s>", "special": true},
            {"id": 2, "content": "</s>", "special": true},
        ],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        ]},
        "pre_tokenizer": null,
        "model": {"type": "BPE", "byte_fallback": true, "fuse_unk": true, "unk_token": "<unk>",
            "vocab": vocab, "merges": ["▁ t"]},
    });
    checkpoint.settings = json!({"bos_token": "<s>", "eos_token": "</s>"});
    checkpoint.write(&folder, "model", 1);
    let line = folder.fails(&IMPORT);
    assert!(line.contains("it has no token <0xFF>"), "{line}");
    checkpoint.tokenizer["model"]["vocab"]["<0xFF>"] = json!(261);
    checkpoint.config["vocab_size"] = json!(262);
    for name in ["model.embed_tokens.weight", "lm_head.weight"] {
        let rows = Stored::f32(&[262, 64], &vec![0.5; 262 * 64]);
        checkpoint.tensors.insert(name.into(), rows);
    }
    checkpoint.write(&folder, "model", 1);
    folder.ok(&IMPORT);
    let bytes = folder.written("out.gguf");
    let reader = Reader::new(&bytes).unwrap();
    let scores = reader
        .get("tokenizer.ggml.scores")
        .unwrap()
        .as_array()
        .unwrap();
    assert_eq!(scores.iter().nth(259), Some(Value::F32(-1.0)));
    let kinds = reader
        .get("tokenizer.ggml.token_type")
        .unwrap()
        .as_array()
        .unwrap();
    let first: Vec<Value<'_>> = kinds.iter().take(4).collect();
    assert_eq!(first, [2, 3, 3, 6].map(Value::I32));
    // BOS, `▁t`, `▁`, `t`, a byte.
    assert_eq!(ids(&folder, "t ta"), [1, 259, 259, 100]);
    for (merges, said) in [
        (json!([]), "but no merge says so"),
        (json!(["▁ x"]), "is not of two tokens"),
        (json!(["▁t"]), "merge 0 is not a pair"),
    ] {
        checkpoint.tokenizer["model"]["merges"] = merges;
        checkpoint.write(&folder, "model", 1);
        let line = folder.fails(&with(&["--force"]));
        assert!(
            line.contains("tokenizer.json") && line.contains(said),
            "{line}"
        );
    }
}
