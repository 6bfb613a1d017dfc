//! int8 and ternary rows, a block of 64 at a time: dot products with kernels, a test of the whole block against the
//! worst kept hit, and the exact comparison for the rows that pass.

use std::ops::Range;

use tercet_core::arch::plain;
use tercet_core::search::{Bar, Hit, Int8Rows, Metric, Score, TernaryRows, TopK};

use crate::simd::search::{BLOCK, Dots, Norms, Queries, Search, TernaryQuery};

/// From this many queries on, packing a block of rows pays off.
pub(super) const MANY: usize = 6;
/// Queries whose products with a block are in memory at once.
const GROUP: usize = 24;

/// Rows that are compared in integers.
pub(super) trait IntegerRows: Copy {
    /// A query in the form of the kernels.
    type Query<'q>;

    /// Returns the values per row.
    fn dim(&self) -> usize;

    /// Prepares a query.
    fn query<'q>(&self, values: &'q [i8]) -> Self::Query<'q>;

    /// Returns the squared lengths, if they are known.
    fn known(&self) -> Option<&[u32]>;

    /// Computes dot products with a block of rows.
    fn dots(&self, search: &Search, query: &Self::Query<'_>, rows: Range<usize>, out: &mut Dots);

    /// Computes the same, and the rows' squared lengths.
    fn dots_and_norms(
        &self,
        search: &Search,
        query: &Self::Query<'_>,
        rows: Range<usize>,
        dots: &mut Dots,
        norms: &mut Norms,
    );

    /// Returns a block of rows in int8, converted in `room` if needed.
    fn codes<'a>(&'a self, rows: Range<usize>, room: &'a mut Vec<i8>) -> &'a [i8];

    /// Converts products with codes to products with rows.
    fn scale(&self, rows: Range<usize>, dots: &mut Dots);
}

impl IntegerRows for Int8Rows<'_> {
    type Query<'q> = &'q [i8];

    fn dim(&self) -> usize {
        tercet_core::search::Rows::dim(self)
    }

    fn query<'q>(&self, values: &'q [i8]) -> &'q [i8] {
        values
    }

    fn known(&self) -> Option<&[u32]> {
        self.norms()
    }

    #[inline]
    fn dots(&self, search: &Search, query: &&[i8], rows: Range<usize>, out: &mut Dots) {
        search.dots(query, part(self.values(), rows, query.len()), out);
    }

    #[inline]
    fn dots_and_norms(
        &self,
        search: &Search,
        query: &&[i8],
        rows: Range<usize>,
        dots: &mut Dots,
        norms: &mut Norms,
    ) {
        let rows = part(self.values(), rows, query.len());
        search.dots_and_norms(query, rows, dots, norms);
    }

    fn codes<'a>(&'a self, rows: Range<usize>, _: &'a mut Vec<i8>) -> &'a [i8] {
        part(self.values(), rows, self.dim())
    }

    #[inline]
    fn scale(&self, _: Range<usize>, _: &mut Dots) {}
}

impl IntegerRows for TernaryRows<'_> {
    type Query<'q> = TernaryQuery;

    fn dim(&self) -> usize {
        tercet_core::search::Rows::dim(self)
    }

    fn query(&self, values: &[i8]) -> TernaryQuery {
        TernaryQuery::new(values)
    }

    fn known(&self) -> Option<&[u32]> {
        self.norms()
    }

    #[inline]
    fn dots(&self, search: &Search, query: &TernaryQuery, rows: Range<usize>, out: &mut Dots) {
        let bytes = part(self.bytes(), rows.clone(), Self::row_bytes(self.dim()));
        search.ternary_dots(query, bytes, out);
        self.scale(rows, out);
    }

    fn dots_and_norms(
        &self,
        search: &Search,
        query: &TernaryQuery,
        rows: Range<usize>,
        dots: &mut Dots,
        norms: &mut Norms,
    ) {
        self.dots(search, query, rows.clone(), dots);
        let bytes = part(self.bytes(), rows.clone(), Self::row_bytes(self.dim()));
        search.ternary_norms(query, bytes, norms);
        if let Some(magnitudes) = self.magnitudes() {
            for (norm, &magnitude) in norms.iter_mut().zip(&magnitudes[rows]) {
                *norm *= u32::from(magnitude) * u32::from(magnitude);
            }
        }
    }

    fn codes<'a>(&'a self, rows: Range<usize>, room: &'a mut Vec<i8>) -> &'a [i8] {
        let (dim, row_bytes) = (self.dim(), Self::row_bytes(self.dim()));
        room.resize(rows.len() * dim, 0);
        let bytes = part(self.bytes(), rows, row_bytes);
        for (row, out) in bytes
            .chunks_exact(row_bytes)
            .zip(room.chunks_exact_mut(dim))
        {
            for (run, shift) in out.chunks_mut(row_bytes).zip([0, 2, 4, 6]) {
                for (code, byte) in run.iter_mut().zip(row) {
                    *code = ((byte >> shift) & 3) as i8 - 1;
                }
            }
        }
        room
    }

    #[inline]
    fn scale(&self, rows: Range<usize>, dots: &mut Dots) {
        if let Some(magnitudes) = self.magnitudes() {
            for (dot, &magnitude) in dots.iter_mut().zip(&magnitudes[rows]) {
                *dot *= i32::from(magnitude);
            }
        }
    }
}

/// Returns the elements of a range of rows.
#[inline]
fn part<T>(elements: &[T], rows: Range<usize>, row: usize) -> &[T] {
    &elements[rows.start * row..rows.end * row]
}

/// Splits a range into pieces of `step`.
pub(super) fn pieces(range: Range<usize>, step: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range
        .step_by(step)
        .map(move |start| start..end.min(start + step))
}

/// A block's products and lengths.
struct Block {
    dots: Dots,
    norms: Norms,
}

impl Block {
    const fn new() -> Self {
        Self {
            dots: [0; BLOCK],
            norms: [0; BLOCK],
        }
    }

    /// Computes the values that the metric needs.
    #[inline]
    fn fill<M: Metric, R: IntegerRows>(
        &mut self,
        search: &Search,
        base: &R,
        query: &R::Query<'_>,
        rows: Range<usize>,
    ) {
        let Self { dots, norms } = self;
        match base.known() {
            None if M::INTEGER_NORMS => base.dots_and_norms(search, query, rows, dots, norms),
            Some(known) if M::INTEGER_NORMS => {
                norms[..rows.len()].copy_from_slice(&known[rows.clone()]);
                base.dots(search, query, rows, dots);
            }
            _ => base.dots(search, query, rows, dots),
        }
    }
}

/// Returns the rows of a block that pass a bar.
#[inline]
fn passing(search: &Search, bar: Bar, rows: usize, dots: &Dots, norms: &Norms) -> Set {
    let all = u64::MAX >> (BLOCK - rows);
    Set(match bar {
        Bar::Open => all,
        bar => all & search.passing(bar, dots, norms),
    })
}

/// Rows of a block, one bit each.
struct Set(u64);

impl Iterator for Set {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let lowest = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(lowest)
    }
}

/// A query and its best hits so far.
struct Seeker<'h, Q, S> {
    query: Q,
    norm: u32,
    best: TopK<'h, S>,
    bar: Bar,
}

impl<Q, S: Score> Seeker<'_, Q, S> {
    /// Offers a block of rows.
    #[inline]
    fn offer<M: Metric<Integer = S>>(
        &mut self,
        search: &Search,
        rows: Range<usize>,
        dots: &Dots,
        norms: &Norms,
    ) {
        let set = passing(search, self.bar, rows.len(), dots, norms);
        if set.0 != 0 {
            for at in set {
                let score = M::integer(dots[at], self.norm, norms[at]);
                self.best.push(rows.start + at, score);
            }
            // Rows come in order, so a row that ties with the worst is no better.
            if let Some(worst) = self.best.worst() {
                self.bar = M::bar(&worst.score, self.norm);
            }
        }
    }
}

/// Writes the best `k` of some rows for each query, best first.
pub(super) fn best<M: Metric, R: IntegerRows>(
    search: &Search,
    base: R,
    rows: Range<usize>,
    tile: usize,
    queries: &[i8],
    k: usize,
    hits: &mut [Hit<M::Integer>],
) {
    let seekers = queries.chunks(base.dim()).zip(hits.chunks_mut(k));
    let mut seekers: Vec<_> = seekers
        .map(|(query, hits)| Seeker {
            query: base.query(query),
            norm: norm::<M>(query),
            best: TopK::new(hits),
            bar: Bar::Open,
        })
        .collect();
    if search.takes_many() && seekers.len() >= MANY {
        many::<M, R>(search, &base, rows, queries, &mut seekers);
    } else {
        let mut block = Block::new();
        for tile in pieces(rows, tile.next_multiple_of(BLOCK)) {
            for seeker in &mut seekers {
                for rows in pieces(tile.clone(), BLOCK) {
                    block.fill::<M, R>(search, &base, &seeker.query, rows.clone());
                    seeker.offer::<M>(search, rows, &block.dots, &block.norms);
                }
            }
        }
    }
    for seeker in seekers {
        seeker.best.into_sorted();
    }
}

/// Does [`best`] for queries that are worth packing rows for.
fn many<M: Metric, R: IntegerRows>(
    search: &Search,
    base: &R,
    rows: Range<usize>,
    queries: &[i8],
    seekers: &mut [Seeker<'_, R::Query<'_>, M::Integer>],
) {
    let dim = base.dim();
    let sum = |query: &[i8]| query.iter().map(|&x| i32::from(x)).sum();
    let sums: Vec<i32> = queries.chunks(dim).map(sum).collect();
    let mut packed = vec![0; search.packed_len(dim)];
    let mut products = vec![[0; BLOCK]; GROUP];
    let mut room = Vec::new();
    let mut block = Block::new();
    for rows in pieces(rows, BLOCK) {
        if M::INTEGER_NORMS
            && let Some(seeker) = seekers.first()
        {
            block.fill::<M, R>(search, base, &seeker.query, rows.clone());
        }
        search.pack(base.codes(rows.clone(), &mut room), dim, &mut packed);
        let groups = queries.chunks(GROUP * dim).zip(sums.chunks(GROUP));
        for ((values, sums), seekers) in groups.zip(seekers.chunks_mut(GROUP)) {
            let products = &mut products[..sums.len()];
            let queries = Queries { values, dim, sums };
            search.many_dots(&packed, queries, products);
            for (seeker, dots) in seekers.iter_mut().zip(products) {
                base.scale(rows.clone(), dots);
                seeker.offer::<M>(search, rows.clone(), dots, &block.norms);
            }
        }
    }
}

/// Writes those of some rows that reach a threshold, at most as many as there are hits, and returns their number.
pub(super) fn near<M: Metric, R: IntegerRows>(
    search: &Search,
    base: R,
    rows: Range<usize>,
    query: &[i8],
    threshold: f32,
    hits: &mut [Hit<M::Integer>],
) -> usize {
    let query_norm = norm::<M>(query);
    let bar = M::bar_at(threshold, query_norm);
    let query = base.query(query);
    let mut block = Block::new();
    let mut found = 0;
    for rows in pieces(rows, BLOCK) {
        block.fill::<M, R>(search, &base, &query, rows.clone());
        let Block { dots, norms } = &block;
        for at in passing(search, bar, rows.len(), dots, norms) {
            let score = M::integer(dots[at], query_norm, norms[at]);
            if score.reaches(threshold) {
                let index = rows.start + at;
                hits[found] = Hit { index, score };
                found += 1;
            }
        }
    }
    found
}

/// Returns the squared length of a query, if the metric needs it.
fn norm<M: Metric>(query: &[i8]) -> u32 {
    if M::INTEGER_NORMS {
        plain::norm(query)
    } else {
        0
    }
}
