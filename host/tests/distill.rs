//! Training with a teacher: one file for every split and engine, and a teacher from which the text is learned.

use std::fs;
use std::path::Path;

use tercet_core::engine::TrainEngine;
use tercet_core::scalar::Scalar;
use tercet_host::engine::EngineError;
use tercet_host::language::{LanguageFile, Parameters, tiny};
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;
use tercet_host::train::{Batches, TrainOptions, Trainer};

use crate::files::Folder;
use crate::training::{begun, corpus, go, options};

/// A larger model, trained a little on the same text.
fn teacher() -> Vec<u8> {
    let options = TrainOptions {
        parameters: Parameters {
            context_length: 32,
            block_count: 2,
            ..options().parameters
        },
        steps: 2,
        ..options()
    };
    let mut trainer = begun(vec![Threads::alone()], &options);
    go(&mut trainer, &corpus(&options), &options, 2);
    trainer.file().to_vec()
}

fn opened(bytes: &[u8]) -> LanguageFile {
    LanguageFile::made(Path::new("teacher.gguf"), bytes.to_vec())
}

/// A run that learns from a teacher.
fn taught<E: TrainEngine<Failure: Into<EngineError>> + Send>(
    engines: Vec<E>,
    options: &TrainOptions,
    teacher: &[u8],
    (temperature, share): (f32, f32),
) -> Trainer<E> {
    let mut trainer = begun(engines, options);
    let done = trainer.learn_from(opened(teacher), temperature, share);
    done.unwrap();
    trainer
}

#[test]
fn a_teacher_s_file_depends_on_no_split_and_on_no_engine() {
    let (options, teacher) = (options(), teacher());
    let corpus = corpus(&options);
    let whole = |mut trainer: Trainer<Threads>, options: &TrainOptions| {
        go(&mut trainer, &corpus, options, options.steps);
        trainer.file().to_vec()
    };
    let by = (2.0, 0.5);
    let one = || vec![Threads::alone()];
    let expected = whole(taught(one(), &options, &teacher, by), &options);
    let split = TrainOptions {
        micro: 1,
        recompute: true,
        ..options
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build();
    let found = pool.unwrap().install(|| {
        let engines = vec![Threads::alone(); 3];
        whole(taught(engines, &split, &teacher, by), &split)
    });
    assert!(found == expected, "three workers");
    for backend in Backend::all() {
        let engines = vec![Threads::alone().with_backend(backend)];
        let found = whole(taught(engines, &options, &teacher, by), &options);
        assert!(found == expected, "{backend}");
    }
    let mut core = taught(vec![Scalar], &options, &teacher, by);
    go(&mut core, &corpus, &options, options.steps);
    assert!(core.file() == expected, "core");
    // What it teaches shows, and nothing of one without a share.
    let plain = whole(begun(one(), &options), &options);
    assert!(expected != plain, "no teacher");
    assert!(whole(taught(one(), &options, &teacher, (2.0, 0.0)), &options) == plain);
    for other in [(3.0, 0.5), (2.0, 0.6)] {
        let found = whole(taught(one(), &options, &teacher, other), &options);
        assert!(found != expected, "{other:?}");
    }
}

#[test]
fn a_run_with_a_teacher_goes_on_only_with_the_same_one() {
    let (options, folder, teacher) = (options(), Folder::new(), teacher());
    let corpus = corpus(&options);
    let path = folder.file("checkpoint.safetensors");
    let engines = || vec![Threads::alone()];
    let mut first = taught(engines(), &options, &teacher, (2.0, 0.5));
    go(&mut first, &corpus, &options, 2);
    first.save(&path, &corpus).unwrap();
    go(&mut first, &corpus, &options, 3);
    let mut second = taught(engines(), &options, &teacher, (2.0, 0.5));
    second.resume(&path, &corpus).unwrap();
    go(&mut second, &corpus, &options, 3);
    assert!(first.file() == second.file());
    let mut others = [
        begun(engines(), &options),
        taught(engines(), &options, &teacher, (1.0, 0.5)),
        taught(engines(), &options, first.file(), (2.0, 0.5)),
    ];
    for other in &mut others {
        let error = other.resume(&path, &corpus).unwrap_err().to_string();
        assert!(error.contains("its teacher is `"), "{error}");
    }
}

#[test]
fn a_teacher_that_cannot_teach_is_refused() {
    let (options, teacher) = (options(), teacher());
    let refusal = |options: &TrainOptions, teacher: &[u8], (temperature, share)| {
        let mut trainer = begun(vec![Threads::alone()], options);
        let refused = trainer.learn_from(opened(teacher), temperature, share);
        refused.unwrap_err().to_string()
    };
    for (temperature, share) in [(0.0, 0.5), (-1.0, 0.5), (1.0, 1.5), (1.0, f32::NAN)] {
        let error = refusal(&options, &teacher, (temperature, share));
        assert!(error.contains("above 0"), "{error}");
    }
    let long = TrainOptions {
        parameters: Parameters {
            context_length: 33,
            ..options.parameters
        },
        ..options
    };
    let error = refusal(&long, &teacher, (1.0, 0.5));
    assert!(
        error.contains("teacher.gguf") && error.contains("33 tokens, but its context has 32"),
        "{error}"
    );
    let (folder, of_pieces) = (Folder::new(), "llama.gguf");
    tiny::llama(&folder.file(of_pieces), tiny::LLAMA_32, 1, false).unwrap();
    let other = fs::read(folder.file(of_pieces)).unwrap();
    let error = refusal(&options, &other, (1.0, 0.5));
    assert!(error.contains("in the model in training"), "{error}");
    let error = refusal(&options, b"GGUF", (1.0, 0.5));
    assert!(error.contains("teacher.gguf"), "{error}");
}

/// Of the text itself a student with a share of 1 sees nothing but what its teacher makes of it.
#[test]
fn a_text_is_learned_from_its_teacher_alone() {
    let options = TrainOptions {
        steps: 30,
        rate: 1e-2,
        warmup: 3,
        ..options()
    };
    let corpus = corpus(&options);
    let last = |mut trainer: Trainer<Threads>| {
        let batches = Batches::new(&corpus, options.batch, 0);
        let costs = (0..30).map(|_| trainer.step(&batches).unwrap().mean());
        let mean = costs.skip(25).sum::<f64>() / 5.0;
        (mean, trainer.file().to_vec())
    };
    let engines = || vec![Threads::alone(); 2];
    let (knows, teacher) = last(begun(engines(), &options));
    let (learned, _) = last(taught(engines(), &options, &teacher, (1.0, 1.0)));
    // ln 259 at first.
    assert!(knows < 3.0 && learned < 3.1, "{knows} {learned}");
}

#[test]
fn a_teacher_is_asked_once_about_a_sequence() {
    let (options, folder, teacher) = (options(), Folder::new(), teacher());
    let corpus = corpus(&options);
    let cache = folder.file("logits.bin");
    let keeping = |engines: usize, options: &TrainOptions, (temperature, share)| {
        let engines = vec![Threads::alone(); engines];
        let mut trainer = taught(engines, options, &teacher, (temperature, share));
        trainer.keep_answers(&cache).unwrap();
        trainer
    };
    let by = (2.0, 0.5);
    let plain = |(temperature, share)| {
        let engines = vec![Threads::alone()];
        let mut trainer = taught(engines, &options, &teacher, (temperature, share));
        go(&mut trainer, &corpus, &options, options.steps);
        trainer.file().to_vec()
    };
    // Two workers write it, one after the other run reads it, at another temperature too.
    let parts = TrainOptions {
        micro: 1,
        ..options
    };
    let mut first = keeping(2, &parts, by);
    let each = 4 * 16 * (1 + 259) + 8;
    assert_eq!(first.answers(), Some((0, each)));
    go(&mut first, &corpus, &parts, options.steps);
    assert!(first.file() == plain(by));
    let (count, _) = first.answers().unwrap();
    let sequences = options.steps * options.batch as u64;
    assert!((1..=sequences).contains(&count), "{count}");
    let used = begun(vec![Threads::alone()], &options).keep_answers(&cache);
    assert!(used.unwrap_err().to_string().contains("without a teacher"));
    let mut used = taught(vec![Threads::alone()], &options, &teacher, by);
    let used = used.keep_answers(&cache).unwrap_err().to_string();
    assert!(used.contains("another run uses it"), "{used}");
    drop(first);
    let size = || fs::metadata(&cache).unwrap().len();
    assert_eq!(size(), 40 + count * each);
    for by in [by, (1.0, 0.9)] {
        let mut second = keeping(1, &options, by);
        assert_eq!(second.answers(), Some((count, each)));
        go(&mut second, &corpus, &options, options.steps);
        assert!(second.file() == plain(by));
        assert_eq!(second.answers(), Some((count, each)));
    }
    // What was not written to its end is written again.
    let bytes = fs::read(&cache).unwrap();
    fs::write(&cache, &bytes[..bytes.len() - 1]).unwrap();
    let mut torn = keeping(1, &options, by);
    assert_eq!(torn.answers(), Some((count - 1, each)));
    go(&mut torn, &corpus, &options, options.steps);
    assert!(torn.file() == plain(by));
    drop(torn);
    assert_eq!(size(), bytes.len() as u64);
    // Logits that are read, and are others than those that were written, end the run.
    let mut other = bytes.clone();
    let logits = 40 + 4 * 16;
    for place in (0..count).map(|at| (logits + at * each) as usize) {
        other[place] ^= 1;
    }
    fs::write(&cache, &other).unwrap();
    let mut changed = keeping(1, &options, by);
    let batches = Batches::new(&corpus, options.batch, 0);
    let error = changed.step(&batches).unwrap_err().to_string();
    assert!(error.contains("changed after it was written"), "{error}");
    assert_eq!(changed.steps(), 0);
    drop(changed);
    // Files of something else.
    let refused = |bytes: &[u8], reason: &str| {
        fs::write(&cache, bytes).unwrap();
        let mut trainer = taught(vec![Threads::alone()], &options, &teacher, by);
        let error = trainer.keep_answers(&cache).unwrap_err().to_string();
        assert!(
            error.contains("logits.bin") && error.contains(reason),
            "{error}"
        );
        assert!(fs::read(&cache).unwrap() == bytes);
    };
    refused(b"GGUF", "does not begin like one");
    other[16] ^= 1;
    refused(&other, "another teacher");
}
