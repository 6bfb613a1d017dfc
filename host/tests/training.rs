//! Training: one file for any number of workers, any split of the batch, any engine, and for a run that was interrupted.

use std::fs;
use std::sync::Arc;

use tercet_core::engine::TrainEngine;
use tercet_core::scalar::Scalar;
use tercet_host::engine::EngineError;
use tercet_host::language::{
    LanguageFile, Parameters, RunOptions, View, Vocabulary, Windows, perplexity, run, tiny,
};
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;
use tercet_host::train::{Batches, Corpus, TrainOptions, Trainer};

use crate::files::Folder;

const TEXT: &[u8] = b"Call me Ishmael. Some years ago, never mind how long precisely, having little or no \
    money in my purse, and nothing particular to interest me on shore, I thought I would sail about a little and see \
    the watery part of the world. It is a way I have of driving off the spleen and regulating the circulation.";

/// A layer of width 256, and sequences of 16 tokens.
const PARAMETERS: Parameters = Parameters {
    context_length: 16,
    block_count: 1,
    feed_forward_length: 256,
    ..tiny::BITNET
};

fn options() -> TrainOptions {
    TrainOptions {
        steps: 3,
        batch: 4,
        warmup: 1,
        micro: 4,
        ..TrainOptions::new(PARAMETERS)
    }
}

fn tokens(text: &[u8]) -> Vec<u32> {
    text.iter().map(|&byte| byte.into()).collect()
}

fn corpus(options: &TrainOptions) -> Arc<Corpus> {
    Arc::new(Corpus::new(tokens(TEXT), options.context(), Some(256), options.seed).unwrap())
}

fn begun<E: TrainEngine<Failure: Into<EngineError>> + Send>(
    engines: Vec<E>,
    options: &TrainOptions,
) -> Trainer<E> {
    Trainer::new(engines, options, Vocabulary::bytes()).unwrap()
}

/// Takes steps until so many are done.
fn go<E: TrainEngine<Failure: Into<EngineError>> + Send>(
    trainer: &mut Trainer<E>,
    corpus: &Arc<Corpus>,
    options: &TrainOptions,
    steps: u64,
) {
    let batches = Batches::new(corpus, options.batch, trainer.steps());
    while trainer.steps() < steps {
        trainer.step(&batches).unwrap();
    }
}

/// The file of a whole run.
fn file<E: TrainEngine<Failure: Into<EngineError>> + Send>(
    engines: Vec<E>,
    options: &TrainOptions,
) -> Vec<u8> {
    let mut trainer = begun(engines, options);
    go(&mut trainer, &corpus(options), options, options.steps);
    trainer.file().to_vec()
}

#[test]
fn the_file_depends_on_no_split_and_on_no_engine() {
    let options = options();
    let expected = file(vec![Threads::alone()], &options);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(4)
        .build()
        .unwrap();
    for workers in [2, 3, 4] {
        let one = TrainOptions {
            micro: 1,
            ..options
        };
        let found = pool.install(|| file(vec![Threads::alone(); workers], &one));
        assert!(found == expected, "{workers} workers");
    }
    let pairs = TrainOptions {
        micro: 3,
        recompute: true,
        ..options
    };
    assert!(
        file(vec![Threads::alone()], &pairs) == expected,
        "three at a time, computed twice"
    );
    for backend in Backend::all() {
        let engine = Threads::alone().with_backend(backend);
        assert!(file(vec![engine], &options) == expected, "{backend}");
    }
    assert!(file(vec![Scalar], &options) == expected, "core");
    let other = TrainOptions { seed: 2, ..options };
    assert!(
        file(vec![Threads::alone()], &other) != expected,
        "another seed"
    );
}

#[test]
fn a_run_that_was_interrupted_goes_on_with_the_same_bits() {
    let (options, folder) = (options(), Folder::new());
    let corpus = corpus(&options);
    let expected = file(vec![Threads::alone()], &options);
    let path = folder.file("checkpoint.safetensors");
    let mut first = begun(vec![Threads::alone()], &options);
    go(&mut first, &corpus, &options, 2);
    first.save(&path, &corpus).unwrap();
    // By another engine, another split.
    let split = TrainOptions {
        micro: 1,
        recompute: true,
        ..options
    };
    let mut second = begun(vec![Scalar, Scalar], &split);
    second.resume(&path, &corpus).unwrap();
    assert_eq!((second.steps(), second.file()), (2, first.file()));
    go(&mut second, &corpus, &split, 3);
    assert!(second.file() == expected);
}

#[test]
fn a_checkpoint_of_another_run_or_a_torn_one_is_refused() {
    let (options, folder) = (options(), Folder::new());
    let corpus = corpus(&options);
    let path = folder.file("checkpoint.safetensors");
    let mut trainer = begun(vec![Threads::alone()], &options);
    go(&mut trainer, &corpus, &options, 1);
    trainer.save(&path, &corpus).unwrap();
    let whole = fs::read(&path).unwrap();
    let refusal = |options: &TrainOptions, corpus: &Arc<Corpus>| {
        let mut trainer = begun(vec![Threads::alone()], options);
        let before = trainer.file().to_vec();
        let error = trainer.resume(&path, corpus).unwrap_err().to_string();
        assert_eq!((trainer.steps(), trainer.file()), (0, &before[..]));
        error
    };
    for (other, what) in [
        (
            TrainOptions {
                steps: 4,
                ..options
            },
            "its steps is `3`, not `4`",
        ),
        (
            TrainOptions {
                batch: 5,
                ..options
            },
            "its batch is `4`, not `5`",
        ),
        (
            TrainOptions {
                rate: 1e-3,
                ..options
            },
            "its rate is `0.002`, not `0.001`",
        ),
    ] {
        let error = refusal(&other, &corpus);
        assert!(error.contains(what), "{error}");
    }
    let data = Corpus::new(tokens(&TEXT[1..]), options.context(), Some(256), 1).unwrap();
    let error = refusal(&options, &Arc::new(data));
    assert!(error.contains("its data is"), "{error}");
    let narrow = Parameters {
        rms_epsilon: 1e-6,
        ..PARAMETERS
    };
    let narrow = TrainOptions {
        parameters: narrow,
        ..options
    };
    let error = refusal(&narrow, &corpus);
    assert!(error.contains("its model is"), "{error}");
    // Cut anywhere, or with a bit turned in weights or numbers.
    for len in [0, 7, 100, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..len]).unwrap();
        refusal(&options, &corpus);
    }
    let place = whole
        .windows(6)
        .position(|bytes| bytes == b"\"step\"")
        .unwrap()
        + 8;
    for place in [place, whole.len() / 2, whole.len() - 1] {
        let mut turned = whole.clone();
        turned[place] ^= 1;
        fs::write(&path, &turned).unwrap();
        let error = refusal(&options, &corpus);
        assert!(error.contains("not those that were written"), "{error}");
    }
    fs::write(&path, trainer.file()).unwrap();
    let error = refusal(&options, &corpus);
    assert!(error.contains("tercet training 1"), "{error}");
}

#[test]
fn what_an_evaluation_costs_is_what_perplexity_says_of_the_file() {
    let options = options();
    let trainer = begun(vec![Threads::alone()], &options);
    let text = tokens(&TEXT[..77]);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(3)
        .build()
        .unwrap();
    let evaluate = || trainer.evaluate(Threads::alone, &text, Some(256), &|_| 1);
    let found = pool.install(evaluate).unwrap();
    let file = LanguageFile::made("model.gguf".as_ref(), trainer.file().to_vec());
    let mut view = View::of(&file).unwrap();
    let model = view.model(&file).unwrap();
    let windows = Windows {
        context: 16,
        begin: Some(256),
        second_half: false,
    };
    let (expected, _) = run(
        &mut Scalar,
        &file,
        &model,
        &RunOptions::default(),
        |decoder| perplexity(decoder, &text, &windows, &|_| 1, &mut |_| {}),
    )
    .unwrap();
    assert_eq!((found, found.count), (expected, 77));
}

#[test]
fn a_text_is_learned() {
    let options = TrainOptions {
        steps: 30,
        rate: 1e-2,
        warmup: 3,
        ..options()
    };
    let corpus = corpus(&options);
    let batches = Batches::new(&corpus, options.batch, 0);
    let mut trainer = begun(vec![Threads::alone(); 2], &options);
    let costs: Vec<f64> = (0..30)
        .map(|_| trainer.step(&batches).unwrap().mean())
        .collect();
    let (first, last) = (costs[0], costs[25..].iter().sum::<f64>() / 5.0);
    // ln 259 at first; what letters alone cost at last.
    assert!((first - 5.56).abs() < 0.2 && last < 3.0, "{first} {last}");
}

#[test]
fn a_run_that_diverges_is_ended_by_name() {
    let options = TrainOptions {
        rate: 1e30,
        warmup: 1,
        ..options()
    };
    let corpus = corpus(&options);
    let batches = Batches::new(&corpus, options.batch, 0);
    let mut trainer = begun(vec![Threads::alone()], &options);
    let error = (0..3)
        .find_map(|_| trainer.step(&batches).err())
        .unwrap()
        .to_string();
    assert!(
        error.contains("tensor `token_embd.weight`: after step 1"),
        "{error}"
    );
}

#[test]
fn options_that_cannot_be_are_refused() {
    let refusal = |options: TrainOptions| {
        let engines = vec![Threads::alone()];
        Trainer::new(engines, &options, Vocabulary::bytes())
            .unwrap_err()
            .to_string()
    };
    let (of, options) = (
        |parameters| TrainOptions {
            parameters,
            ..options()
        },
        options(),
    );
    let llama = refusal(of(tiny::LLAMA));
    assert!(llama.contains("a llama is not trained"), "{llama}");
    let long = refusal(of(Parameters {
        context_length: 1025,
        ..PARAMETERS
    }));
    assert!(long.contains("1025 positions"), "{long}");
    let none = refusal(TrainOptions {
        batch: 0,
        ..options
    });
    assert!(none.contains("1 at least"), "{none}");
    let many = refusal(TrainOptions {
        batch: 8193,
        ..options
    });
    assert!(many.contains("8193 groups"), "{many}");
    let rate = refusal(TrainOptions {
        rate: f32::NAN,
        ..options
    });
    assert!(rate.contains("NaN"), "{rate}");
    let tokens = refusal(of(Parameters {
        vocab_size: 300,
        ..PARAMETERS
    }));
    assert!(tokens.contains("259 tokens"), "{tokens}");
    let odd = refusal(of(Parameters {
        feed_forward_length: 100,
        ..PARAMETERS
    }));
    assert!(odd.contains("ffn_down"), "{odd}");
}
