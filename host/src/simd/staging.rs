//! Codes of short groups that are written around the caches.

use super::Backend;
use super::stores::{LINE, Line};

/// The output of neighbouring groups, gathered into whole lines.
///
/// A group seldom ends at the end of a line. A line that is written in two parts, one of them around the caches, is
/// read from memory and written twice; with rows of 1,024 codes that takes as long as all other lines.
#[derive(Debug)]
pub(crate) struct Staging {
    /// A copy of the memory from the line on in which the next group begins; a group has room.
    lines: Vec<Line>,
    /// Bytes of the first line that belong to others.
    skip: usize,
}

impl Staging {
    /// Returns staging for groups of `len` codes, the first of which goes to `place`.
    pub(crate) fn new(place: &[i8], len: usize) -> Self {
        let skip = place.as_ptr().addr() % LINE;
        Self {
            lines: vec![Line([0; LINE]); (LINE + len).div_ceil(LINE)],
            skip,
        }
    }

    /// Processes a group that goes to `codes[start..start + len]`: `write` receives the room for it, and whole lines
    /// are copied to their place. Groups come in order.
    pub(crate) fn group<R>(
        &mut self,
        backend: Backend,
        codes: &mut [i8],
        start: usize,
        len: usize,
        write: impl FnOnce(&mut [i8]) -> R,
    ) -> R {
        let offset = codes[start..].as_ptr().addr() % LINE;
        let result = write(&mut self.bytes()[offset..offset + len]);
        let end = offset + len;
        let mut first = 0;
        if self.skip > 0 && end >= LINE {
            // The line contains codes of others.
            let skip = std::mem::take(&mut self.skip);
            let from = start - (offset - skip);
            codes[from..from + LINE - skip].copy_from_slice(&self.lines[0].0[skip..]);
            first = 1;
        }
        let whole = end / LINE;
        if first < whole {
            let from = start + first * LINE - offset;
            let to = &mut codes[from..from + (whole - first) * LINE];
            // SAFETY: a line is 64 codes, in any pattern; the slice has no other reference.
            let (before, to, after) = unsafe { to.align_to_mut::<Line>() };
            debug_assert!(before.is_empty() && after.is_empty());
            backend.stream_lines(&self.lines[first..whole], to);
        }
        if whole > 0 && !end.is_multiple_of(LINE) {
            self.lines[0] = self.lines[whole];
        }
        result
    }

    /// Writes the rest after the last group, which ends at the end of `codes`.
    pub(crate) fn finish(&self, codes: &mut [i8]) {
        let end = codes.as_ptr_range().end.addr() % LINE;
        let left = &self.lines[0].0[self.skip.min(end)..end];
        let from = codes.len() - left.len();
        codes[from..].copy_from_slice(left);
    }

    fn bytes(&mut self) -> &mut [i8] {
        // SAFETY: a line is 64 codes and nothing else.
        unsafe {
            std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.lines.len() * LINE)
        }
    }
}
