//! Tiny checkpoints as Hugging Face's `transformers` saves them, from seeds.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use half::{bf16, f16};
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};

use super::support::{Folder, noise};

/// Tokens: 256 letters of bytes, two merges, a pair of marks, and one that the embedding is filled up with.
pub(crate) const TOKENS: usize = 261;

/// A tensor of a checkpoint.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

impl Stored {
    pub(crate) fn f32(shape: &[usize], values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let shape = shape.to_vec();
        Self {
            dtype: Dtype::F32,
            shape,
            bytes,
        }
    }

    pub(crate) fn bf16(shape: &[usize], values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes());
        let (bytes, shape) = (bytes.collect(), shape.to_vec());
        Self {
            dtype: Dtype::BF16,
            shape,
            bytes,
        }
    }

    pub(crate) fn f16(shape: &[usize], values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes());
        let (bytes, shape) = (bytes.collect(), shape.to_vec());
        Self {
            dtype: Dtype::F16,
            shape,
            bytes,
        }
    }
}

/// A checkpoint to write.
pub(crate) struct Hf {
    pub(crate) config: Value,
    pub(crate) tensors: BTreeMap<String, Stored>,
    pub(crate) tokenizer: Value,
    pub(crate) settings: Value,
}

impl Hf {
    /// A llama: width 64, feed-forward 96, 2 layers, heads 4:2 of 16, with biases of the attention and a head of its
    /// own.
    pub(crate) fn llama() -> Self {
        let config = json!({
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": TOKENS,
            "max_position_embeddings": 128,
            "rms_norm_eps": 1e-6,
            "rope_theta": 50000.0,
            "rope_scaling": null,
            "attention_bias": true,
            "hidden_act": "silu",
            "tie_word_embeddings": false,
            "torch_dtype": "float32",
        });
        let mut tensors = layers(64, 96, 32, false);
        let mut seed = 100;
        for layer in 0..2 {
            for (part, len) in [("q", 64), ("k", 32), ("v", 32), ("o", 64)] {
                seed += 1;
                let name = format!("model.layers.{layer}.self_attn.{part}_proj.bias");
                tensors.insert(name, Stored::f32(&[len], &noise(seed, len)));
            }
        }
        let head = Stored::f32(&[TOKENS, 64], &noise(200, TOKENS * 64));
        tensors.insert("lm_head.weight".into(), head);
        Self {
            config,
            tensors,
            tokenizer: tokenizer_json(),
            settings: settings(),
        }
    }

    /// A bitnet: width 64, feed-forward 128, 2 layers, heads 4:2, master weights in bf16, the embedding as the head.
    pub(crate) fn bitnet() -> Self {
        let config = json!({
            "architectures": ["BitNetForCausalLM"],
            "model_type": "bitnet",
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": TOKENS,
            "max_position_embeddings": 128,
            "rms_norm_eps": 1e-5,
            "hidden_act": "silu",
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
            "tie_word_embeddings": true,
            "quantization_config": {
                "quant_method": "bitnet",
                "linear_class": "autobitlinear",
                "quantization_mode": "online",
            },
        });
        let tensors = layers(64, 128, 32, true);
        Self {
            config,
            tensors,
            tokenizer: tokenizer_json(),
            settings: settings(),
        }
    }

    /// Writes the folder `name`: one file of weights, or `shards` of them with an index.
    pub(crate) fn write(&self, folder: &Folder, name: &str, shards: usize) -> PathBuf {
        let path = folder.path(name);
        fs::create_dir_all(&path).unwrap();
        for (file, value) in [
            ("config.json", &self.config),
            ("tokenizer.json", &self.tokenizer),
            ("tokenizer_config.json", &self.settings),
        ] {
            match value {
                Value::Null => {}
                value => fs::write(path.join(file), value.to_string()).unwrap(),
            }
        }
        let mut map = serde_json::Map::new();
        for shard in 0..shards {
            let tensors = self.tensors.iter().enumerate();
            let own = tensors
                .filter(|(index, _)| index % shards == shard)
                .map(|(_, tensor)| tensor);
            let file = match shards {
                1 => "model.safetensors".to_owned(),
                _ => format!("model-{:05}-of-{shards:05}.safetensors", shard + 1),
            };
            map.extend(own.clone().map(|(name, _)| (name.clone(), json!(file))));
            let views = own.map(|(name, stored)| {
                let view = TensorView::new(stored.dtype, stored.shape.clone(), &stored.bytes);
                (name, view.unwrap())
            });
            let bytes = safetensors::serialize(views, None).unwrap();
            fs::write(path.join(file), bytes).unwrap();
        }
        if shards > 1 {
            let index = json!({"metadata": {}, "weight_map": map}).to_string();
            fs::write(path.join("model.safetensors.index.json"), index).unwrap();
        }
        path
    }

    /// The values of a tensor of f32.
    pub(crate) fn values(&self, name: &str) -> Vec<f32> {
        let words = self.tensors[name].bytes.as_chunks().0.iter();
        words.map(|&word| f32::from_le_bytes(word)).collect()
    }
}

/// Embedding, layers and last norm; in bf16 with sub-norms for a bitnet, in f32 without for a llama.
fn layers(width: usize, feed: usize, keys: usize, is_bitnet: bool) -> BTreeMap<String, Stored> {
    let mut tensors = BTreeMap::new();
    let mut seed = 0;
    let mut put = |name: String, shape: &[usize]| {
        seed += 1;
        let mut values = noise(seed, shape.iter().product());
        if shape.len() == 1 {
            values.iter_mut().for_each(|x| *x += 1.0);
        }
        let stored = match is_bitnet {
            true => Stored::bf16(shape, &values),
            false => Stored::f32(shape, &values),
        };
        tensors.insert(name, stored);
    };
    put("model.embed_tokens.weight".into(), &[TOKENS, width]);
    put("model.norm.weight".into(), &[width]);
    for layer in 0..2 {
        let mut put =
            |name: &str, shape: &[usize]| put(format!("model.layers.{layer}.{name}.weight"), shape);
        put("input_layernorm", &[width]);
        put("post_attention_layernorm", &[width]);
        put("self_attn.q_proj", &[width, width]);
        put("self_attn.k_proj", &[keys, width]);
        put("self_attn.v_proj", &[keys, width]);
        put("self_attn.o_proj", &[width, width]);
        put("mlp.gate_proj", &[feed, width]);
        put("mlp.up_proj", &[feed, width]);
        put("mlp.down_proj", &[width, feed]);
        if is_bitnet {
            put("self_attn.attn_sub_norm", &[width]);
            put("mlp.ffn_sub_norm", &[feed]);
        }
    }
    tensors
}

/// GPT-2's letter for a byte.
fn letter(byte: u8) -> String {
    let prints = |byte: &u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let char = match prints(&byte) {
        true => char::from(byte),
        false => {
            let before = (0..byte).filter(|byte| !prints(byte)).count() as u32;
            char::from_u32(256 + before).unwrap()
        }
    };
    char.into()
}

/// Byte-level BPE as GPT-2's, which puts a mark before each text.
pub(crate) fn tokenizer_json() -> Value {
    let mut vocab = serde_json::Map::new();
    for byte in 0..=255u8 {
        vocab.insert(letter(byte), json!(byte));
    }
    vocab.insert("th".into(), json!(256));
    vocab.insert("Ġth".into(), json!(257));
    json!({
        "version": "1.0",
        "added_tokens": [
            {"id": 258, "content": "<s>", "special": true, "lstrip": false, "rstrip": false, "single_word": false, "normalized": false},
            {"id": 259, "content": "</s>", "special": true, "lstrip": false, "rstrip": false, "single_word": false, "normalized": false},
        ],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [258], "tokens": ["<s>"]}},
        },
        "decoder": {"type": "ByteLevel"},
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "byte_fallback": false, "ignore_merges": false,
            "vocab": vocab,
            "merges": [["t", "h"], ["Ġ", "th"]],
        },
    })
}

fn settings() -> Value {
    json!({
        "bos_token": "<s>",
        "eos_token": {"content": "</s>", "lstrip": false},
        "chat_template": "{{ messages[0]['content'] }}",
        "tokenizer_class": "PreTrainedTokenizerFast",
    })
}
