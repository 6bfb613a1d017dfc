//! Writes floats to the first-level cache, and then copies them to memory around the other caches.

/// Copies floats to a cache line boundary, bypassing the caches; a fence must follow. The lengths are equal, in whole
/// lines.
pub(in crate::simd) type CopyPast = unsafe fn(&[f32], &mut [f32]);

/// Floats per cache line.
const LINE: usize = 16;

/// Floats that are computed before they are copied: half of a first-level cache, and whole blocks of every format.
const NEAR: usize = 4096;

/// Floats on a cache line boundary.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

impl Line {
    /// Returns the floats of lines.
    fn floats(lines: &mut [Self]) -> &mut [f32] {
        // SAFETY: a line is its floats, 64 bytes as its alignment, so that lines follow each other without a gap.
        unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * LINE) }
    }
}

/// Lets `make` write `out` in parts of 4,096 floats (the last may be shorter), each passed with the index of its first
/// one, and copies them around the caches. `copy` belongs to a backend whose set this machine supports.
pub(in crate::simd) fn past<E>(
    copy: CopyPast,
    out: &mut [f32],
    mut make: impl FnMut(usize, &mut [f32]) -> Result<(), E>,
) -> Result<(), E> {
    let mut near = [Line([0.0; LINE]); NEAR / LINE];
    let near = Line::floats(&mut near);
    for (part, out) in out.chunks_mut(NEAR).enumerate() {
        let near = &mut near[..out.len()];
        make(part * NEAR, near)?;
        // The partial lines at both ends go through the caches.
        let head = out.as_ptr().align_offset(align_of::<Line>()).min(out.len());
        let body = (out.len() - head) / LINE * LINE;
        let (first, rest) = out.split_at_mut(head);
        let (lines, last) = rest.split_at_mut(body);
        first.copy_from_slice(&near[..head]);
        last.copy_from_slice(&near[head + body..]);
        // Less than a line may end before the boundary.
        if body > 0 {
            // SAFETY: the set runs here, as the caller says. The lines begin on a boundary.
            unsafe { copy(&near[head..head + body], lines) };
        }
    }
    Ok(())
}
