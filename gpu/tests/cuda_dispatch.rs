//! The dispatcher with a device: the emulated one, whose costs are made up and whose faults are asked for.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::support::child;
use crate::support::emulator::{device, emulated};
use tercet_core::block::Format;
use tercet_core::cluster::Points;
use tercet_core::engine::Output;
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix};
use tercet_core::number::Random;
use tercet_core::quant::{Codes, Groups, HOST_BITS, Histogram, Method, Rule, ScaleRule, int8};
use tercet_core::search::{Cosine, Hit, Int8Rows};
use tercet_gpu::dispatch::{
    Builder, Cost, Costs, DispatchError, Dispatcher, Engine, Job, Notice, Operation, Preference,
    ResidentLayer, ResidentPoints, ResidentRows, Settings,
};
use tercet_gpu::engine::{Cuda, CudaOptions};
use tercet_host::cluster::KmeansOptions;

type Told = Arc<Mutex<Vec<Notice>>>;

/// A dispatcher whose device does all it can.
fn to_device() -> (Dispatcher, Told) {
    let told = Told::default();
    let tell = Arc::clone(&told);
    let settings = Settings {
        wish: Preference::Cuda,
        ..Settings::default()
    };
    let dispatcher = Builder::new(settings)
        .costs(Costs::builtin(2))
        .listener(move |notice| tell.lock().unwrap().push(notice.clone()))
        .build();
    dispatcher.open().unwrap();
    told.lock().unwrap().clear();
    (dispatcher, told)
}

fn codes(len: usize) -> Vec<i8> {
    let mut random = Random::new(len as u64);
    (0..len)
        .map(|_| (random.below(255) as i64 - 127) as i8)
        .collect()
}

/// What each call gives, one after another; the operation beside it.
fn calls(dispatcher: &Dispatcher) -> Result<Vec<(Operation, String)>, DispatchError> {
    let mut all = Vec::new();
    let mut add = |operation, found: String| all.push((operation, found));
    let points = codes(72 * 9);
    let values: Vec<f32> = codes(2 * 256)
        .iter()
        .map(|&it| f32::from(it) * 0.01)
        .collect();
    let groups = Groups::rows(2, 256)?;
    for method in [
        Method::Symmetric { limit: 127 },
        Method::Ternary {
            rule: Rule::AbsMean,
            scale_rule: ScaleRule::Rule,
        },
        Method::Ternary {
            rule: Rule::Optimal,
            scale_rule: ScaleRule::Rule,
        },
    ] {
        let (mut codes, mut scales) = (vec![0; values.len()], [0.0; 2]);
        let out = Output {
            codes: &mut codes,
            scales: &mut scales,
            zero_points: &mut [],
        };
        let report = dispatcher.quantize(&values, groups, method, out)?;
        add(
            Operation::of(&method),
            format!("{report:?} {codes:?} {scales:?}"),
        );
        let of = Codes {
            groups,
            codes: &codes,
            scales: &scales,
            zero_points: &[],
        };
        let mut back = vec![0.0; values.len()];
        dispatcher.dequantize(of, int8::RANGE, &mut back)?;
        add(Operation::Dequantize, format!("{back:?}"));
    }
    let mut buckets = vec![0; Histogram::<HOST_BITS>::BUCKETS];
    let mut histogram = Histogram::<HOST_BITS>::new(&mut buckets).expect("as many buckets");
    dispatcher.histogram(&values, &mut histogram)?;
    let counted: Vec<_> = histogram.iter().collect();
    add(Operation::Histogram, format!("{counted:?}"));
    let mut blocks = vec![0; 2 * 66];
    dispatcher.encode(
        Format::Tq2_0,
        Rule::AbsMax,
        ScaleRule::Rule,
        &values,
        &mut blocks,
    )?;
    add(Operation::Encode, format!("{blocks:?}"));
    let mut back = vec![0.0; values.len()];
    dispatcher.decode(Format::Tq2_0, &blocks, &mut back)?;
    add(Operation::Decode, format!("{back:?}"));
    let mut options = KmeansOptions::new(3);
    options.run.lloyd.max_iter = 2;
    let found = dispatcher.kmeans(&points, 9, None, &options)?;
    add(Operation::Kmeans, format!("{found:?}"));
    let (mut labels, mut distances) = (vec![0; 72], vec![0; 72]);
    let cloud = Points::new(&points, 9)?;
    dispatcher.assign(cloud, &found.centroids, &mut labels, &mut distances)?;
    add(Operation::Assign, format!("{labels:?} {distances:?}"));
    let rows = Int8Rows::new(&points, 9)?;
    let mut hits = vec![Hit::default(); 2 * 4];
    dispatcher.search::<Cosine, _>(rows, &points[..18], 4, &mut hits)?;
    add(Operation::Search, format!("{hits:?}"));
    let weights: Vec<u8> = points.iter().map(|it| it.cast_unsigned()).collect();
    let matrix = Matrix::new(Layout::Int8, 18, 36, &weights)?;
    let x = I8Sym::new(&points[..72])?;
    let mut out = vec![0.0; 36];
    dispatcher.matmul(&Layer::new(matrix), x, &[0.5, 0.1], &mut out)?;
    add(Operation::Matmul, format!("{out:?}"));
    let x = I8Sym::new(&points[..36])?;
    dispatcher.matvec(&Layer::new(matrix), x, 0.5, &mut out[..18])?;
    add(Operation::Matvec, format!("{:?}", &out[..18]));
    Ok(all)
}

#[test]
fn every_call_gives_the_bits_of_the_processor() {
    let Some(_device) = device() else { return };
    let (dispatcher, told) = to_device();
    let expected = calls(&dispatcher.on(Engine::Scalar)).unwrap();
    assert!(calls(&dispatcher).unwrap() == expected);
    let metrics = dispatcher.metrics();
    for operation in Operation::ALL {
        assert!(metrics.of(operation, Engine::Cuda).is_some(), "{operation}");
    }
    assert_eq!(metrics.fallbacks, 0);
    assert!(told.lock().unwrap().is_empty());
}

#[test]
fn a_call_that_the_device_fails_at_is_finished_with_the_same_bits_and_one_warning() {
    let Some(device) = emulated() else { return };
    for fault in ["fail=launch:9", "fail=alloc:1+"] {
        let (dispatcher, told) = to_device();
        let expected = calls(&dispatcher.on(Engine::Scalar)).unwrap();
        device.set(fault);
        let found = calls(&dispatcher).unwrap();
        device.set("fail=none");
        assert!(found == expected, "{fault}");
        let metrics = dispatcher.metrics();
        let told = told.lock().unwrap();
        assert!(metrics.fallbacks > 0, "{fault}");
        // One for each call that failed, and none besides.
        let failed = told.iter().filter(|it| {
            matches!(
                it,
                Notice::Failed {
                    engine: Engine::Cuda,
                    ..
                }
            )
        });
        assert_eq!(
            failed.count() as u64,
            metrics.fallbacks,
            "{fault}: {told:?}"
        );
        assert_eq!(told.len() as u64, metrics.fallbacks, "{fault}: {told:?}");
        if fault.ends_with('+') {
            // Some operations need no memory but what is there; the device is asked again each time, since it is sound.
            assert!(metrics.fallbacks > 5, "{fault}: {told:?}");
        } else {
            assert_eq!(metrics.fallbacks, 1, "{fault}: {told:?}");
        }
    }
}

/// A large job is not begun where its points have no room: the device is asked, not tried.
#[test]
fn a_large_job_without_room_is_not_begun_on_the_device() {
    let Some(device) = emulated() else { return };
    let told = Told::default();
    let tell = Arc::clone(&told);
    let mut costs = Costs::builtin(2);
    costs.set(
        Operation::Assign,
        Engine::Cuda,
        Cost::constant(0.0, 1e18, 1e18),
    );
    let small = CudaOptions {
        memory: Some(4 << 20),
        ..CudaOptions::default()
    };
    let dispatcher = Builder::new(Settings::default())
        .costs(costs)
        .device(move || Cuda::new(&small).map_err(|error| error.to_string()))
        .listener(move |notice| tell.lock().unwrap().push(notice.clone()))
        .build();
    dispatcher.open().unwrap();
    told.lock().unwrap().clear();
    // 16 MiB of points, more than the device has.
    let codes = codes(16 << 20);
    let points = Points::new(&codes, 64).unwrap();
    let mut results = [(); 2].map(|()| (vec![0; points.len()], vec![0; points.len()]));
    let [(labels, distances), (expected, lengths)] = &mut results;
    let before = (device.count("launches"), device.count("allocations"));
    dispatcher
        .assign(points, &codes[..3 * 64], labels, distances)
        .unwrap();
    assert_eq!(
        (device.count("launches"), device.count("allocations")),
        before
    );
    let on = dispatcher.on(Engine::Threads);
    on.assign(points, &codes[..3 * 64], expected, lengths)
        .unwrap();
    assert!(labels == expected && distances == lengths);
    // Whoever asks for the device has it tried, and hears what it says.
    let forced = dispatcher.on(Engine::Cuda);
    let tried = forced.assign(points, &codes[..3 * 64], expected, lengths);
    let error = tried.unwrap_err().to_string();
    assert!(error.starts_with("cuda failed: "), "{error}");
    assert!(!error.contains("no room on the device for"), "{error}");
    let told = told.lock().unwrap();
    let [Notice::Failed { engine, reason, .. }] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(*engine, Engine::Cuda);
    assert!(reason.contains("no room on the device for"), "{reason}");
    assert_eq!(dispatcher.metrics().fallbacks, 1);
}

/// A lost device is lost to its process, so that this has one of its own.
#[test]
fn a_lost_device_is_given_up_at_once() {
    if child::is_one() {
        let device = emulated().unwrap();
        let (dispatcher, told) = to_device();
        let expected = calls(&dispatcher.on(Engine::Scalar)).unwrap();
        device.set("fail=lost:5");
        assert!(calls(&dispatcher).unwrap() == expected);
        let told = told.lock().unwrap();
        // One for the call that failed, and none for those after it.
        let [
            Notice::Failed {
                next,
                reason,
                given_up: true,
                ..
            },
        ] = &told[..]
        else {
            panic!("{told:?}");
        };
        assert_ne!(*next, Engine::Cuda);
        let explained = dispatcher
            .explain(&Job::decode(1 << 20, 34 << 15))
            .to_string();
        assert!(
            explained.contains("the device has stopped working"),
            "{explained}"
        );
        child::tell(reason);
        // What its memory held cannot be given back.
        std::process::exit(0);
    }
    if emulated().is_none() {
        return;
    }
    let name = "a_lost_device_is_given_up_at_once";
    let told = child::run(module_path!(), name, Path::new(""), &[]);
    assert!(told[0].starts_with("the CUDA device was lost"), "{told:?}");
}

#[test]
fn a_forced_device_that_fails_is_an_error() {
    let Some(device) = emulated() else { return };
    let (dispatcher, _) = to_device();
    device.set("fail=launch:1");
    let failed = dispatcher
        .on(Engine::Cuda)
        .decode(Format::Q8_0, &[1; 34], &mut [0.0; 32]);
    device.set("fail=none");
    assert!(
        matches!(
            failed,
            Err(DispatchError::Engine {
                engine: Engine::Cuda,
                ..
            })
        ),
        "{failed:?}"
    );
}

#[test]
fn without_a_device_the_processor_does_it_and_it_is_told_once() {
    let Some(device) = emulated() else { return };
    device.set("fail=context:1+");
    let told = Told::default();
    let tell = Arc::clone(&told);
    let settings = Settings {
        wish: Preference::Cuda,
        ..Settings::default()
    };
    let dispatcher = Builder::new(settings)
        .costs(Costs::builtin(2))
        .listener(move |notice| tell.lock().unwrap().push(notice.clone()))
        .build();
    let found = calls(&dispatcher).unwrap();
    device.set("fail=none");
    assert!(found == calls(&dispatcher.on(Engine::Simd)).unwrap());
    let told = told.lock().unwrap();
    assert!(matches!(told[..], [Notice::NoDevice { .. }]), "{told:?}");
}

#[test]
fn the_model_follows_costs_that_are_made_up_for_the_device() {
    let Some(_device) = device() else { return };
    let mut costs = Costs::none();
    // From 640 bytes on, that is 128 floats of q8_0 with the copies, the device is the faster.
    costs.set(
        Operation::Decode,
        Engine::Simd,
        Cost::constant(0.0, 1e6, 1e18),
    );
    let device = Cost::constant(320e-6, 1e18, 1e18).with_transfer(2e6);
    costs.set(Operation::Decode, Engine::Cuda, device);
    let settings = Settings {
        tolerance: 0.0,
        ..Settings::default()
    };
    let dispatcher = Builder::new(settings).costs(costs).build();
    dispatcher.open().unwrap();
    let mut by_device = Vec::new();
    for blocks in 1..=8 {
        let (bytes, mut out) = (vec![3; 34 * blocks], vec![0.0; 32 * blocks]);
        dispatcher.decode(Format::Q8_0, &bytes, &mut out).unwrap();
        let metrics = dispatcher.metrics();
        by_device.push(
            metrics
                .of(Operation::Decode, Engine::Cuda)
                .map_or(0, |it| it.calls),
        );
    }
    // A block is 34 + 128 bytes: three are 486, four 648.
    assert_eq!(by_device, [0, 0, 0, 1, 2, 3, 4, 5]);
}

/// What a resident handle of each kind gives, one after another.
fn resident(handles: &Handles<'_>) -> Result<Vec<String>, DispatchError> {
    let Handles {
        points,
        rows,
        layer,
        queries,
    } = handles;
    let mut all = Vec::new();
    let mut options = KmeansOptions::new(5);
    options.run.lloyd.max_iter = 3;
    let found = points.kmeans(&options)?;
    let (mut labels, mut distances) = (vec![0; 900], vec![0; 900]);
    points.assign(&found.centroids, &mut labels, &mut distances)?;
    all.push(format!("{found:?} {labels:?} {distances:?}"));
    let mut hits = vec![Hit::default(); 2 * 4];
    rows.search::<Cosine>(&queries[..18], 4, &mut hits)?;
    all.push(format!("{hits:?}"));
    let (mut one, mut two) = (vec![0.0; 225], vec![0.0; 450]);
    let x = I8Sym::new(&queries[..72])?;
    layer.matmul(x, &[0.5, 0.1], &mut two)?;
    let x = I8Sym::new(&queries[..36])?;
    layer.matvec(x, 0.5, &mut one)?;
    all.push(format!("{two:?} {one:?}"));
    Ok(all)
}

struct Handles<'a> {
    points: ResidentPoints<'a>,
    rows: ResidentRows<Int8Rows<'a>>,
    layer: ResidentLayer<'a>,
    queries: &'a [i8],
}

impl<'a> Handles<'a> {
    /// Handles of the same 8100 codes: 900 points of 9, or 225 rows of 36 weights.
    fn of(dispatcher: &Dispatcher, codes: &'a [i8], bytes: &'a [u8]) -> Self {
        let matrix = Matrix::new(Layout::Int8, 225, 36, bytes).unwrap();
        Self {
            points: dispatcher.resident_points(Points::new(codes, 9).unwrap()),
            rows: dispatcher.resident_rows(Int8Rows::new(codes, 9).unwrap()),
            layer: dispatcher.resident_layer(Layer::new(matrix)),
            queries: &codes[..72],
        }
    }

    fn are_there(&self) -> [bool; 3] {
        [
            self.points.is_resident(),
            self.rows.is_resident(),
            self.layer.is_resident(),
        ]
    }
}

#[test]
fn resident_data_crosses_once_and_gives_the_same_bits() {
    let Some(device) = emulated() else { return };
    let (dispatcher, told) = to_device();
    let codes = codes(8100);
    let bytes: Vec<u8> = codes.iter().map(|it| it.cast_unsigned()).collect();
    let expected = {
        let scalar = dispatcher.on(Engine::Scalar);
        resident(&Handles::of(&scalar, &codes, &bytes)).unwrap()
    };
    let handles = Handles::of(&dispatcher, &codes, &bytes);
    let copied = || device.count("bytes copied");
    let mut crossed = Vec::new();
    for _ in 0..3 {
        let before = copied();
        assert!(resident(&handles).unwrap() == expected);
        assert_eq!(handles.are_there(), [true; 3]);
        crossed.push(copied() - before);
    }
    // Points, rows and weights, 8100 bytes each, cross with the first calls alone; what is small crosses with all of
    // them.
    assert!(crossed[0] >= crossed[1] + 3 * 8100, "{crossed:?}");
    assert_eq!(crossed[1], crossed[2]);
    let metrics = dispatcher.metrics();
    assert_eq!(metrics.fallbacks, 0);
    for operation in [
        Operation::Kmeans,
        Operation::Assign,
        Operation::Search,
        Operation::Matmul,
        Operation::Matvec,
    ] {
        assert_eq!(
            metrics.of(operation, Engine::Cuda).unwrap().calls,
            3,
            "{operation}"
        );
    }
    assert!(told.lock().unwrap().is_empty());
    // Its memory comes back, and it goes there again when it is asked for.
    handles.points.release();
    assert_eq!(handles.are_there(), [false, true, true]);
    handles.points.load().unwrap();
    assert_eq!(handles.are_there(), [true; 3]);
}

#[test]
fn a_device_that_fails_with_resident_data_leaves_it_to_the_host() {
    let Some(device) = emulated() else { return };
    let codes = codes(8100);
    let bytes: Vec<u8> = codes.iter().map(|it| it.cast_unsigned()).collect();
    // A kernel that fails when the data is there, and no room for it from the start.
    for (fault, loaded) in [("fail=launch:2", true), ("fail=alloc:1+", false)] {
        let (dispatcher, told) = to_device();
        let scalar = dispatcher.on(Engine::Scalar);
        let expected = resident(&Handles::of(&scalar, &codes, &bytes)).unwrap();
        let handles = Handles::of(&dispatcher, &codes, &bytes);
        if loaded {
            handles.points.load().unwrap();
        }
        device.set(fault);
        let first = resident(&handles);
        let second = resident(&handles);
        device.set("fail=none");
        assert!(
            first.unwrap() == expected && second.unwrap() == expected,
            "{fault}"
        );
        assert_eq!(handles.points.is_resident(), loaded);
        let told = told.lock().unwrap();
        let failed = told.iter().filter(|it| matches!(it, Notice::Failed { .. }));
        let expected = if loaded { 1 } else { 3 };
        // Once for a kernel; once for each of three handles without room, which are not asked for it again.
        assert_eq!(failed.count(), expected, "{fault}: {told:?}");
        assert_eq!(told.len(), expected, "{fault}: {told:?}");
    }
}

#[test]
fn weights_that_kernels_do_not_take_stay_with_the_host() {
    let Some(_device) = emulated() else { return };
    let (dispatcher, told) = to_device();
    // Pairs of −1 and 128, the most that the layout can hold.
    let bytes = [0xFF, 0x7F].repeat(4 * 40 / 2);
    let matrix = Matrix::new(Layout::Int8Pairs, 4, 40, &bytes).unwrap();
    let layer = dispatcher.resident_layer(Layer::new(matrix));
    let x = [1; 40];
    let x = I8Sym::new(&x).unwrap();
    let (mut found, mut expected) = ([0.0; 4], [0.0; 4]);
    for _ in 0..2 {
        layer.matvec(x, 0.5, &mut found).unwrap();
    }
    layer
        .on(Engine::Scalar)
        .matvec(x, 0.5, &mut expected)
        .unwrap();
    assert_eq!((found, expected), ([0.5 * 20.0 * 127.0; 4], found));
    assert!(!layer.is_resident());
    assert_eq!(told.lock().unwrap().len(), 1);
}
