//! A million small calls from eight threads.

use tercet_core::block::{Format, decode};
use tercet_core::engine::{Output, Refused};
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix};
use tercet_core::quant::{Groups, Method};
use tercet_core::search::{Dot, Hit, Int8Rows, Larger};

use super::with_device;
use crate::dispatch::{DispatchError, Engine, Operation, Settings};

/// Calls per thread, for each of the five kinds.
const CALLS: u64 = 25_000;
const THREADS: u64 = 8;

#[test]
fn counts_of_a_million_calls_from_eight_threads_add_up() {
    let (dispatcher, _) = with_device(Settings::default());
    let blocks: Vec<u8> = (0..34).map(|byte| byte % 60).collect();
    let mut expected = [0.0; 32];
    decode(Format::Q8_0, &blocks, &mut expected).unwrap();
    let layer = Layer::new(Matrix::new(Layout::Int8, 2, 4, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            // Some use handles of one engine: their counters are the same.
            let dispatcher = match thread {
                0 => dispatcher.on(Engine::Scalar),
                1 => dispatcher.on(Engine::Cuda),
                _ => dispatcher.clone(),
            };
            let (blocks, layer) = (&blocks, &layer);
            scope.spawn(move || {
                let rows = Int8Rows::new(&[1, 2, 3, 4, 5, 6], 2).unwrap();
                let x = I8Sym::new(&[1, 1, 1, 1]).unwrap();
                for _ in 0..CALLS {
                    let mut floats = [0.0; 32];
                    dispatcher
                        .decode(Format::Q8_0, blocks, &mut floats)
                        .unwrap();
                    assert_eq!(floats, expected);
                    let (mut codes, mut scales) = ([0; 4], [0.0; 1]);
                    let out = Output {
                        codes: &mut codes,
                        scales: &mut scales,
                        zero_points: &mut [],
                    };
                    let groups = Groups::tensor(4).unwrap();
                    let method = Method::Symmetric { limit: 127 };
                    dispatcher
                        .quantize(&[0.5f32, -1.0, 2.0, 0.0], groups, method, out)
                        .unwrap();
                    assert_eq!(codes, [32, -64, 127, 0]);
                    let mut hits = [Hit::<Larger<i32>>::default()];
                    let found = dispatcher.search::<Dot, _>(rows, &[1, -1], 1, &mut hits);
                    assert_eq!((found.unwrap(), hits[0].index), (1, 0));
                    let mut out = [0.0; 2];
                    dispatcher.matvec(layer, x, 1.0, &mut out).unwrap();
                    assert_eq!(out, [10.0, 26.0]);
                    let refused = dispatcher.decode(Format::Q8_0, &blocks[1..], &mut floats);
                    assert!(matches!(
                        refused,
                        Err(DispatchError::Refused(Refused::Block(_)))
                    ));
                }
            });
        }
    });
    let metrics = dispatcher.metrics();
    let each = CALLS * THREADS;
    assert_eq!(
        (metrics.calls, metrics.refused, metrics.fallbacks),
        (4 * each, each, 0)
    );
    assert_eq!(metrics.elements, each * (32 + 4 + 6 + 8));
    let of = |operation| {
        let engines = metrics
            .engines
            .iter()
            .filter(move |it| it.operation == operation);
        engines.map(|it| it.calls).sum::<u64>()
    };
    for operation in [
        Operation::Decode,
        Operation::QuantizeInteger,
        Operation::Search,
        Operation::Matvec,
    ] {
        assert_eq!(of(operation), each, "{operation}");
    }
    for engine in [Engine::Scalar, Engine::Cuda] {
        let calls = metrics.of(Operation::Decode, engine).unwrap().calls;
        assert!(calls >= CALLS, "{engine}: {calls}");
    }
    let latencies = metrics
        .engines
        .iter()
        .flat_map(|it| &it.latencies)
        .sum::<u64>();
    assert_eq!(latencies, metrics.calls);
    let read = serde_json::from_str::<serde_json::Value>(&metrics.to_json()).unwrap();
    assert_eq!(read["calls"], 4 * each);
}
