//! A cheap test before the exact comparison.

/// A necessary condition on a row's dot product and squared length, simple enough to test a whole vector of rows at
/// once.
///
/// Every row of interest passes. Some other rows may pass too, so passing rows are compared exactly afterwards. See
/// [`super::Metric::bar`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Bar {
    /// Every row passes.
    Open,
    /// Passes if dot exceeds this value.
    Dot(i32),
    /// Passes if `query_norm + row_norm − 2 · dot < below`, modulo 2³².
    Distance {
        /// The distance that the row's must be below.
        below: u32,
        /// The query's squared length.
        query_norm: u32,
    },
    /// Passes if `fl(dot)·|fl(dot)| ≥ value · fl(row_norm)` in f32, or if row_norm is 0.
    ///
    /// The value is the signed square of a cosine times the query's squared length. The computation here has at most
    /// seven roundings, 7 · 2⁻²⁴ in relative terms, and the bar is lowered by 2⁻²⁰ of itself, so no row of interest
    /// fails. Nothing overflows: dot² < 2⁶², and a bar from a score is below 2⁹⁴. A threshold's bar may be infinite;
    /// no score reaches such a threshold.
    Cosine(f32),
}

impl Bar {
    /// Returns the bar for the signed square of a cosine. A query of zeros has cosine 0 with every row, for any bar.
    #[inline]
    pub(super) fn cosine(square: f64, query_norm: u32) -> Self {
        if query_norm == 0 {
            return Self::Open;
        }
        let square = square * f64::from(query_norm);
        // Lower by 2⁻²⁰ of its magnitude, on either side of 0.
        let margin = square * (1.0 / (1 << 20) as f64);
        let lowered = if square < 0.0 {
            square + margin
        } else {
            square - margin
        };
        Self::Cosine(lowered as f32)
    }

    /// Returns true if a row passes.
    #[inline]
    pub fn admits(self, dot: i32, row_norm: u32) -> bool {
        match self {
            Self::Open => true,
            Self::Dot(above) => dot > above,
            Self::Distance { below, query_norm } => {
                let lengths = query_norm.wrapping_add(row_norm);
                lengths.wrapping_sub((dot as u32).wrapping_mul(2)) < below
            }
            Self::Cosine(square) => {
                let x = dot as f32;
                let magnitude = if x < 0.0 { -x } else { x };
                x * magnitude >= square * row_norm as f32 || row_norm == 0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::number::Random;
    use crate::search::{Cosine, Dot, Metric, Score, SquaredL2};

    /// Returns dot products and norms that are close to each other, and extreme ones.
    fn rows(random: &mut Random) -> Vec<(i32, u32)> {
        let mut rows = vec![
            (0, 0),
            (0, 1),
            (-5, 0),
            (715_816_960, 715_816_960),
            (-710_224_640, 715_816_960),
        ];
        for shift in [0, 4, 12, 20, 28] {
            for _ in 0..12 {
                let dot = (random.next_u64() as i32) >> (1 + 28 - shift);
                rows.push((dot, (random.next_u64() as u32) >> (2 + 28 - shift)));
                rows.push((
                    100_000_000 + random.below(9) as i32,
                    200_000_000 + random.below(9) as u32,
                ));
            }
        }
        rows
    }

    fn no_better_row_fails<M: Metric>() {
        let mut random = Random::new(7);
        let rows = rows(&mut random);
        for query_norm in [0, 1, 3, 1000, 715_816_960] {
            let score = |&(dot, norm): &(i32, u32)| M::integer(dot, query_norm, norm);
            for worst in &rows {
                let bar = M::bar(&score(worst), query_norm);
                let threshold = score(worst).value();
                for threshold in [
                    threshold,
                    threshold * 1.000_001,
                    -threshold,
                    0.0,
                    0.3,
                    1e30,
                    -1e30,
                    1e-30,
                ] {
                    let reached = M::bar_at(threshold, query_norm);
                    for row in &rows {
                        if score(row).reaches(threshold) {
                            assert!(
                                reached.admits(row.0, row.1),
                                "{row:?} {threshold} {reached:?}"
                            );
                        }
                    }
                }
                for row in &rows {
                    if score(row).rank(&score(worst)).is_gt() {
                        assert!(bar.admits(row.0, row.1), "{row:?} above {worst:?} {bar:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_row_of_interest_fails() {
        no_better_row_fails::<Dot>();
        no_better_row_fails::<Cosine>();
        no_better_row_fails::<SquaredL2>();
    }

    #[test]
    fn most_others_fail() {
        let worst = Cosine::integer(900, 1000, 1000);
        let bar = Cosine::bar(&worst, 1000);
        assert!(bar.admits(901, 1000) && !bar.admits(899, 1000) && !bar.admits(-901, 1000));
        assert_eq!(Dot::bar(&Dot::integer(5, 0, 0), 0), Bar::Dot(5));
        // At least 4.5 is above 4; at least 4 is above 3; at least −4.5 is above −5.
        assert_eq!(
            [4.5, 4.0, -4.5].map(|t| Dot::bar_at(t, 0)),
            [4, 3, -5].map(Bar::Dot)
        );
        let below = |below| Bar::Distance {
            below,
            query_norm: 9,
        };
        assert_eq!(
            [4.5, 4.0, -0.5].map(|t| SquaredL2::bar_at(t, 9)),
            [5, 5, 0].map(below)
        );
    }
}
