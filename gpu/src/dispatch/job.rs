//! What is asked: an operation, and how much of everything it takes.

use serde::{Deserialize, Serialize};
use tercet_core::cluster::Points;
use tercet_core::engine::MagnitudeBin;
use tercet_core::linear::Layer;
use tercet_core::quant::{Groups, Method, Rule};
use tercet_core::search::Rows;

/// The operations that engines are chosen for. Kinds of a quantizer whose speeds differ stand apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Floats to int8 or int4 codes.
    QuantizeInteger,
    /// Floats to ternary codes by a threshold.
    QuantizeTernary,
    /// Floats to ternary codes of least squared error.
    QuantizeOptimal,
    /// Floats into a histogram, by which calibration chooses a range.
    Histogram,
    /// Codes to floats.
    Dequantize,
    /// Floats to GGUF blocks.
    Encode,
    /// GGUF blocks to floats.
    Decode,
    /// int8 points to clusters: seeding, steps, restarts.
    Kmeans,
    /// int8 points to their nearest centroids.
    Assign,
    /// Queries to their nearest rows.
    Search,
    /// A layer times one row of activations.
    Matvec,
    /// A layer times many.
    Matmul,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 12] = [
        Self::QuantizeInteger,
        Self::QuantizeTernary,
        Self::QuantizeOptimal,
        Self::Histogram,
        Self::Dequantize,
        Self::Encode,
        Self::Decode,
        Self::Kmeans,
        Self::Assign,
        Self::Search,
        Self::Matvec,
        Self::Matmul,
    ];

    /// Its name in tables, JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QuantizeInteger => "quantize_integer",
            Self::QuantizeTernary => "quantize_ternary",
            Self::QuantizeOptimal => "quantize_optimal",
            Self::Histogram => "histogram",
            Self::Dequantize => "dequantize",
            Self::Encode => "encode",
            Self::Decode => "decode",
            Self::Kmeans => "kmeans",
            Self::Assign => "assign",
            Self::Search => "search",
            Self::Matvec => "matvec",
            Self::Matmul => "matmul",
        }
    }

    /// The operation of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.name() == name)
    }

    /// What quantizing by a method is.
    pub const fn of(method: &Method) -> Self {
        match method {
            Method::Ternary {
                rule: Rule::Optimal,
                ..
            } => Self::QuantizeOptimal,
            Method::Ternary { .. } => Self::QuantizeTernary,
            Method::Symmetric { .. } | Method::Affine | Method::Fixed(_) => Self::QuantizeInteger,
        }
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Where the data of a job lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// In the host's memory, from where a device has it copied.
    #[default]
    Host,
    /// In the device's already, where only the device reaches it.
    Device,
    /// In the host's, for work that a device has no step for: who does not ask for the device by name gets it done without.
    Processor,
}

/// How much an operation is asked to do.
///
/// Amounts count what is moved and done at least, the same for every engine: predictions are of their ratios to what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Job {
    /// What to do.
    pub operation: Operation,
    /// Values, coordinates, weights: what sizes are told in.
    pub elements: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Multiply-adds, or elements where nothing is multiplied.
    pub work: u64,
    /// What is begun anew within it, and takes time beside its bytes and work: groups of a quantizer, points, rows of a layer or of
    /// activations, queries and the hits that enter their best.
    pub items: u64,
    /// Bytes read that lie on the device as well as with the host: they need not cross.
    pub held: u64,
    /// Bytes of memory that the scalar engine needs for it on a microcontroller, beside input and output; [`super::Profile::Edge`]
    /// holds a job to them.
    #[serde(skip)]
    pub scratch: usize,
    /// Where the data lies.
    pub place: Place,
    /// Whether it is a whole flow: files are read and written in it and floats worked on, of which no costs are known. Predictions are then of
    /// the engine's part, and nobody takes the rest for a mistake of theirs.
    pub flow: bool,
    /// How often a call does all of this: the steps of a model's text. Predictions are of all of them, choices as of one.
    pub times: u64,
}

/// Values of a group up to which the optimal ternary rule sorts them; of more it counts bins.
const SORTED: usize = 256;
/// Steps of Lloyd's loop that a run is taken to need, where more are allowed: clusters of data settle in about as many.
const STEPS: u32 = 20;

impl Job {
    /// A job of elements that are read and written, with work for each and no items: what has no multiplications.
    pub const fn each(operation: Operation, elements: u64, bytes_in: u64, bytes_out: u64) -> Self {
        Self {
            operation,
            elements,
            bytes_in,
            bytes_out,
            work: elements,
            items: 0,
            held: 0,
            scratch: 0,
            place: Place::Host,
            flow: false,
            times: 1,
        }
    }

    /// Quantizing values of `size` bytes each.
    pub fn quantize(method: &Method, groups: Groups, size: usize) -> Self {
        let values = amount(&[groups.count, groups.len]);
        let scales = 4 * groups.count as u64;
        let bytes_in = values.saturating_mul(size as u64);
        Self::each(
            Operation::of(method),
            values,
            bytes_in,
            values.saturating_add(scales),
        )
        .in_groups(groups.count, groups.len)
        .with_scratch(method.scratch_len(groups.len) * size_of::<MagnitudeBin>())
    }

    /// Values of `size` bytes each into a histogram. Its buckets are not counted: how many of them are met the data decide.
    pub fn histogram(values: usize, size: usize) -> Self {
        let bytes_in = amount(&[values, size]);
        Self::each(Operation::Histogram, values as u64, bytes_in, 0)
    }

    /// Codes of groups to floats.
    pub fn dequantize(codes: usize, groups: usize) -> Self {
        let bytes_in = codes as u64 + 4 * groups as u64;
        Self::each(
            Operation::Dequantize,
            codes as u64,
            bytes_in,
            4 * codes as u64,
        )
        .with_items(groups)
    }

    /// Values of `size` bytes to blocks of `bytes` in all.
    pub fn encode(values: usize, size: usize, bytes: usize) -> Self {
        Self::each(
            Operation::Encode,
            values as u64,
            amount(&[values, size]),
            bytes as u64,
        )
    }

    /// Blocks of `bytes` in all to floats.
    pub fn decode(values: usize, bytes: usize) -> Self {
        Self::each(
            Operation::Decode,
            values as u64,
            bytes as u64,
            amount(&[values, 4]),
        )
    }

    /// Points to their nearest of `k` centroids.
    pub fn assign(points: &Points<'_>, k: usize) -> Self {
        Self::points(Operation::Assign, points.len(), points.dims(), k)
    }

    /// As [`Job::assign`], by the points' shape.
    pub fn points(operation: Operation, points: usize, dims: usize, k: usize) -> Self {
        let elements = amount(&[points, dims]);
        Self {
            operation,
            elements,
            bytes_in: elements.saturating_add(amount(&[k, dims])),
            bytes_out: amount(&[points, 8]),
            work: elements.saturating_mul(k as u64),
            items: points as u64,
            held: 0,
            scratch: 0,
            place: Place::Host,
            flow: false,
            times: 1,
        }
    }

    /// Clusters of points: `k` of them, at most `steps` steps a restart.
    ///
    /// How many steps it will be nobody knows before; of more than 20, 20 are counted, and one for seeding.
    pub fn kmeans(points: usize, dims: usize, k: usize, steps: u32, restarts: u32) -> Self {
        let passes = u64::from(steps.min(STEPS) + 1) * u64::from(restarts.max(1));
        let once = Self::points(Operation::Kmeans, points, dims, k);
        Self {
            bytes_in: once.bytes_in.saturating_mul(passes),
            work: once.work.saturating_mul(passes),
            items: once.items.saturating_mul(passes),
            ..once
        }
    }

    /// `queries` searched among rows, `k` hits each.
    pub fn search<R: Rows>(rows: &R, queries: usize, k: usize) -> Self {
        // Rows of two bits are counted as bytes: it is their products that take time.
        let size = size_of::<R::Query>();
        Self::among(rows.len(), rows.dim(), size, queries, k)
    }

    /// As [`Job::search`], by the shape of rows with `size` bytes a value.
    pub fn among(rows: usize, dim: usize, size: usize, queries: usize, k: usize) -> Self {
        let elements = amount(&[rows, dim]);
        Self {
            operation: Operation::Search,
            elements,
            bytes_in: amount(&[rows.saturating_add(queries), dim, size]),
            bytes_out: amount(&[queries, k, 16]),
            work: elements.saturating_mul(queries as u64),
            items: amount(&[queries, entering(rows, k) + 1]),
            held: 0,
            scratch: 0,
            place: Place::Host,
            flow: false,
            times: 1,
        }
    }

    /// A layer times rows of activations, f32 out.
    pub fn product(layer: &Layer<'_>, rows: usize) -> Self {
        let weights = layer.weights();
        let bytes = weights.bytes().len();
        Self::products(weights.rows(), weights.cols(), bytes, rows)
            .with_scratch(weights.scratch_len() * size_of::<u32>())
    }

    /// As [`Job::product`], of a matrix of so many rows, columns and bytes with `many` rows of activations.
    pub fn products(rows: usize, cols: usize, bytes: usize, many: usize) -> Self {
        let elements = amount(&[rows, cols]);
        Self {
            operation: match many {
                0 | 1 => Operation::Matvec,
                _ => Operation::Matmul,
            },
            elements,
            bytes_in: (bytes as u64).saturating_add(amount(&[many, cols])),
            bytes_out: amount(&[many, rows, 4]),
            work: elements.saturating_mul(many as u64),
            // One row of activations is nothing beside the rows of weights, of which each ends in a sum.
            items: if many > 1 { many } else { rows } as u64,
            held: 0,
            scratch: 0,
            place: Place::Host,
            flow: false,
            times: 1,
        }
    }

    /// The same of so many groups of a quantizer, each of `len` values.
    pub(super) const fn in_groups(mut self, groups: usize, len: usize) -> Self {
        if matches!(self.operation, Operation::QuantizeOptimal) && len > SORTED {
            // Bins are counted with the bytes that are read.
            self.work = 0;
        }
        self.with_items(groups)
    }

    /// The same with so many items.
    pub const fn with_items(mut self, items: usize) -> Self {
        self.items = items as u64;
        self
    }

    /// The same with so many bytes, of those read, on the device too.
    pub const fn holding(mut self, bytes: u64) -> Self {
        self.held = if bytes < self.bytes_in {
            bytes
        } else {
            self.bytes_in
        };
        self
    }

    /// The same with so many bytes of scratch: see [`Job::scratch`].
    pub const fn with_scratch(mut self, bytes: usize) -> Self {
        self.scratch = bytes;
        self
    }

    /// The same with data that lies there.
    pub const fn at(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    /// The same as the engine's part of a whole flow: see [`Job::flow`].
    pub const fn in_flow(mut self) -> Self {
        self.flow = true;
        self
    }

    /// The same, so many times in a call.
    pub const fn repeated(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// An amount of it, all times together.
    pub(super) const fn total(&self, amount: u64) -> u64 {
        amount.saturating_mul(self.times)
    }

    /// Whether it is a flow that takes the values of files tile by tile, from reading to writing, over all threads of the processor: where it
    /// runs on the processor, no engine of one thread does it ([`Profile::tiling`](super::Profile::tiling) names the one that does).
    pub const fn is_tiled(&self) -> bool {
        use Operation::{
            Decode, Dequantize, Encode, Histogram, QuantizeInteger, QuantizeOptimal,
            QuantizeTernary,
        };
        self.flow
            && matches!(
                self.operation,
                QuantizeInteger
                    | QuantizeTernary
                    | QuantizeOptimal
                    | Histogram
                    | Dequantize
                    | Encode
                    | Decode
            )
    }

    /// Bytes read and written.
    pub const fn bytes(&self) -> u64 {
        self.bytes_in.saturating_add(self.bytes_out)
    }
}

/// How many of `rows` in any order are among the best `k` when they are met, on average: k · (1 + ln(rows / k)).
fn entering(rows: usize, k: usize) -> usize {
    if rows <= k || k == 0 {
        return rows.min(k);
    }
    let (rows, k) = (rows as f64, k as f64);
    (k * (1.0 + (rows / k).ln())) as usize
}

/// A product of sizes; what exceeds 64 bits is as much as those hold.
fn amount(sizes: &[usize]) -> u64 {
    let sizes = sizes.iter().map(|&size| size as u64);
    sizes.fold(1, u64::saturating_mul)
}
