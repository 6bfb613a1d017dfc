//! Clustering: a set's kernels on points, and the plain loops.
//!
//! A tile of 64 points is transposed so that each lane of a vector holds four coordinates of one point; every
//! centroid's coordinates are broadcast to it. So all products of a point with centroids are in one lane, the nearest
//! is kept there without a step across lanes, and no lane is idle for any number of clusters.

mod packed;
mod sums;

pub(in crate::simd) mod keys;
pub(in crate::simd) mod panels;
pub(in crate::simd) mod products;
pub(in crate::simd) mod tile;

pub(crate) use packed::Packed;
pub(in crate::simd) use sums::sum;
pub(crate) use sums::{Change, Sums};

use tercet_core::arch::plain;
use tercet_core::cluster::Points;
use tercet_core::scalar::cluster as reference;

use self::products::Format;

/// Points of a tile.
pub(crate) const TILE: usize = 64;

/// 64 bytes that do not straddle cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(in crate::simd) struct Line(
    #[allow(dead_code, reason = "most sets read them as slices")] pub(in crate::simd) [i32; 16],
);

impl Line {
    pub(in crate::simd) const ZERO: Self = Self([0; 16]);
}

fn flat(lines: &[Line]) -> &[i32] {
    // SAFETY: a line is 16 values of i32 and nothing else.
    unsafe { core::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * 16) }
}

fn flat_mut(lines: &mut [Line]) -> &mut [i32] {
    // SAFETY: a line is 16 values of i32 and nothing else.
    unsafe { core::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * 16) }
}

/// A job's scratch beside its points: a transposed tile and a few arrays with one value per point. Grows to 64 · d
/// bytes, twice that for sets without byte products.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    turned: Vec<Line>,
    staged: Vec<i8>,
    sums: Vec<i32>,
    #[allow(dead_code, reason = "an architecture has its own sets")]
    pub(in crate::simd) tiles: Vec<Line>,
    old: Vec<u32>,
    changed: Vec<u64>,
}

impl Scratch {
    /// Returns for each tile of the last [`Cluster::assign`] a bit for each point with a changed label, and the earlier
    /// labels of its points.
    pub(crate) fn moved(&self) -> impl Iterator<Item = (u64, &[u32])> {
        self.changed.iter().copied().zip(self.old.chunks(TILE))
    }

    /// Begins an assignment of points with these labels.
    pub(in crate::simd) fn begin(&mut self, labels: &[u32]) {
        self.old.clear();
        self.old.extend_from_slice(labels);
        self.changed.clear();
    }

    /// Records which points of the next tile changed.
    pub(in crate::simd) fn found(&mut self, changed: u64) {
        self.changed.push(changed);
    }
}

/// The clustering functions of one instruction set.
///
/// The functions may use that set, so they are called through the safe methods, which a [`Backend`](super::Backend)
/// gives access to. A set with another kind of tile products provides its own function for `assign` and its own format.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(in crate::simd) format: Option<Format>,
    /// Points that `assign` processes at once, in whole tiles: more than one if a call is expensive.
    pub(crate) span: usize,
    pub(in crate::simd) assign: Assign,
    pub(in crate::simd) each: Each,
    pub(in crate::simd) sum: unsafe fn(&mut Sums, Change<'_>),
    pub(in crate::simd) drain: unsafe fn(&mut Sums, &mut [i64], &mut [u64]),
    pub(in crate::simd) nearer: unsafe fn(&[u32], &[u32]) -> u64,
    pub(in crate::simd) shorten: unsafe fn(&[u32], &mut [u32]) -> u64,
    pub(in crate::simd) lengths: unsafe fn(&[i8], usize, i16, &mut [u32]),
    pub(in crate::simd) means: unsafe fn(&[i64], u64, &mut [i8]),
}

type Assign = unsafe fn(
    &[i8],
    &[u32],
    &Packed,
    &mut Scratch,
    labels: &mut [u32],
    distances: &mut [u32],
) -> u64;
type Each = unsafe fn(&[i8], &[u32], &Packed, &mut Scratch, out: &mut [u32]);

pub(in crate::simd) const SCALAR: Cluster = Cluster {
    format: None,
    span: TILE,
    assign: assign_plain,
    each: each_plain,
    sum: sums::plain,
    drain: Sums::drain,
    nearer: tile::nearer,
    shorten: tile::shorten,
    lengths: tile::lengths,
    means: tile::means,
};

impl Cluster {
    /// Returns room for centroids.
    pub(crate) const fn packed(&self) -> Packed {
        Packed::new(self.format)
    }

    /// Gives points, as many as `labels`, at most [`Cluster::span`], the labels of their nearest centroids, with ties
    /// to the lowest, and their squared distances; [`Scratch::moved`] then returns which changed. Returns Σ D²; if
    /// distances are not written, less the points' [`Cluster::lengths`], as i32, modulo 2⁶⁴.
    ///
    /// `rows` begins with the first of them and may continue; then kernels read up to whole 16s of a row. `lengths` are
    /// those of [`Cluster::lengths`] for the points. Both `lengths` and `distances` may be empty: then only labels are
    /// written.
    pub(crate) fn assign(
        &self,
        rows: &[i8],
        lengths: &[u32],
        packed: &Packed,
        scratch: &mut Scratch,
        labels: &mut [u32],
        distances: &mut [u32],
    ) -> u64 {
        let count = labels.len();
        assert!((1..=self.span).contains(&count) && packed.len() > 0);
        assert!(lengths.len() == distances.len());
        assert!(distances.is_empty() || distances.len() == count);
        assert!(rows.len() >= count * packed.dims());
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.assign)(rows, lengths, packed, scratch, labels, distances) }
    }

    /// Computes the squared distances of a tile's points, as many as `lengths`, to every packed centroid: those to
    /// centroid c begin at `out[TILE * c]`.
    pub(crate) fn each(
        &self,
        rows: &[i8],
        lengths: &[u32],
        packed: &Packed,
        scratch: &mut Scratch,
        out: &mut [u32],
    ) {
        let count = lengths.len();
        assert!((1..=TILE).contains(&count) && rows.len() >= count * packed.dims());
        assert!(out.len() >= packed.len() * TILE);
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.each)(rows, lengths, packed, scratch, out) }
    }

    /// Adds points to the sums of their labels, or moves those that changed.
    pub(crate) fn sum(&self, sums: &mut Sums, change: Change<'_>) {
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.sum)(sums, change) }
    }

    /// Adds the gains to a problem's sums and counts, and resets them.
    pub(crate) fn drain(&self, gained: &mut Sums, sums: &mut [i64], counts: &mut [u64]) {
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.drain)(gained, sums, counts) }
    }

    /// Returns Σ of the smaller of each pair.
    pub(crate) fn nearer(&self, found: &[u32], distances: &[u32]) -> u64 {
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.nearer)(found, distances) }
    }

    /// Replaces distances by the found ones if these are smaller; returns their sum.
    pub(crate) fn shorten(&self, found: &[u32], distances: &mut [u32]) -> u64 {
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.shorten)(found, distances) }
    }

    /// Computes for each row of `dims` coordinates, at most 43,690, the base of the kernels' distances: its squared
    /// length, plus 256·Σx modulo 2³² if centroids are unsigned.
    pub(crate) fn lengths(&self, rows: &[i8], dims: usize, out: &mut [u32]) {
        let shift = match self.format {
            Some(Format::Unsigned) => 256,
            _ => 0,
        };
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.lengths)(rows, dims, shift, out) }
    }

    /// Packs other centroids, fewer than [`Packed::MOST`] with at most 43,690 coordinates. O(k·d); allocates only to
    /// grow.
    pub(crate) fn pack(&self, packed: &mut Packed, centroids: &[i8], dims: usize) {
        let mut norms = vec![0; centroids.len() / dims];
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.lengths)(centroids, dims, 0, &mut norms) };
        packed.pack(centroids, dims, &norms);
    }

    /// Moves centroids with a positive count, each below 2⁴⁴, to the mean of their sums, rounded half away from zero.
    pub(crate) fn means(&self, sums: &[i64], counts: &[u64], dims: usize, centroids: &mut [i8]) {
        let clusters = sums
            .chunks_exact(dims)
            .zip(centroids.chunks_exact_mut(dims));
        for ((sums, centroid), &count) in clusters.zip(counts) {
            if count > 0 {
                // SAFETY: a table is only reached through a `Backend` that was found to run its set.
                unsafe { (self.means)(sums, count, centroid) };
            }
        }
    }
}

/// Does [`Cluster::assign`] with the reference.
fn assign_plain(
    rows: &[i8],
    _: &[u32],
    packed: &Packed,
    scratch: &mut Scratch,
    labels: &mut [u32],
    distances: &mut [u32],
) -> u64 {
    let (count, dims) = (labels.len(), packed.dims());
    scratch.begin(labels);
    let Ok(points) = Points::new(&rows[..count * dims], dims) else {
        return 0;
    };
    let (centroids, norms) = packed.plain();
    let mut unwritten = [0; TILE];
    let (distances, lengths) = if distances.is_empty() {
        let lengths = rows.chunks_exact(dims).take(count);
        let lengths = lengths.map(|row| i64::from(plain::norm(row) as i32));
        (&mut unwritten[..count], lengths.sum())
    } else {
        (distances, 0)
    };
    let assigned = reference::measure(&points, centroids, norms, labels, distances);
    let pairs = labels.iter().zip(&scratch.old).enumerate();
    let changed = pairs.fold(0, |changed, (index, (new, old))| {
        changed | u64::from(new != old) << index
    });
    scratch.found(changed);
    assigned.inertia.wrapping_sub(lengths as u64)
}

/// Does [`Cluster::each`] with the reference.
fn each_plain(rows: &[i8], lengths: &[u32], packed: &Packed, _: &mut Scratch, out: &mut [u32]) {
    let dims = packed.dims();
    let (centroids, _) = packed.plain();
    for (centroid, out) in centroids.chunks_exact(dims).zip(out.chunks_exact_mut(TILE)) {
        for ((row, _), out) in rows.chunks_exact(dims).zip(lengths).zip(out) {
            *out = plain::squared_distance(row, centroid);
        }
    }
}

/// Defines the functions of a set, which are [`tile`]'s loops compiled for it, and its table.
macro_rules! cluster_kernels {
    ($set:ty, $vectors:literal, $features:literal) => {
        use $crate::simd::cluster::{self, Change, Cluster, Packed, Scratch, Sums, TILE};

        /// The kernels of clustering.
        pub(in crate::simd) const KERNELS: Cluster = Cluster {
            format: Some(<$set>::FORMAT),
            span: TILE,
            assign,
            each,
            sum,
            drain,
            nearer,
            shorten,
            lengths,
            means,
        };

        #[target_feature(enable = $features)]
        fn assign(
            rows: &[i8],
            lengths: &[u32],
            packed: &Packed,
            scratch: &mut Scratch,
            labels: &mut [u32],
            distances: &mut [u32],
        ) -> u64 {
            cluster::tile::assign::<$set, $vectors>(
                <$set>::here(),
                rows,
                lengths,
                packed,
                scratch,
                labels,
                distances,
            )
        }

        #[target_feature(enable = $features)]
        fn each(
            rows: &[i8],
            lengths: &[u32],
            packed: &Packed,
            scratch: &mut Scratch,
            out: &mut [u32],
        ) {
            let set = <$set>::here();
            cluster::tile::each::<$set, $vectors>(set, rows, lengths, packed, scratch, out)
        }

        #[target_feature(enable = $features)]
        fn sum(sums: &mut Sums, change: Change<'_>) {
            cluster::sum(sums, change);
        }

        #[target_feature(enable = $features)]
        fn drain(gained: &mut Sums, sums: &mut [i64], counts: &mut [u64]) {
            gained.drain(sums, counts);
        }

        #[target_feature(enable = $features)]
        fn nearer(found: &[u32], distances: &[u32]) -> u64 {
            cluster::tile::nearer(found, distances)
        }

        #[target_feature(enable = $features)]
        fn shorten(found: &[u32], distances: &mut [u32]) -> u64 {
            cluster::tile::shorten(found, distances)
        }

        #[target_feature(enable = $features)]
        fn lengths(rows: &[i8], dims: usize, shift: i16, out: &mut [u32]) {
            cluster::tile::lengths(rows, dims, shift, out);
        }

        #[target_feature(enable = $features)]
        fn means(sums: &[i64], count: u64, centroid: &mut [i8]) {
            cluster::tile::means(sums, count, centroid);
        }
    };
}
pub(in crate::simd) use cluster_kernels;
