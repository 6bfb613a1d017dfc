//! Looking at models: inspect, compare, calibrate.

use crate::files;
use crate::files::{Folder, Given, raw_npy, safetensors, weights};
use safetensors::Dtype;
use tercet_core::block::i2_s::Interleave;
use tercet_core::gguf::{SliceSink, TensorSpec, TensorType, Writer};
use tercet_core::quant::calibrate::RangeRule;
use tercet_host::convert::Scheme;
use tercet_host::parallel::Threads;
use tercet_host::{BARS, DequantizeOptions, Error, Reading, TensorFile};
use tercet_host::{calibrate, compare, dequantize, inspect};

fn open(folder: &Folder, name: &str, given: &[Given]) -> TensorFile {
    let path = folder.file(name);
    safetensors(&path, given, &[]);
    TensorFile::open(path).unwrap()
}

#[test]
fn inspect_tells_the_values() {
    let folder = Folder::new();
    let mut values = weights(1, 40_000);
    values[7] = f32::NAN;
    values[39_999] = f32::INFINITY;
    values[100..130].fill(0.0);
    let given = [
        Given::f32("w", &[4, 10_000], &values),
        Given::f32("flat", &[3], &[2.5; 3]),
        Given::f32("empty", &[0, 5], &[]),
        Given::new("ids", Dtype::I64, &[1], vec![0; 8]),
    ];
    let model = open(&folder, "m.safetensors", &given);
    let summary = inspect(&mut Threads::default(), &model, None, &()).unwrap();
    assert_eq!((summary.format, summary.values), ("safetensors", 40_004));
    let of = |name: &str| summary.tensors.iter().find(|t| t.name == name).unwrap();

    let seen = of("w").values.as_ref().unwrap();
    let finite: Vec<f32> = values.iter().copied().filter(|x| x.is_finite()).collect();
    let (min, max) = finite
        .iter()
        .fold((f32::MAX, f32::MIN), |(a, b), &x| (a.min(x), b.max(x)));
    assert_eq!((seen.min, seen.max, seen.not_finite), (min, max, 2));
    assert_eq!(
        seen.zeros,
        finite.iter().filter(|&&x| x == 0.0).count() as u64
    );
    let mean = finite.iter().map(|x| f64::from(x.abs())).sum::<f64>() / finite.len() as f64;
    assert_eq!(seen.abs_mean, mean as f32);
    assert_eq!(seen.histogram.len(), BARS);
    assert_eq!(seen.histogram.iter().sum::<u64>(), finite.len() as u64);
    let below = finite
        .iter()
        .filter(|&&x| f64::from(x) < (f64::from(min) + f64::from(max)) / 2.0);
    assert_eq!(
        seen.histogram[..BARS / 2].iter().sum::<u64>(),
        below.count() as u64
    );

    assert_eq!(of("flat").values.as_ref().unwrap().histogram[0], 3);
    assert!(of("empty").values.is_none() && of("ids").values.is_none());
    let one = inspect(&mut Threads::default(), &model, Some("flat"), &()).unwrap();
    assert_eq!(one.tensors, [of("flat").clone()]);
    let error = inspect(&mut Threads::default(), &model, Some("gone"), &()).unwrap_err();
    assert!(matches!(error, Error::NoSuchTensor { .. }), "{error}");
}

#[test]
fn compare_measures_and_refuses_what_differs() {
    let folder = Folder::new();
    let values = [3.0, -4.0, 0.0, 1.0];
    let ids = |last| Given::new("ids", Dtype::I64, &[1], vec![0, 0, 0, 0, 0, 0, 0, last]);
    let left = open(
        &folder,
        "a.safetensors",
        &[Given::f32("w", &[2, 2], &values), ids(0)],
    );
    let right = |name: &str, given: &[Given]| open(&folder, name, given);
    let off = [3.0, -3.5, 0.0, 1.0];
    let report = compare(
        &mut Threads::default(),
        &left,
        &right("b.safetensors", &[Given::f32("w", &[2, 2], &off), ids(0)]),
        &(),
    )
    .unwrap();
    let w = report
        .tensors
        .iter()
        .find(|t| t.name == "w")
        .unwrap()
        .measures
        .unwrap();
    assert_eq!(
        (w.mse, w.relative_error, w.max_error),
        (0.25 / 4.0, 0.25 / 26.0, 0.5)
    );
    assert_eq!(report.total, Some(w));
    let same = compare(&mut Threads::default(), &left, &left, &())
        .unwrap()
        .total
        .unwrap();
    assert_eq!(
        (same.relative_error, same.sqnr_db, same.cosine),
        (0.0, None, 1.0)
    );

    let cases = [
        (
            vec![Given::f32("w", &[2, 2], &values)],
            "tensor `ids` is in the first only",
        ),
        (
            vec![
                Given::f32("w", &[2, 2], &values),
                ids(0),
                Given::f32("x", &[1], &[1.0]),
            ],
            "tensor `x` is in the second only",
        ),
        (
            vec![Given::f32("w", &[4], &values), ids(0)],
            "tensor `w` is [2, 2] in the first and [4] in the second",
        ),
        (
            vec![Given::f32("w", &[2, 2], &values), ids(1)],
            "tensor `ids` differs",
        ),
        (
            vec![Given::f32("w", &[2, 2], &[3.0, 1.0, f32::NAN, 1.0]), ids(0)],
            "c.safetensors: tensor `w`: value 2 is not finite",
        ),
    ];
    for (given, expected) in cases {
        let error = compare(
            &mut Threads::default(),
            &left,
            &right("c.safetensors", &given),
            &(),
        )
        .unwrap_err()
        .to_string();
        assert!(error.contains(expected), "{error}\nlacks: {expected}");
    }
}

#[test]
fn calibrate_sees_all_files_in_any_order() {
    let folder = Folder::new();
    let values = weights(3, 3000);
    let (a, b) = (folder.file("a.npy"), folder.file("b.safetensors"));
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000,), }\n";
    raw_npy(&a, header, &files::le(&values[..1000]));
    safetensors(&b, &[Given::f32("x", &[2000], &values[1000..])], &[]);
    let whole = folder.file("whole.safetensors");
    safetensors(&whole, &[Given::f32("x", &[3000], &values)], &[]);
    for method in [
        RangeRule::AbsMax,
        RangeRule::MinMax,
        RangeRule::Percentile { ppm: 990_000 },
        RangeRule::Mse,
        RangeRule::Entropy,
    ] {
        for grid in [Scheme::Symmetric, Scheme::Affine] {
            let of = |paths: &[std::path::PathBuf]| {
                calibrate(&mut Threads::default(), paths, method, grid, &()).unwrap()
            };
            let together = of(std::slice::from_ref(&whole));
            assert_eq!(of(&[a.clone(), b.clone()]), together, "{method:?} {grid:?}");
            assert_eq!(of(&[b.clone(), a.clone()]), together, "{method:?} {grid:?}");
            assert_eq!(together.count, 3000);
        }
    }
    let most = values.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    let found = calibrate(
        &mut Threads::default(),
        &[whole],
        RangeRule::AbsMax,
        Scheme::Symmetric,
        &(),
    )
    .unwrap();
    assert_eq!((found.scale, found.zero_point), (most / 127.0, 0));

    let bad = folder.file("bad.safetensors");
    let given = [
        Given::f32("x", &[2], &[1.0; 2]),
        Given::f32("y", &[2], &[1.0, f32::NAN]),
    ];
    safetensors(&bad, &given, &[]);
    let run = |paths: &[_], method| {
        calibrate(
            &mut Threads::default(),
            paths,
            method,
            Scheme::Symmetric,
            &(),
        )
    };
    let error = run(&[bad], RangeRule::Mse).unwrap_err().to_string();
    assert!(
        error.contains("tensor `y`: value 1 is not finite"),
        "{error}"
    );
    assert!(run(std::slice::from_ref(&a), RangeRule::Percentile { ppm: 0 }).is_err());
    assert!(
        run(&[], RangeRule::AbsMax)
            .unwrap_err()
            .to_string()
            .contains("no values")
    );
}

#[test]
fn i2_s_is_read_once_its_layout_is_named() {
    let folder = Folder::new();
    // 40,960 values: more than one thread's tile. Byte i holds the codes of a pattern with period 3.
    let count = 40_960;
    let code = |i: usize| [2u8, 0, 1][i % 3];
    let mut data = vec![0u8; count / 4 + 32];
    for i in 0..count {
        let (group, within) = (i / 128, i % 128);
        data[group * 32 + within % 32] |= code(i) << (6 - 2 * (within / 32));
    }
    data[count / 4..][..4].copy_from_slice(&0.25f32.to_le_bytes());
    let specs = [TensorSpec::new("w", &[1024, 40], TensorType::I2_S).unwrap()];
    let mut bytes = vec![0; data.len() + 4096];
    let mut writer = Writer::new(SliceSink::new(&mut bytes), 1, &specs).unwrap();
    writer.entry("general.architecture", "bitnet").unwrap();
    let mut tensors = writer.into_data().unwrap();
    tensors.begin("w").unwrap();
    tensors.write(&data).unwrap();
    let len = tensors.finish().unwrap().len();
    let path = folder.file("bitnet.gguf");
    std::fs::write(&path, &bytes[..len]).unwrap();

    let model = TensorFile::open(&path).unwrap();
    let out = folder.file("out.safetensors");
    let error = dequantize(
        &mut Threads::default(),
        &model,
        &DequantizeOptions::default(),
        &out,
        &(),
    )
    .unwrap_err()
    .to_string();
    assert!(
        error.contains("tensor `w`: it is an i2_s tensor; name its layout"),
        "{error}"
    );
    let model = model.with_reading(Reading {
        i2_s: Some(Interleave::X86x128),
        ..Reading::default()
    });
    dequantize(
        &mut Threads::default(),
        &model,
        &DequantizeOptions::default(),
        &out,
        &(),
    )
    .unwrap();
    let expected: Vec<f32> = (0..count)
        .map(|i| (f32::from(code(i)) - 1.0) * 0.25)
        .collect();
    let back = TensorFile::open(&out).unwrap();
    assert_eq!(back.get("w").unwrap().shape, [40, 1024]);
    assert_eq!(back.get("w").unwrap().bytes, files::le(&expected));
}
