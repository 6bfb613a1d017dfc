//! The exact sum of blocks' products with int8 activations, with as many blocks at a time as a set has lanes.

/// Sums of scale · 2²⁴ · dot, with a block in each lane.
///
/// A finite f16 times 2²⁴ is an integer of 11 bits times a power of two, below 2⁴⁰, and a block's product is at most
/// 2¹⁹ in magnitude: a term has at most 59 bits, of which 30 are significant. So sums are kept in two parts.
///
/// # Safety
/// Every function may be called only if the processor runs the implementor's set.
pub(in crate::simd) trait Terms: Copy {
    /// The products of a step's blocks, 32 bits each.
    type Dots: Copy;

    /// No terms.
    unsafe fn none() -> Self;
    /// Adds the terms of a step's blocks; scales are `apart` bytes from one another.
    unsafe fn plus(self, dots: Self::Dots, scales: *const u8, apart: usize) -> Self;
    /// Returns the sum of at most [`SPILL`] steps; `None` if a scale was not finite.
    unsafe fn total(self) -> Option<i128>;
}

/// Steps between sums of lanes: so many terms, of 40 bits or of the upper 27 and the lower 32 of 59, twice per step,
/// fit 64 bits.
const SPILL: usize = 1 << 16;

/// Blocks with at most this many values are so short that a step of them is always whole.
const SHORT: usize = 32;

/// Returns Σ scale · 2²⁴ · dot over whole blocks, `STEP` at a time, one for each lane of the terms; `None` if a scale
/// is not finite. `dots` returns the products of a step, with fewer blocks at the end unless they are [`SHORT`], and
/// `at` is the place of a scale in its block.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
pub(in crate::simd) unsafe fn blocks<
    S: Terms,
    const STEP: usize,
    const LEN: usize,
    const BYTES: usize,
>(
    bytes: &[u8],
    x: &[i8],
    at: usize,
    dots: impl Fn(&[[u8; BYTES]], &[[i8; LEN]]) -> S::Dots,
) -> Option<i128> {
    let (blocks, last) = bytes.as_chunks::<BYTES>().0.as_chunks::<STEP>();
    let (steps, last_x) = x.as_chunks::<LEN>().0.as_chunks::<STEP>();
    let mut total = 0;
    // SAFETY: the set runs here; a step has as many scales as lanes.
    unsafe {
        for (blocks, steps) in blocks.chunks(SPILL).zip(steps.chunks(SPILL)) {
            let mut terms = S::none();
            for (blocks, x) in blocks.iter().zip(steps) {
                let scales = blocks.as_flattened()[at..].as_ptr();
                terms = terms.plus(dots(blocks, x), scales, BYTES);
            }
            total += terms.total()?;
        }
        if !last.is_empty() {
            // Blocks of zeros have a scale of 0.
            let mut blocks = [[0; BYTES]; STEP];
            blocks[..last.len()].copy_from_slice(last);
            let dots = if LEN > SHORT {
                dots(last, last_x)
            } else {
                let mut x = [[0; LEN]; STEP];
                x[..last_x.len()].copy_from_slice(last_x);
                dots(&blocks, &x)
            };
            let scales = blocks.as_flattened()[at..].as_ptr();
            total += S::none().plus(dots, scales, BYTES).total()?;
        }
    }
    Some(total)
}

/// Returns a scale in its stored form.
///
/// # Safety
/// Two bytes lie there.
#[inline(always)]
pub(in crate::simd) unsafe fn half(at: *const u8) -> u16 {
    // SAFETY: the caller's promise.
    u16::from_le_bytes(unsafe { at.cast::<[u8; 2]>().read() })
}
