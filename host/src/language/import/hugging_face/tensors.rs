//! A checkpoint's tensors under GGUF's names, each with the right shape, none missing and none left over.

use std::collections::BTreeMap;
use std::path::Path;

use super::config::Config;
use crate::dtype::DType;
use crate::file;
use crate::file::map::Map;
use crate::language::parameters::Architecture;
use crate::language::tensors::{Extras, Role, Slot};
use crate::tensor_file::{Container, Entry, Reading, TensorFile};
use crate::{Error, names};

/// The files of a whole checkpoint; the first that exists is used.
const FILES: [&str; 2] = ["model.safetensors", "model.safetensors.index.json"];

/// Opens the weights of a folder.
pub(super) fn open(
    folder: &Path,
    config: &Config,
    settings: &Path,
) -> Result<(TensorFile, Extras), Error> {
    let path = FILES.map(|name| folder.join(name));
    let path = path.iter().find(|path| path.is_file()).ok_or_else(|| {
        let [whole, index] = FILES;
        Error::unsupported(folder, format!("it has neither {whole} nor {index}"))
    })?;
    let mut contents = file::read(path)?;
    if contents.container != Container::Safetensors {
        return Err(Error::bad(path, "safetensors", "it is of another format"));
    }
    let mut found: BTreeMap<String, Entry> = BTreeMap::new();
    for entry in contents.entries {
        // Tables of older checkpoints that nothing reads.
        if entry.name.ends_with(".rotary_emb.inv_freq") {
            continue;
        }
        if let Some(twice) = found.insert(entry.name.clone(), entry) {
            return Err(Error::tensor(
                path,
                &twice.name,
                "two tensors have this name",
            ));
        }
    }
    let tied = config.tied || is_copy(path, config, &contents.maps, &found)?;
    if !tied && config.parameters.architecture.is_bitnet() {
        let reason = "its head is not the embedding, but that of a bitnet must be";
        return Err(Error::tensor(path, "lm_head.weight", reason));
    }
    let extras = Extras {
        head: !tied,
        attention_biases: config.attention_biases,
        feed_forward_biases: config.feed_forward_biases,
        frequencies: !config.factors.is_empty(),
    };
    let mut entries = Vec::new();
    for slot in config.parameters.tensors(extras) {
        if slot.role == Role::Frequencies {
            let bytes = config.factors.iter().flat_map(|x| x.to_le_bytes());
            entries.push(Entry {
                name: slot.name,
                shape: slot.shape,
                dtype: DType::F32,
                file: contents.maps.len(),
                start: 0,
                len: config.factors.len() * 4,
            });
            contents.maps.push(Map::made(settings, bytes.collect()));
            continue;
        }
        take(path, config, &slot, &mut found, &mut entries)?;
    }
    if tied {
        surplus_head(path, config, &contents.maps, &entries, &mut found)?;
    }
    if let Some(name) = found.keys().next() {
        let reason = format!("it has no place in a {} of this config.json", config.class);
        return Err(Error::tensor(path, name, reason));
    }
    contents.entries = entries;
    let reading = Reading {
        weight_scale: config.weight_scale,
        ..Reading::default()
    };
    Ok((
        TensorFile::of(path, contents)?.with_reading(reading),
        extras,
    ))
}

/// True if an untied head of a bitnet equals the embedding, byte for byte.
fn is_copy(
    path: &Path,
    config: &Config,
    maps: &[Map],
    found: &BTreeMap<String, Entry>,
) -> Result<bool, Error> {
    if config.parameters.architecture == Architecture::Llama {
        return Ok(false);
    }
    let [head, embedding] = ["lm_head.weight", "model.embed_tokens.weight"];
    let (head, embedding) = (found.get(head), found.get(embedding));
    match (head, embedding) {
        (Some(head), Some(embedding)) => Ok(equal(maps, head, embedding)),
        (None, _) => Err(missing(path, "lm_head.weight", found)),
        _ => Ok(false),
    }
}

/// Checks that a head that is stored although the embedding is the head is the same as it.
fn surplus_head(
    path: &Path,
    config: &Config,
    maps: &[Map],
    entries: &[Entry],
    found: &mut BTreeMap<String, Entry>,
) -> Result<(), Error> {
    let Some(head) = found.remove("lm_head.weight") else {
        return Ok(());
    };
    let embedding = entries
        .iter()
        .find(|entry| entry.name == "token_embd.weight");
    match embedding.is_some_and(|embedding| equal(maps, &head, embedding)) {
        true => Ok(()),
        false => {
            let reason = format!(
                "it is not the embedding, which is the head of this {}: tie_word_embeddings is true",
                config.class
            );
            Err(Error::tensor(path, &head.name, reason))
        }
    }
}

fn equal(maps: &[Map], a: &Entry, b: &Entry) -> bool {
    let bytes = |entry: &Entry| &maps[entry.file].bytes()[entry.start..][..entry.len];
    (a.dtype, &a.shape) == (b.dtype, &b.shape) && bytes(a) == bytes(b)
}

/// Moves a tensor, and the scale beside a packed one, to its new name.
fn take(
    path: &Path,
    config: &Config,
    slot: &Slot,
    found: &mut BTreeMap<String, Entry>,
    entries: &mut Vec<Entry>,
) -> Result<(), Error> {
    let name = theirs(&slot.name);
    let entry = found
        .remove(&name)
        .ok_or_else(|| missing(path, &name, found))?;
    let refuse = |reason: String| Error::tensor(path, &name, reason);
    let may_be_packed = config.is_ternary && slot.role == Role::Matrix;
    let packed = may_be_packed && entry.dtype == DType::U8;
    let mut shape = slot.shape.clone();
    if packed {
        let rows = &mut shape[0];
        if !rows.is_multiple_of(4) {
            return Err(refuse(format!("{rows} rows cannot be packed in fours")));
        }
        *rows /= 4;
    }
    if entry.shape != shape {
        let found = &entry.shape;
        return Err(refuse(format!(
            "its shape is {found:?}, but by config.json {shape:?}"
        )));
    }
    match entry.dtype {
        DType::F32 | DType::F16 | DType::Bf16 => {}
        DType::U8 if packed => {
            let beside = format!("{name}_scale");
            let scale = found
                .remove(&beside)
                .ok_or_else(|| missing(path, &beside, found))?;
            let one = scale.dtype.is_float() && crate::dtype::values(&scale.shape) == Some(1);
            if !one {
                return Err(Error::tensor(path, &beside, "it is not one number"));
            }
            entries.push(Entry {
                name: format!("{}_scale", slot.name),
                ..scale
            });
        }
        other => {
            let packed = match may_be_packed {
                true => ", and packed codes in u8",
                false => "",
            };
            return Err(refuse(format!(
                "its type is {}; f32, f16 and bf16 are read{packed}",
                other.name()
            )));
        }
    }
    entries.push(Entry {
        name: slot.name.clone(),
        ..entry
    });
    Ok(())
}

fn missing(path: &Path, name: &str, found: &BTreeMap<String, Entry>) -> Error {
    Error::NoSuchTensor {
        path: path.to_path_buf(),
        tensor: name.to_owned(),
        close: names::closest(name, found.keys().map(String::as_str)),
    }
}

/// Returns a tensor's name in a checkpoint, from its name in GGUF.
pub(super) fn theirs(ours: &str) -> String {
    let whole = match ours {
        "token_embd.weight" => "model.embed_tokens.weight",
        "output_norm.weight" => "model.norm.weight",
        "output.weight" => "lm_head.weight",
        _ => "",
    };
    let mut parts = ours.split('.');
    let (Some("blk"), Some(layer), Some(part), Some(kind)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        let named = if whole.is_empty() { ours } else { whole };
        return named.to_owned();
    };
    let part = match part {
        "attn_norm" => "input_layernorm",
        "attn_q" => "self_attn.q_proj",
        "attn_k" => "self_attn.k_proj",
        "attn_v" => "self_attn.v_proj",
        "attn_sub_norm" => "self_attn.attn_sub_norm",
        "attn_output" => "self_attn.o_proj",
        "ffn_norm" => "post_attention_layernorm",
        "ffn_gate" => "mlp.gate_proj",
        "ffn_up" => "mlp.up_proj",
        "ffn_sub_norm" => "mlp.ffn_sub_norm",
        "ffn_down" => "mlp.down_proj",
        other => other,
    };
    format!("model.layers.{layer}.{part}.{kind}")
}
