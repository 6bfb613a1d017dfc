//! The exact sum of blocks' products with int8 activations, as many blocks at a time as a set has lanes.

/// Sums of scale · 2²⁴ · dot, of a block in each lane.
///
/// A finite f16 times 2²⁴ is an integer of 11 bits times a power of two, below 2⁴⁰, and a block's product is at most 2¹⁹ in
/// magnitude: a term has at most 59 bits, of which 30 count. So sums are kept in two parts.
///
/// # Safety
/// Every function may be called only where the processor runs the implementor's set.
pub(in crate::simd) trait Terms: Copy {
    /// The products of a step's blocks, 32 bits each.
    type Dots: Copy;

    /// No terms.
    unsafe fn none() -> Self;
    /// Adds those of a step's blocks; scales lie `apart` bytes after one another.
    unsafe fn plus(self, dots: Self::Dots, scales: *const u8, apart: usize) -> Self;
    /// The sum of at most [`SPILL`] steps; `None` where a scale was not finite.
    unsafe fn total(self) -> Option<i128>;
}

/// Steps between sums of lanes: twice as many terms, of 40 bits or the upper 27 and the lower 32 of 59, leave 64 bits room.
const SPILL: usize = 1 << 16;

/// Values of blocks that are so short that a step of them is always whole.
const SHORT: usize = 32;

/// Σ scale · 2²⁴ · dot over whole blocks, `STEP` at a time, one for each lane of the terms; `None` where a scale is not finite. `dots`
/// gives the products of a step, of fewer blocks at the end unless they are [`SHORT`], and `at` is where a scale lies in its block.
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

/// A scale as it is stored.
///
/// # Safety
/// Two bytes lie there.
#[inline(always)]
pub(in crate::simd) unsafe fn half(at: *const u8) -> u16 {
    // SAFETY: the caller's promise.
    u16::from_le_bytes(unsafe { at.cast::<[u8; 2]>().read() })
}
