//! Groups of [`Layout::FiveTrits`](super::Layout::FiveTrits).

/// Columns of a group.
pub(crate) const COLS: usize = 60;
/// Its bytes: byte m holds columns m, m + 12 and so on.
pub(crate) const BYTES: usize = 12;

/// A whole group's values: the first of `values`, or where they are fewer, they and zeros.
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
