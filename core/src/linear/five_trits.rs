//! Groups of [`Layout::FiveTrits`](super::Layout::FiveTrits).

/// Columns per group.
pub(crate) const COLS: usize = 60;
/// Bytes per group: byte m holds the columns m, m + 12 and so on.
pub(crate) const BYTES: usize = 12;

/// Returns a whole group's values: the first ones of `values`, padded with zeros if there are too few.
#[inline]
pub(crate) fn whole<'a>(values: &'a [i8], padded: &'a mut [i8; COLS]) -> &'a [i8; COLS] {
    if let Some(values) = values.first_chunk() {
        return values;
    }
    for (to, &value) in padded.iter_mut().zip(values) {
        *to = value;
    }
    padded
}
