//! Conversions from tensors of the crate `candle-core`, and back. A contiguous tensor in the processor's memory is read
//! in place; any other is copied first.
//!
//! ```
//! use candle_core::{Device, Tensor};
//! use tercet_host::points::Points;
//! use tercet_host::{KMeans, Quantizer, Weights};
//!
//! // One scale per row of the tensor.
//! let tensor = Tensor::new(&[[0.9f32, -0.1, 0.4, -1.1], [0.2, 0.0, -0.3, 0.25]], &Device::Cpu)?;
//! let quantized = Quantizer::ternary().quantize_tensor(&tensor)?;
//! assert_eq!(quantized.codes(), [1, 0, 0, -1, 1, 0, -1, 1]);
//! assert_eq!(quantized.restore_tensor()?.dims(), [2, 4]);
//! let product = Weights::from_quantized(&quantized)?.matvec(&[127.0, 1.0, 2.0, 27.0])?;
//! assert_eq!(product, [100.0, 38.0]);
//!
//! let points = Points::try_from(&Tensor::new(&[[0.0f32, 0.5], [0.0, 0.25], [8.0, 8.0]], &Device::Cpu)?)?;
//! let found = KMeans::new(2).fit(&points)?;
//! assert_eq!(found.centroids_tensor()?.dims(), [2, 2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ops::Deref;

use candle_core::{CpuStorage, Device, Storage, Tensor};

use crate::points::{Points, Values};
use crate::{Error, Quantized, Quantizer};

impl Quantizer {
    /// Quantizes a tensor of f32, f16 or bf16 values with one scale per row, that is per run along its last dimension.
    ///
    /// # Errors
    /// [`Error::Options`] for a tensor of another type, and for the errors of [`Quantizer::quantize`]; an index counts
    /// the values in row-major order.
    pub fn quantize_tensor(&self, tensor: &Tensor) -> Result<Quantized, Error> {
        let cols = tensor.dims().last().copied().unwrap_or(1);
        let rows = self.per_row(cols);
        with_storage(tensor, |storage, place| match storage {
            CpuStorage::F32(values) => rows.quantize(&values[place]).map_err(Error::options),
            CpuStorage::F16(values) => rows.quantize(&values[place]).map_err(Error::options),
            CpuStorage::BF16(values) => rows.quantize(&values[place]).map_err(Error::options),
            _ => Err(wrong_type(tensor, "f32, f16 or bf16")),
        })
    }
}

impl Quantized {
    /// Restores the values as a tensor in the processor's memory, with one row per scale. O(n).
    ///
    /// # Errors
    /// None: the values are always whole rows.
    pub fn restore_tensor(&self) -> candle_core::Result<Tensor> {
        let groups = self.groups();
        Tensor::from_vec(self.restore(), (groups.count, groups.len), &Device::Cpu)
    }
}

#[cfg(feature = "clustering")]
impl crate::KMeansFit {
    /// Copies the centroids, in the data's own units, on the int8 grid that clustering used, to a tensor with one row
    /// per cluster. O(k · d).
    ///
    /// # Errors
    /// None: the centroids are always whole rows.
    pub fn centroids_tensor(&self) -> candle_core::Result<Tensor> {
        let shape = (self.clusters.len(), self.clustering.dims);
        Tensor::from_slice(&self.centroids, shape, &Device::Cpu)
    }
}

/// One point per row of a tensor with two dimensions. The values are copied once, because other tensors may share their
/// memory.
impl TryFrom<&Tensor> for Points {
    type Error = Error;

    /// # Errors
    /// [`Error::Options`] for other than two dimensions or a type other than f32 and u8; those of [`Points::from_rows`].
    fn try_from(tensor: &Tensor) -> Result<Self, Error> {
        let &[_, dims] = tensor.dims() else {
            return Err(Error::options(format!(
                "a tensor of {} dimensions is not a list of points; reshape it to one row per point",
                tensor.dims().len()
            )));
        };
        let values = with_storage(tensor, |storage, place| match storage {
            CpuStorage::F32(values) => Ok(Values::from(values[place].to_vec())),
            CpuStorage::U8(values) => Ok(Values::from(values[place].to_vec())),
            _ => Err(wrong_type(tensor, "f32 or u8")),
        })?;
        Self::from_rows(dims, values)
    }
}

/// Calls `read` with the memory that holds a tensor's values in row-major order, and their place in it.
fn with_storage<R>(
    tensor: &Tensor,
    read: impl FnOnce(&CpuStorage, std::ops::Range<usize>) -> Result<R, Error>,
) -> Result<R, Error> {
    let here = tensor.to_device(&Device::Cpu);
    let here = here
        .and_then(|tensor| tensor.contiguous())
        .map_err(Error::options)?;
    let (storage, layout) = here.storage_and_layout();
    match (storage.deref(), layout.contiguous_offsets()) {
        (Storage::Cpu(storage), Some((start, end))) => read(storage, start..end),
        _ => Err(Error::options(
            "the tensor cannot be read in row-major order",
        )),
    }
}

fn wrong_type(tensor: &Tensor, taken: &str) -> Error {
    Error::options(format!(
        "a tensor of type {:?} where {taken} is needed; convert it with to_dtype",
        tensor.dtype()
    ))
}

#[cfg(test)]
mod tests {
    use candle_core::DType;

    use super::*;

    fn rows() -> Tensor {
        Tensor::new(&[[0.5f32, -2.0, 1.25], [4.0, 0.0, -1.0]], &Device::Cpu).unwrap()
    }

    #[test]
    fn a_tensor_gives_what_its_values_give_in_any_memory_order() {
        let quantizer = Quantizer::int8();
        let values = [0.5f32, -2.0, 1.25, 4.0, 0.0, -1.0];
        let expected = quantizer.per_row(3).quantize(&values).unwrap();
        let transposed = rows().t().unwrap().contiguous().unwrap().t().unwrap();
        assert!(!transposed.is_contiguous());
        let stacked = Tensor::cat(&[&rows(), &rows()], 0).unwrap();
        let sliced = stacked.narrow(0, 2, 2).unwrap();
        for tensor in [rows(), transposed, sliced] {
            assert_eq!(quantizer.quantize_tensor(&tensor).unwrap(), expected);
            let points = Points::try_from(&tensor).unwrap();
            assert_eq!((points.rows(), &points.to_f32()[..]), (2, &values[..]));
        }
        let restored = expected.restore_tensor().unwrap();
        assert_eq!(restored.dims(), [2, 3]);
        assert_eq!(
            restored.flatten_all().unwrap().to_vec1::<f32>().unwrap(),
            expected.restore()
        );
    }

    #[test]
    fn halves_are_read_in_their_own_type() {
        // All values are exact in both types.
        let expected = Quantizer::ternary().quantize_tensor(&rows()).unwrap();
        for dtype in [DType::F16, DType::BF16] {
            let halves = rows().to_dtype(dtype).unwrap();
            assert_eq!(
                Quantizer::ternary().quantize_tensor(&halves).unwrap(),
                expected
            );
        }
    }

    #[test]
    fn what_cannot_be_taken_is_refused_with_what_would_be() {
        let doubles = rows().to_dtype(DType::F64).unwrap();
        let refusal = |error: Error| error.to_string();
        let error = refusal(Quantizer::int8().quantize_tensor(&doubles).unwrap_err());
        assert!(
            error.contains("F64") && error.contains("to_dtype"),
            "{error}"
        );
        let error = refusal(Points::try_from(&doubles).unwrap_err());
        assert!(error.contains("f32 or u8"), "{error}");
        let error = refusal(Points::try_from(&rows().flatten_all().unwrap()).unwrap_err());
        assert!(
            error.contains("1 dimensions") && error.contains("reshape"),
            "{error}"
        );
        let endless = Tensor::new(&[[f32::NAN]], &Device::Cpu).unwrap();
        assert!(Quantizer::int8().quantize_tensor(&endless).is_err());
        assert!(Points::try_from(&endless).is_err());
    }
}
