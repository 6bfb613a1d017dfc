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

/// How far ahead of what they read kernels ask for memory.
///
/// Processors stop at the end of a page by themselves, and where a group is read twice they see no stream. A kernel's step is
/// two or four lines; those of its first and of its second half are asked for by themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    /// Distances in values for either half; at 0 what is asked for is at hand, so that nothing happens.
    halves: [usize; 2],
}

impl Ahead {
    /// For one pass over a stream: 2 KiB.
    pub(crate) const STREAM: Self = Self::all(512);

    /// Where what is read is in the caches.
    pub(crate) const NONE: Self = Self::all(0);

    pub(super) const fn all(values: usize) -> Self {
        Self {
            halves: [values; 2],
        }
    }

    /// For the first of two passes over neighbouring groups: half of what comes next, so that the memory is as busy as in the
    /// second pass.
    pub(crate) const fn first(values: usize) -> Self {
        Self {
            halves: [values, 0],
        }
    }

    /// For the second of two passes: the other half.
    pub(crate) const fn second(values: usize) -> Self {
        Self {
            halves: [0, values],
        }
    }

    /// Asks for what lies ahead of a line in the first (0) or the second half (1) of a step.
    #[inline(always)]
    pub(super) fn ask(self, line: *const f32, half: usize) {
        let place = line.wrapping_add(self.halves[half]);
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            #[allow(
                unused_unsafe,
                reason = "a safe function in newer versions of the library"
            )]
            // SAFETY: SSE is part of x86-64, and a prefetch reads nothing that a program could see, wherever it points.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(place.cast());
            }
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a hint that changes no register and reads nothing that a program could see, wherever it points.
        unsafe {
            std::arch::asm!(
                "prfm pldl1keep, [{place}]",
                place = in(reg) place,
                options(nostack, preserves_flags, readonly)
            );
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let _ = place;
    }
}
