//! Values of the forward pass that are kept in fewer bits until the backward pass.

use half::bf16;

use super::power::largest;
use crate::number::round::half_even_i8;

/// Bytes of a scale.
const SCALE: usize = size_of::<f32>();

/// How the inputs and values of layers are kept from the forward to the backward pass. The forward pass itself is the
/// same; the gradients are those of the rounded values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Activations {
    /// As they are: 4 bytes per value.
    #[default]
    F32,
    /// Rounded half to even to bf16: 2 bytes per value.
    Bf16,
    /// A byte per value and, for each token of each kept vector, the scale s = fl(max |v| / 127), 4 bytes. The codes
    /// are fl(v · fl(1 / s)) rounded half to even, or 0 if 1 / s is not finite; the values are fl(code · s).
    Int8,
}

impl Activations {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::F32, Self::Bf16, Self::Int8];

    /// Returns the name: `f32`, `bf16` or `int8`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
        }
    }

    /// Returns the bytes of `rows` rows of `values` values together; 0 for [`Activations::F32`], which needs no copy.
    pub(crate) const fn bytes(self, values: usize, rows: usize) -> usize {
        match self {
            Self::F32 => 0,
            Self::Bf16 => values.saturating_mul(2),
            Self::Int8 => values.saturating_add(rows.saturating_mul(SCALE)),
        }
    }

    /// Writes `rows` rows of values, all of the same length.
    pub(crate) fn pack(self, values: &[f32], rows: usize, bytes: &mut [u8]) {
        match self {
            Self::F32 => {}
            Self::Bf16 => {
                let (pairs, _) = bytes.as_chunks_mut::<2>();
                for (to, &value) in pairs.iter_mut().zip(values) {
                    *to = bf16::from_f32(value).to_le_bytes();
                }
            }
            Self::Int8 => {
                let width = width(values.len(), rows);
                let rows = bytes.chunks_mut(width.saturating_add(SCALE));
                for (bytes, values) in rows.zip(values.chunks(width)) {
                    let scale = f32::from_bits(largest(values)) / 127.0;
                    let inverse = 1.0 / scale;
                    let inverse = if inverse.is_finite() { inverse } else { 0.0 };
                    let Some((to, codes)) = bytes.split_first_chunk_mut::<SCALE>() else {
                        continue;
                    };
                    *to = scale.to_le_bytes();
                    for (code, &value) in codes.iter_mut().zip(values) {
                        *code = half_even_i8(value * inverse) as u8;
                    }
                }
            }
        }
    }

    /// Replaces values by those that [`Activations::pack`] wrote.
    pub(crate) fn unpack(self, bytes: &[u8], rows: usize, values: &mut [f32]) {
        match self {
            Self::F32 => {}
            Self::Bf16 => {
                let (pairs, _) = bytes.as_chunks::<2>();
                for (value, &pair) in values.iter_mut().zip(pairs) {
                    *value = bf16::from_le_bytes(pair).to_f32();
                }
            }
            Self::Int8 => {
                let width = width(values.len(), rows);
                let rows = bytes.chunks(width.saturating_add(SCALE));
                for (bytes, values) in rows.zip(values.chunks_mut(width)) {
                    let Some((scale, codes)) = bytes.split_first_chunk::<SCALE>() else {
                        continue;
                    };
                    let scale = f32::from_le_bytes(*scale);
                    for (value, &code) in values.iter_mut().zip(codes) {
                        *value = f32::from(code as i8) * scale;
                    }
                }
            }
        }
    }
}

/// Returns the number of values of a row.
const fn width(values: usize, rows: usize) -> usize {
    match values.checked_div(rows) {
        None | Some(0) => 1,
        Some(width) => width,
    }
}

#[cfg(test)]
mod tests {
    use super::Activations;

    /// What is left of two rows of values.
    fn kept<const N: usize>(activations: Activations, values: &[f32; N]) -> [f32; N] {
        let (mut bytes, mut found) = ([0xA5; 256], [f32::NAN; N]);
        let bytes = &mut bytes[..activations.bytes(N, 2)];
        activations.pack(values, 2, bytes);
        activations.unpack(bytes, 2, &mut found);
        found
    }

    #[test]
    fn values_in_sixteen_bits_are_rounded_half_to_even() {
        let values = [1.0, 1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0, -3e-39];
        let expected = [1.0, 1.0, 1.0 + 4.0 / 256.0];
        let found = kept(Activations::Bf16, &values);
        assert_eq!(found[..3], expected);
        assert!((found[3] / -3e-39 - 1.0).abs() < 0.02);
    }

    #[test]
    fn a_row_in_eight_bits_has_a_scale_of_its_own() {
        let values = [127.0, -126.6, 0.5, 1.5, 1e-3, -5e-4, 0.0, 1.2e-5];
        let found = kept(Activations::Int8, &values);
        assert_eq!(found[..4], [127.0, -127.0, 0.0, 2.0]);
        for (value, found) in values.iter().zip(found).skip(4) {
            assert!(
                (value - found).abs() <= 0.5001e-3 / 127.0,
                "{value} {found}"
            );
        }
        // A scale whose inverse is infinite.
        assert_eq!(
            kept(Activations::Int8, &[0.0, 1e-44, 1.0, -1.0]),
            [0.0, 0.0, 1.0, -1.0]
        );
    }
}
