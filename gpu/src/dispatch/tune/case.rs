//! Operations with inputs of their own, of any size, as calls to a dispatcher.

use std::cell::RefCell;
use std::error::Error as StdError;

use tercet_core::block::Format;
use tercet_core::cluster::Points;
use tercet_core::engine::Output;
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix};
use tercet_core::number::Random;
use tercet_core::quant::{Codes, Groups, HOST_BITS, Histogram, Method, Rule, ScaleRule, int8};
use tercet_core::search::{Dot, Hit, Int8Rows, Larger};
use tercet_host::cluster::{KmeansOptions, Start};

use crate::dispatch::engine::Device;
use crate::dispatch::{DispatchError, Dispatcher, Engine, Job, Operation};

/// Hits of a query, and the most steps of a clustering.
const HITS: usize = 10;
const STEPS: u32 = 4;

/// The size of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Values, coordinates or weights: about as many, in whole rows.
    pub(super) elements: usize,
    /// Values of a row, a point or a group.
    pub(super) width: usize,
    /// Clusters, queries or rows of activations.
    pub(super) many: usize,
}

impl Shape {
    /// With little work a byte.
    pub(super) const fn streaming(operation: Operation, elements: usize) -> Self {
        let (width, many) = match operation {
            Operation::Kmeans | Operation::Assign => (16, 4),
            Operation::Search => (64, 1),
            Operation::Matmul => (256, 4),
            // Groups that are not sorted.
            Operation::QuantizeOptimal => (4096, 1),
            _ => (256, 1),
        };
        Self {
            elements,
            width,
            many,
        }
    }

    /// With much work a byte; none where an operation has no such cases.
    pub(super) const fn busy(operation: Operation, elements: usize) -> Option<Self> {
        let (width, many) = match operation {
            Operation::Kmeans => (32, 64),
            Operation::Assign => (64, 256),
            Operation::Search => (64, 64),
            Operation::Matmul => (256, 64),
            // Groups that are sorted.
            Operation::QuantizeOptimal => (256, 1),
            _ => return None,
        };
        Some(Self {
            elements,
            width,
            many,
        })
    }

    /// With many items of few bytes each; none where an operation has no such cases.
    pub(super) const fn many(operation: Operation, elements: usize) -> Option<Self> {
        let (elements, width, many) = match operation {
            Operation::QuantizeInteger
            | Operation::QuantizeTernary
            | Operation::QuantizeOptimal
            | Operation::Dequantize => (elements, 16, 1),
            Operation::Kmeans | Operation::Assign => (elements, 4, 2),
            // Few rows, and many queries or rows of activations.
            Operation::Search => (64 * 16, 16, elements / 256),
            Operation::Matmul => (4 * 64, 64, elements / 256),
            Operation::Matvec => (elements, 32, 1),
            Operation::Histogram | Operation::Encode | Operation::Decode => return None,
        };
        Some(Self {
            elements,
            width,
            many: if many < 1 { 1 } else { many },
        })
    }

    /// What an operation of this shape is asked.
    pub(super) fn job(self, operation: Operation) -> Job {
        let (rows, values) = self.rows();
        let (width, many) = (self.width, self.many);
        let block = Format::Q8_0;
        let blocks = self.elements.max(1).next_multiple_of(block.len());
        let bytes = blocks / block.len() * block.bytes();
        let (groups, len) = self.groups();
        let job = match operation {
            Operation::QuantizeInteger
            | Operation::QuantizeTernary
            | Operation::QuantizeOptimal => {
                let codes = (groups * len) as u64;
                let out = codes + 4 * groups as u64;
                Job::each(operation, codes, 4 * codes, out).in_groups(groups, len)
            }
            Operation::Histogram => Job::histogram(self.elements.max(1), 4),
            Operation::Dequantize => Job::dequantize(groups * len, groups),
            Operation::Encode => Job::encode(blocks, 4, bytes),
            Operation::Decode => Job::decode(blocks, bytes),
            Operation::Kmeans => Job::kmeans(rows, width, many.min(rows), STEPS, 1),
            Operation::Assign => Job::points(operation, rows, width, many),
            Operation::Search => Job::among(rows, width, 1, many, HITS),
            Operation::Matvec | Operation::Matmul => Job::products(rows, width, values, many),
        };
        Job { operation, ..job }
    }

    /// Groups of the width, and their length: a short tensor is one group.
    fn groups(self) -> (usize, usize) {
        let len = self.width.min(self.elements).max(1);
        ((self.elements / len).max(1), len)
    }

    /// Rows of the width, at least one, and values in them.
    const fn rows(self) -> (usize, usize) {
        let rows = if self.elements < self.width {
            1
        } else {
            self.elements / self.width
        };
        (rows, rows * self.width)
    }
}

/// A call that may be made again and again.
pub(super) struct Case<D: Device> {
    call: Call<D>,
}

type Call<D> = Box<dyn FnMut(&Dispatcher<D>) -> Result<(), DispatchError>>;

impl<D: Device> Case<D> {
    pub(super) fn call(&mut self, dispatcher: &Dispatcher<D>) -> Result<(), DispatchError> {
        (self.call)(dispatcher)
    }

    /// An operation on drawn inputs. Core refuses none of them.
    pub(super) fn made(operation: Operation, shape: Shape) -> Result<Self, DispatchError> {
        let made = match operation {
            Operation::QuantizeInteger => quantize(shape, Method::Symmetric { limit: 127 }),
            Operation::QuantizeTernary => quantize(shape, ternary(Rule::AbsMean)),
            Operation::QuantizeOptimal => quantize(shape, ternary(Rule::Optimal)),
            Operation::Histogram => Ok(histogram(shape)),
            Operation::Dequantize => dequantize(shape),
            Operation::Encode => encode(shape),
            Operation::Decode => decode(shape),
            Operation::Kmeans => kmeans(shape),
            Operation::Assign => assign(shape),
            Operation::Search => search(shape),
            Operation::Matvec => product(shape, true),
            Operation::Matmul => product(shape, false),
        };
        let call = made.map_err(|error| DispatchError::Engine {
            engine: Engine::Scalar,
            source: error.to_string().into(),
        })?;
        Ok(Self { call })
    }
}

/// A call, or why core refuses its inputs.
type Made<D> = Result<Call<D>, Box<dyn StdError>>;

fn quantize<D: Device>(shape: Shape, method: Method) -> Made<D> {
    let (count, len) = shape.groups();
    let groups = Groups::rows(count, len)?;
    let values = floats(groups.count * len);
    let (mut codes, mut scales) = (vec![0; values.len()], vec![0.0; groups.count]);
    Ok(Box::new(move |dispatcher| {
        let out = Output {
            codes: &mut codes,
            scales: &mut scales,
            zero_points: &mut [],
        };
        dispatcher
            .quantize(&values, groups, method, out)
            .map(|_| ())
    }))
}

thread_local! {
    /// Kept while the thread lives: a new one is cleared first, half a mebibyte, which is more than most cases count.
    static COUNTED: RefCell<Option<Histogram<'static, HOST_BITS>>> = {
        let buckets = vec![0; Histogram::<HOST_BITS>::BUCKETS].leak();
        RefCell::new(Histogram::new(buckets).ok())
    };
}

fn histogram<D: Device>(shape: Shape) -> Call<D> {
    let values = floats(shape.elements.max(1));
    Box::new(move |dispatcher| {
        COUNTED.with_borrow_mut(|counted| match counted {
            Some(counted) => dispatcher.histogram(&values, counted),
            None => Ok(()),
        })
    })
}

fn dequantize<D: Device>(shape: Shape) -> Made<D> {
    let (count, len) = shape.groups();
    let groups = Groups::rows(count, len)?;
    let codes = bytes(groups.count * len);
    let scales = vec![0.01; groups.count];
    let mut out = vec![0.0; codes.len()];
    Ok(Box::new(move |dispatcher| {
        let codes = Codes {
            groups,
            codes: &codes,
            scales: &scales,
            zero_points: &[],
        };
        dispatcher.dequantize(codes, int8::RANGE, &mut out)
    }))
}

fn encode<D: Device>(shape: Shape) -> Made<D> {
    let format = Format::Q8_0;
    let values = floats(shape.elements.max(1).next_multiple_of(format.len()));
    let mut out = vec![0; format.encoded_len(values.len())?];
    Ok(Box::new(move |dispatcher| {
        let (rule, scale) = (Rule::AbsMax, ScaleRule::Rule);
        let encoded = dispatcher.encode(format, rule, scale, &values, &mut out);
        encoded.map(|_| ())
    }))
}

fn decode<D: Device>(shape: Shape) -> Made<D> {
    let format = Format::Q8_0;
    let mut out = vec![0.0; shape.elements.max(1).next_multiple_of(format.len())];
    let blocks = vec![0; format.encoded_len(out.len())?];
    Ok(Box::new(move |dispatcher| {
        dispatcher.decode(format, &blocks, &mut out)
    }))
}

fn kmeans<D: Device>(shape: Shape) -> Made<D> {
    let (rows, values) = shape.rows();
    let codes = bytes(values);
    let mut options = KmeansOptions::new(shape.many.min(rows));
    (options.start, options.max_iter) = (Start::Random, STEPS);
    Ok(Box::new(move |dispatcher| {
        let found = dispatcher.kmeans(&codes, shape.width, None, &options);
        found.map(|_| ())
    }))
}

fn assign<D: Device>(shape: Shape) -> Made<D> {
    let (rows, values) = shape.rows();
    let (codes, centroids) = (bytes(values), bytes(shape.many * shape.width));
    let (mut labels, mut distances) = (vec![0; rows], vec![0; rows]);
    Ok(Box::new(move |dispatcher| {
        let points = Points::new(&codes, shape.width)?;
        dispatcher.assign(points, &centroids, &mut labels, &mut distances)
    }))
}

fn search<D: Device>(shape: Shape) -> Made<D> {
    let (_, values) = shape.rows();
    let (base, queries) = (bytes(values), bytes(shape.many * shape.width));
    let mut hits = vec![Hit::<Larger<i32>>::default(); HITS * shape.many];
    Ok(Box::new(move |dispatcher| {
        let rows = Int8Rows::new(&base, shape.width)?;
        let found = dispatcher.search::<Dot, _>(rows, &queries, HITS, &mut hits);
        found.map(|_| ())
    }))
}

fn product<D: Device>(shape: Shape, one: bool) -> Made<D> {
    let (rows, values) = shape.rows();
    let weights: Vec<u8> = bytes(values).into_iter().map(i8::cast_unsigned).collect();
    let x = bytes(shape.many * shape.width);
    let scales = vec![0.5; shape.many];
    let mut out = vec![0.0; rows * shape.many];
    let cols = shape.width;
    Ok(Box::new(move |dispatcher| {
        let matrix = Matrix::new(Layout::Int8, rows, cols, &weights);
        let layer = Layer::new(matrix?);
        let x = I8Sym::new(&x)?;
        if one {
            dispatcher.matvec(&layer, x, 0.5, &mut out)
        } else {
            dispatcher.matmul(&layer, x, &scales, &mut out)
        }
    }))
}

const fn ternary(rule: Rule) -> Method {
    Method::Ternary {
        rule,
        scale_rule: ScaleRule::Rule,
    }
}

/// Sums of two uniform draws, in −1..=1: quick to draw, and no two alike.
fn floats(len: usize) -> Vec<f32> {
    let mut random = Random::new(len as u64);
    let mut draw = || {
        let bits = random.next_u64();
        let halves = [bits as u32, (bits >> 32) as u32];
        let [a, b] = halves.map(|half| half as i32 as f32 / 4_294_967_296.0);
        a + b
    };
    (0..len).map(|_| draw()).collect()
}

/// Codes −127..=127.
fn bytes(len: usize) -> Vec<i8> {
    let mut random = Random::new(len as u64);
    let mut all = Vec::with_capacity(len.next_multiple_of(8));
    while all.len() < len {
        let drawn = random.next_u64().to_le_bytes();
        all.extend(drawn.map(|byte| byte.cast_signed().max(-127)));
    }
    all.truncate(len);
    all
}
