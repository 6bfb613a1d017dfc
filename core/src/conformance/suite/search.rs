//! Similarity search on any engine, and the parts that are the same for all.

use half::f16;

use super::{Digest, input};
use crate::engine::{BaseQuery, BaseScore, SearchBase, SearchEngine};
use crate::number::{Element, Random};
use crate::search::{
    Cosine, Dot, FloatRows, Hit, Int8Rows, Metric, Rows, Score, SquaredL2, TernaryRows, rerank,
};

/// Lengths of rows: one value, odd ones, one more than a row of lanes.
const DIMS: [usize; 4] = [1, 5, 31, 65];
/// Number of rows of the longest.
const ROWS: usize = 7;
/// Number of values of the largest matrix.
const VALUES: usize = 65 * ROWS;
/// Largest number of hits kept; more than the rows of some matrices.
const ROOM: usize = 9;

pub(super) fn run<E: SearchEngine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    report("search/int8/dot", int8::<E, Dot>(engine));
    report("search/int8/cosine", int8::<E, Cosine>(engine));
    report("search/int8/l2", int8::<E, SquaredL2>(engine));
    report("search/ternary/dot", ternary::<E, Dot>(engine));
    report("search/ternary/cosine", ternary::<E, Cosine>(engine));
    report("search/ternary/l2", ternary::<E, SquaredL2>(engine));
    report("search/f32/dot", floats::<E, f32, Dot>(engine, |x| x));
    report("search/f32/cosine", floats::<E, f32, Cosine>(engine, |x| x));
    report("search/f32/l2", floats::<E, f32, SquaredL2>(engine, |x| x));
    report(
        "search/f16/cosine",
        floats::<E, f16, Cosine>(engine, halved),
    );
    report("search/f16/l2", floats::<E, f16, SquaredL2>(engine, halved));
}

/// Writes codes that tie, codes over the whole range, or only the extremes.
fn fill(seed: u64, kind: u64, codes: &mut [i8]) {
    let mut random = Random::new(seed);
    for code in codes {
        let draw = random.next_u64();
        *code = match kind {
            0 => (draw % 3) as i8 - 1,
            1 => draw as i8,
            _ if draw & 1 == 0 => -128,
            _ => 127,
        };
    }
}

#[inline(never)]
fn int8<E: SearchEngine, M: Metric>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    let (mut values, mut queries) = ([0; VALUES], [0; 2 * 65]);
    for (kind, dim) in (0..3).flat_map(|kind| DIMS.map(|dim| (kind, dim))) {
        let (Some(values), Some(queries)) =
            (values.get_mut(..dim * ROWS), queries.get_mut(..2 * dim))
        else {
            continue;
        };
        fill(30 + kind, kind, values);
        fill(40 + kind, kind, queries);
        let mut norms = [0; ROWS];
        let rows = Int8Rows::new(values, dim);
        let Some(rows) = digest.outcome(rows.and_then(|rows| {
            rows.write_norms(&mut norms)?;
            Ok(rows)
        })) else {
            continue;
        };
        search::<E, _, M>(engine, rows, queries, &mut digest);
        if let Ok(rows) = rows.with_norms(&norms) {
            search::<E, _, M>(engine, rows, queries, &mut digest);
        }
    }
    digest.value()
}

#[inline(never)]
fn ternary<E: SearchEngine, M: Metric>(engine: &mut E) -> u64 {
    const BYTES: usize = TernaryRows::row_bytes(65);
    let mut digest = Digest::new();
    let (mut codes, mut queries) = ([0; 65], [0; 2 * 65]);
    let mut bytes = [0; BYTES * ROWS];
    for dim in DIMS {
        let row_bytes = TernaryRows::row_bytes(dim).max(1);
        let (Some(codes), Some(queries), Some(bytes)) = (
            codes.get_mut(..dim),
            queries.get_mut(..2 * dim),
            bytes.get_mut(..row_bytes * ROWS),
        ) else {
            continue;
        };
        for (seed, row) in (50..).zip(bytes.chunks_exact_mut(row_bytes)) {
            fill(seed, 0, codes);
            digest.outcome(TernaryRows::pack(codes, row));
        }
        digest.bytes(bytes);
        fill(60, 1, queries);
        let rows = TernaryRows::new(bytes, dim);
        let rows = rows.and_then(|rows| rows.with_magnitudes(&[1, 127, 3, 0, 64, 3, 2]));
        if let Some(rows) = digest.outcome(rows) {
            search::<E, _, M>(engine, rows, queries, &mut digest);
        }
    }
    // The bits 3 are not a code.
    digest.outcome(TernaryRows::new(&[0x55, 0x57], 4).map(|_| ()));
    digest.value()
}

/// Converts to f16, saturated, so that no value is refused.
fn halved(x: f32) -> f16 {
    let half = f16::from_f32(x);
    if half.is_infinite() { f16::MAX } else { half }
}

#[inline(never)]
fn floats<E: SearchEngine, T: Element + Send + Sync + Default, M: Metric>(
    engine: &mut E,
    narrow: fn(f32) -> T,
) -> u64 {
    let mut digest = Digest::new();
    let (mut values, mut queries) = ([T::default(); input::MAX], [0.0; 2 * 65]);
    for (seed, family) in (70..).zip(input::FAMILIES) {
        for dim in DIMS {
            let rows = ROWS.min(input::MAX / dim.max(1));
            let (Some(values), Some(queries)) =
                (values.get_mut(..dim * rows), queries.get_mut(..2 * dim))
            else {
                continue;
            };
            floats_into(family, seed, values, narrow);
            family.fill(seed + 10, queries);
            if let Some(rows) = digest.outcome(FloatRows::new(values, dim)) {
                search::<E, _, M>(engine, rows, queries, &mut digest);
            }
        }
    }
    digest.outcome(FloatRows::new(&[0.0, 1.0, f32::NAN, f32::INFINITY], 2).map(|_| ()));
    digest.value()
}

#[inline(never)]
fn floats_into<T>(family: input::Family, seed: u64, out: &mut [T], narrow: fn(f32) -> T) {
    let mut values = [0.0; input::MAX];
    family.fill(seed, &mut values);
    for (out, x) in out.iter_mut().zip(values) {
        *out = narrow(x);
    }
}

/// Digests the nearest rows of two queries, those within a threshold, and errors.
#[inline(never)]
fn search<E: SearchEngine, R: Rows, M: Metric>(
    engine: &mut E,
    rows: R,
    queries: &[R::Query],
    digest: &mut Digest,
) {
    let Some(mut base) = digest.outcome(engine.base(rows)) else {
        return;
    };
    let mut hits = [Hit::default(); ROOM];
    for k in [1, 4] {
        let room = hits.get_mut(..2 * k).unwrap_or_default();
        let found = base.top_k_all::<M>(queries, k, room);
        if digest.outcome(found).is_some() {
            feed(room, digest);
        }
    }
    nearest::<_, M, E::Error>(&mut base, queries.get(..rows.dim()), &mut hits, digest);
    let longer = base.top_k::<M>(queries, &mut hits);
    digest.outcome(longer.map(|_| ()));
}

/// All rows by their score, then those within the score of the third, with space for two.
#[inline(never)]
fn nearest<B, M, E>(
    base: &mut B,
    query: Option<&[BaseQuery<B>]>,
    hits: &mut [Hit<BaseScore<B, M>>; ROOM],
    digest: &mut Digest,
) where
    B: SearchBase<Error = E>,
    M: Metric,
    E: core::fmt::Display,
{
    let query = query.unwrap_or_default();
    let found = base.top_k::<M>(query, hits);
    let Some(found) = digest.outcome(found) else {
        return;
    };
    feed(hits.get(..found).unwrap_or_default(), digest);
    let threshold = hits.get(2).map_or(0.0, |hit| hit.score.value());
    let room = hits.get_mut(..2).unwrap_or_default();
    if let Some(total) = digest.outcome(base.range::<M>(query, threshold, room)) {
        digest.u64(total as u64);
        feed(room.get(..total.min(2)).unwrap_or_default(), digest);
    }
    digest.outcome(base.range::<M>(query, f32::NAN, hits).map(|_| ()));
}

fn feed<S: Score>(hits: &[Hit<S>], digest: &mut Digest) {
    for hit in hits {
        digest.u64(hit.index as u64);
        digest.f32(canonical(hit.score.value()));
    }
}

/// Replaces a NaN (∞ − ∞), whose bits depend on the machine.
fn canonical(x: f32) -> f32 {
    if x.is_nan() { f32::NAN } else { x }
}

/// Candidates from int8 rows, sorted by f32 rows.
#[inline(never)]
pub(super) fn reranked() -> u64 {
    let mut digest = Digest::new();
    let (mut codes, mut values) = ([0; 5 * ROWS], [0.0; 5 * ROWS]);
    fill(90, 1, &mut codes);
    input::FAMILIES[0].fill(91, &mut values);
    for (value, &code) in values.iter_mut().zip(&codes) {
        *value = *value * 4.0 + f32::from(code);
    }
    let (query, exact) = ([90, -3, 4, 7, -120], [90.4, -3.5, 4.0, 7.25, -119.6]);
    let mut candidates = [Hit::default(); 4];
    let mut hits = [Hit::default(); 2];
    let found = Int8Rows::new(&codes, 5).and_then(|rows| {
        let mut base = crate::scalar::Base::new(rows);
        base.top_k::<SquaredL2>(&query, &mut candidates)?;
        let rows = FloatRows::new(&values, 5)?;
        rerank::<SquaredL2, _, _>(&rows, &exact, &candidates, &mut hits)
    });
    digest.outcome(found);
    feed(&candidates, &mut digest);
    feed(&hits, &mut digest);
    if let Some(candidate) = candidates.first_mut() {
        candidate.index = ROWS;
    }
    let beyond = FloatRows::new(&values, 5)
        .and_then(|rows| rerank::<SquaredL2, _, _>(&rows, &exact, &candidates, &mut hits));
    digest.outcome(beyond);
    digest.value()
}
