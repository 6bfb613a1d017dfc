//! Turns the cases of `tercet_host`'s measurements into calls of a dispatcher.

use std::cell::RefCell;
use std::error::Error as StdError;

use tercet_core::cluster::Points;
use tercet_core::engine::Output;
use tercet_core::linear::I8Sym;
use tercet_core::quant::{HOST_BITS, Histogram, ScaleRule, int8};
use tercet_core::search::{Dot, Hit, MetricKind, Rows};
use tercet_host::cluster::KmeansOptions;
use tercet_host::measure::{Case, Floats, Searched, Task};

use crate::dispatch::engine::Device;
use crate::dispatch::{DispatchError, Dispatcher, Engine};

thread_local! {
    /// Kept while the thread lives: a new histogram is cleared first, which is half a mebibyte, more than most cases
    /// count.
    static COUNTED: RefCell<Option<Histogram<'static, HOST_BITS>>> = {
        let buckets = vec![0; Histogram::<HOST_BITS>::BUCKETS].leak();
        RefCell::new(Histogram::new(buckets).ok())
    };
}

/// A call that can be repeated.
pub(super) type Call<'a, D> = dyn FnMut(&Dispatcher<D>) -> Result<(), DispatchError> + 'a;

/// Calls `work` with the call that does a case, with its memory allocated.
///
/// # Errors
/// Those of `work`; [`DispatchError::Engine`] if core refuses the input, which never happens for the shapes that are
/// tuned or checked.
pub(super) fn with_call<D: Device>(
    case: &Case,
    work: impl FnOnce(&mut Call<'_, D>) -> Result<(), DispatchError>,
) -> Result<(), DispatchError> {
    let task = case
        .task()
        .ok_or_else(|| told(&"nothing that a dispatcher has a call for"))?;
    match task {
        Task::Quantize {
            values: Floats::F32(values),
            groups,
            method,
        } => {
            let (mut codes, mut scales) = (vec![0; values.len()], vec![0.0; groups.count]);
            work(&mut |dispatcher| {
                let out = Output {
                    codes: &mut codes,
                    scales: &mut scales,
                    zero_points: &mut [],
                };
                let done = dispatcher.quantize(values, groups, method, out);
                done.map(|_| ())
            })
        }
        Task::Histogram { values } => work(&mut |dispatcher| {
            COUNTED.with_borrow_mut(|counted| match counted {
                Some(counted) => dispatcher.histogram(values, counted),
                None => Ok(()),
            })
        }),
        Task::Dequantize { codes } => {
            let mut out = vec![0.0; codes.codes.len()];
            work(&mut |dispatcher| dispatcher.dequantize(codes, int8::RANGE, &mut out))
        }
        Task::Encode {
            values,
            format,
            rule,
        } => {
            let len = format.encoded_len(values.len());
            let mut out = vec![0; len.map_err(|error| told(&error))?];
            work(&mut |dispatcher| {
                let encoded = dispatcher.encode(format, rule, ScaleRule::Rule, values, &mut out);
                encoded.map(|_| ())
            })
        }
        Task::Decode {
            bytes,
            values,
            format,
        } => {
            let mut out = vec![0.0; values];
            work(&mut |dispatcher| dispatcher.decode(format, bytes, &mut out))
        }
        Task::Lloyd {
            points,
            dims,
            clusters,
            steps,
        } => {
            let first = points[..clusters * dims].to_vec();
            let mut options = KmeansOptions::new(clusters).with_centroids(first);
            options.run.lloyd.max_iter = steps;
            work(&mut |dispatcher| {
                let found = dispatcher.kmeans(points, dims, None, &options);
                found.map(|_| ())
            })
        }
        Task::Nearest {
            points,
            dims,
            centroids,
        } => {
            let points = Points::new(points, dims).map_err(|error| told(&error))?;
            let (mut labels, mut distances) = (vec![0; points.len()], vec![0; points.len()]);
            work(&mut |dispatcher| {
                dispatcher.assign(points, centroids, &mut labels, &mut distances)
            })
        }
        Task::Search {
            rows: Searched::Int8(rows, queries),
            metric: MetricKind::Dot,
            top,
        } => {
            let many = queries.len() / rows.dim();
            let mut hits = vec![Hit::default(); top * many];
            work(&mut |dispatcher| {
                let found = dispatcher.search::<Dot, _>(rows, &queries, top, &mut hits);
                found.map(|_| ())
            })
        }
        Task::Product { layer, x, scales } => {
            let x = I8Sym::new(x).map_err(|error| told(&error))?;
            let mut out = vec![0.0; layer.weights().rows() * scales.len()];
            match scales[..] {
                [scale] => work(&mut |dispatcher| dispatcher.matvec(&layer, x, scale, &mut out)),
                _ => work(&mut |dispatcher| dispatcher.matmul(&layer, x, &scales, &mut out)),
            }
        }
        _ => Err(told(&"nothing that a dispatcher has a call for")),
    }
}

fn told(error: &dyn std::fmt::Display) -> DispatchError {
    let source: Box<dyn StdError + Send + Sync> = error.to_string().into();
    DispatchError::Engine {
        engine: Engine::Scalar,
        source,
    }
}
