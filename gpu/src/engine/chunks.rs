//! Processes data larger than the device's memory in chunks.

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

use tercet_core::number::Plain;

use super::device::{Cuda, bytes_of, bytes_of_mut};
use super::error::CudaError;
use super::memory::DeviceBuffer;
use super::stream::Event;

/// How [`Cuda::stream_through`] divides its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    /// Items of the first chunk.
    pub most: usize,
    /// Items of the smallest chunk; each chunk except the last is a multiple of it.
    pub least: usize,
}

/// Number of elements of an item in the input and the output of [`Cuda::stream_through`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Elements of the input.
    pub input: usize,
    /// Elements of the output.
    pub output: usize,
}

impl Cuda {
    /// Calls `work` on `0..len`, chunk by chunk in order. If memory runs out, it starts the same part again with half
    /// the size.
    ///
    /// # Errors
    /// Those of `work`. [`CudaError::OutOfMemory`] is returned only for the smallest chunk. The chunks before the
    /// failure stay done.
    pub fn in_chunks(
        &mut self,
        len: usize,
        chunks: Chunks,
        mut work: impl FnMut(&mut Self, Range<usize>) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let least = chunks.least.max(1);
        let mut chunk = whole(chunks.most, least);
        let mut done = 0;
        while done < len {
            let end = len.min(done.saturating_add(chunk));
            match work(self, done..end) {
                Ok(()) => done = end,
                // A part shorter than the chunk is itself halved.
                Err(error) if error.is_out_of_memory() && end - done > least => {
                    chunk = whole((end - done) / 2, least);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Passes `input` through the device to `output`. `work` queues the computation of a chunk's output from its input,
    /// and receives the range of its items. Both buffers hold a whole chunk; a shorter last part is at their beginning.
    ///
    /// Two chunks are on the device at a time: while one is processed, the next is copied in and the last one out.
    ///
    /// # Errors
    /// [`CudaError::Length`] unless input and output have the same number of items; those of `work`;
    /// [`CudaError::OutOfMemory`] if not even two of the smallest chunks fit. After an error the output may be partly
    /// written.
    pub fn stream_through<T: Plain, U: Plain>(
        &mut self,
        chunks: Chunks,
        item: Item,
        input: &[T],
        output: &mut [U],
        mut work: impl FnMut(
            &mut Self,
            Range<usize>,
            &DeviceBuffer<T>,
            &mut DeviceBuffer<U>,
        ) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let len = input.len() / item.input.max(1);
        for (found, each) in [(input.len(), item.input), (output.len(), item.output)] {
            let expected = len * each;
            if found != expected {
                return Err(CudaError::Length { expected, found });
            }
        }
        if len == 0 {
            return Ok(());
        }
        let least = chunks.least.max(1);
        let mut chunk = whole(chunks.most.min(len), least);
        let mut lanes = loop {
            let made = [Lane::new(self, chunk, item), Lane::new(self, chunk, item)];
            match made {
                [Ok(first), Ok(second)] => break [first, second],
                [Err(error), _] | [_, Err(error)] => {
                    if !error.is_out_of_memory() || chunk <= least {
                        return Err(error);
                    }
                }
            }
            chunk = whole(chunk / 2, least);
        };
        let parts = len.div_ceil(chunk);
        let range = |index: usize| index * chunk..len.min((index + 1) * chunk);
        let outward = self.staging.outward();
        for index in 0..=parts {
            let [even, odd] = &mut lanes;
            let (lane, other) = if index % 2 == 0 {
                (even, odd)
            } else {
                (odd, even)
            };
            let part = index.checked_sub(1).map_or(0..0, range);
            let part = &mut output[part.start * item.output..part.end * item.output];
            let to = bytes_of_mut(part);
            let is_long = outward.lock().is_long(to.len());
            let mut copy_out = || {
                // SAFETY: the other lane's output holds a chunk, which `work` wrote before `done`, and nothing writes
                // it before the next round, which begins when this has ended.
                unsafe {
                    let from = other.output.pointer();
                    outward.lock().copy_out_after(&other.done, from, to)
                }
            };
            if index == parts {
                copy_out()?;
                break;
            }
            thread::scope(|scope| {
                // A long copy goes out on its own thread. That thread has slots, a stream and a lane that nothing else
                // here uses; if `work` copies out too, it waits for this thread.
                let (apart, after) = if is_long {
                    (Some(scope.spawn(copy_out)), None)
                } else {
                    (None, Some(copy_out))
                };
                let range = range(index);
                let part = &input[range.start * item.input..range.end * item.input];
                // SAFETY: the lane's input holds a chunk, and its last use is what `done` marks.
                unsafe {
                    let (stream, to) = (&self.stream, lane.input.pointer());
                    let inward = &mut self.staging.inward;
                    inward.copy_in(stream, Some(&lane.done), bytes_of(part), to)
                }?;
                work(self, range, &lane.input, &mut lane.output)?;
                lane.done.record(&self.stream)?;
                match apart {
                    Some(out) => out.join().unwrap_or_else(|panic| resume_unwind(panic)),
                    None => after.map_or(Ok(()), |mut copy_out| copy_out()),
                }
            })?;
        }
        Ok(())
    }
}

/// Returns `chunk` rounded to a multiple of `least`, which is at least 1, and not less than it.
fn whole(chunk: usize, least: usize) -> usize {
    (chunk / least).max(1) * least
}

/// The buffers of one chunk, and a mark after the work on them.
struct Lane<T, U> {
    input: DeviceBuffer<T>,
    output: DeviceBuffer<U>,
    done: Event,
}

impl<T: Plain, U: Plain> Lane<T, U> {
    fn new(cuda: &mut Cuda, chunk: usize, item: Item) -> Result<Self, CudaError> {
        let lane = Self {
            input: cuda.room(chunk.saturating_mul(item.input))?,
            output: cuda.room(chunk.saturating_mul(item.output))?,
            done: Event::new(&cuda.context)?,
        };
        // Memory is allocated in the order of the stream: the first copy, on another stream, waits for that.
        lane.done.record(&cuda.stream)?;
        Ok(lane)
    }
}
