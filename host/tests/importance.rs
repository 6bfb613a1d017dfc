//! How large the inputs of a model's matrices are: recorded alike by every engine, written as llama-imatrix writes
//! it, and what `auto` spends its bits by.

use std::path::{Path, PathBuf};

use tercet_core::block::Format;
use tercet_core::scalar::Scalar;
use tercet_host::convert::Target;
use tercet_host::engine::FlowEngine;
use tercet_host::file::output::Output;
use tercet_host::language::{Inputs, LanguageFile, RunOptions, View, run, tiny};
use tercet_host::parallel::Threads;
use tercet_host::{DType, QuantizeOptions, TensorFile, dequantize, quantize};

use crate::files::runs::run as convert;
use crate::files::{Folder, Given, safetensors, weights};

const TEXT: [u32; 9] = [5, 200, 31, 5, 77, 0, 140, 9, 31];

/// What goes into a file's matrices, by an engine, in steps of so many rows.
fn recorded<E: FlowEngine>(engine: &mut E, file: &LanguageFile, chunk: u32) -> Inputs {
    let mut view = View::of(file).unwrap();
    let model = view.model(file).unwrap();
    let options = RunOptions {
        chunk,
        ..RunOptions::default()
    };
    let recorded = run(engine, file, &model, &options, |decoder| {
        decoder.record()?;
        decoder.prompt(0, &TEXT, &mut |_| {})?;
        Ok(decoder.recorded().cloned())
    });
    recorded.unwrap().0.unwrap()
}

/// The values of a tensor of f32.
fn floats(model: &TensorFile, name: &str) -> Vec<f32> {
    let bytes = model.get(name).unwrap().bytes.as_chunks().0.iter();
    bytes.map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

#[test]
fn inputs_are_what_norms_give_on_every_engine_in_steps_of_any_size() {
    let folder = Folder::new();
    let path = folder.file("floats.gguf");
    tiny::bitnet(&path, tiny::BITNET, 3, DType::F32, false).unwrap();
    let file = LanguageFile::open(&path).unwrap();
    let all = recorded(&mut Threads::default(), &file, 64);
    // A head that is the embedding goes by its name, and is asked for the last token alone.
    let rows: Vec<(&str, u64)> = all.matrices().map(|(name, rows, _)| (name, rows)).collect();
    let layers = tiny::BITNET.block_count as usize;
    assert_eq!(rows.len(), 7 * layers + 1);
    assert_eq!(rows[0], ("blk.0.attn_q.weight", TEXT.len() as u64));
    assert_eq!(rows[7 * layers], ("token_embd.weight", 1));
    // The first layer's queries: the embedding's rows behind the norm.
    let model = TensorFile::open(&path).unwrap();
    let (embedding, gains) = (
        floats(&model, "token_embd.weight"),
        floats(&model, "blk.0.attn_norm.weight"),
    );
    let width = gains.len();
    let mut expected = vec![0.0; width];
    for token in TEXT {
        let row = &embedding[token as usize * width..][..width];
        let mean = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / width as f64;
        let factor = 1.0 / (mean + f64::from(tiny::BITNET.rms_epsilon)).sqrt();
        for ((sum, &x), &gain) in expected.iter_mut().zip(row).zip(&gains) {
            *sum += (f64::from(x) * factor * f64::from(gain)).powi(2);
        }
    }
    let (_, _, sums) = all.matrices().next().unwrap();
    for (found, expected) in sums.iter().zip(&expected) {
        assert!((found / expected - 1.0).abs() < 1e-5, "{found}, {expected}");
    }
    // Of codes of 8 and of 16 bits, and floats in one model.
    let (codes, mixed) = (folder.file("codes.gguf"), folder.file("mixed.gguf"));
    tiny::bitnet(&codes, tiny::BITNET, 3, DType::Block(Format::Tq2_0), false).unwrap();
    tiny::llama(&mixed, tiny::LLAMA, 3, false).unwrap();
    for path in [path, codes, mixed] {
        let file = LanguageFile::open(&path).unwrap();
        let all = recorded(&mut Threads::default(), &file, 64);
        assert!(
            all.matrices()
                .all(|(_, _, sums)| sums.iter().any(|&sum| sum > 0.0))
        );
        assert_eq!(recorded(&mut Threads::alone(), &file, 4), all);
        assert_eq!(recorded(&mut Scalar, &file, 1), all);
    }
}

#[test]
fn a_file_holds_sums_and_counts_as_llama_cpp_names_them() {
    let folder = Folder::new();
    let path = folder.file("model.gguf");
    tiny::llama(&path, tiny::LLAMA, 3, false).unwrap();
    let file = LanguageFile::open(&path).unwrap();
    let inputs = recorded(&mut Threads::default(), &file, 64);
    let out = folder.file("inputs.gguf");
    let write = |force| {
        let output = Output::create(&out, [path.as_path()], force)?;
        inputs.write(output, "a text", (1, 640))
    };
    write(false).unwrap();
    assert!(write(false).unwrap_err().to_string().contains("exists"));
    write(true).unwrap();
    let written = TensorFile::open(&out).unwrap();
    let metadata = |key: &str| {
        let mut pairs = written.metadata().iter();
        pairs.find(|pair| pair.0 == key).unwrap().1.clone()
    };
    assert_eq!(metadata("general.type"), "imatrix");
    assert_eq!(metadata("imatrix.datasets"), "[a text]");
    assert_eq!(metadata("imatrix.chunk_count"), "1");
    assert_eq!(metadata("imatrix.chunk_size"), "640");
    assert_eq!(written.tensors().count(), 2 * inputs.matrices().count());
    for (name, rows, sums) in inputs.matrices() {
        let sums: Vec<f32> = sums.iter().map(|&sum| sum as f32).collect();
        let name = |end: &str| format!("{name}.{end}");
        assert_eq!(floats(&written, &name("in_sum2")), sums);
        assert_eq!(floats(&written, &name("counts")), [rows as f32]);
        let shape = written.get(&name("in_sum2")).unwrap().shape.to_vec();
        assert_eq!(shape, [1, sums.len()]);
    }
}

/// The mean square of an input: of `a` every third counts, of `b` the others.
fn mean(name: &str, input: usize) -> f32 {
    f32::from(u8::from(input.is_multiple_of(3) == (name == "a")))
}

/// Two matrices of the same values, of which those of every third input are large, and what their inputs are, of
/// three rows.
fn given(folder: &Folder) -> (TensorFile, PathBuf) {
    let path = folder.file("in.safetensors");
    let large = |input: usize| if input.is_multiple_of(3) { 100.0 } else { 1.0 };
    let values = weights(1, 4 * 1024).into_iter().enumerate();
    let values: Vec<f32> = values.map(|(at, x)| x * large(at % 1024)).collect();
    let matrices = ["a", "b"].map(|name| Given::f32(name, &[4, 1024], &values));
    safetensors(&path, &matrices, &[]);
    let importance = folder.file("importance.safetensors");
    let sums = ["a", "b"].map(|name| {
        (0..1024)
            .map(|input| 3.0 * mean(name, input))
            .collect::<Vec<f32>>()
    });
    let tensors = [
        Given::f32("a.in_sum2", &[1, 1024], &sums[0]),
        Given::f32("a.counts", &[1], &[3.0]),
        Given::f32("b.in_sum2", &[1, 1024], &sums[1]),
        Given::f32("b.counts", &[1], &[3.0]),
    ];
    safetensors(&importance, &tensors, &[]);
    (TensorFile::open(path).unwrap(), importance)
}

fn auto(bits: f64, importance: &Path) -> QuantizeOptions {
    QuantizeOptions {
        bits: Some(bits),
        importance: Some(importance.to_path_buf()),
        force: true,
        ..QuantizeOptions::new(Target::Auto)
    }
}

#[test]
fn auto_spends_bits_where_products_are_off() {
    let folder = Folder::new();
    let (model, importance) = given(&folder);
    let out = folder.file("out.gguf");
    let (report, output) = convert(&model, &auto(5.1, &importance), &out);
    let bits = |name: &str| {
        let tensor = report.tensors.iter().find(|tensor| tensor.name == name);
        tensor.unwrap().bits_per_weight
    };
    assert!(bits("b") > bits("a"), "{report:?}");
    // Its error is that of the file: what the products of each matrix are off by, beside what they are.
    let restored = folder.file("restored.gguf");
    dequantize(
        &mut Threads::default(),
        &output,
        &Default::default(),
        &restored,
        &(),
    )
    .unwrap();
    let restored = TensorFile::open(restored).unwrap();
    let mut total = 0.0;
    for name in ["a", "b"] {
        let (mut error, mut energy) = (0.0, 0.0);
        let (before, after) = (floats(&model, name), floats(&restored, name));
        for (at, (x, y)) in before.iter().zip(after).enumerate() {
            let weight = f64::from(mean(name, at % 1024));
            let apart = f64::from(*x) - f64::from(y);
            error += apart * apart * weight;
            energy += f64::from(*x) * f64::from(*x) * weight;
        }
        total += error / energy;
    }
    let found = report.auto.unwrap();
    assert_eq!((found.squared_error, found.weighed), (total, true));
    let plain = QuantizeOptions {
        importance: None,
        ..auto(5.1, &importance)
    };
    let (report, _) = convert(&model, &plain, &out);
    assert!(report.auto.is_some_and(|auto| !auto.weighed));
}

#[test]
fn importances_that_are_none_are_refused() {
    let folder = Folder::new();
    let (model, good) = given(&folder);
    let bad = folder.file("bad.safetensors");
    let (ones, short) = (vec![1.0; 1024], vec![1.0; 1000]);
    let mut negative = ones.clone();
    negative[7] = -1.0;
    let tensors = |sums: &[f32], counts: f32| {
        let mut tensors = vec![
            Given::f32("a.counts", &[1], &[counts]),
            Given::f32("b.in_sum2", &[1, 1024], &ones),
            Given::f32("b.counts", &[1], &[1.0]),
        ];
        if !sums.is_empty() {
            tensors.push(Given::f32("a.in_sum2", &[1, sums.len()], sums));
        }
        tensors
    };
    let out = folder.file("out.gguf");
    for (sums, counts, expected) in [
        (&[][..], 1.0, "a.in_sum2"),
        (&short, 1.0, "it has 1000 values, but 1024 are needed"),
        (
            &negative,
            1.0,
            "the importance -1 is negative or not finite",
        ),
        (
            &ones,
            f32::NAN,
            "the importance NaN is negative or not finite",
        ),
        (&ones, 0.0, "it counts no rows"),
    ] {
        safetensors(&bad, &tensors(sums, counts), &[]);
        let refused = quantize(&mut Threads::default(), &model, &auto(5.1, &bad), &out, &());
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("a.") && !out.exists(), "{error}");
    }
    let blocks = QuantizeOptions {
        bits: None,
        target: Target::Blocks(Format::Q4_0),
        ..auto(5.1, &good)
    };
    let refused = quantize(&mut Threads::default(), &model, &blocks, &out, &());
    assert!(refused.unwrap_err().to_string().contains("an importance"));
}

#[test]
fn an_embedding_and_a_head_may_be_missing() {
    let folder = Folder::new();
    let path = folder.file("in.safetensors");
    let values = weights(1, 4 * 1024);
    let names = ["token_embd.weight", "output.weight", "a"];
    let matrices = names.map(|name| Given::f32(name, &[4, 1024], &values));
    safetensors(&path, &matrices, &[]);
    let importance = folder.file("importance.safetensors");
    let tensors = [
        Given::f32("a.in_sum2", &[1, 1024], &[1.0; 1024]),
        Given::f32("a.counts", &[1], &[1.0]),
    ];
    safetensors(&importance, &tensors, &[]);
    let model = TensorFile::open(path).unwrap();
    let (report, _) = convert(&model, &auto(8.5, &importance), &folder.file("out.gguf"));
    // Of alike inputs each loses the same, whether that is said or not.
    let types: Vec<&str> = report
        .tensors
        .iter()
        .map(|tensor| tensor.to.as_str())
        .collect();
    assert_eq!(types, ["q8_0"; 3]);
}
