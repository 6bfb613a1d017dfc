//! The engine as one that whole flows over files run on.

use std::ops::RangeInclusive;

use tercet_core::quant::Codes;
use tercet_host::engine::{Fault, Worker, check_codes};

use super::{Cuda, CudaError};

impl Worker for Cuda {
    /// Points and clusters are on the device.
    const OWN_MEMORY: bool = true;

    fn name(&self) -> String {
        "cuda".to_owned()
    }

    fn dequantize(
        &mut self,
        codes: Codes<'_>,
        range: RangeInclusive<i8>,
        out: &mut [f32],
    ) -> Result<(), Fault> {
        check_codes(&codes, &range, out.len())?;
        Ok(self.dequantize_slices(codes, out)?)
    }
}

impl From<CudaError> for Fault {
    fn from(error: CudaError) -> Self {
        match error {
            CudaError::Quantize(error) => error.into(),
            CudaError::Block(error) => error.into(),
            CudaError::Cluster(error) => error.into(),
            CudaError::Search(error) => error.into(),
            CudaError::Palette(error) => error.into(),
            CudaError::Linear(error) => error.into(),
            error if error.is_out_of_memory() => Self::NoRoom(error.into()),
            error => Self::Engine(error.into()),
        }
    }
}
