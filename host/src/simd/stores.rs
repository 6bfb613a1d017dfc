//! How a kernel writes, and how it prefetches its next input.

use tercet_core::number::Element;

/// How a kernel writes its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stores {
    /// Through the caches: the output is read again soon, or is small.
    Cached,
    /// Around the caches, a line at a time: the line is not read first, and it displaces no useful data.
    ///
    /// Other threads see such stores only after a fence: see [`Stores::finish`].
    Streaming,
}

/// Bytes per cache line.
pub(crate) const LINE: usize = 64;

/// A line of codes.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [i8; LINE]);

/// An output with at least this many bytes does not stay in the caches beside its four times larger input.
const LARGE: usize = 4 << 20;

impl Stores {
    /// Returns the kind of stores for an output of so many bytes.
    pub(crate) fn of(bytes: usize) -> Self {
        if bytes >= LARGE {
            Self::Streaming
        } else {
            Self::Cached
        }
    }

    /// Runs a kernel over whole lines of codes and their values. The partial lines before and after them are passed in
    /// a buffer, with zeros in place of other values.
    #[inline(always)]
    pub(super) fn lines<T: Element>(
        self,
        values: &[T],
        codes: &mut [i8],
        kernel: &mut impl Kernel<T>,
    ) {
        debug_assert_eq!(values.len(), codes.len());
        let streaming = self == Self::Streaming;
        let head = match self {
            Self::Cached => 0,
            Self::Streaming => codes.as_ptr().align_offset(LINE).min(codes.len()),
        };
        let (first, values) = values.split_at(head);
        let (first_codes, codes) = codes.split_at_mut(head);
        let whole = values.len() / LINE * LINE;
        let (lines, rest) = values.split_at(whole);
        let (code_lines, rest_codes) = codes.split_at_mut(whole);
        for (values, codes) in [(first, first_codes), (rest, rest_codes)] {
            if !values.is_empty() {
                let (mut line, mut code_line) = ([T::default(); LINE], [0; LINE]);
                line[..values.len()].copy_from_slice(values);
                kernel.run(&line, &mut code_line, false);
                codes.copy_from_slice(&code_line[..codes.len()]);
            }
        }
        if !lines.is_empty() {
            kernel.run(lines, code_lines, streaming);
        }
    }

    /// Makes this thread's streaming stores visible to others, before it reports that it is done.
    pub(crate) fn finish(self) {
        #[cfg(target_arch = "x86_64")]
        if self == Self::Streaming {
            // SAFETY: SSE is part of x86-64.
            unsafe { std::arch::x86_64::_mm_sfence() }
        }
    }
}

/// The kernel of [`Stores::lines`]. (A closure in its place would be compiled without the set of the function around
/// it.)
pub(super) trait Kernel<T> {
    /// Processes whole lines of codes, and as many values. If `streaming`, the codes begin on a line boundary.
    fn run(&mut self, values: &[T], codes: &mut [i8], streaming: bool);
}

/// How far ahead of their reads kernels prefetch: the processor's own prefetches stop at the end of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    /// The distance in bytes; with 0 the prefetched line is already there, so that nothing happens.
    bytes: usize,
}

impl Ahead {
    /// For one pass over a stream.
    pub(crate) const STREAM: Self = Self { bytes: 2048 };

    /// For rows of weights, whose products take part of the time: from memory a Zen 3 multiplies TQ2_0 at 0.90 of the rate
    /// of reading with it, at 0.85 with 2 KiB and at 0.69 without.
    pub(crate) const WEIGHTS: Self = Self { bytes: 4096 };

    /// For the first of two passes over each of many short groups: farther, because memory can also respond during the
    /// second pass. Prefetching half of the lines in each pass took longer than all of them in the first, and so did 4
    /// KiB and 8 KiB.
    pub(crate) const GROUPS: Self = Self { bytes: 6144 };

    /// For rows that are read lane by lane, 4 KiB at a time: one block farther than the next.
    pub(crate) const ROWS: Self = Self { bytes: 8192 };

    /// For input in the caches.
    pub(crate) const NONE: Self = Self { bytes: 0 };

    /// Prefetches the memory ahead of a line.
    #[inline(always)]
    pub(super) fn ask<T>(self, line: *const T) {
        ask(line.cast::<u8>().wrapping_add(self.bytes));
    }

    /// Prefetches the memory ahead of the lines of a step.
    #[inline(always)]
    pub(super) fn ask_step<T>(self, step: &[T]) {
        for line in (0..size_of_val(step)).step_by(LINE) {
            self.ask(step.as_ptr().cast::<u8>().wrapping_add(line));
        }
    }
}

/// Prefetches the cache line around an address, which need not be readable.
#[inline(always)]
pub(super) fn ask<T>(place: *const T) {
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

/// Prefetches the lines of so many bytes, which will be written.
#[inline]
pub(crate) fn ask_to_write(place: *const u8, bytes: usize) {
    for at in (0..bytes).step_by(LINE) {
        let line = place.wrapping_add(at);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every processor of x86-64 takes it, some as no operation; it reads nothing that a program could see,
        // wherever it points.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = line;
    }
}
