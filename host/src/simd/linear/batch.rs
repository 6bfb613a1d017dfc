//! Several strips, multiplied by a panel piece by piece.

use super::tiles::{
    Group, MOST, MultiplyAll, MultiplyCodes, MultiplyStrip, ROWS, Scales, Sums, Tiles, Word,
};

/// Minimum number of rows of activations that a piece of a panel is multiplied with.
pub(super) const BATCH: usize = 192;

/// Maximum number of groups per piece, unless a span has more: 16 KiB of weights.
const PIECE: usize = 128;

/// Some strips, and their kernels.
pub(super) struct Batch<'a> {
    pub(super) tiles: Tiles,
    pub(super) multiply: MultiplyCodes,
    /// Rows per strip.
    pub(super) height: usize,
    pub(super) words: &'a [Word],
    pub(super) less: &'a [i32],
}

impl Batch<'_> {
    /// Begins the sums with a panel's rows, to which products are added.
    pub(super) fn begin(&self, sums: &mut [Sums<i32>]) {
        // Strips have a place for each row, one after the other.
        for (sums, &less) in sums.iter_mut().zip(self.less) {
            // Exact modulo 2³², which the whole sum fits.
            *sums = [less.wrapping_neg(); ROWS];
        }
    }

    /// Computes the sums with a panel's rows.
    pub(super) fn plain(&self, panel: &[Group], sums: &mut [Sums<i32>]) {
        self.begin(sums);
        let stride = self.height * panel.len();
        for (piece, groups) in panel.chunks(PIECE).enumerate() {
            let first = self.height * PIECE * piece;
            match self.multiply {
                // SAFETY: tiles are only reached through a `Backend` that was found to run their set.
                MultiplyCodes::All(multiply) => unsafe {
                    multiply(groups, &self.words[first..], stride, sums, true);
                },
                MultiplyCodes::Strip(multiply) => {
                    let words = self.words.chunks(stride);
                    for (sums, words) in sums.chunks_mut(self.height).zip(words) {
                        let words = &words[first..][..self.height * groups.len()];
                        // SAFETY: as above.
                        unsafe { multiply(groups, words, sums) };
                    }
                }
            }
        }
    }

    /// Adds to `totals` whole sums times one scale.
    pub(super) fn once(&self, sums: &[Sums<i32>], scale: i64, totals: &mut [Sums<i64>]) {
        let (less, scales) = ([0; MOST], [scale; ROWS]);
        for (sums, totals) in sums.chunks(MOST).zip(totals.chunks_mut(MOST)) {
            // SAFETY: as in `plain`.
            unsafe { (self.tiles.add)(sums, &less[..sums.len()], &scales, totals) };
        }
    }

    /// Adds to `totals` the sums of spans of so many groups with a panel's rows, times the scales of these.
    pub(super) fn scaled(
        &self,
        span: usize,
        panel: &[Group],
        scales: &[Scales],
        totals: &mut [Sums<i64>],
    ) {
        match self.multiply {
            MultiplyCodes::All(multiply) => self.scaled_all(multiply, span, panel, scales, totals),
            MultiplyCodes::Strip(multiply) => {
                self.scaled_strips(multiply, span, panel, scales, totals)
            }
        }
    }

    /// Adds to `totals` the sums of activations over spans, in the order of strips, times the minima of a panel's
    /// blocks.
    pub(super) fn minima(&self, sums: &[i32], mins: &[Scales], totals: &mut [Sums<i64>]) {
        let mut some = [[0; ROWS]; MOST];
        let sums = sums.chunks(self.height * mins.len());
        for (totals, sums) in totals.chunks_mut(self.height).zip(sums) {
            for (mins, sums) in mins.iter().zip(sums.chunks(self.height)) {
                for (some, &sum) in some.iter_mut().zip(sums) {
                    *some = [sum; ROWS];
                }
                let less = &[0; MOST][..totals.len()];
                // SAFETY: as in `plain`.
                unsafe { (self.tiles.add)(&some[..totals.len()], less, mins, totals) };
            }
        }
    }

    /// Processes strip by strip.
    fn scaled_strips(
        &self,
        multiply: MultiplyStrip,
        span: usize,
        panel: &[Group],
        scales: &[Scales],
        totals: &mut [Sums<i64>],
    ) {
        let mut some = [[0; ROWS]; MOST];
        let piece = (PIECE / span).max(1);
        for (number, scales) in scales.chunks(piece).enumerate() {
            let words = self.words.chunks(self.height * panel.len());
            let less = self.less.chunks(self.height * panel.len() / span);
            let strips = totals.chunks_mut(self.height).zip(words).zip(less);
            for ((totals, words), less) in strips {
                for (at, scales) in (number * piece..).zip(scales) {
                    let groups = &panel[at * span..][..span];
                    let words = &words[self.height * span * at..][..self.height * span];
                    let less = &less[self.height * at..][..self.height];
                    let some = &mut some[..totals.len()];
                    some.fill([0; ROWS]);
                    // SAFETY: as in `plain`.
                    unsafe {
                        multiply(groups, words, some);
                        (self.tiles.add)(some, less, scales, totals);
                    }
                }
            }
        }
    }

    /// Processes all strips at once.
    fn scaled_all(
        &self,
        multiply: MultiplyAll,
        span: usize,
        panel: &[Group],
        scales: &[Scales],
        totals: &mut [Sums<i64>],
    ) {
        let stride = self.height * panel.len();
        let mut some = vec![[0; ROWS]; totals.len()];
        for (at, (groups, scales)) in panel.chunks(span).zip(scales).enumerate() {
            let words = &self.words[self.height * span * at..];
            // SAFETY: as in `plain`.
            unsafe { multiply(groups, words, stride, &mut some, false) };
            let less = self.less.chunks(stride / span);
            let strips = totals.chunks_mut(self.height).zip(some.chunks(self.height));
            for ((totals, some), less) in strips.zip(less) {
                let less = &less[self.height * at..][..self.height];
                // SAFETY: as in `plain`.
                unsafe { (self.tiles.add)(some, less, scales, totals) };
            }
        }
    }
}
