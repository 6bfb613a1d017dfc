//! The conformance table on a device: every digest of an engine is the committed one, with kernels for old devices
//! and for new ones, wgmma among them.

use crate::support::emulator::{checked, device};
use std::path::Path;
use tercet_core::block::Format;
use tercet_core::conformance;
use tercet_core::model::Sampler;
use tercet_gpu::AnyEngine;
use tercet_gpu::engine::{Cuda, CudaOptions, TensorCores};
use tercet_host::DType;
use tercet_host::engine::FlowEngine;
use tercet_host::language::{Generation, LanguageFile, RunOptions, View, generate, run, tiny};
use tercet_host::parallel::Threads;

#[test]
fn every_digest_is_the_committed_one() {
    let Some(device) = device() else { return };
    let capabilities = [(1, (7, 5)), (2, (9, 0)), (3, (8, 0))];
    // Only the old device's where all accesses are checked: other tests run a newer one's kernels on larger cases.
    let capabilities = if checked() {
        &capabilities[..1]
    } else {
        &capabilities
    };
    for &(seed, capability) in capabilities {
        device.set(&format!("seed={seed}"));
        let options = CudaOptions {
            capability: Some(capability),
            tensor_cores: TensorCores::Wgmma,
            ..CudaOptions::default()
        };
        let mut cuda = Cuda::new(&options).unwrap();
        // As the value that commands are given.
        let mut engine = AnyEngine::Device(&mut cuda);
        let mut digests = 0;
        conformance::run_engine(&mut engine, &mut |name, found| {
            assert_eq!(
                conformance::expected(name),
                Some(found),
                "{name}, {capability:?}"
            );
            digests += 1;
        });
        assert_eq!(digests, 111, "{capability:?}");
    }
}

/// The device multiplies and normalizes, the processor does the rest. The suite's models take an emulated one
/// minutes: it runs a few tokens.
#[test]
fn language_models_give_the_bits_of_other_engines() {
    let Some(device) = device() else { return };
    device.set("seed=4");
    let options = CudaOptions {
        capability: Some((9, 0)),
        ..CudaOptions::default()
    };
    let mut cuda = Cuda::new(&options).unwrap();
    if device.is_emulated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny.gguf");
        tiny::bitnet(&path, tiny::BITNET_64, 3, DType::Block(Format::Q2_0), false).unwrap();
        assert_eq!(
            digest(&mut cuda, &path),
            digest(&mut Threads::alone(), &path)
        );
        tiny::llama(&path, tiny::LLAMA_32, 3, true).unwrap();
        assert_eq!(
            digest(&mut cuda, &path),
            digest(&mut Threads::alone(), &path)
        );
        return;
    }
    let mut engine = AnyEngine::Device(&mut cuda);
    let mut digests = 0;
    conformance::run_models(&mut engine, &mut |name, found| {
        assert_eq!(conformance::expected(name), Some(found), "{name}");
        digests += 1;
    });
    assert_eq!(digests, 23);
}

/// Of the logits of five tokens of a prompt and three drawn.
fn digest<E: FlowEngine>(engine: &mut E, path: &Path) -> u64 {
    let file = LanguageFile::open(path).unwrap();
    let mut view = View::of(&file).unwrap();
    let model = view.model(&file).unwrap();
    let how = Generation {
        sampler: Sampler::GREEDY,
        recent: 0,
        tokens: 3,
        ends: &[],
    };
    let generated = run(engine, &file, &model, &RunOptions::default(), |decoder| {
        generate(
            decoder,
            &[1, 7, 2, 5, 3],
            &how,
            None,
            &mut |_| {},
            &mut |_| Ok(true),
        )
    });
    generated.unwrap().0.digest
}
