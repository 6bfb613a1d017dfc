//! Several devices as one engine: the bits of one, whatever their number and however they reach each other.

use crate::support::cluster::{
    CLOUDS, Cloud, NOTHING, calls, options, points, run, weights, with_scalar,
};
use crate::support::cudas::{clustered, cudas, devices, emulated_devices};
use crate::support::emulator::{Device, checked};
use crate::support::quantize::{bins, methods, quantized, values};
use tercet_core::block::{BlockError, Format};
use tercet_core::cluster::{Init, Points, Update, normalize};
use tercet_core::conformance;
use tercet_core::engine::{
    BlockEngine, ClusterEngine, LinearEngine, PaletteEngine, SearchBase, SearchEngine,
};
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix, Requantize, Rescale};
use tercet_core::palette::{self, Output, PaletteError, Width};
use tercet_core::quant::{self, Groups, Method, QuantError, Rule, ScaleRule, quantize_in_order};
use tercet_core::scalar::{self, Scalar};
use tercet_core::search::{Cosine, Dot, Hit, Int8Rows, SquaredL2};
use tercet_gpu::engine::CudaError;

/// Does `test` with devices that reach each other and with devices that do not.
fn by_both_ways(device: &Device, mut test: impl FnMut(&str)) {
    for way in ["peers=1", "peers=0"] {
        device.set(way);
        test(way);
    }
    device.set("peers=1");
}

#[test]
fn every_digest_is_the_committed_one() {
    let Some(device) = devices() else { return };
    let cases = [(1, 3, "peers=1"), (2, 2, "peers=0"), (3, 1, "peers=1")];
    // Where all accesses are checked the first is enough.
    for &(seed, devices, way) in &cases[..if checked() { 1 } else { 3 }] {
        device.set(&format!("seed={seed},{way}"));
        let mut cudas = cudas(devices);
        let mut digests = 0;
        conformance::run_engine(&mut cudas, &mut |name, found| {
            let expected = conformance::expected(name);
            assert_eq!(expected, Some(found), "{name}, {devices} devices, {way}");
            digests += 1;
        });
        assert_eq!(digests, 111);
    }
    device.set("peers=1");
}

/// Shares of points and of clusters that are equal, unequal, and fewer than devices.
#[test]
fn points_cluster_as_on_the_reference() {
    let Some(device) = devices() else { return };
    let shapes = [
        (2, 3, 2),
        (7, 1, 1),
        (100, 16, 5),
        (131, 33, 40),
        (257, 5, 9),
    ];
    by_both_ways(&device, |way| {
        for (index, (n, dims, k)) in shapes.into_iter().enumerate() {
            device.set(&format!("seed={index}"));
            let values = points(CLOUDS[index], n, dims, 3);
            let weights = weights(n, 3);
            let plain = Points::new(&values, dims).unwrap();
            let weighted = Points::weighted(&values, dims, &weights).unwrap();
            for (devices, points, init, batch) in [
                (3, plain, Init::Greedy, 0),
                (2, plain, Init::Random, 8),
                (2, weighted, Init::PlusPlus, 0),
            ] {
                let k = k.min(points.counted());
                let expected = with_scalar(points, k, Update::Mean, |problem| {
                    run(problem, &options(init, 7), batch)
                });
                let found = clustered(&mut cudas(devices), points, k, Update::Mean, init, batch);
                assert_eq!(
                    found, expected,
                    "{way}, {n} x {dims}, {k}, {devices} devices"
                );
            }
        }
    });
}

#[test]
fn spheres_cluster_as_on_the_reference() {
    let Some(_devices) = devices() else { return };
    let mut values = points(Cloud::Even, 90, 6, 1);
    let sphere = Update::Sphere(normalize(&mut values, 6).unwrap());
    let points = Points::new(&values, 6).unwrap();
    let init = Init::PlusPlus;
    let expected = with_scalar(points, 7, sphere, |problem| {
        run(problem, &options(init, 7), 0)
    });
    assert_eq!(
        clustered(&mut cudas(3), points, 7, sphere, init, 0),
        expected
    );
}

/// The calls of a problem that drivers make rarely.
#[test]
fn every_call_of_a_problem_gives_what_the_reference_gives() {
    let Some(_devices) = devices() else { return };
    let values = points(Cloud::Ties, 40, 2, 5);
    let weights: Vec<u32> = (0..40).map(|i| [0, 3, 1][i % 3]).collect();
    let points = Points::weighted(&values, 2, &weights).unwrap();
    let expected = with_scalar(points, 3, Update::Mean, |problem| calls(problem));
    assert!(expected.len() > 60, "{}", expected.len());
    for devices in 1..4 {
        let mut cudas = cudas(devices);
        let mut problem = cudas.clusters(points, 3, Update::Mean, NOTHING()).unwrap();
        assert_eq!(calls(&mut problem), expected, "{devices} devices");
    }
}

/// Devices that reach each other copy straight; others by way of the host.
#[test]
fn sums_go_straight_where_they_can() {
    let Some(device) = emulated_devices() else {
        return;
    };
    let values = points(Cloud::Even, 60, 4, 2);
    let points = Points::new(&values, 4).unwrap();
    by_both_ways(&device, |way| {
        let before = device.count("copies between devices");
        clustered(&mut cudas(3), points, 6, Update::Mean, Init::Random, 0);
        let straight = device.count("copies between devices") - before;
        assert_eq!(straight > 0, way == "peers=1", "{straight}");
    });
}

#[test]
fn tensors_quantize_as_on_the_reference() {
    let Some(device) = devices() else { return };
    let mut cudas = cudas(3);
    for (index, method) in methods().into_iter().enumerate() {
        device.set(&format!("seed={index}"));
        // One group, fewer than devices, more, and one that is shorter than there are devices.
        for (count, len) in [(1, 700), (2, 33), (7, 64), (1, 2)] {
            let values = values(index as u64, index as u64 % 5, count * len);
            let groups = Groups { count, len };
            for points in [false, true] {
                let expected = quantized(&mut Scalar, &values, groups, points, |tensor| {
                    quant::quantize(tensor, method, &mut bins())
                })
                .map_err(CudaError::from);
                let found = quantized(&mut cudas, &values, groups, points, |tensor| {
                    quant::quantize(tensor, method, &mut bins())
                });
                assert_eq!(found, expected, "{groups:?}, {method:?}, points {points}");
            }
            let expected = quantized(&mut Scalar, &values, groups, true, |tensor| {
                quantize_in_order(tensor, method, &mut bins())
            })
            .map_err(CudaError::from);
            let found = quantized(&mut cudas, &values, groups, true, |tensor| {
                quantize_in_order(tensor, method, &mut bins())
            });
            assert_eq!(found, expected, "in order, {groups:?}, {method:?}");
        }
    }
}

#[test]
fn the_first_bad_value_is_named_wherever_it_is() {
    let Some(_devices) = devices() else { return };
    let mut cudas = cudas(3);
    let optimal = Method::Ternary {
        rule: Rule::Optimal,
        scale_rule: ScaleRule::Rule,
    };
    for bad in [0, 300, 767] {
        let mut values = values(1, 0, 768);
        values[bad] = f32::NAN;
        values[767] = f32::INFINITY;
        for groups in [Groups { count: 1, len: 768 }, Groups { count: 6, len: 128 }] {
            for method in [Method::Affine, optimal] {
                let found = quantized(&mut cudas, &values, groups, true, |tensor| {
                    quant::quantize(tensor, method, &mut bins())
                });
                let index = bad as u64;
                assert_eq!(found, Err(QuantError::NotFinite { index }.into()));
            }
        }
        let mut bytes = vec![0; Format::Q4_0.encoded_len(768).unwrap()];
        let (rule, scale) = (Rule::AbsMax, ScaleRule::Rule);
        let refused =
            BlockEngine::encode_blocks(&mut cudas, Format::Q4_0, rule, scale, &values, &mut bytes);
        assert_eq!(refused, Err(BlockError::NotFinite { index: bad }.into()));
        let layout = palette::IndexMatrix::new(Width::new(4).unwrap(), 24, 32, 5).unwrap();
        let out = Output {
            indices: &mut vec![0; layout.index_bytes()],
            codebooks: &mut vec![0; layout.codebook_len()],
            scales: &mut vec![0.0; layout.groups()],
        };
        let scratch = &mut vec![0; layout.scratch_len()];
        let refused =
            PaletteEngine::encode_palette(&mut cudas, &layout, &values, &[], out, scratch);
        let index = bad as u64;
        assert_eq!(refused, Err(PaletteError::NotFinite { index }.into()));
    }
    // Values of 6e4 overflow the f16 of a block at 32 · 20.
    let mut values = vec![1.0; 1024];
    values[650] = 1e30;
    let mut bytes = vec![0; Format::Q8_0.encoded_len(1024).unwrap()];
    let (rule, scale) = (Rule::AbsMax, ScaleRule::Rule);
    let refused =
        BlockEngine::encode_blocks(&mut cudas, Format::Q8_0, rule, scale, &values, &mut bytes);
    assert_eq!(refused, Err(BlockError::ScaleOverflow { block: 20 }.into()));
}

#[test]
fn blocks_and_layers_and_palettes_are_those_of_the_reference() {
    let Some(_devices) = devices() else { return };
    let mut cudas = cudas(3);
    let weights = values(4, 0, 11 * 256);
    let x: Vec<i8> = (0..weights.len())
        .map(|i| (i * 37 % 255) as u8 as i8)
        .collect();
    for format in [Format::Tq1_0, Format::Q4_0] {
        let len = format.encoded_len(weights.len()).unwrap();
        let (mut expected, mut found) = (vec![0; len], vec![1; len]);
        let (rule, scale) = (Rule::AbsMax, ScaleRule::Rule);
        let done =
            BlockEngine::encode_blocks(&mut Scalar, format, rule, scale, &weights, &mut expected);
        assert_eq!(
            BlockEngine::encode_blocks(&mut cudas, format, rule, scale, &weights, &mut found),
            Ok(done.unwrap())
        );
        assert_eq!(found, expected);
        let (mut wide, mut back) = (vec![0.0; weights.len()], vec![1.0; weights.len()]);
        BlockEngine::decode_blocks(&mut Scalar, format, &expected, &mut wide).unwrap();
        BlockEngine::decode_blocks(&mut cudas, format, &found, &mut back).unwrap();
        assert_eq!(back, wide);
        let product = BlockEngine::dot_blocks(&mut Scalar, format, &expected, &x, 0.25).unwrap();
        assert_eq!(
            BlockEngine::dot_blocks(&mut cudas, format, &found, &x, 0.25),
            Ok(product)
        );
    }
    // 8-row groups of weights on three devices, the last of 5.
    let bytes: Vec<u8> = (0..45 * 33).map(|i| (i * 91 % 251) as u8).collect();
    let matrix = Matrix::new(Layout::Int8, 45, 33, &bytes).unwrap();
    let layer = Layer::new(matrix);
    let x = I8Sym::new(&x[..33 * 3]).unwrap_or_else(|_| panic!("-128 among them"));
    let mut scratch = vec![0; Layout::Int8.scratch_len(45, 33)];
    let (mut expected, mut found) = (vec![0; 45 * 3], vec![1; 45 * 3]);
    Scalar
        .sums_many(&layer, x, &mut expected, &mut scratch)
        .unwrap();
    cudas
        .sums_many(&layer, x, &mut found, &mut scratch)
        .unwrap();
    assert_eq!(found, expected);
    let rescale = Rescale::one(Requantize::from_scale(0.01).unwrap());
    let (mut expected, mut found) = (vec![0; 45 * 3], vec![1; 45 * 3]);
    Scalar
        .dense_many(&layer, &rescale, x, &mut expected, &mut scratch)
        .unwrap();
    cudas
        .dense_many(&layer, &rescale, x, &mut found, &mut scratch)
        .unwrap();
    assert_eq!(found, expected);
}

#[test]
fn rows_are_found_as_by_the_reference() {
    let Some(device) = devices() else { return };
    let mut cudas = cudas(3);
    for (count, dim) in [(1, 3), (2, 16), (100, 33)] {
        device.set(&format!("seed={count}"));
        let rows = points(Cloud::Ties, count, dim, 9);
        let queries = points(Cloud::Even, 3, dim, 8);
        let rows = Int8Rows::new(&rows, dim).unwrap();
        let mut base = cudas.base(rows).unwrap();
        assert!(base.is_resident());
        let mut reference = scalar::Base::new(rows);
        for k in [1, 4, count, count + 3] {
            let (mut expected, mut found) =
                (vec![Hit::default(); 3 * k], vec![Hit::default(); 3 * k]);
            let len = reference
                .top_k_all::<Cosine>(&queries, k, &mut expected)
                .unwrap();
            assert_eq!(base.top_k_all::<Cosine>(&queries, k, &mut found), Ok(len));
            for (found, expected) in found.chunks(k).zip(expected.chunks(k)) {
                assert_eq!(found[..len], expected[..len], "{k} of {count}");
            }
            let query = &queries[..dim];
            let (mut expected, mut found) = (vec![Hit::default(); k], vec![Hit::default(); k]);
            let total = reference.range::<Dot>(query, -20.0, &mut expected).unwrap();
            assert_eq!(base.range::<Dot>(query, -20.0, &mut found), Ok(total));
            let len = total.min(k);
            assert_eq!(found[..len], expected[..len], "{k} of {count}");
        }
        assert_eq!(base.top_k::<SquaredL2>(&queries[..dim], &mut []), Ok(0));
    }
}

#[test]
fn little_work_stays_on_few_devices() {
    let Some(_devices) = devices() else { return };
    let values = values(3, 0, 6000);
    for (least, used) in [(1, 3), (2001, 2), (6000, 1), (1 << 20, 1)] {
        let mut cudas = cudas(3).with_least(least);
        let groups = Groups {
            count: 1,
            len: 6000,
        };
        quantized(&mut cudas, &values, groups, true, |tensor| {
            quant::quantize(tensor, Method::Affine, &mut [])
        })
        .unwrap();
        let busy = cudas.devices().iter();
        let busy = busy.filter(|device| device.memory().unwrap().bytes.high_water > 0);
        assert_eq!(busy.count(), used, "{least}");
    }
}
