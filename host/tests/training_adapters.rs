//! Low-rank adapters: few values that are trained, and a whole model that they change.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tercet_core::block::{self, Format};
use tercet_core::engine::TrainEngine;
use tercet_core::gguf::Reader;
use tercet_core::scalar::Scalar;
use tercet_core::train::ternary;
use tercet_host::TensorFile;
use tercet_host::engine::EngineError;
use tercet_host::language::Vocabulary;
use tercet_host::parallel::Threads;
use tercet_host::train::{Batches, Corpus, Tokens, TrainOptions, Trainer};

use crate::files::Folder;
use crate::training::{corpus, file, go, options, planned};

const RANK: usize = 3;
/// Rows and columns of the matrices of the tests' model, in the file's order.
const MATRICES: [(&str, usize, usize); 7] = [
    ("attn_q", 256, 256),
    ("attn_k", 128, 256),
    ("attn_v", 128, 256),
    ("attn_output", 256, 256),
    ("ffn_gate", 256, 256),
    ("ffn_up", 256, 256),
    ("ffn_down", 256, 256),
];

fn adapted() -> TrainOptions {
    TrainOptions {
        adapters: Some(RANK),
        rate: 0.01,
        ..options()
    }
}

/// A trained model in a folder.
fn model(folder: &Folder) -> TensorFile {
    let path = folder.file("model.gguf");
    fs::write(&path, file(vec![Threads::alone()], &options())).unwrap();
    TensorFile::open(&path).unwrap()
}

fn from<E: TrainEngine<Failure: Into<EngineError>> + Send>(
    engines: Vec<E>,
    options: &TrainOptions,
    model: &TensorFile,
) -> Trainer<E> {
    Trainer::from_model(engines, options, Vocabulary::bytes(), model, None).unwrap()
}

/// The values of a tensor of a checkpoint.
fn floats(path: &Path, name: &str) -> Vec<f32> {
    let file = TensorFile::open(path).unwrap();
    let bytes = file.get(name).unwrap().bytes.to_vec();
    let values = bytes.chunks_exact(4);
    values
        .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
        .collect()
}

/// Each matrix' A, of `RANK` rows, and B, of `RANK` columns, or what belongs to them.
fn pairs(values: &[f32]) -> Vec<(&[f32], &[f32])> {
    let mut rest = values;
    let mut pairs = Vec::new();
    for (_, rows, cols) in MATRICES {
        let (a, after) = rest.split_at(RANK * cols);
        let (b, after) = after.split_at(RANK * rows);
        pairs.push((a, b));
        rest = after;
    }
    assert!(rest.is_empty());
    pairs
}

#[test]
fn adapters_have_one_file_and_begin_with_the_model() {
    let (folder, own) = (Folder::new(), adapted());
    let (model, corpus) = (model(&folder), corpus(&own));
    let base = fs::read(folder.file("model.gguf")).unwrap();
    let mut trainer = from(vec![Threads::alone()], &own, &model);
    assert!(trainer.file() == base);
    // A value for each row and column of a matrix, and no other.
    let sides = MATRICES.iter().map(|(_, rows, cols)| rows + cols);
    assert_eq!(trainer.trained(), RANK * sides.sum::<usize>());
    // In place, in spite of the limit of the norm.
    assert!(own.is_in_place(1));
    go(&mut trainer, &corpus, &own, own.steps);
    let expected = trainer.file().to_vec();
    assert!(expected != base);
    let parts = TrainOptions { micro: 1, ..own };
    let other = TrainOptions { seed: 2, ..own };
    let rank = TrainOptions {
        adapters: Some(RANK + 1),
        ..own
    };
    let of = |options: &TrainOptions| {
        let mut trainer = from(vec![Threads::alone()], options, &model);
        go(&mut trainer, &corpus, options, options.steps);
        trainer.file().to_vec()
    };
    assert!(of(&parts) == expected && of(&other) != expected && of(&rank) != expected);
    // By core on three threads, each step anew from a checkpoint.
    let path = folder.file("checkpoint.safetensors");
    let pool = rayon::ThreadPoolBuilder::new();
    let found = pool.num_threads(3).build().unwrap().install(|| {
        let mut trainer = from(vec![Scalar; 3], &parts, &model);
        while trainer.steps() < own.steps {
            let next = trainer.steps() + 1;
            go(&mut trainer, &corpus, &parts, next);
            trainer.save(&path, &corpus).unwrap();
            trainer = from(vec![Scalar; 3], &parts, &model);
            trainer.resume(&path, &corpus).unwrap();
        }
        trainer.file().to_vec()
    });
    assert!(found == expected);
    // The checkpoint has the adapters alone, and goes on as no other run.
    assert_eq!(floats(&path, "weights").len(), trainer.trained());
    let error = from(vec![Scalar], &rank, &model).resume(&path, &corpus);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("its adapters is `3`, not `4`"), "{error}");
}

#[test]
fn the_file_has_the_matrices_plus_the_products_and_all_else_as_it_was() {
    let (folder, own) = (Folder::new(), adapted());
    let (model, corpus) = (model(&folder), corpus(&own));
    for lean in [false, true] {
        let own = TrainOptions { lean, ..own };
        let mut trainer = from(vec![Threads::alone()], &own, &model);
        // With `lean` gains are rounded too.
        let base = trainer.file().to_vec();
        go(&mut trainer, &corpus, &own, own.steps);
        let path = folder.file("checkpoint.safetensors");
        trainer.save(&path, &corpus).unwrap();
        let values = floats(&path, "weights");
        let (before, after) = (
            Reader::new(&base).unwrap(),
            Reader::new(trainer.file()).unwrap(),
        );
        let mut changed = 0;
        for (old, new) in before.tensors().zip(after.tensors()) {
            assert_eq!(old.name, new.name);
            let named =
                |(name, ..): &(&str, usize, usize)| old.name == format!("blk.0.{name}.weight");
            let Some(at) = MATRICES.iter().position(named) else {
                assert!(old.data == new.data, "{}", old.name);
                continue;
            };
            let ((a, b), (_, rows, cols)) = (pairs(&values)[at], MATRICES[at]);
            let [mut old, mut found] = [(); 2].map(|()| vec![0.0; rows * cols]);
            block::decode(
                Format::Tq2_0,
                before.tensors().find(|t| t.name == new.name).unwrap().data,
                &mut old,
            )
            .unwrap();
            block::decode(Format::Tq2_0, new.data, &mut found).unwrap();
            // The model as a run begins with it: its mean magnitude is its scale.
            let nonzero = old.iter().filter(|w| **w != 0.0).count();
            let spread = (rows * cols) as f32 / nonzero as f32;
            let merged: Vec<f32> = (0..rows * cols)
                .map(|place| {
                    let (row, col) = (place / cols, place % cols);
                    let products = (0..RANK)
                        .map(|r| f64::from(b[row * RANK + r]) * f64::from(a[r * cols + col]));
                    (f64::from(old[place] * spread) + products.sum::<f64>()) as f32
                })
                .collect();
            let mut codes = vec![0; rows * cols];
            let scale = ternary(&merged, &mut codes).unwrap().to_f32();
            let differ = codes
                .iter()
                .zip(&found)
                .filter(|(code, found)| (f32::from(**code) * scale - **found).abs() > scale * 2e-3);
            // Sums in another order, and a base in 16 bits, move few weights across a limit.
            let most = if lean {
                rows * cols / 500
            } else {
                rows * cols / 5000
            };
            let differ = differ.count();
            assert!(differ <= most, "{}: {differ}", new.name);
            changed += old
                .iter()
                .zip(&found)
                .filter(|(old, new)| {
                    old.signum() != new.signum() || (**old == 0.0) != (**new == 0.0)
                })
                .count();
        }
        assert!(changed > 1000, "{changed}");
    }
}

/// The gradients of B are those of the matrix times A transposed, those of A are B transposed times them: here the
/// matrix' gradients come from runs that train all weights.
#[test]
fn gradients_are_the_matrix_gradients_by_the_chain_rule() {
    let folder = Folder::new();
    let model = model(&folder);
    let mut own = adapted();
    own.adamw.decay = 0.0;
    own.adamw.clip = f32::INFINITY;
    own.batch = 2;
    let full = TrainOptions {
        adapters: None,
        ..own
    };
    // A text of one byte, whose windows are all the same: so are the sums of any step.
    let text = Tokens::InMemory(vec![97; 400]);
    let corpus = Corpus::new(text, vec![], own.context(), Some(256), own.seed);
    let corpus = Arc::new(corpus.unwrap());
    let path = folder.file("checkpoint.safetensors");
    let mut trainer = from(vec![Threads::alone()], &own, &model);
    let mut before: Option<(Vec<f32>, Vec<f32>)> = None;
    for step in 1..=2u64 {
        // All gradients at the model of now: a tenth of them is the first moment after a step.
        let now = folder.file("now.gguf");
        fs::write(&now, trainer.file()).unwrap();
        let mut all = from(
            vec![Threads::alone()],
            &full,
            &TensorFile::open(&now).unwrap(),
        );
        all.step(&Batches::new(&corpus, own.batch, 0)).unwrap();
        all.save(&path, &corpus).unwrap();
        let gradients = floats(&path, "first_moments");
        trainer.save(&path, &corpus).unwrap();
        let values = floats(&path, "weights");
        trainer
            .step(&Batches::new(&corpus, own.batch, step - 1))
            .unwrap();
        trainer.save(&path, &corpus).unwrap();
        let moments = floats(&path, "first_moments");
        // What this step added to the moments.
        let added: Vec<f32> = match &before {
            None => moments.clone(),
            Some((_, old)) => moments
                .iter()
                .zip(old)
                .map(|(new, old)| new - 0.9 * old)
                .collect(),
        };
        let mut first = 259 * 256 + 256;
        for (((name, rows, cols), (a, b)), (of_a, of_b)) in
            MATRICES.into_iter().zip(pairs(&values)).zip(pairs(&added))
        {
            // The norms before attention's output, the feed-forward network and its last matrix.
            first += match name {
                "attn_output" | "ffn_gate" | "ffn_down" => 256,
                _ => 0,
            };
            let g = &gradients[first..][..rows * cols];
            first += rows * cols;
            let dot = |terms: &mut dyn Iterator<Item = (f32, f32)>| {
                terms.map(|(x, y)| f64::from(x) * f64::from(y)).sum::<f64>()
            };
            let expected_b: Vec<f64> = (0..rows * RANK)
                .map(|at| {
                    let (row, r) = (at / RANK, at % RANK);
                    let (g, a) = (&g[row * cols..][..cols], &a[r * cols..][..cols]);
                    dot(&mut g.iter().copied().zip(a.iter().copied()))
                })
                .collect();
            let expected_a: Vec<f64> = (0..RANK * cols)
                .map(|at| {
                    let (r, col) = (at / cols, at % cols);
                    dot(&mut (0..rows).map(|row| (b[row * RANK + r], g[row * cols + col])))
                })
                .collect();
            close(of_b, &expected_b, &format!("{name}, B, step {step}"));
            match step {
                1 => assert!(of_a.iter().all(|&x| x == 0.0), "{name}"),
                _ => close(of_a, &expected_a, &format!("{name}, A, step {step}")),
            }
        }
        before = Some((values, moments));
    }
}

/// Compares values with expected ones, by the root mean square of these.
fn close(found: &[f32], expected: &[f64], what: &str) {
    let squares = expected.iter().map(|x| x * x).sum::<f64>();
    let size = (squares / expected.len() as f64).sqrt();
    assert!(size > 0.0, "{what}");
    for (found, expected) in found.iter().zip(expected) {
        let off = (f64::from(*found) - expected).abs() / size;
        assert!(off < 1e-3, "{what}: {found} {expected} {off}");
    }
}

#[test]
fn what_adapters_need_is_said_and_planned() {
    let own = adapted();
    let refused = |options: &TrainOptions| {
        let engines = vec![Threads::alone()];
        Trainer::new(engines, options, Vocabulary::bytes())
            .unwrap_err()
            .to_string()
    };
    let alone = refused(&own);
    assert!(alone.contains("begins with one"), "{alone}");
    for rank in [0, 257] {
        let rank = TrainOptions {
            adapters: Some(rank),
            ..own
        };
        let refused = refused(&rank);
        assert!(refused.contains("from 1 to 256"), "{refused}");
    }
    let (plan, full) = (planned(&own, 1), planned(&options(), 1));
    // Floats with two moments and a sum for each value, and the model's weights as they are.
    let values = RANK
        * MATRICES
            .iter()
            .map(|(_, rows, cols)| rows + cols)
            .sum::<usize>();
    assert_eq!((plan.adapters, plan.moments), (12 * values, 8 * values));
    assert_eq!((plan.weights, full.adapters), (full.weights, 0));
    assert!(plan.kept() < full.kept() / 2, "{plan:?} {full:?}");
}
