//! Every call gives the same bits on every engine, and the same refusals.

use tercet_core::block::{BlockError, Format};
use tercet_core::cluster::{ClusterError, Points};
use tercet_core::engine::{Output, Refused};
use tercet_core::linear::{I8Sym, Layer, Layout, LinearError, Matrix};
use tercet_core::number::Random;
use tercet_core::quant::{
    Codes, Groups, HOST_BITS, Histogram, Method, QuantError, Rule, SMALL_BITS, ScaleRule, int8,
    ternary,
};
use tercet_core::scalar::Scalar;
use tercet_core::search::{Cosine, FloatRows, Hit, Int8Rows, SearchError};
use tercet_host::cluster::KmeansOptions;

use super::with_device;
use crate::dispatch::{DispatchError, Dispatcher, Engine, Operation, Profile, Settings};

fn noise(len: usize) -> Vec<f32> {
    let mut random = Random::new(len as u64);
    (0..len)
        .map(|_| random.below(2001) as f32 / 1000.0 - 1.0)
        .collect()
}

fn codes(len: usize) -> Vec<i8> {
    let mut random = Random::new(len as u64);
    (0..len)
        .map(|_| (random.below(255) as i64 - 127) as i8)
        .collect()
}

/// Returns all results of all calls as text: floats by their bits.
fn all(dispatcher: &Dispatcher<Scalar>) -> Result<String, DispatchError> {
    let mut text = String::new();
    let mut add = |part: &dyn std::fmt::Debug| text += &format!("{part:?}\n");
    let bits = |values: &[f32]| values.iter().map(|it| it.to_bits()).collect::<Vec<_>>();
    let (values, points) = (noise(6 * 512), codes(300 * 7));
    let groups = Groups::rows(6, 512)?;
    for method in [
        Method::Symmetric { limit: 127 },
        Method::Affine,
        Method::Ternary {
            rule: Rule::AbsMean,
            scale_rule: ScaleRule::Rule,
        },
        Method::Ternary {
            rule: Rule::Optimal,
            scale_rule: ScaleRule::LeastSquares,
        },
    ] {
        let (mut out, mut scales, mut zeros) = (vec![0; values.len()], [0.0; 6], [0; 6]);
        let zero_points = if method == Method::Affine {
            &mut zeros[..]
        } else {
            &mut []
        };
        let to = Output {
            codes: &mut out,
            scales: &mut scales,
            zero_points,
        };
        add(&dispatcher.quantize(&values, groups, method, to)?);
        let restored = Codes {
            groups,
            codes: &out,
            scales: &scales,
            zero_points: &zeros,
        };
        let mut back = vec![0.0; values.len()];
        dispatcher.dequantize(restored, int8::RANGE, &mut back)?;
        add(&(&out, bits(&scales), bits(&back)));
    }
    let mut buckets = vec![0; Histogram::<HOST_BITS>::BUCKETS];
    let mut histogram = Histogram::<HOST_BITS>::new(&mut buckets).unwrap();
    dispatcher.histogram(&values, &mut histogram)?;
    dispatcher.histogram(&values[..100], &mut histogram)?;
    add(&histogram);
    let mut blocks = vec![0; Format::Tq2_0.encoded_len(values.len()).unwrap()];
    add(&dispatcher.encode(
        Format::Tq2_0,
        Rule::AbsMax,
        ScaleRule::Rule,
        &values,
        &mut blocks,
    )?);
    let mut back = vec![0.0; values.len()];
    dispatcher.decode(Format::Tq2_0, &blocks, &mut back)?;
    add(&(&blocks, bits(&back)));
    let found = dispatcher.kmeans(&points, 7, None, &KmeansOptions::new(9))?;
    let (mut labels, mut distances) = (vec![0; 300], vec![0; 300]);
    let cloud = Points::new(&points, 7)?;
    dispatcher.assign(cloud, &found.centroids, &mut labels, &mut distances)?;
    assert_eq!((&labels, &distances), (&found.labels, &found.distances));
    add(&(found, labels, distances));
    let rows = Int8Rows::new(&points, 7)?;
    let mut hits = vec![Hit::default(); 4 * 5];
    add(&dispatcher.search::<Cosine, _>(rows, &points[..4 * 7], 5, &mut hits)?);
    add(&hits);
    let rows = FloatRows::new(&values, 64)?;
    let mut hits = vec![Hit::default(); 3];
    add(&dispatcher.search::<Cosine, _>(rows, &values[..64], 3, &mut hits)?);
    add(&hits);
    let weights: Vec<u8> = points.iter().map(|it| it.cast_unsigned()).collect();
    let matrix = Matrix::new(Layout::Int8, 30, 70, &weights)?;
    let layer = Layer::new(matrix);
    let x = I8Sym::new(&points[..3 * 70])?;
    let (mut out, mut one) = (vec![0.0; 90], vec![0.0; 30]);
    dispatcher.matmul(&layer, x, &[0.5, 2.0, 0.1], &mut out)?;
    let x = I8Sym::new(&points[..70])?;
    dispatcher.matvec(&layer, x, 0.5, &mut one)?;
    assert_eq!(bits(&one), bits(&out[..30]));
    add(&bits(&out));
    Ok(text)
}

#[test]
fn every_engine_and_profile_gives_the_same_bits() {
    let (dispatcher, _) = with_device(Settings::default());
    let expected = all(&dispatcher).unwrap();
    for engine in Engine::ALL {
        assert!(all(&dispatcher.on(engine)).unwrap() == expected, "{engine}");
    }
    for profile in [
        Profile::Development,
        Profile::Cpu,
        Profile::Gpu,
        Profile::Edge,
    ] {
        let (dispatcher, _) = with_device(Settings {
            profile,
            ..Settings::default()
        });
        assert!(all(&dispatcher).unwrap() == expected, "{profile:?}");
        let metrics = dispatcher.metrics();
        if profile == Profile::Edge {
            assert!(metrics.engines.iter().all(|it| it.engine == Engine::Scalar));
        }
    }
}

#[test]
fn refusals_are_cores_on_every_engine() {
    let (dispatcher, _) = with_device(Settings::default());
    let groups = Groups::tensor(3).unwrap();
    for engine in Engine::ALL {
        let on = dispatcher.on(engine);
        let (mut codes, mut scales) = ([0; 3], [0.0; 1]);
        let out = Output {
            codes: &mut codes,
            scales: &mut scales,
            zero_points: &mut [],
        };
        let refused = on.quantize(&[1.0, f32::NAN, 2.0], groups, Method::Affine, out);
        assert!(
            matches!(refused, Err(DispatchError::Refused(Refused::Quantize(_)))),
            "{engine}: {refused:?}"
        );
        let mut buckets = vec![0; Histogram::<SMALL_BITS>::BUCKETS];
        let mut histogram = Histogram::<SMALL_BITS>::new(&mut buckets).unwrap();
        let refused = on.histogram(&[1.0, 2.0, f32::INFINITY, 3.0], &mut histogram);
        let index = QuantError::NotFinite { index: 2 };
        assert!(
            matches!(refused, Err(DispatchError::Refused(Refused::Quantize(error))) if error == index),
            "{engine}"
        );
        assert_eq!(histogram.range(), Some((1.0, 2.0)));
        let given = Codes {
            groups,
            codes: &[1, 0, 2],
            scales: &[1.0],
            zero_points: &[],
        };
        let refused = on.dequantize(given, ternary::RANGE, &mut [0.0; 3]);
        let index = QuantError::CodeRange { index: 2 };
        assert!(
            matches!(refused, Err(DispatchError::Refused(Refused::Quantize(error))) if error == index),
            "{engine}"
        );
        let refused = on.decode(Format::Q8_0, &[0; 33], &mut [0.0; 32]);
        assert!(
            matches!(
                refused,
                Err(DispatchError::Refused(Refused::Block(
                    BlockError::Length { .. }
                )))
            ),
            "{refused:?}"
        );
        let points = Points::new(&[1, 2], 2).unwrap();
        let refused = on.assign(points, &[1, 2, 3], &mut [0], &mut [0]);
        assert!(
            matches!(refused, Err(DispatchError::Refused(Refused::Cluster(_)))),
            "{engine}: {refused:?}"
        );
        let refused = on.assign(points, &[1, 2], &mut [0; 2], &mut [0]);
        let length = ClusterError::Length {
            expected: 1,
            found: 2,
        };
        assert!(
            matches!(refused, Err(DispatchError::Refused(Refused::Cluster(error))) if error == length)
        );
        let rows = Int8Rows::new(&[1, 2], 2).unwrap();
        let refused = on.search::<Cosine, _>(rows, &[1], 1, &mut [Hit::default()]);
        assert!(matches!(
            refused,
            Err(DispatchError::Refused(Refused::Search(
                SearchError::QueryLength { .. }
            )))
        ));
        let layer = Layer::new(Matrix::new(Layout::Int8, 1, 2, &[1, 2]).unwrap());
        let x = I8Sym::new(&[1]).unwrap();
        let refused = on.matvec(&layer, x, 1.0, &mut [0.0]);
        assert!(matches!(
            refused,
            Err(DispatchError::Refused(Refused::Linear(
                LinearError::Length { .. }
            )))
        ));
    }
    assert_eq!(dispatcher.metrics().refused, 8 * 4);
    assert_eq!(dispatcher.metrics().calls, 0);
}

#[test]
fn the_edge_has_no_more_scratch_than_it_says() {
    let edge = |edge_memory| {
        with_device(Settings {
            profile: Profile::Edge,
            edge_memory,
            ..Settings::default()
        })
        .0
    };
    let points = codes(64 * 8);
    let needed = 4 * 8 * 9 + 4 * 12;
    let refused = edge(needed - 1).kmeans(&points, 8, None, &KmeansOptions::new(4));
    let Err(DispatchError::Scratch {
        operation,
        needed: found,
        available,
    }) = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!(
        (operation, found, available),
        (Operation::Kmeans, needed, needed - 1)
    );
    assert!(
        edge(needed)
            .kmeans(&points, 8, None, &KmeansOptions::new(4))
            .is_ok()
    );
}
