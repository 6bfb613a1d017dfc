//! Folders of models saved by Hugging Face's `transformers`: `config.json`, safetensors, and a tokenizer.

mod bpe;
mod config;
mod json;
mod merges;
mod protobuf;
mod rope;
mod sentencepiece;
mod special;
mod tensors;
mod text;

use std::path::Path;

use tercet_core::block::Format;

use super::Checkpoint;
use crate::Error;
use crate::dtype::DType;
use crate::language::parameters::Architecture;
use config::Config;
use json::Object;

/// Reads a folder: its configuration, its tensors, its vocabulary. `tokenizer` replaces the folder's.
pub(super) fn read(folder: &Path, tokenizer: Option<&Path>) -> Result<Checkpoint, Error> {
    let settings = Object::open(folder.join("config.json"))?;
    let settings = settings.ok_or_else(|| {
        Error::unsupported(
            folder,
            "it has no config.json, so it is not a model of transformers",
        )
    })?;
    let config = Config::read(&settings)?;
    let (model, extras) = tensors::open(folder, &config, settings.path())?;
    // After the tensors, whose shapes limit the number of tokens.
    let (vocabulary, mut beside) = text::read(folder, tokenizer, &settings, &config)?;
    beside.push(settings.path().to_path_buf());
    let packed = model.tensors().any(|tensor| tensor.dtype == DType::U8);
    let how = match (config.is_ternary, packed) {
        (false, _) => "",
        (true, true) => ", packed codes",
        (true, false) => ", master weights by their mean magnitude",
    };
    let parameters = config.parameters;
    let widths = [
        u64::from(parameters.embedding_length),
        u64::from(parameters.feed_forward_length),
        parameters.query_length(),
    ];
    let divides = |format: Format| widths.iter().all(|width| width % format.len() as u64 == 0);
    Ok(Checkpoint {
        model,
        format: format!("Hugging Face {}{how}", config.class),
        parameters,
        extras,
        is_ternary: config.is_ternary,
        has_halves: parameters.architecture == Architecture::Llama,
        vocabulary,
        beside,
        theirs: tensors::theirs,
        default: match config.is_ternary {
            false => DType::F16,
            true if divides(Format::Tq2_0) => DType::Block(Format::Tq2_0),
            true => DType::Block(Format::Q2_0),
        },
    })
}
