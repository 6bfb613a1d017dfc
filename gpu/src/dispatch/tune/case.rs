//! What is timed: operations that are measured elsewhere too, of any size, and how much they are asked.

use tercet_core::block::Format;
use tercet_core::linear::Layout;
use tercet_core::quant::{Groups, Method, Rule, ScaleRule, int8};
use tercet_host::measure::{Entry, entries};

use crate::dispatch::{Job, Operation};

/// Hits of a query.
const HITS: usize = entries::TOP;
/// Steps of a clustering.
const STEPS: u32 = 4;
/// The format of blocks.
const BLOCK: Format = Format::Q8_0;

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
            Operation::Matvec | Operation::Matmul => Job::products(rows, width, values, many),
        };
        Job { operation, ..job }
    }

    /// The operation over an input of this shape.
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
            Operation::Matvec => entries::matvec(Layout::Int8, rows, width),
            Operation::Matmul => entries::matmat(Layout::Int8, rows, width, many),
        }
    }

    /// Groups of the width: a short tensor is one group.
    fn groups(self) -> Groups {
        let len = self.width.min(self.elements).max(1);
        let count = (self.elements / len).max(1);
        Groups { count, len }
    }

    /// Values of whole blocks.
    fn blocks(self) -> usize {
        self.elements.max(1).next_multiple_of(BLOCK.len())
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

const fn ternary(rule: Rule) -> Method {
    Method::Ternary {
        rule,
        scale_rule: ScaleRule::Rule,
    }
}
