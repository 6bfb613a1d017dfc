//! The overhead of a dispatched call beside the work itself.

use std::time::Instant;

use tercet_core::block::Format;
use tercet_core::engine::BlockEngine;
use tercet_core::scalar::Scalar;
use tercet_host::parallel::Threads;

use crate::dispatch::engine::Device;
use crate::dispatch::{DispatchError, Dispatcher, Engine, Job};

/// Calls of a batch, and number of batches, of which the fastest counts.
const CALLS: u32 = 20_000;
const BATCHES: u32 = 10;

/// Returns the extra seconds of a dispatched call of one block over the same call of the engine itself, on the calling
/// thread: choosing, timing, counting. Takes some 50 ms.
///
/// # Errors
/// Those of [`Dispatcher::run`].
pub fn overhead<D: Device>(dispatcher: &Dispatcher<D>) -> Result<f64, DispatchError> {
    let format = Format::Q8_0;
    let (blocks, mut out) = (vec![1; format.bytes()], vec![0.0; format.len()]);
    let (mut kernels, mut scalar) = (Threads::alone(), Scalar);
    let plain = dispatcher.choice(&Job::decode(out.len(), blocks.len())) == Some(Engine::Scalar);
    let mut batch = |call: &mut dyn FnMut(&mut [f32]) -> Result<(), DispatchError>| {
        let start = Instant::now();
        for _ in 0..CALLS {
            call(std::hint::black_box(&mut out))?;
        }
        Ok::<_, DispatchError>(start.elapsed().as_secs_f64() / f64::from(CALLS))
    };
    let mut least = [f64::INFINITY; 2];
    for _ in 0..BATCHES {
        let direct = batch(&mut |out| {
            let done = match plain {
                true => scalar.decode_blocks(format, &blocks, out),
                false => kernels.decode_blocks(format, &blocks, out),
            };
            done.map_err(DispatchError::from)
        })?;
        let dispatched = batch(&mut |out| dispatcher.decode(format, &blocks, out))?;
        least = [least[0].min(direct), least[1].min(dispatched)];
    }
    Ok((least[1] - least[0]).max(0.0))
}
