//! The engine as one that whole flows over files run on.

use tercet_host::engine::{Fault, Worker};

use super::{Cuda, CudaError};

impl Worker for Cuda {
    /// Points and clusters are on the device.
    const OWN_MEMORY: bool = true;

    fn name(&self) -> String {
        "cuda".to_owned()
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
