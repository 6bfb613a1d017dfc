//! Time on the device.

use std::sync::Arc;

use super::stream::{Event, Stream};
use super::{Cuda, CudaError};

/// Times what an engine queues, by marks in its stream: the device's time, to about half a microsecond. It borrows no engine, so
/// that what holds one ([`super::cluster::DeviceClusters`], [`super::Base`]) can be timed too.
#[derive(Debug)]
pub struct Watch {
    start: Event,
    end: Event,
    stream: Arc<Stream>,
}

impl Cuda {
    /// A watch over this engine's stream.
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

    /// The time that the device takes for what `work` queues, in milliseconds, and what `work` gives. Waits for it.
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
    /// The time from before what `work` queues to its end, in milliseconds, and what `work` gives. Waits for it. What else the
    /// engine is asked for meanwhile, by another thread, counts too.
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
