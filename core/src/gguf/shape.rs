//! The dimensions of a tensor.

use super::{LayoutError, MAX_DIMS};

/// Up to four dimensions in the file's order: the first is the row, with neighbouring elements.
///
/// NumPy and safetensors list dimensions in reverse order. Without dimensions, a tensor has a single element; a
/// dimension of 0 makes it empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Shape {
    dims: [u64; MAX_DIMS],
    len: u8,
}

impl Shape {
    /// Creates the shape of `dims`, row first.
    ///
    /// # Errors
    /// [`LayoutError::Dimensions`] for more than [`MAX_DIMS`]; [`LayoutError::Elements`] if the product of the
    /// dimensions other than 0 exceeds 2⁶³ − 1.
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

    /// Returns the dimensions, row first; at most [`MAX_DIMS`].
    pub fn dims(&self) -> &[u64] {
        self.dims.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Returns the number of elements per row: the first dimension, or 1 without dimensions.
    pub const fn row(&self) -> u64 {
        self.dims[0]
    }

    /// Returns the number of elements of the tensor; at most 2⁶³ − 1.
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
