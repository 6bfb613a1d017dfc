//! What a `bitnet` lacks of a `llama`, and what a conversion needs beside it.

use std::fs;

use tercet_core::gguf::Value;
use tercet_core::number::Random;
use tercet_host::language::{
    Architecture, Extras, LanguageFile, Parameters, Slot, Vocabulary, tiny,
};
use tercet_host::parallel::Threads;
use tercet_host::train::{TrainOptions, Trainer, converted};
use tercet_host::{Error, TensorFile};

use crate::files::Folder;
use crate::training::options;
use crate::training_convert::{LLAMA, Model, NONE, record, ternary, write};

#[test]
fn what_a_bitnet_lacks_is_refused() {
    let folder = Folder::new();
    let path = folder.file("llama.gguf");
    let normal = |slot: &Slot| {
        let mut random = Random::new(slot.name.len() as u64);
        (0..slot.values())
            .map(|_| 1.0 + random.unit_f32())
            .collect::<Vec<f32>>()
    };
    let named = |words: &str, error: Error| {
        let error = error.to_string();
        assert!(
            error.contains("llama.gguf") && error.contains(words),
            "{error}"
        );
    };
    // Both before a run and by the run itself.
    let refused = |extras: Extras, words: &str| {
        write(&path, (LLAMA, extras), &[], normal);
        let file = LanguageFile::open(&path).unwrap();
        named(words, converted(&file, None).unwrap_err());
        let (model, engines) = (TensorFile::open(&path).unwrap(), vec![Threads::alone()]);
        let options = TrainOptions {
            parameters: Parameters {
                architecture: Architecture::Bitnet,
                ..LLAMA
            },
            ..options()
        };
        let begun =
            Trainer::from_model(engines, &options, Vocabulary::bytes(), &model, Some(&model));
        named(words, begun.unwrap_err());
    };
    let head = Extras { head: true, ..NONE };
    refused(
        head,
        "`output.weight`: it is not the same as token_embd.weight",
    );
    let biases = Extras {
        attention_biases: true,
        ..NONE
    };
    refused(biases, "`blk.0.attn_q.bias`: a bitnet has no biases");
    let biases = Extras {
        feed_forward_biases: true,
        ..NONE
    };
    refused(biases, "`blk.0.ffn_gate.bias`: a bitnet has no biases");
    let frequencies = Extras {
        frequencies: true,
        ..NONE
    };
    refused(frequencies, "`rope_freqs.weight`: a bitnet has no factors");
    // Shapes and keys.
    let refused = |parameters: Parameters, keys: &[(&str, Value<'static>)], words: &str| {
        write(&path, (parameters, NONE), keys, normal);
        let file = LanguageFile::open(&path).unwrap();
        named(words, converted(&file, None).unwrap_err());
    };
    let heads = Parameters {
        head_count: 8,
        ..LLAMA
    };
    refused(
        heads,
        &[],
        "its 8 heads of 64 values have 512 values in all, but",
    );
    let width = Parameters {
        embedding_length: 320,
        head_count: 5,
        head_count_kv: 5,
        ..LLAMA
    };
    refused(width, &[], "llama.embedding_length is 320, but");
    let feed = Parameters {
        feed_forward_length: 320,
        ..LLAMA
    };
    refused(feed, &[], "llama.feed_forward_length is 320, but");
    let file = LanguageFile::open(&path).unwrap();
    assert_eq!(
        converted(&file, Some(256)).unwrap().feed_forward_length,
        256
    );
    let window = ("llama.attention.sliding_window", Value::U32(8));
    refused(LLAMA, &[window], "llama.attention.sliding_window is 8");
    let scaling = ("llama.rope.scaling.type", Value::String("yarn"));
    refused(LLAMA, &[scaling], "rope.scaling.type");
    let parts = ("split.count", Value::U16(3));
    refused(LLAMA, &[parts], "split.count is 3");
    let linear = Parameters {
        rope_factor: Some(2.0),
        rope_base: 5e5,
        rms_epsilon: 1e-6,
        ..LLAMA
    };
    write(&path, (linear, NONE), &[], normal);
    let own = converted(&LanguageFile::open(&path).unwrap(), None).unwrap();
    let expected = Parameters {
        architecture: Architecture::Bitnet,
        ..linear
    };
    assert_eq!(own, expected);
    // Another architecture, whose name has as many letters.
    let mut other = fs::read(&path).unwrap();
    let places: Vec<usize> = (0..other.len() - 5)
        .filter(|&at| &other[at..at + 5] == b"llama")
        .collect();
    places
        .iter()
        .for_each(|&at| other[at..at + 5].copy_from_slice(b"qwen2"));
    fs::write(&path, other).unwrap();
    named(
        "it is `qwen2`",
        converted(&LanguageFile::open(&path).unwrap(), None).unwrap_err(),
    );
}

#[test]
fn a_conversion_needs_the_recorded_inputs_of_the_same_shapes() {
    let model = Model::new(ternary);
    let (options, file) = (model.options(None), TensorFile::open(&model.path).unwrap());
    let begun = |inputs| {
        let engines = vec![Threads::alone()];
        let begun = Trainer::from_model(engines, &options, Vocabulary::bytes(), &file, inputs);
        begun.unwrap_err().to_string()
    };
    let refused = begun(None);
    assert!(
        refused.contains("llama.gguf: a llama becomes a bitnet with")
            && refused.contains("`tercet perplexity ")
            && refused.contains(" TEXT --record FILE`"),
        "{refused}"
    );
    // A model is no file of inputs; neither is that of another model.
    let refused = begun(Some(&file));
    assert!(refused.contains("attn_output.weight.counts"), "{refused}");
    let other = model.folder.file("other.gguf");
    let (path, of_other) = (model.folder.file("tiny.gguf"), tiny::LLAMA);
    tiny::llama(&path, of_other, 1, false).unwrap();
    record(&path, &other);
    let refused = begun(Some(&TensorFile::open(&other).unwrap()));
    assert!(
        refused.contains("it has 96 values, but 256 are needed"),
        "{refused}"
    );
}
