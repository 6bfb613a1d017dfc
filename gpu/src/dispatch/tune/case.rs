//! The timed cases: operations that other measurements use too, of any size, with their amounts of work.

use tercet_core::block::Format;
use tercet_core::linear::Layout;
use tercet_core::quant::{Groups, Method, Rule, ScaleRule, int8};
use tercet_host::measure::{Entry, entries};

use crate::dispatch::{Job, Operation};

/// Hits per query.
const HITS: usize = entries::TOP;
/// Steps of a clustering.
const STEPS: u32 = 4;
/// Format of blocks.
const BLOCK: Format = Format::Q8_0;

/// The size of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Approximate number of values, coordinates or weights, in whole rows.
    pub(super) elements: usize,
    /// Values per row, point or group.
    pub(super) width: usize,
    /// Number of clusters, queries or rows of activations.
    pub(super) many: usize,
    /// The layout of weights.
    pub(super) layout: Layout,
}

impl Shape {
    /// Returns a shape with little work per byte.
    pub(super) const fn streaming(operation: Operation, elements: usize) -> Self {
        let (width, many) = match operation {
            Operation::Kmeans | Operation::Assign => (16, 4),
            Operation::Search => (64, 1),
            Operation::Matmul => (256, 4),
            // Groups too large to be sorted.
            Operation::QuantizeOptimal => (4096, 1),
            _ => (256, 1),
        };
        Self {
            elements,
            width,
            many,
            layout: Layout::Int8,
        }
    }

    /// Returns a shape with much work per byte; `None` if an operation has no such cases.
    pub(super) const fn busy(operation: Operation, elements: usize) -> Option<Self> {
        let layout = match operation {
            // The weights with the least bytes, which are unpacked as they are multiplied.
            Operation::Matvec => Layout::FiveTrits,
            _ => Layout::Int8,
        };
        let (width, many) = match operation {
            Operation::Kmeans => (32, 64),
            Operation::Matvec => (256, 1),
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
            layout,
        })
    }

    /// Returns a shape with many items of few bytes each; `None` if an operation has no such cases.
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
            layout: Layout::Int8,
        })
    }

    /// Returns the job of an operation with this shape.
    pub(super) fn job(self, operation: Operation) -> Job {
        let (rows, values) = self.rows();
        let (width, many) = (self.width, self.many);
        let blocks = self.blocks();
        let bytes = blocks / BLOCK.len() * BLOCK.bytes();
        let Groups { count: groups, len } = self.groups();
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
            Operation::Matvec | Operation::Matmul => {
                // Sizes of cases are far below those that overflow.
                let bytes = self.layout.bytes(rows, width).unwrap_or(values);
                Job::products(rows, width, bytes, many)
            }
        };
        Job { operation, ..job }
    }

    /// Returns the operation with an input of this shape.
    pub(super) fn entry(self, operation: Operation) -> Entry {
        let (rows, _) = self.rows();
        let (width, many) = (self.width, self.many);
        let quantize = |method| entries::quantize(operation.name(), self.groups(), method);
        match operation {
            Operation::QuantizeInteger => quantize(Method::Symmetric { limit: int8::LIMIT }),
            Operation::QuantizeTernary => quantize(ternary(Rule::AbsMean)),
            Operation::QuantizeOptimal => quantize(ternary(Rule::Optimal)),
            Operation::Histogram => entries::histogram(self.elements.max(1)),
            Operation::Dequantize => entries::dequantize(self.groups()),
            Operation::Encode => entries::encode(BLOCK, self.blocks()),
            Operation::Decode => entries::decode(BLOCK, self.blocks()),
            Operation::Kmeans => entries::steps([rows, width, many.min(rows)], STEPS),
            Operation::Assign => entries::nearest([rows, width, many]),
            Operation::Search => entries::int8_search(rows, width, many),
            Operation::Matvec => entries::matvec(self.layout, rows, width),
            Operation::Matmul => entries::matmat(self.layout, rows, width, many),
        }
    }

    /// Returns groups of the width; a short tensor is one group.
    fn groups(self) -> Groups {
        let len = self.width.min(self.elements).max(1);
        let count = (self.elements / len).max(1);
        Groups { count, len }
    }

    /// Returns the number of values in whole blocks.
    fn blocks(self) -> usize {
        self.elements.max(1).next_multiple_of(BLOCK.len())
    }

    /// Returns the number of rows of the width, at least one, and the number of values in them.
    const fn rows(self) -> (usize, usize) {
        let rows = if self.elements < self.width {
            1
        } else {
            self.elements / self.width
        };
        (rows, rows * self.width)
    }
}

const fn ternary(rule: Rule) -> Method {
    Method::Ternary {
        rule,
        scale_rule: ScaleRule::Rule,
    }
}
