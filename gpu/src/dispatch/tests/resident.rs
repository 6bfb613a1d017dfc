//! Data for repeated calls: when it goes to the device, and that the bits never depend on it.

use tercet_core::cluster::Points;
use tercet_core::engine::Refused;
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix};
use tercet_core::search::{Cosine, Hit, Int8Rows};
use tercet_host::cluster::KmeansOptions;

use super::{with_costs, without_device};
use crate::dispatch::{
    Cost, Costs, DispatchError, Engine, Job, Location, Operation, Preference, Settings,
};

fn codes(len: usize) -> Vec<i8> {
    (0..len as i64)
        .map(|at| (at * 37 % 251 - 125) as i8)
        .collect()
}

/// The device takes 1 µs and the processor 10 µs, but each copied byte adds 40 ns.
fn costs() -> Costs {
    let mut costs = Costs::none();
    for operation in Operation::ALL {
        costs.set(operation, Engine::Simd, Cost::constant(1e-5, 1e18, 1e18));
        let device = Cost::constant(1e-6, 1e18, 1e18).with_transfer(2.5e7);
        costs.set(operation, Engine::Cuda, device);
    }
    costs
}

#[test]
fn what_lies_there_need_not_cross() {
    let (dispatcher, _) = with_costs(Settings::default(), costs());
    dispatcher.open().unwrap();
    let job = Job::points(Operation::Assign, 1000, 2, 2);
    assert_eq!(dispatcher.choice(&job), Some(Engine::Simd));
    // Labels and distances are still copied.
    let held = dispatcher.explain(&job.holding(2000));
    let device = held.candidates.iter().find(|it| it.engine == Engine::Cuda);
    let crossing = device.unwrap().prediction.unwrap().transfer;
    assert!((crossing - 4e-8 * 8004.0).abs() < 1e-9, "{crossing}");
    assert!(
        held.to_string().contains("2000 bytes on the device"),
        "{held}"
    );
    // At most the bytes read can be held, and a larger number is limited to them.
    assert_eq!(job.holding(u64::MAX).held, job.bytes_in);
    assert_eq!(
        dispatcher.choice(&job.at(Location::Device)),
        Some(Engine::Cuda)
    );
}

#[test]
fn data_goes_there_once_calls_would_have_saved_the_crossing() {
    let (dispatcher, _) = with_costs(Settings::default(), costs());
    dispatcher.open().unwrap();
    // Copying 1000 bytes takes 40 µs; the ten bytes of a call take less than a microsecond.
    let codes = codes(1000);
    let layer = Layer::new(Matrix::new(Layout::Int8, 2, 500, &[1; 1000]).unwrap());
    let resident = dispatcher.resident_layer(layer);
    let x = I8Sym::new(&codes[..500]).unwrap();
    let (mut out, mut there) = ([0.0; 2], Vec::new());
    for _ in 0..12 {
        resident.matvec(x, 0.5, &mut out).unwrap();
        there.push(resident.is_resident());
    }
    // Each call copies the activations, 500 bytes in 20 µs: it never pays off.
    assert_eq!(there, [false; 12]);
    let small = Layer::new(Matrix::new(Layout::Int8, 200, 5, &[1; 1000]).unwrap());
    let resident = dispatcher.resident_layer(small);
    let x = I8Sym::new(&codes[..5]).unwrap();
    let mut out = [0.0; 200];
    resident.matvec(x, 0.5, &mut out).unwrap();
    assert!(!resident.is_resident());
    resident.load().unwrap();
    assert!(resident.is_resident());
    resident.release();
    assert!(!resident.is_resident());
}

#[test]
fn savings_add_up_to_the_crossing() {
    let (dispatcher, _) = with_costs(Settings::default(), costs());
    dispatcher.open().unwrap();
    // Copying 1000 rows of 2 bytes takes 80 µs. A query and a hit of 16 bytes take 0.72 µs, so each call saves 8.28 µs.
    let codes = codes(2000);
    let rows = dispatcher.resident_rows(Int8Rows::new(&codes, 2).unwrap());
    let mut hits = [Hit::default()];
    let mut there = 0;
    for call in 1..=12 {
        rows.search::<Cosine>(&[3, 1], 1, &mut hits).unwrap();
        if rows.is_resident() && there == 0 {
            there = call;
        }
    }
    assert_eq!(there, 10);
    let of = |engine| {
        let metrics = dispatcher.metrics();
        metrics
            .of(Operation::Search, engine)
            .map_or(0, |it| it.calls)
    };
    assert_eq!((of(Engine::Simd), of(Engine::Cuda)), (9, 3));
}

#[test]
fn every_call_gives_the_bits_and_refusals_of_the_dispatcher() {
    let wish = Settings {
        wish: Preference::Cuda,
        ..Settings::default()
    };
    let (dispatcher, told) = with_costs(wish, costs());
    let codes = codes(60 * 4);
    let cloud = Points::new(&codes, 4).unwrap();
    let points = dispatcher.resident_points(cloud);
    let options = KmeansOptions::new(5);
    let found = dispatcher
        .on(Engine::Scalar)
        .kmeans(&codes, 4, None, &options)
        .unwrap();
    let rows = Int8Rows::new(&codes, 4).unwrap();
    let base = dispatcher.resident_rows(rows);
    let bytes: Vec<u8> = codes.iter().map(|it| it.cast_unsigned()).collect();
    let layer = Layer::new(Matrix::new(Layout::Int8, 60, 4, &bytes).unwrap());
    let held = dispatcher.resident_layer(layer);
    let x = I8Sym::new(&codes[..8]).unwrap();
    for engine in [
        None,
        Some(Engine::Scalar),
        Some(Engine::Simd),
        Some(Engine::Cuda),
    ] {
        let (points, base, held) = match engine {
            None => (points.clone(), base.clone(), held.clone()),
            Some(engine) => (points.on(engine), base.on(engine), held.on(engine)),
        };
        assert_eq!(points.kmeans(&options).unwrap(), found);
        let (mut labels, mut distances) = ([9; 60], [9; 60]);
        points
            .assign(&found.centroids, &mut labels, &mut distances)
            .unwrap();
        assert_eq!(
            (&labels[..], &distances[..]),
            (&found.labels[..], &found.distances[..])
        );
        let short = points.assign(&found.centroids[1..], &mut labels, &mut distances);
        assert!(
            matches!(short, Err(DispatchError::Refused(Refused::Cluster(_)))),
            "{short:?}"
        );
        let (mut hits, mut expected) = ([Hit::default(); 6], [Hit::default(); 6]);
        let scalar = dispatcher.on(Engine::Scalar);
        scalar
            .search::<Cosine, _>(rows, &codes[..8], 3, &mut expected)
            .unwrap();
        base.search::<Cosine>(&codes[..8], 3, &mut hits).unwrap();
        assert_eq!(hits, expected);
        let (mut out, mut expected) = ([0.0; 120], [0.0; 120]);
        scalar
            .matmul(&layer, x, &[0.5, 0.1], &mut expected)
            .unwrap();
        held.matmul(x, &[0.5, 0.1], &mut out).unwrap();
        assert_eq!(out, expected);
        let short = held.matmul(x, &[0.5], &mut out);
        assert!(
            matches!(short, Err(DispatchError::Refused(Refused::Linear(_)))),
            "{short:?}"
        );
    }
    // The handle of the device copied it there, for all handles.
    assert!(points.is_resident() && base.is_resident() && held.is_resident());
    assert_eq!(told.lock().unwrap().len(), 1, "{told:?}");
}

#[test]
fn without_a_device_the_host_has_it_all() {
    let (dispatcher, told) = without_device(Settings::default());
    let codes = codes(8);
    let points = dispatcher.resident_points(Points::new(&codes, 2).unwrap());
    let (mut labels, mut distances) = ([9; 4], [9; 4]);
    points.assign(&[0, 0], &mut labels, &mut distances).unwrap();
    assert_eq!(labels, [0; 4]);
    let refused = points.load();
    assert!(
        matches!(refused, Err(DispatchError::Unavailable { .. })),
        "{refused:?}"
    );
    assert!(!points.is_resident());
    assert_eq!(told.lock().unwrap().len(), 1);
}
