//! Training that begins with a `llama`: the `bitnet` made of it.

use std::fs;
use std::path::{Path, PathBuf};

use tercet_core::block::{self, Format};
use tercet_core::gguf::{Reader, TensorType, Value};
use tercet_core::model::Row;
use tercet_core::number::Random;
use tercet_core::scalar::Scalar;
use tercet_host::file::output::Output;
use tercet_host::language::{
    Architecture, Description, Extras, LanguageFile, Parameters, Role, RunOptions, Slot, View,
    Vocabulary, Windows, Writer, perplexity, run, specs,
};
use tercet_host::parallel::Threads;
use tercet_host::train::{TrainOptions, Trainer, converted};
use tercet_host::{DType, TensorFile};

use crate::files::Folder;
use crate::training::{PARAMETERS, TEXT, corpus, go, options, tokens};

pub(crate) const LLAMA: Parameters = Parameters {
    architecture: Architecture::Llama,
    block_count: 2,
    feed_forward_length: 512,
    ..PARAMETERS
};

pub(crate) const NONE: Extras = Extras {
    head: false,
    attention_biases: false,
    feed_forward_biases: false,
    frequencies: false,
};

/// Writes a model in f32.
pub(crate) fn write(
    path: &Path,
    (parameters, extras): (Parameters, Extras),
    keys: &[(&str, Value<'static>)],
    values: impl Fn(&Slot) -> Vec<f32>,
) {
    let slots = parameters.tensors(extras);
    let types: Vec<(&Slot, DType)> = slots.iter().map(|slot| (slot, DType::F32)).collect();
    let specs = specs(path, &types).unwrap();
    let description = Description {
        parameters,
        vocabulary: Vocabulary::bytes(),
        extras: keys.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect(),
        dtype: DType::F32,
    };
    let output = Output::create(path, [], true).unwrap();
    let mut writer = Writer::new(output, &description, &specs).unwrap();
    for slot in &slots {
        writer.values(&values(slot)).unwrap();
    }
    writer.finish().unwrap();
}

/// Floats of a seed: matrices have one magnitude each and zeros, so that rounding to ternary weights changes nothing.
/// Scores of attention are large, so that a position attends to few others.
pub(crate) fn ternary(slot: &Slot) -> Vec<f32> {
    let mut random = Random::new(slot.name.bytes().map(u64::from).sum());
    let scale = match slot.name.split('.').nth(2) {
        Some("attn_q" | "attn_k") => 0.25,
        Some("ffn_gate") => 0.125,
        _ => 0.0625,
    };
    let each = |_| match slot.role {
        Role::Matrix => (random.below(3) as f32 - 1.0) * scale,
        Role::Norm => 0.75 + random.unit_f32() / 2.0,
        _ => random.normal(),
    };
    (0..slot.values()).map(each).collect()
}

/// Records the inputs of a model's matrices on the text.
pub(crate) fn record(path: &Path, out: &Path) {
    let file = LanguageFile::open(path).unwrap();
    let mut view = View::of(&file).unwrap();
    let model = view.model(&file).unwrap();
    let windows = Windows {
        context: 16,
        begin: Some(256),
        second_half: false,
    };
    let recorded = run(
        &mut Scalar,
        &file,
        &model,
        &RunOptions::default(),
        |decoder| {
            decoder.record()?;
            perplexity(decoder, &tokens(TEXT), &windows, &|_| 1, &mut |_| {})?;
            Ok(decoder.recorded().unwrap().clone())
        },
    );
    let output = Output::create(out, [], true).unwrap();
    recorded.unwrap().0.write(output, "text", (9, 16)).unwrap();
}

/// A `llama` in a folder, with its recorded inputs.
pub(crate) struct Model {
    pub(crate) folder: Folder,
    pub(crate) path: PathBuf,
    inputs: PathBuf,
}

impl Model {
    pub(crate) fn new(values: impl Fn(&Slot) -> Vec<f32>) -> Self {
        let folder = Folder::new();
        let (path, inputs) = (folder.file("llama.gguf"), folder.file("inputs.gguf"));
        write(&path, (LLAMA, NONE), &[], values);
        record(&path, &inputs);
        Self {
            folder,
            path,
            inputs,
        }
    }

    /// The options of a run that begins with it, and keeps so many channels.
    pub(crate) fn options(&self, channels: Option<u32>) -> TrainOptions {
        let file = LanguageFile::open(&self.path).unwrap();
        TrainOptions {
            parameters: converted(&file, channels).unwrap(),
            ..options()
        }
    }

    fn begun(&self, options: &TrainOptions) -> Trainer<Threads> {
        let [model, inputs] =
            [&self.path, &self.inputs].map(|path| TensorFile::open(path).unwrap());
        let engines = vec![Threads::alone()];
        let begun =
            Trainer::from_model(engines, options, Vocabulary::bytes(), &model, Some(&inputs));
        begun.unwrap()
    }
}

/// The values of a tensor of a run's file.
fn values(trainer: &Trainer<Threads>, name: &str) -> Vec<f32> {
    let reader = Reader::new(trainer.file()).unwrap();
    let mut tensors = reader.tensors();
    let tensor = tensors.find(|tensor| tensor.name == name).unwrap();
    let mut values = vec![0.0; tensor.shape.elements() as usize];
    match tensor.kind {
        TensorType::F32 => {
            let bytes = tensor.data.as_chunks().0.iter();
            values = bytes.map(|&bytes| f32::from_le_bytes(bytes)).collect();
        }
        _ => block::decode(Format::Tq2_0, tensor.data, &mut values).unwrap(),
    }
    values
}

fn floats(model: &TensorFile, name: &str) -> Vec<f32> {
    let tensor = model.get(name).unwrap_or_else(|| panic!("{name}"));
    let bytes = tensor.bytes.as_chunks().0.iter();
    bytes.map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

/// The logits of the text's first tokens.
fn logits(path: &Path) -> Vec<f32> {
    let file = LanguageFile::open(path).unwrap();
    let mut view = View::of(&file).unwrap();
    let model = view.model(&file).unwrap();
    let rows = TEXT[..16].iter().map(|&byte| Row {
        token: byte.into(),
        sequence: 0,
        logits: true,
    });
    let rows: Vec<Row> = rows.collect();
    let options = RunOptions::default();
    let done = run(&mut Scalar, &file, &model, &options, |decoder| {
        Ok(decoder.step(&rows)?.to_vec())
    });
    done.unwrap().0
}

/// The cosine of the angle between two vectors.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| {
        let products = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b));
        products.sum::<f64>()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn tensors_are_the_models_and_rows_that_are_rotated_change_their_places() {
    let model = Model::new(ternary);
    let trainer = model.begun(&model.options(None));
    assert!(trainer.is_converted() && trainer.pruned().is_none());
    let inputs = TensorFile::open(&model.inputs).unwrap();
    let reader = Reader::new(trainer.file()).unwrap();
    let architecture = reader.get("general.architecture");
    assert_eq!(architecture, Some(Value::String("bitnet")));
    let before = TensorFile::open(&model.path).unwrap();
    const HEAD: usize = 64;
    for tensor in before.tensors().filter(|t| t.name.starts_with("blk.")) {
        let (from, to) = (floats(&before, tensor.name), values(&trainer, tensor.name));
        if !tensor.name.contains("attn_q") && !tensor.name.contains("attn_k") {
            assert_eq!(from, to, "{}", tensor.name);
            continue;
        }
        let row = |of: &[f32], row: usize| of[row * 256..][..256].to_vec();
        for at in 0..from.len() / 256 {
            let (head, within) = (at / HEAD * HEAD, at % HEAD);
            // Pair i: rows 2i and 2i + 1 in a llama, i and i + 32 in a bitnet.
            let other = match within < HEAD / 2 {
                true => 2 * within,
                false => 2 * (within - HEAD / 2) + 1,
            };
            assert_eq!(
                row(&to, at),
                row(&from, head + other),
                "{} {at}",
                tensor.name
            );
        }
    }
    for layer in 0..2 {
        for (norm, matrix) in [
            ("attn_sub_norm", "attn_output"),
            ("ffn_sub_norm", "ffn_down"),
        ] {
            let of = |end: &str| floats(&inputs, &format!("blk.{layer}.{matrix}.weight.{end}"));
            let (sums, rows) = (of("in_sum2"), of("counts")[0]);
            let square = sums.iter().map(|&sum| f64::from(sum / rows)).sum::<f64>();
            let expected = (square / sums.len() as f64 + 1e-5).sqrt() as f32;
            let gains = values(&trainer, &format!("blk.{layer}.{norm}.weight"));
            assert_eq!(gains.len(), sums.len());
            for gain in gains {
                assert!((gain / expected - 1.0).abs() < 1e-6, "{gain} {expected}");
            }
        }
    }
}

/// Rounding loses nothing of these weights, and norms divide by what their gains multiply with, on average. What is left
/// is how much a token differs from the average, and codes.
#[test]
fn the_converted_model_computes_what_the_model_did() {
    let model = Model::new(ternary);
    let trainer = model.begun(&model.options(None));
    let bitnet = model.folder.file("bitnet.gguf");
    fs::write(&bitnet, trainer.file()).unwrap();
    let (before, after) = (logits(&model.path), logits(&bitnet));
    let close = cosine(&before, &after);
    // A llama with the rows in the places of a bitnet is another model.
    let other = Model::new(|slot| {
        let mut values = ternary(slot);
        if slot.name.contains("attn_q") || slot.name.contains("attn_k") {
            for head in values.chunks_exact_mut(64 * 256) {
                let rows: Vec<Vec<f32>> = head.chunks_exact(256).map(<[f32]>::to_vec).collect();
                let (even, odd) = (rows.iter().step_by(2), rows.iter().skip(1).step_by(2));
                let halves: Vec<f32> = even.chain(odd).flatten().copied().collect();
                head.copy_from_slice(&halves);
            }
        }
        values
    });
    let far = cosine(&before, &logits(&other.path));
    assert!(close > 0.98 && far < 0.9, "{close} {far}");
    // As an evaluation counts it.
    let options = model.options(None);
    let corpus = corpus(&options);
    let file = LanguageFile::open(&model.path).unwrap();
    let own = corpus.cost(&file, Threads::alone, &|_| 1).unwrap();
    let new = trainer.evaluate(Threads::alone, &corpus, &|_| 1).unwrap();
    assert_eq!((own.count, own.bytes), (new.count, new.bytes));
    assert!(
        (own.mean() / new.mean() - 1.0).abs() < 0.05,
        "{} {}",
        own.mean(),
        new.mean()
    );
}

#[test]
fn a_converted_run_goes_on_with_the_same_bits_and_only_with_its_own_model() {
    let normal = |slot: &Slot| {
        let mut random = Random::new(slot.name.bytes().map(u64::from).sum());
        match slot.role {
            Role::Norm => vec![1.0; slot.values()],
            _ => (0..slot.values()).map(|_| random.normal() / 16.0).collect(),
        }
    };
    let model = Model::new(normal);
    let options = model.options(None);
    let corpus = corpus(&options);
    let mut whole = model.begun(&options);
    let rounded = whole.file().to_vec();
    go(&mut whole, &corpus, &options, options.steps);
    assert!(whole.file() != rounded);
    let mut first = model.begun(&options);
    go(&mut first, &corpus, &options, 1);
    let checkpoint = model.folder.file("checkpoint.safetensors");
    first.save(&checkpoint, &corpus).unwrap();
    let mut second = model.begun(&options);
    second.resume(&checkpoint, &corpus).unwrap();
    go(&mut second, &corpus, &options, options.steps);
    assert!(second.export(Format::Tq2_0).unwrap() == whole.file());
    // Other gains, from other inputs, are another run.
    let other = Model::new(|slot| {
        let mut values = normal(slot);
        if slot.name.ends_with("attn_v.weight") {
            values.iter_mut().for_each(|value| *value *= 2.0);
        }
        values
    });
    let other = Model {
        path: model.path.clone(),
        ..other
    };
    let refused = other
        .begun(&options)
        .resume(&checkpoint, &corpus)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("first weights"), "{refused}");
}

#[test]
fn a_model_in_blocks_with_its_embedding_as_head_is_converted_with_fewer_channels() {
    let model = Model::new(ternary);
    // The head is the embedding, in a tensor of its own.
    let tied = Extras { head: true, ..NONE };
    write(&model.path, (LLAMA, tied), &[], |slot| match slot.role {
        Role::Head => ternary(&LLAMA.tensors(NONE)[0]),
        _ => ternary(slot),
    });
    let options = model.options(Some(256));
    let trainer = model.begun(&options);
    let pruned = trainer.pruned().unwrap();
    assert_eq!((pruned.channels, pruned.kept), (512, 256));
    let inputs = TensorFile::open(&model.inputs).unwrap();
    let reader = Reader::new(trainer.file()).unwrap();
    let before = TensorFile::open(&model.path).unwrap();
    assert!(
        reader
            .tensors()
            .all(|tensor| tensor.name != "output.weight")
    );
    // The kept channels, by the signs of their weights.
    let signs = |row: &[f32]| {
        row.iter()
            .map(|x| (*x > 0.0) as i8 - (*x < 0.0) as i8)
            .collect()
    };
    let rows = |values: Vec<f32>| -> Vec<Vec<i8>> { values.chunks_exact(256).map(signs).collect() };
    let all = rows(floats(&before, "blk.1.ffn_up.weight"));
    let own = rows(values(&trainer, "blk.1.ffn_up.weight")).into_iter();
    let own = own.map(|row| all.iter().position(|other| *other == row).unwrap());
    let sums = floats(&inputs, "blk.1.ffn_down.weight.in_sum2");
    let counts = floats(&inputs, "blk.1.ffn_down.weight.counts")[0];
    let square = own
        .map(|channel| f64::from(sums[channel] / counts))
        .sum::<f64>()
        / 256.0;
    let expected = (square + 1e-5).sqrt() as f32;
    let gains = values(&trainer, "blk.1.ffn_sub_norm.weight");
    assert!(
        gains.len() == 256 && (gains[0] / expected - 1.0).abs() < 1e-6,
        "{} {expected}",
        gains[0]
    );
}

#[test]
fn a_model_is_converted_with_fewer_heads() {
    let model = Model::new(ternary);
    let options = TrainOptions {
        heads: Some(1),
        ..model.options(None)
    };
    let trainer = model.begun(&options);
    let kept = trainer.kept_heads().unwrap();
    assert_eq!((kept.heads, kept.kept), (2, 1));
    assert!(trainer.pruned().is_none());
    // The kept key head, by its values: a half of the rows.
    let value = values(&trainer, "blk.1.attn_v.weight");
    let (first, second) = value.split_at(value.len() / 2);
    let is_zero = |values: &[f32]| values.iter().all(|&value| value == 0.0);
    assert!(is_zero(first) != is_zero(second));
    let own = if is_zero(first) { 128..256 } else { 0..128 };
    let output = values(&trainer, "blk.1.attn_output.weight");
    for row in output.chunks_exact(256) {
        let others = (0..256).filter(|at| !own.contains(at));
        assert!(others.map(|at| row[at]).all(|value| value == 0.0));
    }
    // The norm's inputs are those of the kept heads, and 0.
    let inputs = TensorFile::open(&model.inputs).unwrap();
    let sums = floats(&inputs, "blk.1.attn_output.weight.in_sum2");
    let counts = floats(&inputs, "blk.1.attn_output.weight.counts")[0];
    let squares = sums[own].iter().map(|&sum| f64::from(sum / counts));
    let expected = (squares.sum::<f64>() / 256.0 + 1e-5).sqrt() as f32;
    let gains = values(&trainer, "blk.1.attn_sub_norm.weight");
    assert!(
        (gains[0] / expected - 1.0).abs() < 1e-6,
        "{} {expected}",
        gains[0]
    );
}
