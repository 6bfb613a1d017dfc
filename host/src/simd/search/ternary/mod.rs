//! Queries for packed ternary rows, and the reference's loops over them.

use super::{Dots, Norms};

/// A query in the order for packed ternary rows.
#[derive(Clone, Debug)]
pub(crate) struct TernaryQuery {
    /// The four runs, each padded with zeros to a multiple of [`TernaryQuery::STEP`].
    runs: Vec<i8>,
    /// Σ q, the excess of codes that are stored as code + 1.
    sum: i32,
    /// Bytes per row.
    row_bytes: usize,
    /// The lowest bit of each pair of bits that is a value of a row.
    taken: Vec<u8>,
}

impl TernaryQuery {
    /// Bytes that runs are padded to.
    pub(in crate::simd) const STEP: usize = 64;

    /// Converts a query to this order.
    pub(crate) fn new(query: &[i8]) -> Self {
        let row_bytes = query.len().div_ceil(4);
        let padded = row_bytes.next_multiple_of(Self::STEP);
        let mut runs = vec![0; 4 * padded];
        for (run, values) in runs.chunks_mut(padded).zip(query.chunks(row_bytes)) {
            run[..values.len()].copy_from_slice(values);
        }
        let mut taken = vec![0; row_bytes];
        for (run, bit) in query.chunks(row_bytes).zip([1, 4, 16, 64]) {
            taken[..run.len()].iter_mut().for_each(|byte| *byte |= bit);
        }
        let sum = query.iter().map(|&x| i32::from(x)).sum();
        Self {
            runs,
            sum,
            row_bytes,
            taken,
        }
    }

    /// Returns the number of nonzero codes of a row: those whose bits, 0 or 2, are even.
    #[inline]
    pub(in crate::simd) fn coded(&self, row: &[u8]) -> u32 {
        let (rows, rest) = row.as_chunks::<8>();
        let (taken, rest_taken) = self.taken.as_chunks::<8>();
        let whole = rows.iter().zip(taken).map(|(row, taken)| {
            (!u64::from_ne_bytes(*row) & u64::from_ne_bytes(*taken)).count_ones()
        });
        let rest = rest.iter().zip(rest_taken);
        let rest = rest.map(|(row, taken)| (!row & taken).count_ones());
        whole.sum::<u32>() + rest.sum::<u32>()
    }

    /// Returns the values for each pair of bits of a row's bytes.
    pub(in crate::simd) fn runs(&self) -> [&[i8]; 4] {
        let run = self.runs.len() / 4;
        [0, 1, 2, 3].map(|at| &self.runs[at * run..][..run])
    }

    /// Returns Σ q.
    pub(in crate::simd) fn sum(&self) -> i32 {
        self.sum
    }

    /// Returns the bytes per row.
    pub(in crate::simd) fn row_bytes(&self) -> usize {
        self.row_bytes
    }
}

/// The codes of a row are multiplied in their stored form, which is one too large.
pub(super) fn dots(query: &TernaryQuery, rows: &[u8], dots: &mut Dots) {
    let runs = query.runs();
    for (row, dot) in rows.chunks_exact(query.row_bytes()).zip(dots) {
        let mut sum = 0;
        for (run, shift) in runs.iter().zip([0, 2, 4, 6]) {
            let terms = row.iter().zip(*run);
            sum += terms
                .map(|(byte, &x)| i32::from((byte >> shift) & 3) * i32::from(x))
                .sum::<i32>();
        }
        *dot = sum - query.sum();
    }
}

/// Returns [`TernaryQuery::coded`] of each row.
pub(super) fn norms(query: &TernaryQuery, rows: &[u8], norms: &mut Norms) {
    for (row, norm) in rows.chunks_exact(query.row_bytes()).zip(norms) {
        *norm = query.coded(row);
    }
}
