//! Compares what one instruction set multiplies with the reference engine, on the calling thread: layers, clustering
//! and search, for sizes around those of every kernel, and at the ends of the range. Says how many products it
//! compared; fails where one differs.
//!
//! `TERCET_BACKEND=avx512-vnni cargo run -p tercet-host --features measure --example compare_products`. It is for processors too slow
//! for the tests, emulated ones; the tests compare more.

use std::process::ExitCode;
use std::time::Duration;

use tercet_core::block::Format;
use tercet_core::cluster::{Points, Update};
use tercet_core::engine::{
    Buffers, ClusterEngine, ClusterProblem, LinearEngine, ModelEngine, SearchBase, SearchEngine,
};
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix, pack};
use tercet_core::number::Random;
use tercet_core::scalar::{self, Scalar};
use tercet_core::search::{Dot, Hit, Int8Rows};
use tercet_host::measure::peak;
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

/// The values of an input: any, or one of two.
#[derive(Clone, Copy)]
enum Values {
    Any,
    Ends,
    Low,
    High,
}

const ALL: [Values; 4] = [Values::Any, Values::Ends, Values::Low, Values::High];

impl Values {
    fn of(self, len: usize, (low, high): (i8, i8), random: &mut Random) -> Vec<i8> {
        let span = (i64::from(high) - i64::from(low) + 1) as u64;
        let mut value = || match self {
            Self::Any => (i64::from(low) + random.below(span) as i64) as i8,
            Self::Ends => [low, high][random.below(2) as usize],
            Self::Low => low,
            Self::High => high,
        };
        (0..len).map(|_| value()).collect()
    }
}

/// The sums of many rows of activations with a layer, and their scaled outputs.
fn products(
    engine: &mut impl LinearEngine,
    layer: &Layer<'_>,
    x: I8Sym<'_>,
) -> (Vec<i64>, Vec<u32>) {
    let weights = layer.weights();
    let count = x.len() / weights.cols();
    let (mut sums, mut out) = (
        vec![0; weights.rows() * count],
        vec![0.0; weights.rows() * count],
    );
    let mut scratch = vec![0; weights.scratch_len()];
    let scales = vec![0.01; count];
    let done = engine.sums_many(layer, x, &mut sums, &mut scratch);
    let done = done.and_then(|()| engine.matmat(layer, x, &scales, &mut out, &mut scratch));
    assert!(done.is_ok(), "a product was refused");
    (sums, out.iter().map(|out| out.to_bits()).collect())
}

fn linear(
    threads: &mut Threads,
    layout: Layout,
    (rows, cols, count): (usize, usize, usize),
    of: [Values; 2],
) -> bool {
    let mut random = Random::new((rows * cols + count) as u64);
    let x = of[1].of(cols * count, (-127, 127), &mut random);
    let (Ok(len), Ok(x)) = (layout.bytes(rows, cols), I8Sym::new(&x)) else {
        return false;
    };
    let mut bytes = vec![0; len];
    match layout {
        Layout::Block(format) => {
            bytes.fill_with(|| random.next_u64() as u8);
            for block in bytes.chunks_exact_mut(format.bytes()) {
                // Any codes, and scales and minima below 2¹² of either sign.
                block[format.scale_offset() + 1] &= 0xB7;
                if let Some(at) = format.min_offset() {
                    block[at + 1] &= 0xB7;
                }
            }
        }
        _ => {
            let codes = of[0].of(rows * cols, layout.codes(), &mut random);
            if pack::pack(layout, rows, cols, &codes, &mut bytes).is_err() {
                return false;
            }
        }
    }
    let Ok(matrix) = Matrix::new(layout, rows, cols, &bytes) else {
        return false;
    };
    let layer = Layer::new(matrix);
    products(threads, &layer, x) == products(&mut Scalar, &layer, x)
}

/// Compares products of blocks with 16-bit activations, whose scales are so small that kernels may add in f64.
fn wide(threads: &mut Threads, format: Format, (rows, cols, count): (usize, usize, usize)) -> bool {
    let mut random = Random::new((rows * cols + count) as u64);
    let planes = Values::Any.of(2 * cols * count, (-127, 127), &mut random);
    let layout = Layout::Block(format);
    let (Ok(len), Ok(x)) = (layout.bytes(rows, cols), I8Sym::new(&planes)) else {
        return false;
    };
    let mut bytes = vec![0; len];
    bytes.fill_with(|| random.next_u64() as u8);
    for block in bytes.chunks_exact_mut(format.bytes()) {
        let places = [Some(format.scale_offset()), format.min_offset()];
        for at in places.into_iter().flatten() {
            // Below 2⁻¹¹ in magnitude.
            block[at + 1] &= 0x8F;
        }
    }
    let Ok(matrix) = Matrix::new(layout, rows, cols, &bytes) else {
        return false;
    };
    let layer = Layer::new(matrix);
    let scales = vec![0.01; count];
    let (mut found, mut expected) = (vec![0.0; rows * count], vec![0.0; rows * count]);
    let (mut sums, mut scratch) = (
        vec![0; 2 * count * rows.next_multiple_of(8)],
        vec![0; matrix.scratch_len()],
    );
    let done = threads.matmat_wide(&layer, x, &scales, &mut found, (&mut [], &mut []));
    let room = (&mut sums[..], &mut scratch[..]);
    let reference = Scalar.matmat_wide(&layer, x, &scales, &mut expected, room);
    let bits = |out: &[f32]| out.iter().map(|out| out.to_bits()).collect::<Vec<_>>();
    done.is_ok() && reference.is_ok() && bits(&found) == bits(&expected)
}

/// Labels, distances and centroids of two steps.
fn steps<E: ClusterEngine>(
    engine: &mut E,
    points: Points<'_>,
    start: &[i8],
) -> Option<(Vec<u32>, Vec<u32>, Vec<i8>)> {
    let (n, k) = (points.len(), start.len() / points.dims());
    let (mut labels, mut distances, mut centroids) = (vec![0; n], vec![0; n], start.to_vec());
    let (mut kept, mut norms) = (start.to_vec(), vec![0; k]);
    let (mut sums, mut counts) = (vec![0; start.len()], vec![0; k]);
    let buffers = Buffers {
        labels: &mut labels,
        distances: &mut distances,
        centroids: &mut centroids,
        kept: &mut kept,
        norms: &mut norms,
        sums: &mut sums,
        counts: &mut counts,
    };
    let mut problem = engine.clusters(points, k, Update::Mean, buffers).ok()?;
    problem.set_centroids(start).ok()?;
    problem.assign_update().ok()?;
    problem.assign_update().ok()?;
    problem.assign().ok()?;
    drop(problem);
    Some((labels, distances, centroids))
}

fn cluster(threads: &mut Threads, dims: usize, k: usize, of: Values) -> bool {
    let mut random = Random::new((dims * k) as u64);
    let points = of.of(77 * dims, (-128, 127), &mut random);
    let start = of.of(k * dims, (-128, 127), &mut random);
    let Ok(points) = Points::new(&points, dims) else {
        return false;
    };
    let expected = steps(&mut Scalar, points, &start);
    expected.is_some() && steps(threads, points, &start) == expected
}

fn search(threads: &mut Threads, dim: usize, count: usize, of: Values) -> bool {
    let mut random = Random::new((dim * count) as u64);
    let rows = of.of(71 * dim, (-128, 127), &mut random);
    let queries = of.of(count * dim, (-128, 127), &mut random);
    let Ok(rows) = Int8Rows::new(&rows, dim) else {
        return false;
    };
    let mut hits = [
        vec![Hit::default(); 71 * count],
        vec![Hit::default(); 71 * count],
    ];
    let [expected, found] = &mut hits;
    let reference = scalar::Base::new(rows).top_k_all::<Dot>(&queries, 71, expected);
    let ours = threads
        .base(rows)
        .map(|mut base| base.top_k_all::<Dot>(&queries, 71, found).is_ok());
    reference.is_ok() && matches!(ours, Ok(true)) && hits[0] == hits[1]
}

fn main() -> ExitCode {
    let backend = match Backend::chosen() {
        Ok(backend) => backend,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let mut threads = Threads::default();
    let (mut compared, mut differ) = (0, 0);
    let mut compare = |equal: bool, what: String| {
        compared += 1;
        if !equal {
            differ += 1;
            eprintln!("{backend} differs: {what}");
        }
    };
    for layout in Layout::ALL {
        for (rows, cols, count) in [
            (5, 63, 5),
            (33, 64, 16),
            (31, 65, 17),
            (64, 130, 32),
            (70, 300, 33),
            (3, 700, 47),
        ] {
            let cols = match layout {
                Layout::Block(format) => usize::next_multiple_of(cols, format.len()),
                _ => cols,
            };
            let equal = linear(&mut threads, layout, (rows, cols, count), [Values::Any; 2]);
            compare(equal, format!("{layout:?}, {rows} × {cols} × {count}"));
        }
        if let Layout::Block(format) = layout {
            for (rows, cols, count) in [(5, 64, 1), (33, 700, 2), (70, 300, 19)] {
                let cols = usize::next_multiple_of(cols, format.len());
                let equal = wide(&mut threads, format, (rows, cols, count));
                compare(
                    equal,
                    format!("{layout:?}, {rows} × {cols} × {count}, 16 bits"),
                );
            }
        }
        for of in ALL.map(|weights| ALL.map(|x| [weights, x])).as_flattened() {
            let equal = linear(&mut threads, layout, (33, 256, 18), *of);
            compare(equal, format!("{layout:?} at the ends of the range"));
        }
    }
    for (at, dims) in [1, 3, 4, 17, 63, 64, 65, 100, 129, 260]
        .into_iter()
        .enumerate()
    {
        for k in [1, 2, 15, 16, 17, 32, 33, 49] {
            let equal = cluster(&mut threads, dims, k, Values::Any);
            compare(equal, format!("{k} centroids of {dims}"));
            let equal = cluster(&mut threads, dims, k, ALL[at % 4]);
            compare(
                equal,
                format!("{k} centroids of {dims} at the ends of the range"),
            );
        }
    }
    for (at, dim) in [1, 3, 4, 7, 33, 63, 64, 65, 130, 259]
        .into_iter()
        .enumerate()
    {
        for count in [4, 16, 17, 35] {
            let equal = search(&mut threads, dim, count, Values::Any);
            compare(equal, format!("{count} queries of {dim}"));
            let equal = search(&mut threads, dim, count, ALL[at % 4]);
            compare(
                equal,
                format!("{count} queries of {dim} at the ends of the range"),
            );
        }
    }
    // Registers alone have no result to compare, but their loops must run.
    let peak = peak(backend, Duration::ZERO);
    compare(peak.int8 > 0.0 && peak.ternary > 0.0, format!("{peak:?}"));
    println!("{backend}: {compared} compared, {differ} differ");
    if differ == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
