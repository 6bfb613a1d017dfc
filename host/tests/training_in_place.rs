//! Tensors that are updated during the backward pass: the same file, with fewer sums.

use std::fs;

use tercet_core::gguf::Reader;
use tercet_core::train::Activations;
use tercet_host::TensorFile;
use tercet_host::language::Vocabulary;
use tercet_host::parallel::Threads;
use tercet_host::train::{Batches, Profiled, StepOperation, StepReport, TrainOptions, Trainer};

use crate::files::Folder;
use crate::training::{begun, corpus, options, planned};

/// One part, and no limit of the norm of all gradients.
fn in_place() -> TrainOptions {
    let mut options = options();
    options.adamw.clip = f32::INFINITY;
    options
}

/// Reports of all steps, and the file.
fn run(workers: usize, options: &TrainOptions) -> (Vec<StepReport>, Vec<u8>) {
    let mut trainer = begun(vec![Threads::alone(); workers], options);
    let batches = Batches::new(&corpus(options), options.batch, 0);
    let reports = (0..options.steps).map(|_| trainer.step(&batches).unwrap());
    let reports = reports.collect();
    (reports, trainer.file().to_vec())
}

#[test]
fn the_file_and_the_reports_are_those_of_complete_sums() {
    for (lean, factored, activations) in [
        (false, false, Activations::F32),
        (true, false, Activations::Bf16),
        (false, true, Activations::Int8),
        (true, true, Activations::F32),
    ] {
        for recompute in [false, true] {
            let own = TrainOptions {
                lean,
                factored,
                activations,
                recompute,
                ..in_place()
            };
            assert!(own.is_in_place(1));
            let expected = run(1, &own);
            let parts = TrainOptions { micro: 2, ..own };
            for (workers, others) in [(2, own), (1, parts), (2, parts)] {
                assert!(!others.is_in_place(workers));
                assert!(run(workers, &others) == expected, "{workers} {others:?}");
            }
        }
    }
    // A limit waits for the norm of all gradients.
    assert!(!options().is_in_place(1));
}

#[test]
fn a_plan_has_the_sums_of_the_embedding_and_of_one_tensor() {
    let own = in_place();
    let eight = size_of::<i64>();
    // 259 tokens, and 256 channels on both sides of the largest matrix.
    assert_eq!(planned(&own, 1).sums, eight * 256 * (259 + 256));
    let all = planned(&options(), 1).sums;
    assert_eq!(planned(&own, 2).sums, all);
    // Seven matrices of at most that size.
    assert!(planned(&own, 1).sums < all / 2);
}

#[test]
fn the_time_of_the_updates_is_that_of_the_updates() {
    let options = in_place();
    let mut trainer = begun(vec![Profiled::new(Threads::alone())], &options);
    let batches = Batches::new(&corpus(&options), options.batch, 0);
    trainer.step(&batches).unwrap();
    let profile = trainer.profile();
    let shares = profile.shares.iter();
    let all: f64 = shares.clone().map(|share| share.seconds).sum();
    assert!((all / profile.seconds - 1.0).abs() < 0.05, "{profile:?}");
    let update = shares.filter(|share| share.operation == StepOperation::Update);
    assert!(update.map(|share| share.seconds).sum::<f64>() > 0.0);
}

#[test]
fn a_step_that_fails_between_updates_ends_the_run_until_it_is_resumed() {
    let options = in_place();
    let (_, mut bytes) = run(1, &options);
    let reader = Reader::new(&bytes).unwrap();
    let first = bytes.len() - reader.data().len();
    let place = |name: &str| {
        let mut tensors = reader.tensors();
        let gains = tensors.find(|tensor| tensor.name == name).unwrap();
        first + gains.offset as usize
    };
    // Values near 0 and a last norm with long outputs: the gradients of attention are too large for their sums, and
    // those of the tensors after it, which are updated by then, are not.
    let changes = [
        ("output_norm.weight", 100.0),
        ("blk.0.attn_norm.weight", 0.001),
    ];
    let changes = changes.map(|(name, factor)| (place(name), factor));
    for (place, factor) in changes {
        for gain in bytes[place..].chunks_exact_mut(4).take(256) {
            let own = f32::from_le_bytes(gain.try_into().unwrap());
            gain.copy_from_slice(&(factor * own).to_le_bytes());
        }
    }
    let folder = Folder::new();
    let [path, checkpoint] = ["model.gguf", "checkpoint.safetensors"].map(|name| folder.file(name));
    fs::write(&path, &bytes).unwrap();
    let model = TensorFile::open(&path).unwrap();
    let from = |options: &TrainOptions| {
        let engines = vec![Threads::alone()];
        Trainer::from_model(engines, options, Vocabulary::bytes(), &model, None).unwrap()
    };
    let corpus = corpus(&options);
    let batches = Batches::new(&corpus, options.batch, 0);
    let mut trainer = from(&options);
    trainer.save(&checkpoint, &corpus).unwrap();
    let error = trainer.step(&batches).unwrap_err().to_string();
    assert!(
        error.contains("step 1: the gradients at attn_sub_norm.weight (layer 0)"),
        "{error}"
    );
    let next = Batches::new(&corpus, options.batch, 0);
    let refused = [
        trainer.step(&next).unwrap_err(),
        trainer.save(&checkpoint, &corpus).unwrap_err(),
        trainer
            .export(tercet_core::block::Format::Tq2_0)
            .unwrap_err(),
    ];
    for refused in refused {
        let refused = refused.to_string();
        assert!(refused.contains("updated some of the tensors"), "{refused}");
    }
    // The checkpoint has all that the step changed.
    trainer.resume(&checkpoint, &corpus).unwrap();
    assert!(trainer.file() == from(&options).file());
    trainer.save(&checkpoint, &corpus).unwrap();
    // Complete sums change nothing.
    let parts = TrainOptions {
        micro: 1,
        ..options
    };
    let mut trainer = from(&parts);
    let batches = Batches::new(&corpus, options.batch, 0);
    let error = trainer.step(&batches).unwrap_err().to_string();
    assert!(error.contains("attn_sub_norm.weight"), "{error}");
    trainer.save(&checkpoint, &corpus).unwrap();
}
