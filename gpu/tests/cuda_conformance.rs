//! The conformance table on a device: every digest of an engine is the committed one, with kernels for old devices and for new ones, wgmma among them.

use crate::support::emulator::{checked, device};
use tercet_core::conformance;
use tercet_gpu::AnyEngine;
use tercet_gpu::engine::{Cuda, CudaOptions, TensorCores};

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
        assert_eq!(digests, 110, "{capability:?}");
    }
}

/// The device multiplies and normalizes, the processor does the rest.
#[test]
fn language_models_give_the_committed_digests() {
    let Some(device) = device() else { return };
    device.set("seed=4");
    let options = CudaOptions {
        capability: Some((9, 0)),
        ..CudaOptions::default()
    };
    let mut cuda = Cuda::new(&options).unwrap();
    let mut engine = AnyEngine::Device(&mut cuda);
    let mut digests = 0;
    conformance::run_models(&mut engine, &mut |name, found| {
        assert_eq!(conformance::expected(name), Some(found), "{name}");
        digests += 1;
    });
    assert_eq!(digests, 23);
}
