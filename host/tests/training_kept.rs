//! Training with what is kept in fewer numbers: second moments as factors, values of layers in 16 or 8 bits.

use tercet_core::scalar::Scalar;
use tercet_core::train::Activations;
use tercet_host::TensorFile;
use tercet_host::language::{Parameters, Vocabulary};
use tercet_host::parallel::Threads;
use tercet_host::train::{TrainOptions, Trainer};

use crate::files::Folder;
use crate::training::{PARAMETERS, begun, corpus, file, go, options, planned};

/// The bytes of tensors of a checkpoint.
fn bytes(state: &TensorFile, names: &[&str]) -> usize {
    let own = names
        .iter()
        .map(|name| state.get(name).unwrap().bytes.len());
    own.sum()
}

#[test]
fn a_run_with_factored_moments_has_one_file_too() {
    for lean in [false, true] {
        let own = TrainOptions {
            factored: true,
            lean,
            ..options()
        };
        let expected = file(vec![Threads::alone()], &own);
        let stored = TrainOptions {
            factored: false,
            ..own
        };
        assert!(expected != file(vec![Threads::alone()], &stored));
        let (corpus, folder) = (corpus(&own), Folder::new());
        let path = folder.file("checkpoint.safetensors");
        let split = TrainOptions { micro: 1, ..own };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build();
        // Each step anew from a checkpoint, by core on three threads.
        let found = pool.unwrap().install(|| {
            let mut trainer = begun(vec![Scalar; 3], &split);
            while trainer.steps() < own.steps {
                let next = trainer.steps() + 1;
                go(&mut trainer, &corpus, &split, next);
                trainer.save(&path, &corpus).unwrap();
                trainer = begun(vec![Scalar; 3], &split);
                trainer.resume(&path, &corpus).unwrap();
            }
            trainer.file().to_vec()
        });
        assert!(found == expected, "lean: {lean}");
        let state = TensorFile::open(&path).unwrap();
        let (weights, moments): (&[&str], &[&str]) = match lean {
            false => (&["weights"], &["first_moments"]),
            true => (
                &["weights", "exponents"],
                &["first_moments", "moment_scales"],
            ),
        };
        let plan = planned(&own, 1);
        assert_eq!(plan.weights, bytes(&state, weights));
        let factors = bytes(&state, &["second_factors"]);
        let kept = bytes(&state, moments) + factors;
        // And the places of 13 tensors' factors.
        assert_eq!(plan.moments, kept + 13 * 16);
        let values = state.get("first_moments").unwrap().shape[0];
        assert!(factors * 20 < values, "{factors} for {values}");
        let most = if lean { 3.3 } else { 8.1 };
        assert!(((plan.weights + plan.moments) as f64) < most * values as f64);
        // The other form of a state does not go on as this one.
        let mut other = begun(vec![Scalar], &stored);
        let error = other.resume(&path, &corpus).unwrap_err().to_string();
        assert!(
            error.contains("its factored is `yes`, not `none`"),
            "{error}"
        );
    }
}

#[test]
fn a_run_has_one_file_for_each_type_of_activations() {
    let mut files = Vec::new();
    let parameters = Parameters {
        block_count: 4,
        ..PARAMETERS
    };
    let options = TrainOptions {
        parameters,
        ..options()
    };
    let all = planned(&options, 1).activations;
    for (activations, most) in [
        (Activations::F32, 1.0),
        (Activations::Bf16, 0.9),
        (Activations::Int8, 0.8),
    ] {
        let own = TrainOptions {
            activations,
            ..options
        };
        let expected = file(vec![Threads::alone()], &own);
        for recompute in [false, true] {
            let split = TrainOptions {
                micro: 1,
                recompute,
                ..own
            };
            assert!(file(vec![Scalar; 2], &split) == expected, "{split:?}");
        }
        // Offloaded bytes are the same too.
        let folder = Folder::new();
        let mut trainer = begun(vec![Threads::alone()], &own);
        trainer.offload(&folder.file("."));
        go(&mut trainer, &corpus(&own), &own, own.steps);
        assert!(trainer.file() == expected);
        let share = planned(&own, 1).activations as f64 / all as f64;
        assert!(share <= most, "{activations:?}: {share}");
        assert!(!files.contains(&expected), "{activations:?}");
        files.push(expected);
    }
}

#[test]
fn adapters_are_not_factored() {
    let both = TrainOptions {
        adapters: Some(2),
        factored: true,
        ..options()
    };
    let engines = vec![Threads::alone()];
    let refused = Trainer::new(engines, &both, Vocabulary::bytes()).unwrap_err();
    let error = refused.to_string();
    assert!(error.contains("not factored"), "{error}");
}
