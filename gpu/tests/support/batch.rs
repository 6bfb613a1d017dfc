//! Operations through a queue, compared with the scalar engine's, one request at a time.

// Each test binary compiles its own copy of this module and uses a part of it.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary compiles it whole and uses a part"
)]

use std::thread::{self, Scope};
use std::time::Duration;

use tercet_core::block::{self, Format};
use tercet_core::cluster::nearest;
use tercet_core::engine::{
    LinearEngine, MagnitudeBin, Output, QuantizeEngine, QuantizeProblem, SearchBase,
};
use tercet_core::f16;
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix, pack};
use tercet_core::number::{Element, Random};
use tercet_core::quant::{self, Groups, Method, Rule, ScaleRule};
use tercet_core::scalar::{self, Scalar};
use tercet_core::search::{Hit, Metric, Rows};
use tercet_gpu::batch::executors::{
    Activations, Assign, Assigning, CanAllocate, Layers, Multiply, QuantizeRows, Quantizing, Query,
    Row, Search, Searching,
};
use tercet_gpu::batch::{BatchJob, BatchOptions, Queue, Worker};
use tercet_host::engine::{EngineError, FlowEngine};

/// The answers of requests that were submitted together, in batches of seven at most.
pub fn through<'scope, J>(
    scope: &'scope Scope<'scope, '_>,
    workers: impl IntoIterator<Item = Worker<'scope, J>>,
    requests: impl IntoIterator<Item = J::Request>,
) -> Vec<J::Answer>
where
    J: BatchJob<Error = EngineError> + 'scope,
{
    let options = BatchOptions {
        max_size: 7,
        max_wait: Duration::from_secs(3600),
        capacity: 1000,
        name: "test",
    };
    let queue = Queue::in_scope(scope, options, workers).unwrap();
    let submitted = requests
        .into_iter()
        .map(|request| queue.submit(request).unwrap());
    let tickets: Vec<_> = submitted.collect();
    queue.close(tercet_gpu::batch::Closing::Answer);
    let answers = tickets.into_iter().map(|ticket| match ticket.wait() {
        Ok(answer) => answer,
        Err(error) => panic!("{error}"),
    });
    let answers: Vec<_> = answers.collect();
    let stats = queue.shutdown();
    assert_eq!(stats.answered as usize, answers.len());
    // What one kind has is grouped.
    assert!(stats.sizes[2] > 0, "{stats:?}");
    answers
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

fn codes(random: &mut Random, len: usize, (low, high): (i8, i8)) -> Vec<i8> {
    let span = (i64::from(high) - i64::from(low) + 1) as u64;
    let draw = |_| (i64::from(low) + random.below(span) as i64) as i8;
    (0..len).map(draw).collect()
}

/// Layouts with shapes that are multiples of nothing, and where blocks ask for it of a block.
pub const LAYERS: [(Layout, usize, usize); 6] = [
    (Layout::Int8, 13, 37),
    (Layout::TernaryLanes, 37, 101),
    (Layout::FiveTrits, 9, 66),
    (Layout::Int4, 6, 19),
    (Layout::Block(Format::Tq2_0), 5, 512),
    (Layout::Block(Format::Q8_0), 7, 96),
];

pub fn weights(layout: Layout, rows: usize, cols: usize) -> Vec<u8> {
    let mut random = Random::new(rows as u64);
    let mut bytes = vec![0; layout.bytes(rows, cols).unwrap()];
    match layout {
        Layout::Block(format) => {
            let values = codes(&mut random, rows * cols, (-100, 100));
            let values: Vec<f32> = values.iter().map(|&x| f32::from(x) * 0.01).collect();
            block::encode(format, Rule::AbsMax, ScaleRule::Rule, &values, &mut bytes).unwrap();
        }
        _ => {
            let codes = codes(&mut random, rows * cols, layout.codes());
            pack::pack(layout, rows, cols, &codes, &mut bytes).unwrap();
        }
    }
    bytes
}

/// Rows of activations, those that a batch leaves over among them.
pub fn activations(cols: usize, count: usize) -> Vec<Activations> {
    let mut random = Random::new(cols as u64);
    let row = |at: usize| Activations {
        values: codes(&mut random, cols, (-127, 127)),
        scale: 0.013 + at as f32 / 7.0,
    };
    (0..count).map(row).collect()
}

/// Products by each of `workers`' engines.
pub fn multiplied(
    workers: impl for<'a> Fn(Layer<'a>) -> Vec<Worker<'a, Multiply>> + Copy,
    count: usize,
) {
    for (layout, rows, cols) in LAYERS {
        let bytes = weights(layout, rows, cols);
        let matrix = Matrix::new(layout, rows, cols, &bytes).unwrap();
        let layer = Layer::new(matrix);
        let requests = activations(cols, count);
        let found = thread::scope(|scope| through(scope, workers(layer), requests.clone()));
        let mut scratch = vec![0; layer.weights().scratch_len()];
        for (request, found) in requests.iter().zip(found) {
            let mut alone = vec![0.0; rows];
            let x = I8Sym::new(&request.values).unwrap();
            Scalar
                .matvec(&layer, x, request.scale, &mut alone, &mut scratch)
                .unwrap();
            assert_eq!(bits(&found), bits(&alone), "{layout:?}");
        }
    }
}

/// Layers by an engine that is given the weights each time.
pub fn multiplied_by<E>(engine: impl Fn() -> E + Copy)
where
    E: LinearEngine<Error: Into<EngineError>> + CanAllocate + Send + 'static,
{
    multiplied(
        |layer| vec![Worker::new("engine", Layers::new(engine(), layer))],
        17,
    );
}

/// Searches for 0, 1, 3 and more hits than there are rows, through a base of an engine.
pub fn searched<M: Metric, R: Rows, B>(rows: R, base: B, queries: &[R::Query])
where
    B: SearchBase<Rows = R, Error: Into<EngineError>> + Send,
{
    let ks = [3, 1, 3, rows.len() + 5, 0];
    let values = queries.chunks_exact(rows.dim());
    let requests = values.enumerate().map(|(at, values)| Query {
        values: values.to_vec(),
        k: ks[at % ks.len()],
    });
    let requests: Vec<_> = requests.collect();
    let found = thread::scope(|scope| {
        let work = Search::<_, _, M>::new(rows, base);
        through::<Searching<R, M>>(scope, [Worker::new("base", work)], requests.clone())
    });
    for (request, found) in requests.iter().zip(found) {
        let mut alone = vec![Hit::default(); request.k.min(rows.len())];
        let count = scalar::Base::new(rows).top_k::<M>(&request.values, &mut alone);
        assert_eq!(count.unwrap(), found.len());
        assert_eq!(found, alone, "{:?}, {} hits", M::KIND, request.k);
    }
}

/// Assignments by an engine.
pub fn assigned<E: FlowEngine + CanAllocate>(engine: impl Fn() -> E) {
    // More centroids than points of a batch, and fewer.
    for (k, dims) in [(23, 11), (3, 40)] {
        let mut random = Random::new(k as u64);
        let centroids = codes(&mut random, k * dims, (-128, 127));
        let points = codes(&mut random, 31 * dims, (-128, 127));
        let points: Vec<_> = points.chunks_exact(dims).map(<[i8]>::to_vec).collect();
        let found = thread::scope(|scope| {
            let work = Assign::new(engine(), centroids.clone(), dims).unwrap();
            through::<Assigning>(scope, [Worker::new("engine", work)], points.clone())
        });
        for (point, found) in points.iter().zip(found) {
            assert_eq!(found, nearest(point, &centroids).unwrap());
        }
    }
}

fn alone<T: Element>(values: &[T], method: Method) -> Row {
    let mut codes = vec![0; values.len()];
    let (mut scales, mut points) = ([0.0], [0]);
    let out = Output {
        codes: &mut codes,
        scales: &mut scales,
        zero_points: &mut points,
    };
    let groups = Groups::tensor(values.len()).unwrap();
    let mut engine = Scalar;
    let mut tensor = engine.tensor(values, groups, out).unwrap();
    let mut bins = vec![MagnitudeBin::EMPTY; method.scratch_len(values.len())];
    quant::quantize(&mut tensor, method, &mut bins).unwrap();
    tensor.finish().unwrap();
    Row {
        codes,
        scale: scales[0],
        zero_point: points[0],
    }
}

fn quantized_as<E, T: Element>(engine: &impl Fn() -> E, method: Method, narrow: impl Fn(f32) -> T)
where
    E: QuantizeEngine<Error: Into<EngineError>> + CanAllocate + Send,
{
    let mut random = Random::new(3);
    let widths = [64, 300, 5, 64, 1];
    let row = |at: usize| {
        let drawn = codes(&mut random, widths[at % widths.len()], (-100, 127));
        let values = drawn.iter().map(|&x| narrow(f32::from(x) * 0.017));
        values.collect::<Vec<T>>()
    };
    let requests: Vec<_> = (0..53).map(row).collect();
    let found = thread::scope(|scope| {
        let work = QuantizeRows::new(engine(), method);
        through::<Quantizing<T>>(scope, [Worker::new("engine", work)], requests.clone())
    });
    for (values, found) in requests.iter().zip(found) {
        let alone = alone(values, method);
        assert_eq!(found.scale.to_bits(), alone.scale.to_bits(), "{method:?}");
        assert_eq!(found, alone, "{method:?}");
    }
}

/// Rows quantized by an engine.
pub fn quantized<E>(engine: impl Fn() -> E)
where
    E: QuantizeEngine<Error: Into<EngineError>> + CanAllocate + Send,
{
    let ternary = |rule, scale_rule| Method::Ternary { rule, scale_rule };
    for method in [
        ternary(Rule::AbsMean, ScaleRule::Rule),
        ternary(Rule::Optimal, ScaleRule::LeastSquares),
        Method::Symmetric { limit: 127 },
        Method::Affine,
    ] {
        quantized_as(&engine, method, |x| x);
        quantized_as(&engine, method, f16::from_f32);
    }
}

/// Every metric over int8, ternary and float rows, by the engine that an expression gives anew for each.
#[macro_export]
macro_rules! searched_by {
    ($engine:expr) => {{
        use tercet_core::engine::SearchEngine;
        use tercet_core::search::{Cosine, Dot, FloatRows, Int8Rows, SquaredL2, TernaryRows};
        let (count, dim, asked) = (300_usize, 33_usize, 23_usize);
        let drawn = |len: usize, seed: u64| -> Vec<i8> {
            let mut random = tercet_core::number::Random::new(seed);
            (0..len).map(|_| random.next_u64() as i8).collect()
        };
        let (values, queries) = (drawn(count * dim, 1), drawn(asked * dim, 2));
        let row_bytes = TernaryRows::row_bytes(dim);
        let mut packed = vec![0; count * row_bytes];
        let trits: Vec<i8> = values.iter().map(|x| x % 2).collect();
        for (codes, row) in trits.chunks(dim).zip(packed.chunks_mut(row_bytes)) {
            TernaryRows::pack(codes, row).unwrap();
        }
        let floats: Vec<f32> = values.iter().map(|&x| f32::from(x) * 0.3).collect();
        let float_queries: Vec<f32> = queries.iter().map(|&x| f32::from(x) * 0.7).collect();
        macro_rules! by {
            ($metric:ty, $rows:expr, $queries:expr) => {{
                let (rows, mut engine) = ($rows.unwrap(), $engine);
                let base = engine.base(rows).unwrap();
                compare::searched::<$metric, _, _>(rows, base, $queries);
            }};
        }
        by!(Dot, Int8Rows::new(&values, dim), &queries);
        by!(Cosine, Int8Rows::new(&values, dim), &queries);
        by!(SquaredL2, Int8Rows::new(&values, dim), &queries);
        by!(SquaredL2, TernaryRows::new(&packed, dim), &queries);
        by!(Cosine, FloatRows::new(&floats, dim), &float_queries);
        by!(SquaredL2, FloatRows::new(&floats, dim), &float_queries);
    }};
}
