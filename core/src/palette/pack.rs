//! Packed indices, the first in the lowest bits: eight of them fill as many bytes as an index has bits.

/// Calls a function that is generic over the bits of an index and the entries of a codebook.
macro_rules! with_width {
    ($width:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $width.bits() {
            1 => $function::<1, 2>($($argument),*),
            2 => $function::<2, 4>($($argument),*),
            3 => $function::<3, 8>($($argument),*),
            4 => $function::<4, 16>($($argument),*),
            5 => $function::<5, 32>($($argument),*),
            6 => $function::<6, 64>($($argument),*),
            7 => $function::<7, 128>($($argument),*),
            _ => $function::<8, 256>($($argument),*),
        }
    };
}
pub(super) use with_width;

/// Returns the eight indices of a run of bytes.
#[inline(always)]
pub(super) fn unpack<const BITS: usize>(bytes: &[u8; BITS]) -> [u8; 8] {
    let mask = ((1u32 << BITS) - 1) as u8;
    if BITS <= 4 {
        // They fit 32 bits, which is faster with 32-bit registers.
        let word = (bytes.iter().rev()).fold(0, |word: u32, &byte| word << 8 | u32::from(byte));
        core::array::from_fn(|place| (word >> (BITS * place)) as u8 & mask)
    } else {
        let word = (bytes.iter().rev()).fold(0, |word: u64, &byte| word << 8 | u64::from(byte));
        core::array::from_fn(|place| (word >> (BITS * place)) as u8 & mask)
    }
}

/// Returns eight indices below 2^BITS as bytes.
#[inline(always)]
pub(super) fn pack<const BITS: usize>(indices: [u8; 8]) -> [u8; BITS] {
    let indices = indices.into_iter().rev();
    let word = indices.fold(0u64, |word, index| word << BITS | u64::from(index));
    core::array::from_fn(|place| (word >> (8 * place)) as u8)
}

/// Returns the rest of a row after its whole runs, padded with zeros.
#[inline(always)]
pub(super) fn padded<const N: usize, T: Copy + Default>(rest: &[T]) -> [T; N] {
    let mut whole = [T::default(); N];
    for (slot, &item) in whole.iter_mut().zip(rest) {
        *slot = item;
    }
    whole
}
