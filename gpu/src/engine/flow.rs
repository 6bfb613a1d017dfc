//! Lets whole flows over files run on the engine.

use tercet_host::engine::{EngineError, FlowEngine};

use super::{Cuda, CudaError, Cudas};

impl FlowEngine for Cuda {
    fn name(&self) -> String {
        "cuda".to_owned()
    }
}

impl FlowEngine for Cudas {
    fn name(&self) -> String {
        match self.devices().len() {
            1 => "cuda".to_owned(),
            devices => format!("cuda ({devices} devices)"),
        }
    }
}

impl From<CudaError> for EngineError {
    fn from(error: CudaError) -> Self {
        match error {
            CudaError::Refused(refused) => refused.into(),
            error if error.is_out_of_memory() => Self::NoRoom(error.into()),
            error => Self::Failed(error.into()),
        }
    }
}
