//! Code shared by the formats with 32 codes of four or five bits.

use super::codec::Scales;
use crate::number::bits;

/// Computes codes −`HALF`..`HALF`: the first x of largest |x| gets −`HALF`.
#[inline(always)]
pub(super) fn from_extreme<const HALF: i32>(
    values: &[f32; 32],
    codes: &mut [i8; 32],
) -> Option<Scales> {
    let largest = values.iter().fold(0, |max, &x| bits::magnitude(x).max(max));
    let first = values.iter().find(|&&x| bits::magnitude(x) == largest);
    let extreme = first.map_or(0.0, |&x| if largest == 0 { 0.0 } else { x });
    let scale = extreme / -HALF as f32;
    if scale == 0.0 {
        // This also applies if the extreme over `HALF` rounds to 0, as in the reference.
        codes.fill(0);
        return Some(scale.into());
    }
    let inverse = 1.0 / scale;
    if !inverse.is_finite() {
        return None;
    }
    for (code, &x) in codes.iter_mut().zip(values) {
        // x · inverse lies in −HALF..=HALF up to rounding, so the sum is positive.
        let stored = (x * inverse + (HALF as f32 + 0.5)) as i32;
        *code = (stored.min(2 * HALF - 1) - HALF) as i8;
    }
    Some(scale.into())
}

/// Computes codes 0..=`MOST`, from a minimum on.
#[inline(always)]
pub(super) fn from_minimum<const MOST: i32>(
    values: &[f32; 32],
    codes: &mut [i8; 32],
) -> Option<Scales> {
    let (first, rest) = values.split_first()?;
    // Zeros of both signs are equal; the first one is the minimum, as in the reference.
    let min = rest
        .iter()
        .fold(*first, |min, &x| if x < min { x } else { min });
    let max = rest
        .iter()
        .fold(*first, |max, &x| if x > max { x } else { max });
    let scale = (max - min) / MOST as f32;
    if scale == 0.0 || scale == f32::INFINITY {
        // This also applies if the width over `MOST` rounds to 0, as in the reference. An infinite scale is refused
        // later.
        codes.fill(0);
        return Some(Scales { scale, min });
    }
    let inverse = 1.0 / scale;
    if !inverse.is_finite() {
        return None;
    }
    for (code, &x) in codes.iter_mut().zip(values) {
        *code = (((x - min) * inverse + 0.5) as i32).min(MOST) as i8;
    }
    Some(Scales { scale, min })
}

/// Writes codes minus `LOWEST`, in 0..=15, to 16 bytes: code m to the low half of byte m, code m + 16 to its high
/// half.
#[inline(always)]
pub(super) fn pack<const LOWEST: i8>(codes: &[i8; 32], bytes: &mut [u8]) {
    let (low, high) = codes.split_at(16);
    for (byte, (&low, &high)) in bytes.iter_mut().zip(low.iter().zip(high)) {
        *byte = (low - LOWEST) as u8 | ((high - LOWEST) as u8) << 4;
    }
}

/// Reads the output of [`pack`].
#[inline(always)]
pub(super) fn unpack<const LOWEST: i8>(bytes: &[u8], codes: &mut [i8; 32]) {
    let (low, high) = codes.split_at_mut(16);
    for (&byte, (low, high)) in bytes.iter().zip(low.iter_mut().zip(high)) {
        *low = (byte & 15) as i8 + LOWEST;
        *high = (byte >> 4) as i8 + LOWEST;
    }
}

/// Writes codes 0..=31 to 20 bytes: a little-endian word of their fifth bits, then [`pack`].
#[inline(always)]
pub(super) fn pack_fives(codes: &[i8; 32], bytes: &mut [u8]) {
    let (word, low) = bytes.split_at_mut(4);
    let fifths = codes.iter().rev();
    let fifths = fifths.fold(0, |word: u32, &code| {
        word << 1 | u32::from(code as u8 >> 4 & 1)
    });
    word.copy_from_slice(&fifths.to_le_bytes());
    pack::<0>(&codes.map(|code| code & 15), low);
}

/// Reads the output of [`pack_fives`].
#[inline(always)]
pub(super) fn unpack_fives(bytes: &[u8], codes: &mut [i8; 32]) {
    let (word, low) = bytes.split_at(4);
    unpack::<0>(low, codes);
    let word = word
        .first_chunk()
        .map_or(0, |&word| u32::from_le_bytes(word));
    for (code, bit) in codes.iter_mut().zip(0..) {
        *code |= ((word >> bit & 1) << 4) as i8;
    }
}
