//! Training: one file for any number of workers, any split of the batch, any engine, and for a run that was
//! interrupted.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tercet_core::block::{self, Format};
use tercet_core::engine::TrainEngine;
use tercet_core::f16;
use tercet_core::gguf::Reader;
use tercet_core::quant::ternary::Rule;
use tercet_core::scalar::Scalar;
use tercet_core::train::{Fall, Schedule};
use tercet_host::convert::{DequantizeOptions, FloatType};
use tercet_host::dequantize;
use tercet_host::engine::EngineError;
use tercet_host::language::{
    Architecture, Extras, LanguageFile, Parameters, Role, RunOptions, View, Vocabulary, Windows,
    perplexity, run, tiny,
};
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;
use tercet_host::train::{
    Batches, Corpus, MemoryPlan, PlannedRun, Profiled, RatePoint, RateTest, StepOperation,
    StepShare, TokenFile, TokenWriter, Tokens, TrainOptions, Trainer, Verdict, Watch,
};

use crate::files::Folder;

pub(crate) const TEXT: &[u8] = b"Call me Ishmael. Some years ago, never mind how long precisely, having little or no \
    money in my purse, and nothing particular to interest me on shore, I thought I would sail about a little and see \
    the watery part of the world. It is a way I have of driving off the spleen and regulating the circulation.";

/// A layer of width 256, and sequences of 16 tokens.
pub(crate) const PARAMETERS: Parameters = Parameters {
    context_length: 16,
    block_count: 1,
    feed_forward_length: 256,
    ..tiny::BITNET
};

pub(crate) fn options() -> TrainOptions {
    TrainOptions {
        steps: 3,
        batch: 4,
        warmup: 1,
        micro: 4,
        ..TrainOptions::new(PARAMETERS)
    }
}

pub(crate) fn tokens(text: &[u8]) -> Vec<u32> {
    text.iter().map(|&byte| byte.into()).collect()
}

/// A text, of which 77 tokens are held out too.
fn corpus_of(text: &[u8], options: &TrainOptions) -> Arc<Corpus> {
    let (train, held_out) = (Tokens::InMemory(tokens(text)), tokens(&TEXT[..77]));
    Arc::new(Corpus::new(train, held_out, options.context(), Some(256), options.seed).unwrap())
}

pub(crate) fn corpus(options: &TrainOptions) -> Arc<Corpus> {
    corpus_of(TEXT, options)
}

pub(crate) fn begun<E: TrainEngine<Failure: Into<EngineError>> + Send>(
    engines: Vec<E>,
    options: &TrainOptions,
) -> Trainer<E> {
    Trainer::new(engines, options, Vocabulary::bytes()).unwrap()
}

/// Takes steps until so many are done.
pub(crate) fn go<E: TrainEngine<Failure: Into<EngineError>> + Send>(
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
pub(crate) fn file<E: TrainEngine<Failure: Into<EngineError>> + Send>(
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
    let error = refusal(&options, &corpus_of(&TEXT[1..], &options));
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
        assert!(error.contains("changed after they were written"), "{error}");
    }
    fs::write(&path, trainer.file()).unwrap();
    let error = refusal(&options, &corpus);
    assert!(error.contains("tercet training 2"), "{error}");
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
    let corpus = corpus(&options);
    let evaluate = || trainer.evaluate(Threads::alone, &corpus, &|_| 1);
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
fn a_run_that_waits_for_evaluations_goes_on_with_the_same_bits() {
    let options = TrainOptions {
        steps: 12,
        fall: Fall::TwoStage,
        rate: 0.02,
        watch: Watch {
            every: 1,
            plateau: Some(2),
            patience: Some(5),
        },
        ..options()
    };
    let folder = Folder::new();
    // Tokens that never come in the text: the more is learned of that, the more they cost.
    let (train, held_out) = (Tokens::InMemory(tokens(TEXT)), (150..227).collect());
    let corpus = Corpus::new(train, held_out, options.context(), Some(256), options.seed).unwrap();
    let corpus = Arc::new(corpus);
    let path = folder.file("checkpoint.safetensors");
    // Each step anew from a checkpoint, or all at once.
    let run = |interrupted: bool| {
        let mut trainer = begun(vec![Threads::alone()], &options);
        let mut told = Vec::new();
        let mut best = trainer.file().to_vec();
        let mut rates = Vec::new();
        while !trainer.is_over() {
            let batches = Batches::new(&corpus, options.batch, trainer.steps());
            let report = trainer.step(&batches).unwrap();
            rates.push(report.rate);
            assert!(options.watch.is_due(report.step, options.steps));
            let cost = trainer.evaluate(Threads::alone, &corpus, &|_| 1).unwrap();
            let verdict = trainer.watch(&cost);
            if verdict == Verdict::Best {
                best = trainer.file().to_vec();
                assert_eq!(trainer.best(), Some(report.step));
            }
            told.push((cost.sum, verdict));
            if interrupted {
                trainer.save(&path, &corpus).unwrap();
                trainer = begun(vec![Threads::alone()], &options);
                trainer.resume(&path, &corpus).unwrap();
            }
        }
        let last = trainer.file().to_vec();
        assert!(trainer.export(Format::Tq2_0).unwrap() == best);
        // The weights of the last step are still there.
        assert!(trainer.file() == last && last != best);
        (told, rates, best)
    };
    let whole = run(false);
    let verdicts: Vec<Verdict> = whole.0.iter().map(|&(_, verdict)| verdict).collect();
    let end = [
        Verdict::Best,
        Verdict::Waited(1),
        Verdict::Halved,
        Verdict::Waited(3),
        Verdict::Halved,
        Verdict::Over,
    ];
    assert!(verdicts.ends_with(&end), "{verdicts:?}");
    assert!(run(true) == whole);
    // The rate of the schedule, halved as often.
    let schedule = Schedule {
        fall: Fall::TwoStage,
        rate: 0.02,
        last: options.last,
        warmup: 1,
        steps: 12,
    };
    let last = verdicts.len() as u64 - 1;
    let halved = verdicts[..verdicts.len() - 1].iter();
    let halved = halved
        .filter(|&&verdict| verdict == Verdict::Halved)
        .count();
    let expected = schedule.at(last) * 0.5f32.powi(halved as i32);
    assert_eq!(whole.1.last(), Some(&expected));
}

#[test]
fn a_model_is_trained_on_from_where_it_is() {
    let (options, folder) = (options(), Folder::new());
    let corpus = corpus(&options);
    let mut trainer = begun(vec![Threads::alone()], &options);
    go(&mut trainer, &corpus, &options, 2);
    let path = folder.file("model.gguf");
    fs::write(&path, trainer.export(Format::Tq1_0).unwrap()).unwrap();
    let from = |path: &Path, options: &TrainOptions| {
        let model = tercet_host::TensorFile::open(path).unwrap();
        Trainer::from_model(
            vec![Threads::alone()],
            options,
            Vocabulary::bytes(),
            &model,
            None,
        )
    };
    let mut second = from(&path, &options).unwrap();
    // The same codes and scales; the moments begin anew.
    assert!(second.file() == trainer.file());
    go(&mut second, &corpus, &options, 1);
    assert!(second.file() != trainer.file());
    // Floats are taken as they are.
    let floats = folder.file("floats.gguf");
    let as_floats = DequantizeOptions {
        dtype: FloatType::F32,
        force: false,
    };
    let model = tercet_host::TensorFile::open(&path).unwrap();
    dequantize(&mut Threads::default(), &model, &as_floats, &floats, &()).unwrap();
    assert!(from(&floats, &options).unwrap().file() == trainer.file());
    // A checkpoint of the one does not go on as the other.
    let checkpoint = folder.file("checkpoint.safetensors");
    trainer.save(&checkpoint, &corpus).unwrap();
    let error = second.resume(&checkpoint, &corpus).unwrap_err().to_string();
    assert!(error.contains("its first weights is `the seed`"), "{error}");
    let wide = TrainOptions {
        parameters: Parameters {
            feed_forward_length: 512,
            ..PARAMETERS
        },
        ..options
    };
    let error = from(&path, &wide).unwrap_err().to_string();
    assert!(
        error.contains("blk.0.ffn_gate.weight") && error.contains("[256, 256], not [512, 256]"),
        "{error}"
    );
}

#[test]
fn weights_are_ternary_by_the_rule_that_is_asked_for() {
    let folder = Folder::new();
    let two = TrainOptions {
        steps: 2,
        ..options()
    };
    let optimal = TrainOptions {
        rule: Rule::Optimal,
        ..two
    };
    let corpus = corpus(&optimal);
    let mut trainer = begun(vec![Threads::alone()], &optimal);
    go(&mut trainer, &corpus, &optimal, 2);
    assert!(trainer.file() != file(vec![Threads::alone()], &two));
    let path = folder.file("checkpoint.safetensors");
    trainer.save(&path, &corpus).unwrap();
    let checkpoint = tercet_host::TensorFile::open(&path).unwrap();
    let masters = checkpoint.get("weights").unwrap().bytes;
    let mut masters = masters
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()).abs());
    let reader = Reader::new(trainer.file()).unwrap();
    let mut matrices = 0;
    for tensor in reader.tensors() {
        let count = tensor.shape.elements() as usize;
        let mut magnitudes: Vec<f32> = masters.by_ref().take(count).collect();
        if !tensor.name.starts_with("blk.") || tensor.name.contains("norm") {
            continue;
        }
        // The best k of the largest magnitudes: the sum's square over k is the greatest.
        magnitudes.sort_by(|a, b| b.total_cmp(a));
        let (mut sum, mut best) = (0.0, (0.0, 0, 0.0));
        for (k, &magnitude) in (1u32..).zip(&magnitudes) {
            sum += f64::from(magnitude);
            if sum * sum / f64::from(k) > best.0 {
                best = (sum * sum / f64::from(k), k, sum / f64::from(k));
            }
        }
        let (_, coded, scale) = best;
        let mut values = vec![0.0; count];
        block::decode(Format::Tq2_0, tensor.data, &mut values).unwrap();
        let kept = values.iter().filter(|&&value| value != 0.0);
        assert_eq!(kept.count(), coded as usize, "{:?}", tensor.name);
        let scale = f16::from_f32(scale as f32).to_f32();
        assert!(
            values
                .iter()
                .all(|value| [0.0, scale].contains(&value.abs()))
        );
        matrices += 1;
    }
    assert_eq!(matrices, 7);
    // A model begins as it is by this rule too.
    let path = folder.file("model.gguf");
    fs::write(&path, trainer.file()).unwrap();
    let model = tercet_host::TensorFile::open(&path).unwrap();
    let engines = vec![Threads::alone()];
    let second = Trainer::from_model(engines, &optimal, Vocabulary::bytes(), &model, None).unwrap();
    assert!(second.file() == trainer.file());
}

#[test]
fn the_other_gate_is_trained_too() {
    let parameters = Parameters {
        architecture: Architecture::BitnetSquaredRelu,
        ..PARAMETERS
    };
    let options = TrainOptions {
        steps: 2,
        parameters,
        ..options()
    };
    let found = file(vec![Threads::alone()], &options);
    assert!(found == file(vec![Scalar], &options));
    let silu = TrainOptions {
        parameters: PARAMETERS,
        ..options
    };
    assert_ne!(found.len(), file(vec![Scalar], &silu).len());
    let file = LanguageFile::made("model.gguf".as_ref(), found);
    let mut view = View::of(&file).unwrap();
    let config = *view.model(&file).unwrap().config();
    assert_eq!(Parameters::of(&config), parameters);
}

#[test]
fn tokens_in_a_file_train_as_tokens_in_memory() {
    let (options, folder) = (options(), Folder::new());
    let path = folder.file("tokens");
    let held = corpus(&options);
    let mut writer = TokenWriter::create(&path, 7, held.held_out()).unwrap();
    let all = tokens(TEXT);
    writer.extend(&all[..100]).unwrap();
    writer.extend(&all[100..]).unwrap();
    let bytes = writer.finish().unwrap();
    assert_eq!(bytes, 32 + 4 * (77 + all.len() as u64));
    // Those of other texts are not taken.
    assert!(TokenFile::open(&path, 8).unwrap().is_none());
    let file = TokenFile::open(&path, 7).unwrap().unwrap();
    let held_out = file.held_out();
    let mapped = Tokens::Mapped(file);
    let mapped = Corpus::new(mapped, held_out, options.context(), Some(256), options.seed).unwrap();
    assert_eq!(mapped.digest(), held.digest());
    let mut trainer = begun(vec![Threads::alone()], &options);
    go(&mut trainer, &Arc::new(mapped), &options, options.steps);
    assert!(trainer.file() == self::file(vec![Threads::alone()], &options));
    // Torn anywhere, or of another kind.
    let whole = fs::read(&path).unwrap();
    for bytes in [
        &whole[..20],
        &whole[..whole.len() - 3],
        &whole[..32 + 8],
        &whole[1..],
        &[],
    ] {
        fs::write(&path, bytes).unwrap();
        let error = TokenFile::open(&path, 7).unwrap_err().to_string();
        assert!(error.contains("file of tokens"), "{error}");
    }
}

#[test]
fn a_text_is_learned() {
    for lean in [false, true] {
        let options = TrainOptions {
            steps: 30,
            rate: 1e-2,
            warmup: 3,
            lean,
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
        assert!(
            (first - 5.56).abs() < 0.2 && last < 3.0,
            "{lean}: {first} {last}"
        );
    }
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
    let folder = Folder::new();
    let path = folder.file("checkpoint.safetensors");
    trainer.save(&path, &corpus).unwrap();
    let before = trainer.file().to_vec();
    let error = (0..3)
        .find_map(|_| trainer.step(&batches).err())
        .unwrap()
        .to_string();
    assert!(
        error.contains("tensor `token_embd.weight`: after step 1"),
        "{error}"
    );
    // The last good checkpoint stands.
    trainer.resume(&path, &corpus).unwrap();
    assert_eq!((trainer.steps(), trainer.file()), (0, &before[..]));
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
    assert!(llama.contains("a llama cannot be trained"), "{llama}");
    let long = refusal(of(Parameters {
        context_length: 1025,
        ..PARAMETERS
    }));
    assert!(long.contains("1025 positions"), "{long}");
    let none = refusal(TrainOptions {
        batch: 0,
        ..options
    });
    assert!(none.contains("at least 1"), "{none}");
    let rule = refusal(TrainOptions {
        rule: Rule::AbsMax,
        ..options
    });
    assert!(rule.contains("absmean or optimal"), "{rule}");
    for zeros in [0.0, 1.0, f32::NAN] {
        let refused = refusal(TrainOptions {
            zeros: Some(zeros),
            ..options
        });
        assert!(refused.contains("the share of zeros"), "{refused}");
    }
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

pub(crate) fn planned(options: &TrainOptions, workers: usize) -> MemoryPlan {
    let corpus = corpus(options);
    let run = PlannedRun::on(workers);
    MemoryPlan::of(
        Threads::alone(),
        options,
        &Vocabulary::bytes(),
        &corpus,
        &run,
    )
    .unwrap()
}

/// That the sums are those of a run is a test of `growth.rs`, where nothing else allocates.
#[test]
fn a_plan_shows_what_parts_workers_and_recomputing_take() {
    let options = TrainOptions {
        parameters: Parameters {
            block_count: 3,
            ..PARAMETERS
        },
        ..options()
    };
    let plan = planned(&options, 1);
    assert_eq!((plan.batch, plan.micro, plan.workers), (4, 4, 1));
    assert_eq!((plan.best, plan.checkpoint), (0, 0));
    let two = planned(&options, 2);
    assert_eq!(two.kept() - plan.kept(), plan.sums + plan.activations);
    let one = TrainOptions {
        micro: 1,
        ..options
    };
    let one = planned(&one, 1);
    assert!(one.activations < plan.activations / 2 && one.sums == plan.sums);
    let twice = TrainOptions {
        recompute: true,
        ..options
    };
    assert!(planned(&twice, 1).activations < plan.activations);
    // A part is at most the batch.
    let large = TrainOptions {
        micro: 100,
        ..options
    };
    assert_eq!(planned(&large, 1), plan);
    let waits = Watch {
        patience: Some(1),
        ..options.watch
    };
    let waits = TrainOptions {
        watch: waits,
        ..options
    };
    assert_eq!(planned(&waits, 1).best, plan.weights);
    // What a run is refused for, its plan is too.
    let none = TrainOptions {
        batch: 0,
        ..options
    };
    let (corpus, vocabulary, engine) = (corpus(&options), Vocabulary::bytes(), Threads::alone());
    let refusal = |options, workers| {
        let run = PlannedRun::on(workers);
        let refused = MemoryPlan::of(engine, options, &vocabulary, &corpus, &run);
        refused.unwrap_err().to_string()
    };
    assert!(refusal(&none, 1).contains("at least 1"));
    // Offloading moves activations. A teacher's probabilities are added, and it is refused as by a run.
    let of = |run: &PlannedRun<'_>| MemoryPlan::of(engine, &options, &vocabulary, &corpus, run);
    let moved = PlannedRun {
        offloads: true,
        ..PlannedRun::on(1)
    };
    let moved = of(&moved).unwrap();
    assert!(plan.offloaded == 0 && moved.offloaded > 0);
    assert_eq!(moved.activations + moved.offloaded, plan.activations);
    let taught_by = |parameters: Parameters| {
        let options = TrainOptions {
            parameters,
            ..options
        };
        let trainer = Trainer::new(vec![engine], &options, vocabulary.clone()).unwrap();
        let teacher = LanguageFile::made("teacher.gguf".as_ref(), trainer.file().to_vec());
        of(&PlannedRun {
            teacher: Some(&teacher),
            ..PlannedRun::on(1)
        })
    };
    let taught = taught_by(options.parameters).unwrap();
    let targets = options.context() * options.micro;
    let probabilities = 4 * targets * vocabulary.tokens.len();
    assert_eq!(taught.probabilities, probabilities);
    assert_eq!(taught.kept(), plan.kept() + probabilities);
    assert!(plan.teacher == 0 && taught.teacher > 0);
    let short = Parameters {
        context_length: options.parameters.context_length / 2,
        ..options.parameters
    };
    let refused = taught_by(short).unwrap_err().to_string();
    assert!(refused.contains("but its context has"), "{refused}");
    assert!(refusal(&options, 0).contains("a worker at least"));
}

#[test]
fn the_largest_batch_is_the_last_that_fits() {
    let (options, vocabulary) = (options(), Vocabulary::bytes());
    let corpus = corpus(&options);
    let largest = |(parts, workers), budget| {
        let run = PlannedRun {
            saves: true,
            ..PlannedRun::on(workers)
        };
        MemoryPlan::largest(
            Threads::alone(),
            &options,
            &vocabulary,
            &corpus,
            &run,
            (parts, budget),
        )
    };
    let of = |micro, parts, workers| {
        let options = TrainOptions {
            micro,
            batch: micro * parts,
            ..options
        };
        let run = PlannedRun {
            saves: true,
            ..PlannedRun::on(workers)
        };
        MemoryPlan::of(Threads::alone(), &options, &vocabulary, &corpus, &run).unwrap()
    };
    for (parts, workers, micro) in [(1, 1, 5), (3, 2, 7), (2, 4, 100)] {
        let plan = of(micro, parts, workers.min(parts));
        let next = of(micro + 1, parts, workers.min(parts)).total();
        for budget in [plan.total(), next - 1] {
            let found = largest((parts, workers), budget as u64).unwrap();
            assert_eq!(found, plan, "{parts} parts, {budget} bytes");
        }
    }
    // Sums have room for 2^13 groups of 64 tokens.
    let all = largest((2, 2), u64::MAX).unwrap();
    assert_eq!((all.batch, all.micro), (1 << 13, 1 << 12));
    let needed = of(1, 2, 2).total();
    let refused = largest((2, 2), needed as u64 - 1).unwrap_err().to_string();
    assert!(
        refused.contains(&format!("needs {needed} bytes")),
        "{refused}"
    );
}

#[test]
fn a_profile_adds_up_and_changes_no_bit() {
    let options = TrainOptions {
        parameters: Parameters {
            block_count: 2,
            ..PARAMETERS
        },
        micro: 1,
        ..options()
    };
    let expected = file(vec![Threads::alone()], &options);
    let all = Parameters::tensors(&options.parameters, Extras::default());
    let weights = |role| {
        let all = all.iter().filter(move |slot| slot.role == role);
        all.map(|slot| slot.values() as u64).sum::<u64>()
    };
    let tokens = options.steps * (options.batch * options.context()) as u64;
    let matrices = tokens * weights(Role::Matrix);
    let downs = all.iter().filter(|slot| slot.name.contains("ffn_down"));
    let last = tokens * downs.map(|slot| slot.values() as u64).sum::<u64>();
    for (workers, recompute) in [(1, false), (2, true)] {
        let options = TrainOptions {
            recompute,
            ..options
        };
        let mut trainer = begun(vec![Profiled::new(Threads::alone()); workers], &options);
        assert_eq!(trainer.profile().steps, 0);
        go(&mut trainer, &corpus(&options), &options, options.steps);
        assert!(trainer.file() == expected, "{workers} workers");
        let profile = trainer.profile();
        assert_eq!((profile.steps, profile.workers), (3, workers));
        let of = |operation| {
            let mut shares = profile.shares.iter();
            shares.find(|share| share.operation == operation).copied()
        };
        let products = |operation| of(operation).unwrap().multiply_adds;
        // The second time all but the product of a layer that nothing later needs.
        let again = if recompute { matrices - last } else { 0 };
        assert_eq!(products(StepOperation::Products), matrices + again);
        assert_eq!(products(StepOperation::InputGradients), matrices);
        assert_eq!(products(StepOperation::MatrixGradients), matrices);
        // Forwards, of the matrix, and of the inputs with 16 bits.
        let head = 4 * tokens * weights(Role::Embedding);
        assert_eq!(products(StepOperation::Head), head);
        for operation in [
            StepOperation::Loss,
            StepOperation::Attention,
            StepOperation::AttentionGradients,
            StepOperation::Gates,
            StepOperation::Update,
            StepOperation::Encode,
        ] {
            assert!(of(operation).is_some(), "{}", operation.name());
        }
        // All time is in one share each.
        let sum = |of: fn(&StepShare) -> f64| profile.shares.iter().map(of).sum::<f64>();
        let seconds = sum(|share| share.seconds);
        assert!(
            (seconds / profile.seconds - 1.0).abs() < 1e-6,
            "{profile:?}"
        );
        assert!((sum(|share| share.share) - 1.0).abs() < 1e-6, "{profile:?}");
        let most = profile.most().unwrap();
        assert!(most.gain() > 1.0 && most.gain() <= 2.0, "{most:?}");
    }
}

#[test]
fn rates_rise_until_the_loss_diverges_and_a_tenth_of_the_best_is_proposed() {
    let options = options();
    let corpus = corpus(&options);
    let try_rates = |test: &RateTest| {
        let trainer = begun(vec![Threads::alone()], &options);
        trainer.try_rates(&Batches::new(&corpus, options.batch, 0), test)
    };
    let test = RateTest {
        lowest: 1e-4,
        highest: 1e-2,
        steps: 21,
    };
    let curve = try_rates(&test).unwrap();
    assert_eq!(curve, try_rates(&test).unwrap());
    assert_eq!(curve.points.len(), 21);
    let rates: Vec<f32> = curve.points.iter().map(|point| point.rate).collect();
    assert_eq!((rates[0], rates[20]), (1e-4, 1e-2));
    assert!((rates[10] / 1e-3 - 1.0).abs() < 1e-5, "{rates:?}");
    // The first weights are those of a run.
    let mut trainer = begun(vec![Threads::alone()], &options);
    let first = trainer
        .step(&Batches::new(&corpus, options.batch, 0))
        .unwrap();
    assert_eq!(curve.points[0].loss, first.mean());
    // A twentieth of the steps on each side.
    let near: f64 = curve.points[4..7].iter().map(|point| point.loss).sum();
    assert!((curve.points[5].smooth - near / 3.0).abs() < 1e-9);
    let smooth = |point: &RatePoint| point.smooth;
    let least = curve
        .points
        .iter()
        .map(smooth)
        .fold(f64::INFINITY, f64::min);
    assert_eq!(curve.least.unwrap().smooth, least);
    assert_eq!(curve.proposed(), curve.least.map(|point| point.rate / 10.0));
    assert!(least < first.mean());
    // Far too high rates end it, with a proposal from before or none.
    let high = RateTest {
        highest: 1e30,
        ..test
    };
    let curve = try_rates(&high).unwrap();
    assert!(curve.points.len() < 21, "{curve:?}");
    for (lowest, highest, steps) in [
        (0.0, 1.0, 9),
        (1.0, 1.0, 9),
        (f32::NAN, 1.0, 9),
        (1.0, f32::INFINITY, 9),
        (0.1, 1.0, 1),
    ] {
        let test = RateTest {
            lowest,
            highest,
            steps,
        };
        let refused = try_rates(&test).unwrap_err().to_string();
        assert!(refused.contains("a test of "), "{refused}");
    }
}
