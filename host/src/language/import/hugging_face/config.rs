//! `config.json`: the computation of the model, or why it is not supported.

use serde_json::{Value, json};
use tercet_core::block::bitnet_hf::WeightScale;

use super::json::{Object, short};
use super::rope::{self, Rope};
use crate::Error;
use crate::language::parameters::{Architecture, Parameters};

/// More layers than any model has; each has a dozen tensors to describe.
const MOST_LAYERS: u32 = 4096;

/// The description of a checkpoint.
#[derive(Debug)]
pub(super) struct Config {
    /// The class that loads it.
    pub(super) class: &'static str,
    pub(super) parameters: Parameters,
    /// True if the embedding is the head.
    pub(super) tied: bool,
    pub(super) attention_biases: bool,
    pub(super) feed_forward_biases: bool,
    /// Divisors of RoPE's frequencies, one per pair; empty if there are none.
    pub(super) factors: Vec<f32>,
    /// True if the matrices of layers are ternary, or become so.
    pub(super) is_ternary: bool,
    /// The meaning of `weight_scale` beside packed matrices.
    pub(super) weight_scale: WeightScale,
}

/// A class of `transformers`, and the defaults of its configuration.
struct Class {
    name: &'static str,
    is_bitnet: bool,
    activation: &'static str,
    epsilon: f64,
    rope_base: f64,
    context: u32,
    /// Number of key heads; `None` for that of query heads.
    key_heads: Option<u32>,
    window: Option<u32>,
}

/// Defaults of transformers 5.23 (`configuration_llama.py`, `configuration_mistral.py`, `configuration_bitnet.py`).
const CLASSES: [Class; 3] = [
    Class {
        name: "LlamaForCausalLM",
        is_bitnet: false,
        activation: "silu",
        epsilon: 1e-6,
        rope_base: 10_000.0,
        context: 2048,
        key_heads: None,
        window: None,
    },
    Class {
        name: "MistralForCausalLM",
        is_bitnet: false,
        activation: "silu",
        epsilon: 1e-6,
        rope_base: 10_000.0,
        context: 4096 * 32,
        key_heads: Some(8),
        window: Some(4096),
    },
    Class {
        name: "BitNetForCausalLM",
        is_bitnet: true,
        activation: "relu2",
        epsilon: 1e-5,
        rope_base: 500_000.0,
        context: 2048,
        key_heads: Some(5),
        window: None,
    },
];

/// Keys of relatives of Llama that change the computation, with the values that change nothing.
fn foreign() -> [(&'static str, Value); 14] {
    [
        ("partial_rotary_factor", json!([1, 1.0])),
        ("embedding_multiplier", json!([1, 1.0])),
        ("residual_multiplier", json!([1, 1.0])),
        ("attention_multiplier", json!([])),
        ("logits_scaling", json!([1, 1.0])),
        ("logit_scale", json!([1, 1.0])),
        ("attn_logit_softcapping", json!([])),
        ("final_logit_softcapping", json!([])),
        ("use_sliding_window", json!([false])),
        ("qk_norm", json!([false])),
        ("use_qk_norm", json!([false])),
        ("num_local_experts", json!([0])),
        ("num_experts", json!([0])),
        ("clip_qkv", json!([])),
    ]
}

impl Config {
    pub(super) fn read(file: &Object) -> Result<Self, Error> {
        let class = class(file)?;
        for (key, harmless) in foreign() {
            file.only(key, harmless.as_array().map_or(&[], Vec::as_slice))?;
        }
        let context = file.count("max_position_embeddings")?;
        let context = context.unwrap_or(class.context);
        window(file, class, context)?;
        let activation = file.text("hidden_act")?.unwrap_or(class.activation);
        let architecture = match (class.is_bitnet, activation) {
            (false, "silu" | "swish") => Architecture::Llama,
            (true, "silu" | "swish") => Architecture::Bitnet,
            (true, "relu2") => Architecture::BitnetSquaredRelu,
            _ => {
                let known = match class.is_bitnet {
                    true => "silu and relu2 are",
                    false => "silu is",
                };
                return Err(file.unsupported(format!(
                    "hidden_act = \"{activation}\" is not supported; {known}"
                )));
            }
        };
        let (heads, width) = (
            file.needed("num_attention_heads")?,
            file.needed("hidden_size")?,
        );
        let head_length = match file.count("head_dim")? {
            Some(length) => length,
            None if heads > 0 && width.is_multiple_of(heads) => width / heads,
            None => {
                return Err(file.bad(format!(
                    "hidden_size = {width} does not divide into num_attention_heads = {heads}"
                )));
            }
        };
        let Rope {
            base,
            factor,
            factors,
        } = rope::read(file, class.rope_base, head_length, context)?;
        let parameters = Parameters {
            architecture,
            context_length: context,
            embedding_length: width,
            block_count: file.needed("num_hidden_layers")?,
            feed_forward_length: file.needed("intermediate_size")?,
            head_count: heads,
            head_count_kv: match file.is_silent("num_key_value_heads") {
                true => class.key_heads.unwrap_or(heads),
                // `null` is a value, too.
                false => file.count("num_key_value_heads")?.unwrap_or(heads),
            },
            head_length,
            vocab_size: file.needed("vocab_size")?,
            rms_epsilon: file.number("rms_norm_eps")?.unwrap_or(class.epsilon) as f32,
            rope_base: base,
            rope_factor: factor,
        };
        let layers = parameters.block_count;
        let many = (layers > MOST_LAYERS)
            .then(|| format!("num_hidden_layers is {layers}, above {MOST_LAYERS}"));
        if let Some(reason) = many.or_else(|| parameters.refusal()) {
            return Err(file.bad(reason));
        }
        let biases = |key: &str| {
            if class.is_bitnet {
                file.only(key, &[Value::Bool(false)])?;
            }
            Ok::<_, Error>(file.flag(key)?.unwrap_or(false))
        };
        let quantized = quantized(file)?;
        Ok(Self {
            class: class.name,
            tied: file.flag("tie_word_embeddings")?.unwrap_or(false),
            attention_biases: biases("attention_bias")?,
            feed_forward_biases: biases("mlp_bias")?,
            factors,
            is_ternary: class.is_bitnet || quantized.is_some(),
            weight_scale: quantized.unwrap_or_default(),
            parameters,
        })
    }
}

fn class(file: &Object) -> Result<&'static Class, Error> {
    let named = match file.list("architectures")?.unwrap_or_default() {
        [Value::String(name)] => name.as_str(),
        [] => return Err(file.bad("architectures names no class")),
        several => {
            let several = short(&Value::Array(several.to_vec()));
            return Err(file.unsupported(format!("architectures = {several} is not one class")));
        }
    };
    CLASSES
        .iter()
        .find(|class| class.name == named)
        .ok_or_else(|| {
            let known = CLASSES.map(|class| class.name).join(", ");
            file.unsupported(format!(
                "architecture {named} is not supported; {known} are"
            ))
        })
}

/// Refuses a window that is smaller than a sequence.
fn window(file: &Object, class: &Class, context: u32) -> Result<(), Error> {
    let window = match file.is_silent("sliding_window") {
        true => class.window,
        false => file.count("sliding_window")?,
    };
    if let Some(window) = window
        && window < context
    {
        return Err(file.unsupported(format!(
            "sliding_window = {window} is below max_position_embeddings = {context}: \
                 attention with a window is not supported"
        )));
    }
    let layers = file.list("layer_types")?.unwrap_or_default();
    match layers.iter().find(|kind| **kind != "full_attention") {
        Some(kind) => {
            let kind = short(kind);
            Err(file.unsupported(format!(
                "layer_types has {kind}; only full_attention is supported"
            )))
        }
        None => Ok(()),
    }
}

/// Returns the meaning of `weight_scale`, if the file has BitNet's quantization.
fn quantized(file: &Object) -> Result<Option<WeightScale>, Error> {
    let Some(how) = file.object("quantization_config")? else {
        return Ok(None);
    };
    let method = how.text("quant_method")?.unwrap_or("none");
    if method != "bitnet" {
        return Err(file.unsupported(format!(
            "quantization_config.quant_method = \"{method}\" is not supported; bitnet is"
        )));
    }
    how.only("use_rms_norm", &[Value::Bool(false)])?;
    how.only("quantization_mode", &["offline".into(), "online".into()])?;
    let apart = how.list("modules_to_not_convert")?.unwrap_or_default();
    let outside = |name: &Value| {
        let names = ["lm_head", "embed_tokens", "model.embed_tokens"];
        names.iter().any(|known| name == known)
    };
    if let Some(name) = apart.iter().find(|name| !outside(name)) {
        let name = short(name);
        return Err(file.unsupported(format!(
            "quantization_config.modules_to_not_convert has {name}; all matrices of layers must be ternary, or none"
        )));
    }
    match how.text("linear_class")?.unwrap_or("bitlinear") {
        "bitlinear" => Ok(Some(WeightScale::Divisor)),
        "autobitlinear" => Ok(Some(WeightScale::Multiplier)),
        other => Err(file.unsupported(format!(
            "quantization_config.linear_class = \"{other}\" is not supported; bitlinear and autobitlinear are"
        ))),
    }
}
