//! The Kullback–Leibler divergence between a histogram's values and the same values on a grid.

use super::super::{Grid, Histogram};
use super::nearest;
use crate::number::log2;

/// Returns Σ P · log₂(P / Q) in bits, over the pieces into which the grid's cells cut the buckets.
///
/// P is a piece's share of all values. Values outside the grid count in the end cells, in proportion to the pieces
/// there. Q is the cell's share of the values inside, spread over its pieces by width. The result is infinite if
/// values are clipped to an end cell that holds no values of its own. Summed from the smallest value up.
pub(super) fn expected<const B: u32>(histogram: &Histogram<'_, B>, grid: &Grid) -> f64 {
    let scale = f64::from(grid.scale);
    let mut total = Total::default();
    let mut cell = Cell::default();
    let first = f64::from(grid.low) - f64::from(grid.zero_point) - 0.5;
    let last = f64::from(grid.high) - f64::from(grid.zero_point) + 0.5;
    for bucket in histogram.iter() {
        if bucket.low <= 0.0 && bucket.high >= 0.0 {
            continue;
        }
        let a = f64::from(bucket.low) / scale;
        let mut b = f64::from(bucket.high) / scale;
        if a == b {
            // A bucket of a single value stands for the numbers that round to it: one part in 2²³.
            b += a.abs() * 1.192_092_895_507_812_5e-7;
        }
        let density = bucket.count as f64 / (b - a);
        let log = log2(density);
        let mut start = a;
        while start < b {
            let point = nearest(start, grid);
            if point != cell.point {
                total.add(&cell);
                cell = Cell {
                    point,
                    ..Cell::default()
                };
            }
            let outside = start < first || start >= last;
            let limit = match start {
                _ if start < first => first,
                _ if start >= last => b,
                _ => point + 0.5,
            };
            let end = if limit < b { limit } else { b };
            let width = end - start;
            let mass = density * width;
            if outside {
                cell.outside += mass;
            } else {
                cell.inside += mass;
                cell.width += width;
                cell.weighted += mass * log;
            }
            start = end;
        }
    }
    total.add(&cell);
    total.divergence()
}

/// The values of one grid point. Masses are counts of values, widths are steps of the grid.
#[derive(Clone, Copy, Default)]
struct Cell {
    point: f64,
    inside: f64,
    outside: f64,
    width: f64,
    /// Σ mass · log₂(mass / width) of the pieces inside.
    weighted: f64,
}

impl Cell {
    /// Returns the cell's term of the sum; `all` is its mass, inside and outside.
    fn term(&self, all: f64) -> f64 {
        if self.inside == 0.0 {
            return f64::INFINITY;
        }
        let within = self.weighted / self.inside - log2(self.inside / self.width);
        all * (within + log2(all / self.inside))
    }

    /// Returns true if this cell's term equals that of `other`. A bucket wider than a step is many whole cells that
    /// differ only in their point, and each logarithm takes some thousand instructions with soft f64.
    fn weighs_as(&self, other: &Self) -> bool {
        self.inside == other.inside
            && self.outside == other.outside
            && self.width == other.width
            && self.weighted == other.weighted
    }
}

#[derive(Default)]
struct Total {
    sum: f64,
    inside: f64,
    all: f64,
    /// The last cell, and its term.
    last: Cell,
    term: f64,
}

impl Total {
    /// Adds `all · [D(pieces | cell) + log₂(all / inside)]`; the shares' denominators are applied at the end.
    fn add(&mut self, cell: &Cell) {
        let all = cell.inside + cell.outside;
        if all == 0.0 {
            return;
        }
        self.all += all;
        self.inside += cell.inside;
        if !cell.weighs_as(&self.last) {
            self.term = cell.term(all);
            self.last = *cell;
        }
        self.sum += self.term;
    }

    fn divergence(&self) -> f64 {
        if self.all == 0.0 {
            return 0.0;
        }
        if self.inside == 0.0 {
            return f64::INFINITY;
        }
        self.sum / self.all + log2(self.inside / self.all)
    }
}
