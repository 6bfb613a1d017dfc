//! Reads plain little-endian numbers as `f32`, and writes them.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::dtype::DType;

/// Returns true for the types that [`widen`] reads: floats, and integers that `f32` represents exactly.
pub(crate) fn readable(dtype: DType) -> bool {
    dtype.is_float() || matches!(dtype, DType::I8 | DType::U8 | DType::I16 | DType::U16)
}

/// Reads `out.len()` numbers. The result is exact, except that `f64` is rounded to nearest, ties to even.
///
/// `bytes` must hold exactly as many numbers of a [`readable`] type.
pub(crate) fn widen(dtype: DType, bytes: &[u8], out: &mut [f32]) {
    fn each<const N: usize>(bytes: &[u8], out: &mut [f32], read: impl Fn([u8; N]) -> f32) {
        let (numbers, rest) = bytes.as_chunks::<N>();
        assert!(rest.is_empty() && numbers.len() == out.len());
        for (x, &number) in out.iter_mut().zip(numbers) {
            *x = read(number);
        }
    }
    match dtype {
        DType::F64 => each(bytes, out, |b| f64::from_le_bytes(b) as f32),
        DType::F32 => each(bytes, out, f32::from_le_bytes),
        DType::F16 => {
            let mut halves = [f16::ZERO; 512];
            for (out, bytes) in out.chunks_mut(512).zip(bytes.chunks(1024)) {
                let halves = &mut halves[..out.len()];
                for (half, &pair) in halves.iter_mut().zip(bytes.as_chunks().0) {
                    *half = f16::from_le_bytes(pair);
                }
                halves.convert_to_f32_slice(out);
            }
        }
        DType::Bf16 => each(bytes, out, |b| {
            f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16)
        }),
        DType::I8 => each(bytes, out, |[b]| f32::from(b as i8)),
        DType::U8 => each(bytes, out, |[b]| f32::from(b)),
        DType::I16 => each(bytes, out, |b| f32::from(i16::from_le_bytes(b))),
        DType::U16 => each(bytes, out, |b| f32::from(u16::from_le_bytes(b))),
        other => unreachable!("{} is not readable", other.name()),
    }
}

/// Reads one number.
pub(crate) fn one(dtype: DType, bytes: &[u8]) -> f32 {
    let mut out = [0.0];
    widen(dtype, bytes, &mut out);
    out[0]
}

/// Writes `f32` values as `f32`, `f16` or `bf16`, rounded to nearest, ties to even.
///
/// # Errors
/// The index of the first value that is not finite, or is too large for the type.
pub(crate) fn narrow(dtype: DType, values: &[f32], out: &mut [u8]) -> Result<(), usize> {
    fn each<const N: usize>(
        values: &[f32],
        out: &mut [u8],
        write: impl Fn(f32) -> ([u8; N], bool),
    ) -> Result<(), usize> {
        let (numbers, rest) = out.as_chunks_mut::<N>();
        assert!(rest.is_empty() && numbers.len() == values.len());
        let mut all = true;
        for (number, &x) in numbers.iter_mut().zip(values) {
            let (bytes, finite) = write(x);
            *number = bytes;
            all &= finite;
        }
        match all {
            true => Ok(()),
            false => Err(values.iter().position(|&x| !write(x).1).unwrap_or(0)),
        }
    }
    match dtype {
        DType::F32 => each(values, out, |x| (x.to_le_bytes(), x.is_finite())),
        DType::F16 => each(values, out, |x| {
            let x = f16::from_f32(x);
            (x.to_le_bytes(), x.is_finite())
        }),
        DType::Bf16 => each(values, out, |x| {
            let x = bf16::from_f32(x);
            (x.to_le_bytes(), x.is_finite())
        }),
        other => unreachable!("{} is not written", other.name()),
    }
}

/// Returns the bytes as space for `f32` values, if `f32` is the type to write, the machine is little-endian, and the
/// bytes are aligned.
pub(crate) fn room(dtype: DType, bytes: &mut [u8]) -> Option<&mut [f32]> {
    if dtype != DType::F32 || cfg!(target_endian = "big") {
        return None;
    }
    // SAFETY: every pattern of four bytes is an f32, and every f32 is a pattern of four bytes.
    let (before, values, after) = unsafe { bytes.align_to_mut() };
    (before.is_empty() && after.is_empty()).then_some(values)
}
