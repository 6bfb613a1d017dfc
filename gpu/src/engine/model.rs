//! Language models: the device multiplies blocks of weights and normalizes; the processor does the steps in between.

use tercet_core::engine::ModelEngine;
use tercet_core::model::attention::Attention;
use tercet_core::model::{FloatMatrix, Gate};
use tercet_host::parallel::Threads;

use super::{Cuda, CudaError, Cudas};

macro_rules! model_engine {
    ($engine:ty) => {
        /// The threads of the processor do products of floats, attention and gates.
        impl ModelEngine for $engine {
            type Failure = CudaError;

            fn multiply_floats(
                &mut self,
                weights: &FloatMatrix<'_>,
                x: &[f32],
                out: &mut [f32],
            ) -> Result<(), CudaError> {
                Ok(Threads::default().multiply_floats(weights, x, out)?)
            }

            fn attend(
                &mut self,
                attention: &Attention<'_, '_>,
                scores: &mut [f32],
                sums: &mut [i64],
                out: &mut [f32],
            ) -> Result<(), CudaError> {
                Ok(Threads::default().attend(attention, scores, sums, out)?)
            }

            fn gate(&mut self, gate: Gate, x: &mut [f32], up: &[f32]) -> Result<(), CudaError> {
                Ok(Threads::default().gate(gate, x, up)?)
            }
        }
    };
}

model_engine!(Cuda);
model_engine!(Cudas);
