//! How a kernel writes, and how it asks for what it reads next.

/// How a kernel writes its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stores {
    /// Into the caches: what is written is read again soon, or is small.
    Cached,
    /// Past them, a line at a time: the line is not read first, and nothing that is of use makes room for it.
    ///
    /// Such stores are seen by other threads after a fence only: see [`Stores::finish`].
    Streaming,
}

/// Bytes of a line of the cache, and codes that a kernel takes in a step.
pub(super) const LINE: usize = 64;

/// From this many bytes on an output does not stay in the caches beside its four times larger input.
const LARGE: usize = 4 << 20;

impl Stores {
    /// For an output of so many bytes.
    pub(crate) fn of(bytes: usize) -> Self {
        if bytes >= LARGE {
            Self::Streaming
        } else {
            Self::Cached
        }
    }

    /// Runs a kernel over whole lines of codes and their values, and over the parts of lines before and after them, which
    /// it gets in a buffer, with zeros in place of the values of others.
    ///
    /// The kernel's last argument says whether it may stream: then its codes begin on a line's boundary.
    #[inline(always)]
    pub(super) fn lines(
        self,
        values: &[f32],
        codes: &mut [i8],
        mut kernel: impl FnMut(&[[f32; LINE]], &mut [[i8; LINE]], bool),
    ) {
        debug_assert_eq!(values.len(), codes.len());
        let streaming = self == Self::Streaming;
        let head = match self {
            Self::Cached => 0,
            Self::Streaming => codes.as_ptr().align_offset(LINE).min(codes.len()),
        };
        let (first, values) = values.split_at(head);
        let (first_codes, codes) = codes.split_at_mut(head);
        let (lines, rest) = values.as_chunks();
        let (code_lines, rest_codes) = codes.as_chunks_mut();
        let mut part = |values: &[f32], codes: &mut [i8]| {
            if !values.is_empty() {
                let (mut line, mut code_line) = ([0.0; LINE], [0; LINE]);
                line[..values.len()].copy_from_slice(values);
                kernel(&[line], std::slice::from_mut(&mut code_line), false);
                codes.copy_from_slice(&code_line[..codes.len()]);
            }
        };
        part(first, first_codes);
        part(rest, rest_codes);
        if !lines.is_empty() {
            kernel(lines, code_lines, streaming);
        }
    }

    /// Makes what this thread has streamed visible to others, before it tells them that it is done.
    pub(crate) fn finish(self) {
        #[cfg(target_arch = "x86_64")]
        if self == Self::Streaming {
            // SAFETY: SSE is part of x86-64.
            unsafe { std::arch::x86_64::_mm_sfence() }
        }
    }
}

/// How far ahead memory is asked for, in values: 2 KiB, half a page.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 512;

/// Asks for the line that lies [`AHEAD`] of a value. Processors stop at the end of a page by themselves; this goes on.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn prefetch(value: *const f32) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: SSE is part of x86-64, and a prefetch reads nothing that a program could see, wherever it points.
    #[allow(
        unused_unsafe,
        reason = "a safe function in newer versions of the library"
    )]
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(value.wrapping_add(AHEAD).cast());
    }
}
