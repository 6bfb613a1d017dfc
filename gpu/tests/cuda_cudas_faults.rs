//! Several devices as one engine, when one of them fails or is full.

use crate::support::cluster::{Cloud, NOTHING, options, points, run, with_scalar};
use crate::support::cudas::{clustered, cudas, devices, emulated_devices, with_memory};
use tercet_core::cluster::{Init, Points, Steps, Update, kmeans};
use tercet_core::engine::ClusterEngine;
use tercet_gpu::engine::{CudaError, CudaOptions, Cudas, device_count};

#[test]
fn an_engine_has_a_device_at_least() {
    let Some(_devices) = devices() else { return };
    let none = Cudas::new(&[]).unwrap_err();
    assert_eq!(
        none,
        CudaError::NoDevice {
            ordinal: 0,
            count: 0
        }
    );
    let options = CudaOptions {
        device: 99,
        ..CudaOptions::default()
    };
    let error = Cudas::new(&[CudaOptions::default(), options]).unwrap_err();
    assert!(matches!(
        error.cause(),
        CudaError::NoDevice { ordinal: 99, .. }
    ));
    assert!(
        error.to_string().starts_with("on CUDA device 99: "),
        "{error}"
    );
    let all = Cudas::all().unwrap();
    assert_eq!(all.devices().len(), device_count().unwrap());
}

/// What runs on one device when another has no memory left is not told as if all was well.
#[test]
fn a_device_without_memory_is_named() {
    let Some(_devices) = emulated_devices() else {
        return;
    };
    let values = points(Cloud::Even, 9000, 8, 2);
    let points = Points::new(&values, 8).unwrap();
    let mut cudas = with_memory(3, Some(32 << 10));
    let error = cudas
        .clusters(points, 3, Update::Mean, NOTHING())
        .unwrap_err();
    assert!(error.is_out_of_memory() && error.is_of_the_device());
    assert!(matches!(error, CudaError::OnDevice { ordinal: 2, .. }));
    assert!(
        error
            .to_string()
            .starts_with("on CUDA device 2: out of device memory: "),
        "{error}"
    );
    // Less has room.
    let less = Points::new(&values[..800], 8).unwrap();
    let expected = with_scalar(less, 3, Update::Mean, |problem| {
        run(problem, &options(Init::Random, 7), 0)
    });
    let found = clustered(&mut cudas, less, 3, Update::Mean, Init::Random, 0);
    assert_eq!(found, expected);
}

#[test]
fn a_lost_device_is_named_and_the_others_go_on() {
    let Some(device) = emulated_devices() else {
        return;
    };
    let values = points(Cloud::Groups, 64, 5, 1);
    let points = Points::new(&values, 5).unwrap();
    let expected = with_scalar(points, 4, Update::Mean, |problem| {
        run(problem, &options(Init::Random, 7), 0)
    });
    let mut named = [false; 3];
    for nth in [1, 2, 3, 5, 9, 20, 31, 47] {
        device.set(&format!("seed={nth},fail=lost:{nth}"));
        let mut cudas = cudas(3);
        let problem = cudas.clusters(points, 4, Update::Mean, NOTHING());
        let done = problem.and_then(|mut problem| {
            let options = options(Init::Random, 7);
            kmeans(&mut problem, &options, &mut Steps::Full, &mut |_, _, _| ())
        });
        device.set("fail=none");
        let error = done.unwrap_err();
        let CudaError::OnDevice {
            ordinal,
            error: cause,
        } = &error
        else {
            panic!("{error}");
        };
        assert!(matches!(**cause, CudaError::Lost { .. }), "{error}");
        named[*ordinal] = true;
        // All engines of that device are lost until it is no longer used.
        let options = [0, 1, 2].map(|device| CudaOptions {
            device,
            ..CudaOptions::default()
        });
        let others: Vec<_> = options
            .into_iter()
            .filter(|options| options.device != *ordinal)
            .collect();
        let mut others = Cudas::new(&others).unwrap().with_least(1);
        let found = clustered(&mut others, points, 4, Update::Mean, Init::Random, 0);
        assert_eq!(found, expected, "without device {ordinal}");
    }
    assert!(
        named.iter().filter(|&&named| named).count() > 1,
        "{named:?}"
    );
}

/// A run that fails anywhere names the device, and the next one gives the reference's bits.
#[test]
fn every_fault_in_a_run_is_an_error() {
    let Some(device) = emulated_devices() else {
        return;
    };
    let values = points(Cloud::Groups, 48, 5, 1);
    let points = Points::new(&values, 5).unwrap();
    let options = options(Init::Greedy, 2);
    let expected = with_scalar(points, 4, Update::Mean, |problem| run(problem, &options, 0));
    let mut injected = 0;
    for kind in ["alloc", "copy", "memset", "launch", "event", "sync"] {
        for nth in [1, 2, 4, 30, 77] {
            let mut cudas = cudas(2);
            device.set(&format!("fail={kind}:{nth}:801"));
            let faults = device.count("faults");
            let done =
                cudas
                    .clusters(points, 4, Update::Mean, NOTHING())
                    .and_then(|mut problem| {
                        let steps = &mut Steps::Full;
                        kmeans(&mut problem, &options, steps, &mut |_, _, _| ())
                    });
            device.set("fail=none");
            if device.count("faults") == faults {
                assert_eq!(done, Ok(expected.outcome));
                break;
            }
            injected += 1;
            let error = done.unwrap_err();
            assert!(
                matches!(error, CudaError::OnDevice { .. }),
                "{kind}:{nth}, {error}"
            );
            let mut problem = cudas.clusters(points, 4, Update::Mean, NOTHING()).unwrap();
            assert_eq!(run(&mut problem, &options, 0), expected, "{kind}:{nth}");
        }
    }
    assert!(injected > 20, "{injected}");
}
