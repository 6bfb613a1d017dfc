//! Conversions from arrays of the crate `ndarray`, and views as such arrays, without copies if memory is row-major.
//!
//! ```
//! use ndarray::array;
//! use tercet_host::points::Points;
//! use tercet_host::{KMeans, Quantizer};
//!
//! // One scale per row of the array.
//! let weights = array![[0.9, -0.1, 0.4, -1.1], [0.2, 0.0, -0.3, 0.25]];
//! let quantized = Quantizer::ternary().quantize_rows(weights.view())?;
//! assert_eq!(quantized.codes_array(), array![[1, 0, 0, -1], [1, 0, -1, 1]]);
//!
//! let points = Points::try_from(array![[0.0, 0.5], [0.0, 0.25], [8.0, 8.0]])?;
//! let found = KMeans::new(2).fit(&points)?;
//! assert_eq!(found.centroids_array().dim(), (2, 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use ndarray::{Array2, ArrayView2};
use tercet_core::number::Element;
use tercet_core::quant::QuantError;

use crate::points::{Points, Values};
use crate::{Error, Quantized, Quantizer};

impl Quantizer {
    /// Quantizes an array with one scale per row. A row-major array is read in place; any other is copied first.
    ///
    /// # Errors
    /// As [`Quantizer::quantize`]; an index counts the values in row-major order.
    pub fn quantize_rows<T: Element>(
        &self,
        array: ArrayView2<'_, T>,
    ) -> Result<Quantized, QuantError> {
        let rows = self.per_row(array.ncols());
        match array.as_slice() {
            Some(values) => rows.quantize(values),
            None => rows.quantize(&array.iter().copied().collect::<Vec<T>>()),
        }
    }
}

impl Quantized {
    /// The codes, one row per scale.
    pub fn codes_array(&self) -> ArrayView2<'_, i8> {
        let groups = self.groups();
        view(groups.count, groups.len, self.codes())
    }
}

#[cfg(feature = "clustering")]
impl crate::KMeansFit {
    /// The centroids in the data's own units, on the int8 grid that clustering used, one per row.
    pub fn centroids_array(&self) -> ArrayView2<'_, f32> {
        view(self.clusters.len(), self.clustering.dims, &self.centroids)
    }
}

/// A view of whole rows.
fn view<T>(rows: usize, cols: usize, values: &[T]) -> ArrayView2<'_, T> {
    ArrayView2::from_shape((rows, cols), values).expect("the values are whole rows")
}

macro_rules! points_from {
    ($($element:ty)*) => {$(
        /// One point per row. A row-major array keeps its memory; any other is copied.
        impl TryFrom<Array2<$element>> for Points {
            type Error = Error;

            /// # Errors
            /// As [`Points::from_rows`].
            fn try_from(array: Array2<$element>) -> Result<Self, Error> {
                let dims = array.ncols();
                let len = array.len();
                let values = match array.is_standard_layout() {
                    true => {
                        // Elements that were removed or sliced off the array are still in its memory.
                        let (mut values, first) = array.into_raw_vec_and_offset();
                        values.drain(..first.unwrap_or(0));
                        values.truncate(len);
                        values
                    }
                    false => array.iter().copied().collect(),
                };
                Points::from_rows(dims, Values::from(values))
            }
        }
    )*};
}

points_from!(f32 i8 u8);
