//! A job: an operation, and its amounts.

use serde::{Deserialize, Serialize};
use tercet_core::cluster::Points;
use tercet_core::engine::MagnitudeBin;
use tercet_core::linear::Layer;
use tercet_core::quant::{Groups, Method, Rule};
use tercet_core::search::Rows;

/// The operations that engines are chosen for. Kinds of a quantizer with different speeds are separate operations.
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
    /// A layer times many rows of activations.
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

    /// Returns its name in tables, JSON and metrics.
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

    /// Returns the operation of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.name() == name)
    }

    /// Returns the operation of quantizing by a method.
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

/// Where the data of a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Location {
    /// In the host's memory; a device gets a copy.
    #[default]
    Host,
    /// Already in the device's memory, which only the device can reach.
    Device,
    /// In the host's memory, for work that a device has no step for: unless the caller asks for the device by name,
    /// another engine does it.
    Processor,
}

/// Work of another operation that a call does first: a model reads a prompt in products with many rows of activations,
/// and then writes a text row by row.
///
/// The amounts are those of [`Job`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Phase {
    /// The operation.
    pub operation: Operation,
    /// As [`Job::elements`].
    pub elements: u64,
    /// As [`Job::bytes_in`].
    pub bytes_in: u64,
    /// As [`Job::bytes_out`].
    pub bytes_out: u64,
    /// As [`Job::work`].
    pub work: u64,
    /// As [`Job::items`].
    pub items: u64,
    /// As [`Job::times`].
    pub times: u64,
}

impl Phase {
    /// Returns it as a job with its data in this place.
    pub(super) const fn job(&self, place: Location) -> Job {
        Job {
            bytes_out: self.bytes_out,
            work: self.work,
            items: self.items,
            times: self.times,
            ..Job::each(self.operation, self.elements, self.bytes_in, 0).at(place)
        }
    }
}

/// The amount of work in an operation.
///
/// Amounts are lower bounds of the data moved and the work done, and are the same for every engine: measured costs give
/// the time per such amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Job {
    /// The operation.
    pub operation: Operation,
    /// Values, coordinates or weights: the unit in which sizes are reported.
    pub elements: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Multiply-adds, or elements if nothing is multiplied.
    pub work: u64,
    /// Items that each take time beside the bytes and the work: groups of a quantizer, points, rows of a layer or of
    /// activations, queries and the hits that enter their best.
    pub items: u64,
    /// Bytes read that are on the device as well as on the host, and need no copy.
    pub held: u64,
    /// Bytes of memory that the scalar engine needs on a microcontroller, beside input and output.
    /// [`super::Profile::Edge`] limits them.
    #[serde(skip)]
    pub scratch: usize,
    /// Where the data is.
    pub place: Location,
    /// True for a whole flow, which also reads and writes files and processes floats, with unknown costs. Predictions
    /// then cover only the engine's part, and the rest does not count as a prediction error.
    pub flow: bool,
    /// Number of times that a call does all of this: the steps of a model's text. Predictions cover all of them;
    /// choices are as for one.
    pub times: u64,
    /// What each of the times is, in the plural.
    #[serde(skip)]
    pub unit: &'static str,
    /// What the call does first, by another operation. Predictions and choices are for both; counters count both as
    /// this job's operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Phase>,
}

/// The unit of [`Job::times`] unless a caller names another.
const TIMES: &str = "times";
/// The optimal ternary rule sorts groups of up to this many values; for larger groups it counts bins.
const SORTED: usize = 256;
/// Assumed number of steps of Lloyd's loop, if more are allowed: data with clusters converges in about as many.
const STEPS: u32 = 20;

impl Job {
    /// Returns a job that reads and writes elements, with one unit of work per element and no items: for operations
    /// without multiplications.
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
            place: Location::Host,
            flow: false,
            times: 1,
            unit: TIMES,
            before: None,
        }
    }

    /// Returns the job of quantizing values of `size` bytes each.
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

    /// Returns the job of counting values of `size` bytes each into a histogram. It does not include the buckets: the
    /// data decides how many of them are used.
    pub fn histogram(values: usize, size: usize) -> Self {
        let bytes_in = amount(&[values, size]);
        Self::each(Operation::Histogram, values as u64, bytes_in, 0)
    }

    /// Returns the job of converting codes in groups to floats.
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

    /// Returns the job of encoding values of `size` bytes into blocks of `bytes` in total.
    pub fn encode(values: usize, size: usize, bytes: usize) -> Self {
        Self::each(
            Operation::Encode,
            values as u64,
            amount(&[values, size]),
            bytes as u64,
        )
    }

    /// Returns the job of decoding blocks of `bytes` in total to floats.
    pub fn decode(values: usize, bytes: usize) -> Self {
        Self::each(
            Operation::Decode,
            values as u64,
            bytes as u64,
            amount(&[values, 4]),
        )
    }

    /// Returns the job of assigning points to the nearest of `k` centroids.
    pub fn assign(points: &Points<'_>, k: usize) -> Self {
        Self::points(Operation::Assign, points.len(), points.dims(), k)
    }

    /// As [`Job::assign`], from the shape of the points.
    pub fn points(operation: Operation, points: usize, dims: usize, k: usize) -> Self {
        let elements = amount(&[points, dims]);
        let bytes_in = elements.saturating_add(amount(&[k, dims]));
        Self {
            work: elements.saturating_mul(k as u64),
            items: points as u64,
            ..Self::each(operation, elements, bytes_in, amount(&[points, 8]))
        }
    }

    /// Returns the job of clustering points into `k` clusters, with at most `steps` steps per restart.
    ///
    /// The number of steps is not known in advance: at most 20 are counted, and one more for seeding.
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

    /// Returns the job of searching `queries` among rows, with `k` hits each.
    pub fn search<R: Rows>(rows: &R, queries: usize, k: usize) -> Self {
        // Rows of two bits are counted as bytes: their products take the time.
        let size = size_of::<R::Query>();
        Self::among(rows.len(), rows.dim(), size, queries, k)
    }

    /// As [`Job::search`], from the shape of rows with `size` bytes per value.
    pub fn among(rows: usize, dim: usize, size: usize, queries: usize, k: usize) -> Self {
        let elements = amount(&[rows, dim]);
        let bytes_in = amount(&[rows.saturating_add(queries), dim, size]);
        let bytes_out = amount(&[queries, k, 16]);
        Self {
            work: elements.saturating_mul(queries as u64),
            items: amount(&[queries, entering(rows, k) + 1]),
            ..Self::each(Operation::Search, elements, bytes_in, bytes_out)
        }
    }

    /// Returns the job of multiplying a layer with rows of activations, with f32 outputs.
    pub fn product(layer: &Layer<'_>, rows: usize) -> Self {
        let weights = layer.weights();
        let bytes = weights.bytes().len();
        Self::products(weights.rows(), weights.cols(), bytes, rows)
            .with_scratch(weights.scratch_len() * size_of::<u32>())
    }

    /// As [`Job::product`], for a matrix with these rows, columns and bytes and `many` rows of activations.
    pub fn products(rows: usize, cols: usize, bytes: usize, many: usize) -> Self {
        let elements = amount(&[rows, cols]);
        let operation = match many {
            0 | 1 => Operation::Matvec,
            _ => Operation::Matmul,
        };
        let bytes_in = (bytes as u64).saturating_add(amount(&[many, cols]));
        Self {
            work: elements.saturating_mul(many as u64),
            // The time for one row of activations is negligible beside the rows of weights, each of which ends in a
            // sum.
            items: if many > 1 { many } else { rows } as u64,
            ..Self::each(operation, elements, bytes_in, amount(&[many, rows, 4]))
        }
    }

    /// Returns the same job with so many groups of a quantizer, each of `len` values.
    pub(super) const fn in_groups(mut self, groups: usize, len: usize) -> Self {
        if matches!(self.operation, Operation::QuantizeOptimal) && len > SORTED {
            // Bins are counted with the bytes read.
            self.work = 0;
        }
        self.with_items(groups)
    }

    /// Returns the same job with so many items.
    pub const fn with_items(mut self, items: usize) -> Self {
        self.items = items as u64;
        self
    }

    /// Returns the same job with so many of its read bytes on the device too.
    pub const fn holding(mut self, bytes: u64) -> Self {
        self.held = if bytes < self.bytes_in {
            bytes
        } else {
            self.bytes_in
        };
        self
    }

    /// Returns the same job with so many bytes of scratch: see [`Job::scratch`].
    pub const fn with_scratch(mut self, bytes: usize) -> Self {
        self.scratch = bytes;
        self
    }

    /// Returns the same job with its data in this place.
    pub const fn at(mut self, place: Location) -> Self {
        self.place = place;
        self
    }

    /// Returns the same job as the engine's part of a whole flow: see [`Job::flow`].
    pub const fn in_flow(mut self) -> Self {
        self.flow = true;
        self
    }

    /// Returns the same job, done so many times in a call; `unit` says what each of them is, in the plural, such as
    /// `tokens`.
    pub const fn repeated(mut self, times: u64, unit: &'static str) -> Self {
        self.times = times;
        self.unit = unit;
        self
    }

    /// Returns the same job after another one of the same call, without what that one does first: see [`Job::before`].
    pub const fn after(mut self, first: &Self) -> Self {
        self.before = Some(Phase {
            operation: first.operation,
            elements: first.elements,
            bytes_in: first.bytes_in,
            bytes_out: first.bytes_out,
            work: first.work,
            items: first.items,
            times: first.times,
        });
        self
    }

    /// Returns an amount of all times, and of what comes first.
    pub(super) fn total(&self, amount: impl Fn(&Self) -> u64) -> u64 {
        let before = self.before.map(|phase| phase.job(self.place));
        let all = [Some(*self), before].into_iter().flatten();
        all.fold(0, |sum, job| {
            sum.saturating_add(amount(&job).saturating_mul(job.times))
        })
    }

    /// True if this is a flow that takes the values of files tile by tile, from reading to writing, over all threads of
    /// the processor. On the processor no engine of one thread does it ([`Profile::tiling`](super::Profile::tiling)
    /// names the one that does).
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

    /// Returns the bytes read and written.
    pub const fn bytes(&self) -> u64 {
        self.bytes_in.saturating_add(self.bytes_out)
    }
}

/// Returns how many of `rows`, in random order, are among the best `k` when they are visited, on average: k · (1 +
/// ln(rows / k)).
fn entering(rows: usize, k: usize) -> usize {
    if rows <= k || k == 0 {
        return rows.min(k);
    }
    let (rows, k) = (rows as f64, k as f64);
    (k * (1.0 + (rows / k).ln())) as usize
}

/// Returns a product of sizes, saturated at 64 bits.
fn amount(sizes: &[usize]) -> u64 {
    let sizes = sizes.iter().map(|&size| size as u64);
    sizes.fold(1, u64::saturating_mul)
}
