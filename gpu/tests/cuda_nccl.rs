//! Sums of several devices by NCCL: the bits of copies; and what happens where it is missing, refuses, or fails in
//! the middle.

use crate::support;
use std::path::Path;

use crate::support::cluster::{
    CLOUDS, Cloud, NOTHING, Run, calls, options, points, run, weights, with_scalar,
};
use crate::support::cudas::{clustered, cudas, devices, devices_with_nccl};
use crate::support::emulator::checked;
use crate::support::{child, library};
use tercet_core::cluster::{Init, Points, Steps, Update, kmeans, normalize};
use tercet_core::engine::{ClusterEngine, ClusterProblem};
use tercet_gpu::engine::{CudaError, CudaOptions, Cudas, Exchange};

/// Whatever clusterings of the reference give; by NCCL from two devices on, and with none of the copies between
/// devices.
#[test]
fn points_cluster_as_on_the_reference() {
    let Some(device) = devices_with_nccl() else {
        return;
    };
    let shapes = [
        (7, 3, 1),
        (100, 16, 5),
        (2, 3, 2),
        (131, 33, 40),
        (257, 5, 9),
    ];
    for (index, &(n, dims, k)) in few(&shapes).iter().enumerate() {
        device.set(&format!("seed={index}"));
        let values = points(CLOUDS[index], n, dims, 3);
        let weights = weights(n, 3);
        let plain = Points::new(&values, dims).unwrap();
        let weighted = Points::weighted(&values, dims, &weights).unwrap();
        for (devices, points, init, batch) in [
            (1, plain, Init::PlusPlus, 0),
            (3, plain, Init::Greedy, 0),
            (2, plain, Init::Random, 8),
            (3, plain, Init::Random, 5),
            (2, weighted, Init::PlusPlus, 0),
        ] {
            let k = k.min(points.counted());
            let expected = with_scalar(points, k, Update::Mean, |problem| {
                run(problem, &options(init, 7), batch)
            });
            let copies = device.count("copies between devices");
            let mut cudas = cudas(devices).with_exchange(Exchange::Auto);
            let found = clustered(&mut cudas, points, k, Update::Mean, init, batch);
            assert_eq!(found, expected, "{n} x {dims}, {k}, {devices} devices");
            assert_eq!(device.count("copies between devices"), copies);
        }
    }
    let mut values = points(Cloud::Even, 90, 6, 1);
    let sphere = Update::Sphere(normalize(&mut values, 6).unwrap());
    let points = Points::new(&values, 6).unwrap();
    let expected = with_scalar(points, 7, sphere, |problem| {
        run(problem, &options(Init::PlusPlus, 7), 0)
    });
    let mut cudas = cudas(3).with_exchange(Exchange::Nccl);
    assert_eq!(
        clustered(&mut cudas, points, 7, sphere, Init::PlusPlus, 0),
        expected
    );
    assert!(device.count("NCCL collectives") > 50);
    assert_eq!(device.count("hangs"), 0);
}

/// What the engine chooses for these devices, which may be real ones, with or without NCCL.
#[test]
fn what_auto_chooses_gives_the_bits_of_the_reference() {
    let Some(device) = devices() else { return };
    device.open_nccl();
    let (points, expected) = case();
    for devices in 1..4 {
        let mut cudas = cudas(devices).with_exchange(Exchange::Auto);
        let found = clustered(&mut cudas, points, 4, Update::Mean, Init::Greedy, 0);
        assert_eq!(found, expected, "{devices} devices, {:?}", cudas.exchange());
    }
}

#[test]
fn every_call_of_a_problem_gives_what_the_reference_gives() {
    let Some(device) = devices_with_nccl() else {
        return;
    };
    let values = points(Cloud::Ties, 40, 2, 5);
    let weights: Vec<u32> = (0..40).map(|i| [0, 3, 1][i % 3]).collect();
    let points = Points::weighted(&values, 2, &weights).unwrap();
    let expected = with_scalar(points, 3, Update::Mean, |problem| calls(problem));
    for devices in 1..4 {
        device.set(&format!("seed={devices}"));
        let mut cudas = cudas(devices).with_exchange(Exchange::Nccl);
        let mut problem = cudas.clusters(points, 3, Update::Mean, NOTHING()).unwrap();
        assert_eq!(calls(&mut problem), expected, "{devices} devices");
    }
}

#[test]
fn the_way_is_chosen_and_told() {
    let Some(device) = devices_with_nccl() else {
        return;
    };
    let way = |devices, exchange| {
        let mut cudas = cudas(devices).with_exchange(exchange);
        cudas.exchange().unwrap()
    };
    for (peers, straight) in [("peers=1", Exchange::Peer), ("peers=0", Exchange::Host)] {
        device.set(peers);
        assert_eq!(way(3, Exchange::Auto), Exchange::Nccl);
        assert_eq!(way(2, Exchange::Nccl), Exchange::Nccl);
        assert_eq!(way(3, Exchange::Peer), straight);
        assert_eq!(way(3, Exchange::Host), Exchange::Host);
        // Between one device and itself nothing crosses.
        assert_eq!(way(1, Exchange::Nccl), Exchange::Peer);
    }
    device.set("peers=1");
    // Communicators are made once for a number of devices, and another for a clustering with fewer.
    let made = device.count("NCCL communicators");
    let mut cudas = cudas(3).with_exchange(Exchange::Auto).with_least(50);
    for n in [300, 100, 300, 100, 40] {
        let values = points(Cloud::Even, n, 1, 1);
        let points = Points::new(&values, 1).unwrap();
        let mut problem = cudas.clusters(points, 4, Update::Mean, NOTHING()).unwrap();
        problem.assign_update().unwrap();
        let expected = [Exchange::Nccl, Exchange::Peer][usize::from(n == 40)];
        assert_eq!(problem.exchange(), expected);
    }
    assert_eq!(device.count("NCCL communicators") - made, 5);
    assert_eq!(Exchange::Nccl.to_string(), "nccl");
}

/// NCCL wants different devices. So do not copies.
#[test]
fn a_device_that_comes_twice_takes_copies() {
    let Some(device) = devices_with_nccl() else {
        return;
    };
    let options = [0, 1, 0].map(|device| CudaOptions {
        device,
        ..CudaOptions::default()
    });
    let (points, expected) = case();
    let mut twice = Cudas::new(&options).unwrap().with_least(1);
    assert_eq!(twice.exchange(), Ok(Exchange::Peer));
    let found = clustered(&mut twice, points, 4, Update::Mean, Init::Greedy, 0);
    assert_eq!(found, expected);
    let mut twice = twice.with_exchange(Exchange::Nccl);
    let error = twice.exchange().unwrap_err();
    let line = "NCCL does not work: ncclCommInitAll failed: invalid usage (run with NCCL_DEBUG=WARN for details) (5)";
    assert_eq!(error.to_string(), line);
    assert!(error.is_of_the_device() && !error.is_out_of_memory());
    let refused = twice.clusters(points, 4, Update::Mean, NOTHING());
    assert_eq!(refused.unwrap_err(), error);
    assert!(device.message().contains("device 0 twice"));
}

/// Where all accesses are checked the first two are enough.
fn few<T>(cases: &[T]) -> &[T] {
    &cases[..if checked() { 2 } else { cases.len() }]
}

/// 48 points in four clusters, and what becomes of them.
fn case() -> (Points<'static>, Run) {
    let values = points(Cloud::Groups, 48, 5, 1).leak();
    let points = Points::new(values, 5).unwrap();
    let expected = with_scalar(points, 4, Update::Mean, |problem| {
        run(problem, &options(Init::Greedy, 7), 0)
    });
    (points, expected)
}

/// NCCL that does not start is not used, or is the error where it was asked for.
#[test]
fn where_nccl_does_not_start_sums_are_copied() {
    let Some(device) = devices_with_nccl() else {
        return;
    };
    let (points, expected) = case();
    device.set("fail=nccl-init:1:3");
    let mut auto = cudas(3).with_exchange(Exchange::Auto);
    let found = clustered(&mut auto, points, 4, Update::Mean, Init::Greedy, 0);
    assert_eq!(found, expected);
    // It is not tried at each clustering, but again where it is asked for.
    assert_eq!(auto.exchange(), Ok(Exchange::Peer));
    device.set("fail=nccl-init:1:3");
    let mut asked = auto.with_exchange(Exchange::Nccl);
    let error = asked
        .clusters(points, 4, Update::Mean, NOTHING())
        .unwrap_err();
    assert!(matches!(error, CudaError::Nccl { .. }));
    assert!(
        error
            .to_string()
            .contains("ncclCommInitAll failed: internal error"),
        "{error}"
    );
    let found = clustered(&mut asked, points, 4, Update::Mean, Init::Greedy, 0);
    assert_eq!(found, expected);
    assert_eq!(asked.exchange(), Ok(Exchange::Nccl));
}

/// A failure anywhere in NCCL, in the driver beside it, or of a device is an error in one line, nobody waits for what
/// never comes, and the next run has the reference's bits: by NCCL again.
#[test]
fn every_fault_beside_nccl_is_an_error() {
    let Some(device) = devices_with_nccl() else {
        return;
    };
    let (points, expected) = case();
    let attempt = |cudas: &mut Cudas| {
        let mut problem = cudas.clusters(points, 4, Update::Mean, NOTHING())?;
        let steps = &mut Steps::Full;
        let options = options(Init::Greedy, 7);
        kmeans(&mut problem, &options, steps, &mut |_, _, _| ())
    };
    let (mut by_nccl, mut by_device) = (0, 0);
    let faults = ["nccl", "nccl-end", "nccl-async", "launch", "sync", "graph"];
    for kind in faults {
        for &nth in few(&[3, 1, 2, 7, 12, 20]) {
            let code = if kind.starts_with("nccl") { 6 } else { 801 };
            let mut cudas = cudas(3).with_exchange(Exchange::Nccl);
            // Before the faults, which are then of the run.
            cudas.exchange().unwrap();
            device.set(&format!("seed={nth},fail={kind}:{nth}:{code}"));
            let before = device.count("faults");
            let done = attempt(&mut cudas);
            device.set("fail=none");
            if device.count("faults") == before {
                assert_eq!(done, Ok(expected.outcome));
                continue;
            }
            let error = done.unwrap_err();
            let line = error.to_string();
            assert!(!line.contains('\n'), "{line}");
            match error.cause() {
                CudaError::Nccl { reason } => {
                    by_nccl += 1;
                    assert!(
                        reason.contains("remote process exited"),
                        "{kind}:{nth}, {line}"
                    );
                }
                _ => {
                    by_device += 1;
                    assert!(matches!(error, CudaError::OnDevice { .. }), "{line}");
                }
            }
            let found = clustered(&mut cudas, points, 4, Update::Mean, Init::Greedy, 0);
            assert_eq!(found, expected, "after {kind}:{nth}");
            assert_eq!(cudas.exchange(), Ok(Exchange::Nccl));
        }
    }
    let least = if checked() { 5 } else { 20 };
    assert!(by_nccl + by_device > least, "{by_nccl}, {by_device}");
    assert!(by_nccl > 3 && by_device > 1, "{by_nccl}, {by_device}");
    assert_eq!(device.count("hangs"), 0, "{}", device.message());
}

/// After NCCL has failed a clustering goes on by copies, and gives the same.
#[test]
fn a_clustering_outlives_nccl() {
    let Some(device) = devices_with_nccl() else {
        return;
    };
    let (points, _) = case();
    let centroids: Vec<i8> = (-10..10).map(|i| i * 12).collect();
    let steps = |problem: &mut dyn FnMut() -> u64| [problem(), problem(), problem()];
    let expected = with_scalar(points, 4, Update::Mean, |problem| {
        problem.set_centroids(&centroids).unwrap();
        steps(&mut || problem.assign_update().unwrap().inertia)
    });
    let mut cudas = cudas(3).with_exchange(Exchange::Auto);
    let mut problem = cudas.clusters(points, 4, Update::Mean, NOTHING()).unwrap();
    problem.set_centroids(&centroids).unwrap();
    problem.assign_update().unwrap();
    assert_eq!(problem.exchange(), Exchange::Nccl);
    device.set("fail=nccl-async:1");
    let error = problem.assign_update().unwrap_err();
    assert!(matches!(error.cause(), CudaError::Nccl { .. }), "{error}");
    assert_eq!(problem.exchange(), Exchange::Peer);
    problem.set_centroids(&centroids).unwrap();
    let found = steps(&mut || problem.assign_update().unwrap().inertia);
    assert_eq!(found, expected);
    drop(problem);
    assert_eq!(cudas.exchange(), Ok(Exchange::Nccl));
}

/// A device that is lost leaves the others' kernels waiting for it: they are ended, not waited for.
#[test]
fn a_lost_device_does_not_hold_the_others() {
    let Some(device) = devices_with_nccl() else {
        return;
    };
    let (points, expected) = case();
    let mut named = [false; 3];
    for &nth in few(&[9, 20, 3, 31, 47, 60, 75]) {
        device.set(&format!("seed={nth}"));
        let mut three = cudas(3).with_exchange(Exchange::Nccl);
        three.exchange().unwrap();
        device.set(&format!("fail=lost:{nth}"));
        let done = three
            .clusters(points, 4, Update::Mean, NOTHING())
            .and_then(|mut problem| {
                let (options, steps) = (options(Init::Greedy, 7), &mut Steps::Full);
                kmeans(&mut problem, &options, steps, &mut |_, _, _| ())
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
        drop(three);
        let mut three = cudas(3).with_exchange(Exchange::Nccl);
        let found = clustered(&mut three, points, 4, Update::Mean, Init::Greedy, 0);
        assert_eq!(found, expected);
    }
    let named = named.iter().filter(|&&named| named).count();
    assert!(named > usize::from(!checked()), "{named}");
    assert_eq!(device.count("hangs"), 0, "{}", device.message());
}

/// In a child: what the engine does with whatever NCCL the loader finds there.
#[test]
fn says() {
    if !child::is_one() {
        return;
    }
    // A machine's one device, twice, will do: NCCL is found not to work before it is asked for both.
    let Some(_device) = devices() else { return };
    let (points, expected) = case();
    let mut cudas = cudas(2).with_exchange(Exchange::Auto);
    let found = clustered(&mut cudas, points, 4, Update::Mean, Init::Greedy, 0);
    assert_eq!(found, expected);
    // Devices of a machine need not reach each other.
    let way = cudas.exchange().unwrap();
    assert!(matches!(way, Exchange::Peer | Exchange::Host), "{way:?}");
    let mut cudas = cudas.with_exchange(Exchange::Nccl);
    child::tell(&cudas.exchange().unwrap_err().to_string());
}

/// In a child: whether the machine has NCCL. This process may have opened the emulated one.
#[test]
fn finds() {
    if child::is_one() {
        // SAFETY: it opens what would be the machine's NCCL, as the engine would.
        let found = unsafe { libloading::Library::new("libnccl.so.2") }.is_ok();
        child::tell(if found { "yes" } else { "no" });
    }
}

fn said_in(folder: &Path) -> Option<String> {
    // Where there is no device there is nothing to hear.
    drop(devices()?);
    let told = child::run(module_path!(), "says", folder, &[]);
    assert_eq!(told.len(), 1, "{told:?}");
    told.into_iter().next()
}

#[test]
fn without_nccl_sums_are_copied() {
    let folder = tempfile::tempdir().unwrap();
    if child::run(module_path!(), "finds", folder.path(), &[]) == ["yes"] {
        return support::skip("this machine has NCCL");
    }
    if let Some(said) = said_in(folder.path()) {
        assert_eq!(said, "NCCL does not work: no library libnccl.so.2");
    }
}

#[test]
fn an_nccl_that_will_not_do_is_told() {
    let functions = [
        "ncclGetErrorString",
        "ncclCommInitAll",
        "ncclCommDestroy",
        "ncclCommAbort",
        "ncclCommGetAsyncError",
        "ncclGroupStart",
        "ncclGroupEnd",
        "ncclReduceScatter",
        "ncclAllGather",
    ];
    let all = functions.map(|name| format!("int {name}() {{ return 0; }}\n"));
    let version = |code| format!("int ncclGetVersion(int *v) {{ *v = {code}; return 0; }}\n");
    let without = |missing: &str| {
        all.concat()
            .replace(&format!(" {missing}("), " somethingElse(")
    };
    let cases = [
        (
            version(21805) + &without("ncclAllGather"),
            "it has no function ncclAllGather",
        ),
        (
            version(21805) + &without("ncclGetErrorString"),
            "it has no function ncclGetErrorString",
        ),
        (
            version(2308) + &all.concat(),
            "it has version code 2308; 2.4 or newer is needed",
        ),
        (
            "int ncclGetVersion(int *v) { return 3; }\n".to_owned() + &all.concat(),
            "ncclGetVersion failed: no description (3)",
        ),
    ];
    for (source, reason) in cases {
        let folder = tempfile::tempdir().unwrap();
        if !library::compile_as(folder.path(), "libnccl.so.2", &source) {
            return;
        }
        if let Some(said) = said_in(folder.path()) {
            assert_eq!(said, format!("NCCL does not work: {reason}"));
        }
    }
}
