//! Sums of the members' coordinates for one job.

/// Short sums of one step, in a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([i16; STEP]);

/// Additions to a sum of 16 bits before it must be flushed: a coordinate or its negative is at most 128, and 255 of
/// them at most 32,640.
const MOST: u16 = 255;

/// Coordinates that one step adds.
const STEP: usize = 32;

/// The gain of a cluster.
#[derive(Clone, Copy, Debug, Default)]
struct Gain {
    /// Members gained, less those lost.
    count: i64,
    /// True if the long sums hold anything.
    spilled: bool,
    /// Additions to the short sums since they were 0.
    short: u16,
}

/// The gains of clusters from a job's points: short sums that are flushed to long ones before they could overflow.
///
/// Points without weights cost a load, an addition and a store per 32 coordinates. Takes 10 bytes per coordinate of the
/// clusters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    dims: usize,
    /// Steps per cluster; values beyond `dims` are never read.
    steps: usize,
    short: Vec<Line>,
    long: Vec<i64>,
    gains: Vec<Gain>,
}

/// The effect of points on sums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    /// Coordinates from the first of the points on, to the end of all points.
    pub(crate) rows: &'a [i8],
    /// One weight per point, or 1 for all.
    pub(crate) weights: Option<&'a [u32]>,
    /// The current labels.
    pub(crate) labels: &'a [u32],
    /// If only changes are summed: a bit for each changed point, and the earlier labels.
    pub(crate) moved: Option<(u64, &'a [u32])>,
}

impl Sums {
    /// Resets to sums of `k` clusters with `dims` coordinates, all 0.
    pub(crate) fn reset(&mut self, k: usize, dims: usize) {
        if (self.gains.len(), self.dims) == (k, dims) {
            return;
        }
        let steps = dims.div_ceil(STEP);
        *self = Self {
            dims,
            steps,
            short: vec![Line([0; STEP]); k * steps],
            long: vec![0; k * dims],
            gains: vec![Gain::default(); k],
        };
    }

    /// See [`super::Cluster::drain`].
    #[inline(always)]
    pub(in crate::simd) fn drain(&mut self, sums: &mut [i64], counts: &mut [u64]) {
        let clusters = self.gains.iter_mut().zip(counts).enumerate();
        for (cluster, (gain, count)) in clusters {
            let gain = core::mem::take(gain);
            *count = count.wrapping_add_signed(gain.count);
            let sums = &mut sums[cluster * self.dims..][..self.dims];
            if gain.short > 0 {
                let short = &mut self.short[cluster * self.steps..][..self.steps];
                for (sums, short) in sums.chunks_mut(STEP).zip(short) {
                    for (sum, short) in sums.iter_mut().zip(short.0) {
                        *sum += i64::from(short);
                    }
                    *short = Line([0; STEP]);
                }
            }
            if gain.spilled {
                let long = &mut self.long[cluster * self.dims..][..self.dims];
                for (sum, long) in sums.iter_mut().zip(long) {
                    *sum += core::mem::take(long);
                }
            }
        }
    }

    /// Moves the short sums of a cluster to its long ones.
    fn flush(&mut self, cluster: usize) {
        let gain = &mut self.gains[cluster];
        if core::mem::take(&mut gain.short) == 0 {
            return;
        }
        gain.spilled = true;
        let short = &mut self.short[cluster * self.steps..][..self.steps];
        let long = &mut self.long[cluster * self.dims..][..self.dims];
        for (long, short) in long.chunks_mut(STEP).zip(short) {
            for (long, short) in long.iter_mut().zip(short.0) {
                *long += i64::from(short);
            }
            *short = Line([0; STEP]);
        }
    }

    /// Adds a row `weight` times.
    #[inline(always)]
    fn weighted(&mut self, cluster: usize, row: &[i8], weight: i64) {
        let gain = &mut self.gains[cluster];
        gain.count += weight;
        gain.spilled = true;
        let long = &mut self.long[cluster * self.dims..][..self.dims];
        for (long, &x) in long.iter_mut().zip(row) {
            *long += i64::from(x) * weight;
        }
    }

    /// Adds a row of `dims` coordinates or more to a cluster, or subtracts it. The last rows of all points may end too
    /// early to be added in whole steps.
    #[inline(always)]
    fn row<const ADD: bool>(&mut self, cluster: usize, row: &[i8]) {
        let Some(whole) = row.get(..self.steps * STEP) else {
            let weight = if ADD { 1 } else { -1 };
            return self.weighted(cluster, &row[..self.dims], weight);
        };
        let gain = &mut self.gains[cluster];
        gain.count += if ADD { 1 } else { -1 };
        gain.short += 1;
        let full = gain.short == MOST;
        let lines = &mut self.short[cluster * self.steps..][..self.steps];
        for (Line(short), row) in lines.iter_mut().zip(whole.as_chunks::<STEP>().0) {
            // All reads come before any write: the compiler cannot know the places of both.
            let (mut sums, row) = (*short, *row);
            for (sum, x) in sums.iter_mut().zip(row) {
                *sum = if ADD {
                    sum.wrapping_add(x.into())
                } else {
                    sum.wrapping_sub(x.into())
                };
            }
            *short = sums;
        }
        if full {
            self.flush(cluster);
        }
    }
}

/// See [`super::Cluster::sum`].
#[inline(always)]
pub(in crate::simd) fn sum(sums: &mut Sums, change: Change<'_>) {
    let dims = sums.dims;
    let weight = |index: usize| {
        change
            .weights
            .map_or(1, |weights| i64::from(weights[index]))
    };
    let Some((mut moved, before)) = change.moved else {
        for (index, &label) in change.labels.iter().enumerate() {
            let row = &change.rows[index * dims..];
            if change.weights.is_some() {
                sums.weighted(label as usize, &row[..dims], weight(index));
            } else {
                sums.row::<true>(label as usize, row);
            }
        }
        return;
    };
    while moved != 0 {
        let index = moved.trailing_zeros() as usize;
        moved &= moved - 1;
        let row = &change.rows[index * dims..];
        let (old, new) = (before[index] as usize, change.labels[index] as usize);
        if change.weights.is_some() {
            sums.weighted(old, &row[..dims], -weight(index));
            sums.weighted(new, &row[..dims], weight(index));
        } else {
            sums.row::<false>(old, row);
            sums.row::<true>(new, row);
        }
    }
}

/// Does [`sum`] with the reference's operations.
pub(in crate::simd) fn plain(sums: &mut Sums, change: Change<'_>) {
    let dims = sums.dims;
    for (index, &label) in change.labels.iter().enumerate() {
        let row = &change.rows[index * dims..][..dims];
        let weight = change
            .weights
            .map_or(1, |weights| i64::from(weights[index]));
        match change.moved {
            Some((moved, _)) if moved >> index & 1 == 0 => continue,
            Some((_, before)) => sums.weighted(before[index] as usize, row, -weight),
            None => {}
        }
        sums.weighted(label as usize, row, weight);
    }
}

// The bound of a short sum.
const _: () = assert!(128 * MOST as i32 <= i16::MAX as i32);
