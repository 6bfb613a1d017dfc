//! The dimensions of a tensor.

use super::{LayoutError, MAX_DIMS};

/// Up to four dimensions in the file's order: the first is the row, whose elements are neighbours.
///
/// NumPy and safetensors list dimensions the other way round. No dimension at all is a single element; a
/// dimension of 0 makes the tensor empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Shape {
    dims: [u64; MAX_DIMS],
    len: u8,
}

impl Shape {
    /// The shape of `dims`, row first.
    ///
    /// # Errors
    /// [`LayoutError::Dimensions`] for more than [`MAX_DIMS`]; [`LayoutError::Elements`] where the product of
    /// the dimensions other than 0 exceeds 2⁶³ − 1.
    pub fn new(dims: &[u64]) -> Result<Self, LayoutError> {
        let mut shape = Self {
            dims: [1; MAX_DIMS],
            len: dims.len() as u8,
        };
        let Some(slots) = shape.dims.get_mut(..dims.len()) else {
            return Err(LayoutError::Dimensions {
                count: dims.len() as u64,
            });
        };
        let mut product = 1u64;
        for (slot, &dim) in slots.iter_mut().zip(dims) {
            *slot = dim;
            product = product
                .checked_mul(dim.max(1))
                .filter(|&product| product <= i64::MAX as u64)
                .ok_or(LayoutError::Elements)?;
        }
        Ok(shape)
    }

    /// The dimensions, row first; at most [`MAX_DIMS`].
    pub fn dims(&self) -> &[u64] {
        self.dims.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Elements of a row: the first dimension, 1 without any.
    pub const fn row(&self) -> u64 {
        self.dims[0]
    }

    /// Elements of the tensor; at most 2⁶³ − 1.
    pub fn elements(&self) -> u64 {
        // Cannot wrap: `new` bounds the product of all dimensions other than 0.
        self.dims
            .iter()
            .fold(1u64, |product, &dim| product.wrapping_mul(dim))
    }
}

impl core::fmt::Debug for Shape {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.dims()).finish()
    }
}
