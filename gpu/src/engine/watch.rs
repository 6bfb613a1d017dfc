//! Measures time on the device.

use std::sync::Arc;

use super::stream::{Event, Stream};
use super::{Cuda, CudaError};

/// Times the work that an engine queues, with marks in its stream: the device's time, to about half a microsecond. It
/// borrows no engine, so it can also time values that hold one ([`super::cluster::DeviceClusters`], [`super::Base`]).
#[derive(Debug)]
pub struct Watch {
    start: Event,
    end: Event,
    stream: Arc<Stream>,
}

impl Cuda {
    /// Returns a watch for this engine's stream.
    ///
    /// # Errors
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn watch(&self) -> Result<Watch, CudaError> {
        Ok(Watch {
            start: Event::timed(&self.context)?,
            end: Event::timed(&self.context)?,
            stream: Arc::clone(&self.stream),
        })
    }

    /// Returns the device time of the work that `work` queues, in milliseconds, and the result of `work`. Waits for the
    /// device.
    ///
    /// # Errors
    /// Those of `work`; [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn timed<R>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<R, CudaError>,
    ) -> Result<(f32, R), CudaError> {
        self.watch()?.time(|| work(self))
    }
}

impl Watch {
    /// Returns the time from before the work that `work` queues to its end, in milliseconds, and the result of `work`.
    /// Waits for the device. Work that another thread queues on the engine meanwhile counts too.
    ///
    /// # Errors
    /// Those of `work`; [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn time<R>(
        &mut self,
        work: impl FnOnce() -> Result<R, CudaError>,
    ) -> Result<(f32, R), CudaError> {
        self.start.record(&self.stream)?;
        let result = work()?;
        self.end.record(&self.stream)?;
        self.end.synchronize()?;
        Ok((self.end.since(&self.start)?, result))
    }
}
