//! Training with less: a lean state, a share of zeros, fewer channels, fewer heads.

use std::fs;
use std::path::Path;

use tercet_core::block::{self, Format};
use tercet_core::gguf::Reader;
use tercet_core::quant::ternary::Rule;
use tercet_core::scalar::Scalar;
use tercet_host::TensorFile;
use tercet_host::file::output::Output;
use tercet_host::language::{
    Inputs, LanguageFile, Parameters, RunOptions, View, Vocabulary, Windows, perplexity, run,
};
use tercet_host::parallel::Threads;
use tercet_host::train::{Batches, TrainOptions, Trainer, Watch};

use crate::files::Folder;
use crate::training::{PARAMETERS, TEXT, begun, corpus, file, go, options, planned, tokens};

#[test]
fn a_run_with_a_lean_state_has_one_file_too() {
    let lean = TrainOptions {
        lean: true,
        watch: Watch {
            every: 1,
            plateau: None,
            patience: Some(9),
        },
        ..options()
    };
    let expected = file(vec![Threads::alone()], &lean);
    assert!(expected != file(vec![Threads::alone()], &options()));
    let other = TrainOptions { seed: 2, ..lean };
    assert!(expected != file(vec![Threads::alone()], &other));
    let (corpus, folder) = (corpus(&lean), Folder::new());
    let path = folder.file("checkpoint.safetensors");
    let split = TrainOptions { micro: 1, ..lean };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(3)
        .build()
        .unwrap();
    // Each step anew from a checkpoint, by core on three threads.
    let (found, best) = pool.install(|| {
        let mut trainer = begun(vec![Scalar; 3], &split);
        while trainer.steps() < lean.steps {
            let batches = Batches::new(&corpus, split.batch, trainer.steps());
            trainer.step(&batches).unwrap();
            let cost = trainer.evaluate(Threads::alone, &corpus, &|_| 1).unwrap();
            trainer.watch(&cost);
            trainer.save(&path, &corpus).unwrap();
            trainer = begun(vec![Scalar; 3], &split);
            trainer.resume(&path, &corpus).unwrap();
        }
        (
            trainer.file().to_vec(),
            trainer.export(Format::Tq2_0).unwrap(),
        )
    });
    assert!(found == expected);
    // The last was the best; its weights went through the checkpoint too.
    assert!(best == expected);
    let state = tercet_host::TensorFile::open(&path).unwrap();
    let bytes = |names: &[&str]| {
        let own = names
            .iter()
            .map(|name| state.get(name).unwrap().bytes.len());
        own.sum::<usize>() as f64
    };
    let weights = bytes(&["weights"]) / 2.0;
    let own = [
        "weights",
        "exponents",
        "first_moments",
        "second_moments",
        "moment_scales",
    ];
    assert!(bytes(&own) / weights < 4.2, "{}", bytes(&own) / weights);
    let plan = planned(&lean, 1);
    assert_eq!((plan.weights + plan.moments) as f64, bytes(&own));
    assert_eq!(plan.best as f64, bytes(&["best_weights", "best_exponents"]));
    // Neither form of a state goes on as the other.
    let mut full = begun(
        vec![Scalar],
        &TrainOptions {
            lean: false,
            ..lean
        },
    );
    let error = full.resume(&path, &corpus).unwrap_err().to_string();
    assert!(error.contains("its lean is `yes`, not `none`"), "{error}");
    // A ternary model begins as it is.
    let path = folder.file("model.gguf");
    fs::write(&path, &expected).unwrap();
    let model = tercet_host::TensorFile::open(&path).unwrap();
    let engines = vec![Threads::alone()];
    let second = Trainer::from_model(engines, &lean, Vocabulary::bytes(), &model, None).unwrap();
    assert!(second.file() == expected);
}

#[test]
fn as_many_weights_are_zero_as_are_asked_for() {
    let zeros_of = |bytes: &[u8]| {
        let shares = matrices(bytes).into_iter().map(|(_, values)| {
            values.iter().filter(|&&value| value == 0.0).count() as f64 / values.len() as f64
        });
        shares.collect::<Vec<f64>>()
    };
    let natural = zeros_of(&file(vec![Threads::alone()], &options()));
    assert!(
        natural.iter().all(|share| (0.2..0.3).contains(share)),
        "{natural:?}"
    );
    for rule in [Rule::AbsMean, Rule::Optimal] {
        for lean in [false, true] {
            let of = |zeros| TrainOptions {
                rule,
                lean,
                zeros: Some(zeros),
                ..options()
            };
            let found = file(vec![Threads::alone()], &of(0.8));
            let shares = zeros_of(&found);
            // Weights in codes may be equal: those at the limit are all 0.
            let most = if lean { 0.81 } else { 0.8 + 1e-4 };
            assert!(
                shares.iter().all(|share| (0.8..most).contains(share)),
                "{shares:?}"
            );
            assert!(found == file(vec![Scalar; 2], &of(0.8)), "one file");
        }
    }
    // Less than the rule gives changes nothing.
    let few = TrainOptions {
        zeros: Some(0.1),
        ..options()
    };
    assert!(file(vec![Threads::alone()], &few) == file(vec![Threads::alone()], &options()));
}

/// A model's matrices, decoded.
fn matrices(bytes: &[u8]) -> Vec<(String, Vec<f32>)> {
    let reader = Reader::new(bytes).unwrap();
    let matrices = reader
        .tensors()
        .filter(|tensor| tensor.name.starts_with("blk.") && !tensor.name.contains("norm"));
    let decoded = matrices.map(|tensor| {
        let mut values = vec![0.0; tensor.shape.elements() as usize];
        block::decode(Format::Tq2_0, tensor.data, &mut values).unwrap();
        (tensor.name.to_owned(), values)
    });
    decoded.collect()
}

/// Writes what a model's matrices are multiplied with on a text.
fn record(model: &Path, inputs: &Path) -> Inputs {
    let file = LanguageFile::open(model).unwrap();
    let mut view = View::of(&file).unwrap();
    let model = view.model(&file).unwrap();
    let (recorded, _) = run(
        &mut Scalar,
        &file,
        &model,
        &RunOptions::default(),
        |decoder| {
            decoder.record()?;
            let windows = Windows {
                context: 16,
                begin: Some(256),
                second_half: false,
            };
            perplexity(decoder, &tokens(TEXT), &windows, &|_| 1, &mut |_| {})?;
            Ok(decoder.recorded().unwrap().clone())
        },
    )
    .unwrap();
    let output = Output::create(inputs, [], false).unwrap();
    recorded.write(output, "text", (9, 16)).unwrap();
    recorded
}

#[test]
fn the_most_important_channels_are_kept_and_trained_on() {
    const WIDE: usize = 512;
    const KEPT: usize = 256;
    let of = |channels: usize| TrainOptions {
        parameters: Parameters {
            feed_forward_length: channels as u32,
            ..PARAMETERS
        },
        ..options()
    };
    let folder = Folder::new();
    let (path, inputs) = (folder.file("model.gguf"), folder.file("inputs.gguf"));
    let bytes = file(vec![Threads::alone()], &of(WIDE));
    fs::write(&path, &bytes).unwrap();
    let recorded = record(&path, &inputs);
    let [model, importance] = [&path, &inputs].map(|path| TensorFile::open(path).unwrap());
    let from = |options: &TrainOptions, importance| {
        let engines = vec![Threads::alone()];
        Trainer::from_model(engines, options, Vocabulary::bytes(), &model, importance)
    };
    let narrow = of(KEPT);
    let mut trainer = from(&narrow, Some(&importance)).unwrap();
    let (before, after) = (matrices(&bytes), matrices(trainer.file()));
    let named = |all: &[(String, Vec<f32>)], name: &str| {
        all.iter()
            .find(|(own, _)| own.contains(name))
            .unwrap()
            .1
            .clone()
    };
    // The mean squares times those of the columns, by the recorder's own sums.
    let down = named(&before, "ffn_down");
    let mut all = recorded.matrices();
    let (_, _, sums) = all.find(|(name, ..)| name.contains("ffn_down")).unwrap();
    let scores: Vec<f64> = (0..WIDE)
        .map(|at| {
            let column = down.iter().skip(at).step_by(WIDE);
            sums[at] * column.map(|w| f64::from(w * w)).sum::<f64>()
        })
        .collect();
    let mut order: Vec<usize> = (0..WIDE).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    let share =
        order[..KEPT].iter().map(|&at| scores[at]).sum::<f64>() / scores.iter().sum::<f64>();
    let mut kept = order[..KEPT].to_vec();
    kept.sort_unstable();
    let pruned = trainer.pruned().unwrap();
    assert_eq!((pruned.channels, pruned.kept), (WIDE, KEPT));
    assert!(
        (pruned.importance - share).abs() < 1e-6 && share > 0.55,
        "{pruned:?} {share}"
    );
    let signs = |values: &[f32]| {
        values
            .iter()
            .map(|x| x.total_cmp(&0.0) as i8 * i8::from(*x != 0.0))
            .collect::<Vec<i8>>()
    };
    for name in ["ffn_gate", "ffn_up"] {
        let whole = named(&before, name);
        let rows = kept
            .iter()
            .flat_map(|row| whole[256 * row..][..256].to_vec());
        assert_eq!(
            signs(&named(&after, name)),
            signs(&rows.collect::<Vec<f32>>()),
            "{name}"
        );
    }
    let columns = down
        .chunks_exact(WIDE)
        .flat_map(|row| kept.iter().map(|&at| row[at]));
    assert_eq!(
        signs(&named(&after, "ffn_down")),
        signs(&columns.collect::<Vec<f32>>())
    );
    for name in ["attn_q", "attn_output"] {
        assert_eq!(named(&after, name), named(&before, name), "{name}");
    }
    // It trains on, and a checkpoint of it does not go on as another's.
    let corpus = corpus(&narrow);
    go(&mut trainer, &corpus, &narrow, 1);
    let checkpoint = folder.file("checkpoint.safetensors");
    trainer.save(&checkpoint, &corpus).unwrap();
    let mut same = from(&narrow, Some(&importance)).unwrap();
    same.resume(&checkpoint, &corpus).unwrap();
    assert!(same.file() == trainer.file());
    let mut other = begun(vec![Threads::alone()], &narrow);
    assert!(other.resume(&checkpoint, &corpus).is_err());
    // Nothing to remove, and importances of something else.
    let refused = from(&of(WIDE), Some(&importance)).unwrap_err().to_string();
    assert!(refused.contains("has 512 channels"), "{refused}");
    let refused = from(&narrow, Some(&model)).unwrap_err().to_string();
    assert!(refused.contains("ffn_down.weight.counts"), "{refused}");
    assert!(from(&narrow, None).is_err());
}

/// The rows or columns of a matrix that a key head, the first or the second, makes or takes.
fn of_head(matrix: &(String, Vec<f32>), head: usize) -> Vec<f32> {
    let (name, values) = matrix;
    let half = values.len() / 2;
    match name.contains("attn_output") {
        false => values[head * half..][..half].to_vec(),
        true => {
            let rows = values.chunks_exact(256);
            rows.flat_map(|row| row[head * 128..][..128].to_vec())
                .collect()
        }
    }
}

#[test]
fn heads_that_are_not_kept_are_zero_and_stay_so() {
    let folder = Folder::new();
    let (path, inputs) = (folder.file("model.gguf"), folder.file("inputs.gguf"));
    let bytes = file(vec![Threads::alone()], &options());
    fs::write(&path, &bytes).unwrap();
    let recorded = record(&path, &inputs);
    let [model, importance] = [&path, &inputs].map(|path| TensorFile::open(path).unwrap());
    let of = |options: &TrainOptions, importance| {
        let engines = vec![Threads::alone()];
        Trainer::from_model(engines, options, Vocabulary::bytes(), &model, importance)
    };
    let before = matrices(&bytes);
    // By the recorder's own sums.
    let output = before.iter().find(|(name, _)| name.contains("attn_output"));
    let mut all = recorded.matrices();
    let (_, _, sums) = all.find(|(name, ..)| name.contains("attn_output")).unwrap();
    let mut scores = [0.0; 2];
    for row in output.unwrap().1.chunks_exact(256) {
        for (at, &w) in row.iter().enumerate() {
            scores[at / 128] += f64::from(w * w) * sums[at];
        }
    }
    let kept = usize::from(scores[1] > scores[0]);
    let share = scores[kept] / (scores[0] + scores[1]);
    let one = TrainOptions {
        heads: Some(1),
        ..options()
    };
    let lean = TrainOptions {
        lean: true,
        factored: true,
        ..one
    };
    let optimal = TrainOptions {
        rule: Rule::Optimal,
        recompute: true,
        ..one
    };
    for own in [one, lean, optimal] {
        let mut trainer = of(&own, Some(&importance)).unwrap();
        let found = trainer.kept_heads().unwrap();
        assert_eq!((found.heads, found.kept), (2, 1));
        assert!((found.importance - share).abs() < 1e-6, "{found:?} {share}");
        assert!(trainer.pruned().is_none());
        let corpus = corpus(&own);
        for steps in 0..3 {
            let after = matrices(trainer.file());
            for (before, after) in before.iter().zip(&after) {
                if !after.0.contains("attn") {
                    continue;
                }
                let removed = of_head(after, 1 - kept);
                assert!(removed.iter().all(|&value| value == 0.0), "{}", after.0);
                let signs = |of| of_head(of, kept).into_iter().map(f32::signum);
                let (was, is) = (signs(before), signs(after));
                let changes = was.zip(is).filter(|(was, is)| was != is).count();
                assert!(changes < 3000 * (steps + 1), "{changes}");
                if steps == 0 && own.rule == Rule::AbsMean {
                    assert_eq!(changes, 0, "{}", after.0);
                }
            }
            go(&mut trainer, &corpus, &own, 1);
        }
        assert!(matrices(trainer.file()) != before);
        // As a first model too.
        let again = folder.file("again.gguf");
        fs::write(&again, trainer.file()).unwrap();
        let again = TensorFile::open(&again).unwrap();
        let engines = vec![Threads::alone()];
        let all = TrainOptions { heads: None, ..own };
        let mut next =
            Trainer::from_model(engines, &all, Vocabulary::bytes(), &again, None).unwrap();
        go(&mut next, &corpus, &all, 2);
        let value = matrices(next.file());
        let value = value.iter().find(|(name, _)| name.contains("attn_v"));
        let removed = of_head(value.unwrap(), 1 - kept);
        assert!(removed.iter().all(|&value| value == 0.0));
    }
    // A checkpoint of it does not go on as another's.
    let corpus = corpus(&one);
    let mut trainer = of(&one, Some(&importance)).unwrap();
    go(&mut trainer, &corpus, &one, 1);
    let checkpoint = folder.file("checkpoint.safetensors");
    trainer.save(&checkpoint, &corpus).unwrap();
    let mut same = of(&one, Some(&importance)).unwrap();
    same.resume(&checkpoint, &corpus).unwrap();
    assert!(same.file() == trainer.file());
    let mut other = of(&options(), None).unwrap();
    assert!(other.resume(&checkpoint, &corpus).is_err());
    // Refused.
    let two = TrainOptions {
        heads: Some(2),
        ..one
    };
    let refused = of(&two, Some(&importance)).unwrap_err().to_string();
    assert!(refused.contains("has 2 key heads"), "{refused}");
    let refused = of(&one, None).unwrap_err().to_string();
    assert!(refused.contains("importance"), "{refused}");
    let refused = of(&one, Some(&model)).unwrap_err().to_string();
    assert!(refused.contains("attn_output.weight.counts"), "{refused}");
    let engines = vec![Threads::alone()];
    assert!(Trainer::new(engines, &one, Vocabulary::bytes()).is_err());
    let adapters = TrainOptions {
        adapters: Some(2),
        ..one
    };
    assert!(of(&adapters, Some(&importance)).is_err());
}
