//! What `tercet import` refuses of folders: settings and tensors, by their names.

use std::fs;

use serde_json::{Value, json};

use super::checkpoints::{Hf, Stored, tokenizer_json};
use super::support::Folder;

const IMPORT: [&str; 4] = ["import", "model", "-o", "out.gguf"];

fn refused(folder: &Folder, checkpoint: &Hf, said: &str) {
    checkpoint.write(folder, "model", 1);
    let line = folder.fails(&IMPORT);
    assert!(line.contains(said), "{line}\nhas not: {said}");
    assert!(!folder.path("out.gguf").exists(), "{said}");
}

#[test]
fn settings_that_would_not_be_computed_are_named() {
    let folder = Folder::new();
    let mut checkpoint = Hf::llama();
    let whole = checkpoint.config.clone();
    for (key, value, said) in [
        (
            "architectures",
            json!(["Qwen2ForCausalLM"]),
            "architecture Qwen2ForCausalLM is not supported; LlamaForCausalLM, Mistral",
        ),
        ("architectures", json!([]), "architectures names no class"),
        (
            "architectures",
            json!("x"),
            "architectures is \"x\", not a list",
        ),
        (
            "hidden_act",
            json!("gelu"),
            "hidden_act = \"gelu\" is not supported; silu is",
        ),
        (
            "sliding_window",
            json!(64),
            "sliding_window = 64 is below max_position_embeddings = 128",
        ),
        (
            "layer_types",
            json!(["sliding_attention"]),
            "layer_types has \"sliding_attention\"",
        ),
        (
            "rope_scaling",
            json!({"rope_type": "yarn", "factor": 4.0}),
            "rope_scaling.rope_type = \"yarn\" is not supported",
        ),
        (
            "rope_scaling",
            json!({"type": "dynamic", "factor": 4.0}),
            "= \"dynamic\" is not supported",
        ),
        (
            "rope_scaling",
            json!({"type": "linear"}),
            "rope_scaling.factor must be a number above 0",
        ),
        (
            "rope_parameters",
            json!({"full_attention": {}}),
            "rope_parameters.full_attention: only one RoPE",
        ),
        (
            "partial_rotary_factor",
            json!(0.5),
            "partial_rotary_factor = 0.5 is not supported",
        ),
        (
            "logits_scaling",
            json!(8.0),
            "logits_scaling = 8.0 is not supported",
        ),
        (
            "quantization_config",
            json!({"quant_method": "gptq"}),
            "quantization_config.quant_method = \"gptq\" is not supported",
        ),
        (
            "quantization_config",
            json!({"quant_method": "bitnet", "use_rms_norm": true}),
            "quantization_config.use_rms_norm = true",
        ),
        (
            "quantization_config",
            json!({"quant_method": "bitnet", "linear_class": "x"}),
            "linear_class = \"x\" is not supported",
        ),
        (
            "quantization_config",
            json!({"quant_method": "bitnet", "modules_to_not_convert": ["mlp"]}),
            "modules_to_not_convert has \"mlp\"",
        ),
        (
            "num_hidden_layers",
            json!(1u32 << 30),
            "num_hidden_layers is 1073741824, above 4096",
        ),
        (
            "num_hidden_layers",
            json!(-1),
            "num_hidden_layers is -1, not an integer",
        ),
        (
            "num_attention_heads",
            json!(0),
            "does not divide into num_attention_heads = 0",
        ),
        (
            "num_attention_heads",
            json!(3),
            "does not divide into num_attention_heads = 3",
        ),
        (
            "num_key_value_heads",
            json!(3),
            "4 heads do not divide among 3 heads of keys",
        ),
        ("rms_norm_eps", json!(-1.0), "rms_epsilon is -1"),
        ("vocab_size", Value::Null, "vocab_size is missing"),
        (
            "hidden_size",
            json!(true),
            "hidden_size is true, not an integer",
        ),
    ] {
        checkpoint.config = whole.clone();
        checkpoint.config[key] = value;
        refused(&folder, &checkpoint, said);
    }
    let mut checkpoint = Hf::bitnet();
    for (key, value, said) in [
        (
            "attention_bias",
            json!(true),
            "attention_bias = true is not supported",
        ),
        ("hidden_act", json!("gelu"), "silu and relu2 are"),
        (
            "head_dim",
            json!(32),
            "the heads of a bitnet have 64 values in all, not 128",
        ),
    ] {
        let whole = checkpoint.config.clone();
        checkpoint.config[key] = value;
        refused(&folder, &checkpoint, said);
        checkpoint.config = whole;
    }
    // What a file does not say, its class does.
    let mut checkpoint = Hf::llama();
    checkpoint.config["architectures"] = json!(["MistralForCausalLM"]);
    checkpoint.config["max_position_embeddings"] = json!(8192);
    refused(
        &folder,
        &checkpoint,
        "sliding_window = 4096 is below max_position_embeddings = 8192",
    );
    checkpoint.config["sliding_window"] = Value::Null;
    checkpoint.write(&folder, "model", 1);
    folder.ok(&IMPORT);
    fs::remove_file(folder.path("out.gguf")).unwrap();
    fs::write(folder.path("model/config.json"), "{").unwrap();
    assert!(folder.fails(&IMPORT).contains("config.json"));
    fs::remove_file(folder.path("model/config.json")).unwrap();
    assert!(folder.fails(&IMPORT).contains("it has no config.json"));
}

#[test]
fn tensors_that_lack_or_have_no_place_are_named() {
    let folder = Folder::new();
    type Edit = fn(&mut Hf);
    let edits: [(Edit, &str); 9] = [
        (
            |hf| drop(hf.tensors.remove("model.layers.1.mlp.up_proj.weight")),
            "no tensor named `model.layers.1.mlp.up_proj.weight`",
        ),
        (
            |hf| {
                drop(
                    hf.tensors
                        .insert("model.extra".into(), Stored::f32(&[1], &[0.0])),
                )
            },
            "tensor `model.extra`: it has no place in a LlamaForCausalLM",
        ),
        (
            |hf| hf.config["attention_bias"] = json!(false),
            "`model.layers.0.self_attn.k_proj.bias`: it has no place",
        ),
        (
            |hf| hf.config["mlp_bias"] = json!(true),
            "no tensor named `model.layers.0.mlp.gate_proj.bias`",
        ),
        (
            |hf| hf.config["tie_word_embeddings"] = json!(true),
            "`lm_head.weight`: it is not the embedding",
        ),
        (
            |hf| {
                drop(
                    hf.tensors
                        .insert("model.norm.weight".into(), Stored::f32(&[32], &[0.0; 32])),
                )
            },
            "`model.norm.weight`: its shape is [32], but by config.json [64]",
        ),
        (
            |hf| hf.tensors.get_mut("model.norm.weight").unwrap().dtype = safetensors::Dtype::I32,
            "`model.norm.weight`: its type is i32; f32, f16 and bf16 are read",
        ),
        (
            |hf| {
                hf.tensors.get_mut("model.norm.weight").unwrap().bytes[4..8]
                    .copy_from_slice(&f32::NAN.to_le_bytes())
            },
            "`model.norm.weight`: value 1 is not finite",
        ),
        (
            |hf| hf.config["vocab_size"] = json!(4_000_000_000u32),
            "its shape is [261, 64], but by config.json [4000000000, 64]",
        ),
    ];
    for (edit, said) in edits {
        let mut checkpoint = Hf::llama();
        edit(&mut checkpoint);
        refused(&folder, &checkpoint, said);
    }
    // Tables that nothing reads have no place and do no harm; a tied head may lie there once more.
    let mut checkpoint = Hf::llama();
    let table = Stored::f32(&[8], &[0.0; 8]);
    checkpoint
        .tensors
        .insert("model.layers.0.self_attn.rotary_emb.inv_freq".into(), table);
    checkpoint.config["tie_word_embeddings"] = json!(true);
    let embedding = checkpoint.tensors["model.embed_tokens.weight"].clone();
    checkpoint
        .tensors
        .insert("lm_head.weight".into(), embedding);
    checkpoint.write(&folder, "model", 1);
    assert_eq!(
        folder.json(&["import", "model", "-o", "out.gguf", "--json"])["tied"],
        true
    );
    fs::remove_file(folder.path("out.gguf")).unwrap();
    let mut checkpoint = Hf::bitnet();
    checkpoint.tensors.insert(
        "model.layers.0.mlp.up_proj.weight".into(),
        Stored::f32(&[128, 64], &[0.0; 8192]),
    );
    refused(
        &folder,
        &checkpoint,
        "`model.layers.0.mlp.up_proj.weight`: its scale would be 0",
    );
    fs::remove_file(folder.path("model/model.safetensors")).unwrap();
    let line = folder.fails(&IMPORT);
    assert!(
        line.contains("neither model.safetensors nor model.safetensors.index.json"),
        "{line}"
    );
}

#[test]
fn tokenizers_that_would_cut_texts_otherwise_are_named() {
    let folder = Folder::new();
    let mut checkpoint = Hf::llama();
    let split = |pattern: &str| {
        json!({"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
        ]})
    };
    for (place, value, said) in [
        (
            "/model/type",
            json!("WordPiece"),
            "model.type = \"WordPiece\" is not supported",
        ),
        ("/model/dropout", json!(0.1), "model.dropout = 0.1"),
        (
            "/model/ignore_merges",
            json!(true),
            "ignore_merges = true, is not supported",
        ),
        (
            "/model/unk_token",
            json!(3),
            "model.unk_token is 3, not a text",
        ),
        ("/model/vocab/th", json!(65), "have the number 65"),
        ("/model/vocab/th", json!(-1), "the number of `th` is -1"),
        (
            "/model/vocab/th",
            json!(900),
            "token 900, `th`, is beyond the 261 of the embedding",
        ),
        (
            "/model/merges",
            json!([["t", "h", "e"]]),
            "merge 0 is not a pair: [\"t\",\"h\",\"e\"]",
        ),
        ("/model/merges", json!([["t", "q"]]), "tokenizer.json"),
        (
            "/normalizer",
            json!({"type": "NFC"}),
            "normalizer NFC is not supported",
        ),
        (
            "/pre_tokenizer/add_prefix_space",
            json!(true),
            "pre_tokenizer.add_prefix_space = true",
        ),
        ("/pre_tokenizer", split("[a-z]+"), "pattern `[a-z]+`"),
        (
            "/pre_tokenizer",
            json!({"type": "BertPreTokenizer"}),
            "neither byte-level",
        ),
        (
            "/post_processor",
            json!({"type": "BertProcessing"}),
            "post_processor BertProcessing",
        ),
        (
            "/post_processor/special_tokens",
            json!({}),
            "puts `<s>` around a text",
        ),
        (
            "/added_tokens/0/rstrip",
            json!(true),
            "added_tokens[0].rstrip = true",
        ),
    ] {
        checkpoint.tokenizer = tokenizer_json();
        *checkpoint.tokenizer.pointer_mut(place).unwrap() = value;
        refused(&folder, &checkpoint, said);
    }
    checkpoint.tokenizer = tokenizer_json();
    for (key, value, said) in [
        (
            "bos_token",
            json!("<none>"),
            "bos_token is `<none>`, which is not a token",
        ),
        (
            "bos_token",
            json!("th"),
            "its post_processor puts token 258 around a text, but tokenizer_config.json names 256",
        ),
        ("eos_token", json!(7), "eos_token is 7, not a token"),
        (
            "chat_template",
            json!([{"name": "tool", "template": ""}]),
            "no template named default",
        ),
        (
            "added_tokens_decoder",
            json!({"x": {}}),
            "added_tokens_decoder.x is not the number of a token",
        ),
        (
            "add_eos_token",
            json!("yes"),
            "add_eos_token is \"yes\", not true or false",
        ),
    ] {
        let whole = checkpoint.settings.clone();
        checkpoint.settings[key] = value;
        refused(&folder, &checkpoint, said);
        checkpoint.settings = whole;
    }
    let ends = json!({"eos_token_id": [259, 1, 2]}).to_string();
    fs::write(folder.path("model/generation_config.json"), ends).unwrap();
    refused(&folder, &checkpoint, "eos_token_id has 2 tokens besides");
    fs::remove_file(folder.path("model/generation_config.json")).unwrap();
    fs::remove_file(folder.path("model/tokenizer.json")).unwrap();
    checkpoint.tokenizer = Value::Null;
    refused(
        &folder,
        &checkpoint,
        "neither tokenizer.model nor tokenizer.json",
    );
}

#[test]
fn an_output_is_no_file_of_the_folder() {
    let folder = Folder::new();
    Hf::llama().write(&folder, "model", 1);
    fs::rename(
        folder.path("model/tokenizer.json"),
        folder.path("words.json"),
    )
    .unwrap();
    fs::hard_link(folder.path("words.json"), folder.path("words.gguf")).unwrap();
    let line = folder.fails(&[
        "import",
        "model",
        "--tokenizer",
        "words.json",
        "-o",
        "words.gguf",
        "--force",
    ]);
    assert!(line.contains("are the same file"), "{line}");
    folder.ok(&[
        "import",
        "model",
        "--tokenizer",
        "words.json",
        "-o",
        "out.gguf",
    ]);
    let line = folder.fails(&[
        "import",
        "model",
        "--tokenizer",
        "words.json",
        "-o",
        "out.gguf",
    ]);
    assert!(line.contains("out.gguf: exists already (--force"), "{line}");
}
