//! All rows at least as good as a threshold, in the caller's slice.

use super::{Hit, Score, SearchError};

/// Keeps the rows that reach a threshold, in order of arrival. Rows for which the slice has no space are only
/// counted.
///
/// ```
/// use tercet_core::search::{Hit, Smaller, Within};
///
/// let mut room = [Hit::default(); 2];
/// let mut near = Within::new(10.0, &mut room)?;
/// for (index, distance) in [3u32, 11, 10, 0].into_iter().enumerate() {
///     near.push(index, Smaller(distance));
/// }
/// assert_eq!(near.total(), 3); // one more than there was room for
/// assert_eq!([room[0].index, room[1].index], [0, 2]);
/// # Ok::<(), tercet_core::search::SearchError>(())
/// ```
#[derive(Debug)]
pub struct Within<'a, S> {
    threshold: f32,
    room: &'a mut [Hit<S>],
    total: usize,
}

impl<'a, S: Score> Within<'a, S> {
    /// Creates an empty collection. The content of `room` does not matter.
    ///
    /// # Errors
    /// [`SearchError::Threshold`] for NaN.
    pub fn new(threshold: f32, room: &'a mut [Hit<S>]) -> Result<Self, SearchError> {
        if threshold.is_nan() {
            return Err(SearchError::Threshold);
        }
        Ok(Self {
            threshold,
            room,
            total: 0,
        })
    }

    /// Offers a row.
    #[inline]
    pub fn push(&mut self, index: usize, score: S) {
        if score.reaches(self.threshold) {
            if let Some(place) = self.room.get_mut(self.total) {
                *place = Hit { index, score };
            }
            self.total += 1;
        }
    }

    /// Returns the number of rows that reached the threshold. If this exceeds the slice's length, the slice holds the
    /// first of them.
    pub fn total(&self) -> usize {
        self.total
    }
}
