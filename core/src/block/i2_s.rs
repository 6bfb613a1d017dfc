//! I2_S, the ternary tensors of Microsoft's BitNet files (type 36 of that fork).
//!
//! A tensor of n values has n / 4 bytes of two-bit codes, one f32 scale, and 28 unused bytes: n / 4 + 32 bytes. The
//! bits 0, 1, 2 mean −1, 0, +1 times the scale. A byte holds four values of one group, the first in its highest bits.
//! The distance between them depends on the machine that the file was made for, and the file does not record it: the
//! caller passes the [`Interleave`].
//!
//! The newer x86 builds, which put four rows into a byte, are not supported. Their tensors have the same size.

use super::{BlockError, expect_len};

/// Bytes after the codes: the scale and its padding.
const TAIL: usize = 32;

/// Interleaving of values in the bytes of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Interleave {
    /// Groups of 128: byte m < 32 holds values m, m + 32, m + 64, m + 96. The fork's scalar decoder reads this layout
    /// on every machine.
    X86x128,
    /// Groups of 64: byte m < 16 holds values m, m + 16, m + 32, m + 48.
    Arm64,
}

impl Interleave {
    /// Returns the number of values per group.
    pub const fn group(self) -> usize {
        match self {
            Self::X86x128 => 128,
            Self::Arm64 => 64,
        }
    }

    /// Returns the name that commands and reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86x128 => "x86-128",
            Self::Arm64 => "arm-64",
        }
    }

    /// Returns the layout with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::X86x128, Self::Arm64]
            .into_iter()
            .find(|layout| layout.name() == name)
    }
}

/// Returns the number of bytes of a tensor of `values` values.
///
/// # Errors
/// [`BlockError::Partial`] unless they are a whole number of groups.
pub const fn encoded_len(layout: Interleave, values: usize) -> Result<usize, BlockError> {
    if !values.is_multiple_of(layout.group()) {
        return Err(BlockError::Partial {
            len: values,
            block: layout.group(),
        });
    }
    Ok(values / 4 + TAIL)
}

/// Encodes a tensor of codes, each −1, 0 or 1, with its scale: the packed codes, the scale, and 28 zero bytes. `out`
/// holds exactly [`encoded_len`] bytes; it does not change if there is an error.
///
/// ```
/// use tercet_core::block::i2_s::{Interleave, encode};
///
/// let mut codes = [0i8; 128];
/// (codes[0], codes[96]) = (1, -1);
/// let mut tensor = [0; 128 / 4 + 32];
/// encode(Interleave::X86x128, &codes, 0.5, &mut tensor)?;
/// assert_eq!(tensor[..2], [0b10_01_01_00, 0b01_01_01_01]);
/// assert_eq!(tensor[32..36], 0.5f32.to_le_bytes());
/// # Ok::<(), tercet_core::block::BlockError>(())
/// ```
///
/// # Errors
/// [`BlockError::Partial`] or [`BlockError::Length`] if the lengths do not fit; [`BlockError::Scale`] for a scale
/// that is negative or not finite; [`BlockError::CodeRange`] with the lowest index of another code.
pub fn encode(
    layout: Interleave,
    codes: &[i8],
    scale: f32,
    out: &mut [u8],
) -> Result<(), BlockError> {
    expect_len(encoded_len(layout, codes.len())?, out.len())?;
    check_scale(scale)?;
    if let Some(index) = codes.iter().position(|code| !(-1..=1).contains(code)) {
        return Err(BlockError::CodeRange { index });
    }
    let (packed, tail) = out
        .split_at_mut_checked(codes.len() / 4)
        .unwrap_or_default();
    pack(layout, codes, packed);
    tail.fill(0);
    if let Some(place) = tail.first_chunk_mut() {
        *place = scale.to_le_bytes();
    }
    Ok(())
}

/// Writes a tensor's codes, each −1, 0 or 1, and returns its scale.
///
/// ```
/// use tercet_core::block::i2_s::{Interleave, codes};
///
/// let mut tensor = [0b01_01_01_01; 128 / 4 + 32]; // zeros
/// tensor[0] = 0b10_01_01_00; // value 0 is +1, value 96 is −1
/// tensor[32..36].copy_from_slice(&0.5f32.to_le_bytes());
/// let mut out = [0; 128];
/// assert_eq!(codes(Interleave::X86x128, &tensor, &mut out)?, 0.5);
/// assert_eq!((out[0], out[1], out[96]), (1, 0, -1));
/// # Ok::<(), tercet_core::block::BlockError>(())
/// ```
///
/// # Errors
/// [`BlockError::Partial`] or [`BlockError::Length`] if the lengths do not fit; [`BlockError::Scale`] for a scale
/// that is negative or not finite; [`BlockError::CodeRange`] with the lowest index that holds the bits 3.
pub fn codes(layout: Interleave, bytes: &[u8], out: &mut [i8]) -> Result<f32, BlockError> {
    let (packed, scale) = split(layout, bytes, out.len())?;
    unpack(layout, packed, out, |code| code);
    Ok(scale)
}

/// Decodes a tensor: `code · scale`, exact.
///
/// # Errors
/// Those of [`codes`].
pub fn decode(layout: Interleave, bytes: &[u8], out: &mut [f32]) -> Result<(), BlockError> {
    let (packed, scale) = split(layout, bytes, out.len())?;
    unpack(layout, packed, out, |code| f32::from(code) * scale);
    Ok(())
}

/// Returns the checked codes and scale of a tensor of `values` values.
fn split(layout: Interleave, bytes: &[u8], values: usize) -> Result<(&[u8], f32), BlockError> {
    expect_len(encoded_len(layout, values)?, bytes.len())?;
    let packed = bytes.get(..values / 4).unwrap_or_default();
    let tail = bytes.get(values / 4..).and_then(<[u8]>::first_chunk);
    let scale = tail.map_or(f32::NAN, |&scale| f32::from_le_bytes(scale));
    check_scale(scale)?;
    let is_three = |byte: u8, shift: u8| (byte >> shift) & 3 == 3;
    let lane = layout.group() / 4;
    for (index, group) in packed.chunks_exact(lane).enumerate() {
        for (step, shift) in SHIFTS.into_iter().enumerate() {
            if let Some(position) = group.iter().position(|&byte| is_three(byte, shift)) {
                return Err(BlockError::CodeRange {
                    index: index * layout.group() + step * lane + position,
                });
            }
        }
    }
    Ok((packed, scale))
}

/// Refuses a scale that is negative or not finite.
fn check_scale(scale: f32) -> Result<(), BlockError> {
    match (0.0..f32::INFINITY).contains(&scale) {
        true => Ok(()),
        false => Err(BlockError::Scale),
    }
}

/// Places of the four values in a byte, in order.
const SHIFTS: [u8; 4] = [6, 4, 2, 0];

/// Writes `value(code)` for each code.
fn unpack<T>(layout: Interleave, packed: &[u8], out: &mut [T], value: impl Fn(i8) -> T) {
    let lane = layout.group() / 4;
    let mut lanes = out.chunks_exact_mut(lane);
    for bytes in packed.chunks_exact(lane) {
        for (shift, out) in SHIFTS.into_iter().zip(&mut lanes) {
            for (y, &byte) in out.iter_mut().zip(bytes) {
                *y = value(((byte >> shift) & 3) as i8 - 1);
            }
        }
    }
}

/// Packs codes that are each −1, 0 or 1.
fn pack(layout: Interleave, codes: &[i8], packed: &mut [u8]) {
    let lane = layout.group() / 4;
    let mut lanes = codes.chunks_exact(lane);
    for bytes in packed.chunks_exact_mut(lane) {
        bytes.fill(0);
        for (shift, codes) in SHIFTS.into_iter().zip(&mut lanes) {
            for (byte, &code) in bytes.iter_mut().zip(codes) {
                *byte |= (code.wrapping_add(1) as u8) << shift;
            }
        }
    }
}
