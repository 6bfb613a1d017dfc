//! Every operation on several devices when a call of the driver fails, memory ends, or a device is lost: the error
//! names the device, nothing hangs, and what is asked for afterwards has the reference's bits.

use crate::support::cudas::{cudas, emulated_devices, with_memory};
use crate::support::emulator::checked;
use crate::support::operations::{Given, Operation, operations};
use tercet_gpu::engine::{CudaError, CudaOptions, Cudas};

/// Every number where all loads are not checked, else the first few.
fn few<T>(all: &[T], when_checked: usize) -> &[T] {
    &all[..if checked() { when_checked } else { all.len() }]
}

/// The device that an error names, and what failed there.
fn on_device(done: Result<Given, CudaError>, case: &str) -> (usize, CudaError) {
    let error = done.err().unwrap_or_else(|| panic!("{case}: no error"));
    let line = error.to_string();
    assert!(!line.contains('\n'), "{case}: {line}");
    match error {
        CudaError::OnDevice { ordinal, error } => (ordinal, *error),
        error => panic!("{case}: {error}"),
    }
}

#[test]
fn operations_are_those_of_the_reference() {
    let Some(_device) = emulated_devices() else {
        return;
    };
    for devices in 1..4 {
        let mut cudas = cudas(devices);
        for Operation {
            name,
            on_cudas,
            expected,
        } in operations()
        {
            assert_eq!(on_cudas(&mut cudas), Ok(expected), "{name}, {devices}");
        }
    }
}

/// Calls of each kind that fail once: the first, the second, the fifth, and so on, until there are no more.
#[test]
fn every_call_that_fails_is_an_error_of_its_device() {
    let Some(device) = emulated_devices() else {
        return;
    };
    let kinds = [
        "copy", "launch", "sync", "memset", "event", "module", "host",
    ];
    let kinds = few(&kinds, 2);
    // Which device a call is of depends on threads.
    let mut named = [false; 2];
    for operation in &operations() {
        let Operation {
            name,
            on_cudas,
            expected,
        } = operation;
        let mut injected = 0;
        for kind in kinds {
            for &nth in few(&[1, 2, 5, 13, 40], 2) {
                let case = format!("{name}, {kind}:{nth}");
                let mut cudas = cudas(2);
                device.set(&format!("seed={nth},fail={kind}:{nth}:801"));
                let before = device.count("faults");
                let done = on_cudas(&mut cudas);
                device.set("fail=none");
                if device.count("faults") == before {
                    assert_eq!(done.as_ref(), Ok(expected), "{case}");
                    break;
                }
                injected += 1;
                let (ordinal, error) = on_device(done, &case);
                named[ordinal] = true;
                assert!(
                    matches!(error, CudaError::Driver { .. } | CudaError::Launch { .. }),
                    "{case}: {error}"
                );
                assert_eq!(on_cudas(&mut cudas).as_ref(), Ok(expected), "after {case}");
            }
        }
        assert!(
            injected > if checked() { 2 } else { 10 },
            "{name}: {injected}"
        );
    }
    assert_eq!(named, [true; 2]);
}

/// No memory from the n-th allocation on. What works in parts may yet end well.
#[test]
fn memory_that_ends_is_an_error_of_its_device() {
    let Some(device) = emulated_devices() else {
        return;
    };
    for Operation {
        name,
        on_cudas,
        expected,
    } in &operations()
    {
        let mut refused = 0;
        for &nth in few(&[1, 2, 3, 5, 8, 13, 20], 2) {
            let case = format!("{name}, allocation {nth}");
            let mut cudas = cudas(2);
            device.set(&format!("seed={nth},fail=alloc:{nth}+"));
            let before = device.count("faults");
            let done = on_cudas(&mut cudas);
            device.set("fail=none");
            if device.count("faults") == before {
                assert_eq!(done.as_ref(), Ok(expected), "{case}");
                break;
            }
            if done.is_ok() {
                assert_eq!(done.as_ref(), Ok(expected), "{case}");
            } else {
                let (_, error) = on_device(done, &case);
                assert!(error.is_out_of_memory(), "{case}: {error}");
                refused += 1;
            }
            assert_eq!(on_cudas(&mut cudas).as_ref(), Ok(expected), "after {case}");
        }
        assert!(refused > 0, "{name}");
        // One device that is full from the first.
        let mut cudas = with_memory(3, Some(256));
        match on_cudas(&mut cudas) {
            Ok(found) => assert_eq!(&found, expected, "{name}, a full device"),
            full => {
                let (ordinal, error) = on_device(full, name);
                assert!(ordinal == 2 && error.is_out_of_memory(), "{name}: {error}");
            }
        }
    }
}

#[test]
fn a_lost_device_is_named_and_the_others_do_its_work() {
    let Some(device) = emulated_devices() else {
        return;
    };
    for Operation {
        name,
        on_cudas,
        expected,
    } in &operations()
    {
        for &nth in few(&[1, 2, 3, 5, 8], 1) {
            let case = format!("{name}, kernel {nth}");
            let mut three = cudas(3);
            device.set(&format!("seed={nth},fail=lost:{nth}"));
            let before = device.count("faults");
            let done = on_cudas(&mut three);
            device.set("fail=none");
            if device.count("faults") == before {
                assert_eq!(done.as_ref(), Ok(expected), "{case}");
                break;
            }
            let (ordinal, error) = on_device(done, &case);
            assert!(matches!(error, CudaError::Lost { .. }), "{case}: {error}");
            // It stays lost to this engine; an engine of the others has the bits.
            assert_eq!(on_device(on_cudas(&mut three), &case), (ordinal, error));
            let others = (0..3).filter(|&device| device != ordinal);
            let others = others.map(|device| CudaOptions {
                device,
                slot: 4096,
                ..CudaOptions::default()
            });
            let mut others = Cudas::new(&others.collect::<Vec<_>>())
                .unwrap()
                .with_least(1);
            assert_eq!(on_cudas(&mut others).as_ref(), Ok(expected), "after {case}");
        }
    }
    assert_eq!(device.count("hangs"), 0);
}
