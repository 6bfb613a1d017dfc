//! Predicts the time of executors with a dispatcher's costs.

use std::fmt;
use std::time::Duration;

use tercet_core::number::Element;
use tercet_core::search::{Metric, Rows};

use super::{Assign, Assigning, Layers, Multiply, QuantizeRows, Quantizing, Search, Searching};
use crate::batch::{BatchJob, Executor, Predict, Worker};
use crate::dispatch::{self, Cost, Costs, Engine, Location, Operation};

/// A batch as input of a dispatcher's costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its total amount of work.
    pub job: dispatch::Job,
    /// Bytes that are already on a device with its own memory: they are not copied to it.
    pub resident: u64,
}

impl Asked {
    /// Returns the predicted time on an engine with this cost.
    pub fn seconds(&self, cost: &Cost) -> f64 {
        let all = cost.predict(&self.job);
        if self.resident == 0 || self.job.place == Location::Device {
            return all.total();
        }
        // Copies count as a job of fewer bytes; reading and computing count in full.
        let crosses = dispatch::Job {
            bytes_in: self.job.bytes_in.saturating_sub(self.resident),
            ..self.job
        };
        let transfer = cost.predict(&crosses).transfer;
        dispatch::Prediction { transfer, ..all }.total()
    }
}

/// An executor whose batches have a time that a cost model can predict.
pub trait Priced<J: BatchJob>: Executor<J> {
    /// Returns a function from the kind and number of requests to the job of a batch. The function outlives the work.
    fn price(&self) -> impl Fn(&J::Kind, usize) -> Asked + Send + Sync + 'static;

    /// Returns the operation whose cost is used.
    fn operation(&self) -> Operation;
}

/// [`Predict`] with the cost of an operation on an engine: [`Worker::by_cost`].
pub struct Costed<F> {
    cost: Cost,
    price: F,
}

impl<F> Costed<F> {
    /// Returns predictions of the batches that `price` describes, by `cost`.
    pub const fn new(cost: Cost, price: F) -> Self {
        Self { cost, price }
    }
}

impl<K, F: Fn(&K, usize) -> Asked + Send + Sync> Predict<K> for Costed<F> {
    fn predict(&self, kind: &K, requests: usize) -> Duration {
        let seconds = (self.price)(kind, requests).seconds(&self.cost);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

impl<F> fmt::Debug for Costed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Costed")
            .field("cost", &self.cost)
            .finish_non_exhaustive()
    }
}

impl<'a, J: BatchJob> Worker<'a, J> {
    /// Returns a worker that predicts its batches with a dispatcher's costs of its operation on `engine`, which must be
    /// the engine that the work runs on. Without known costs it is as [`Worker::new`]. So batches go to the engine that
    /// will finish them first according to measurements on this machine.
    ///
    /// ```
    /// use tercet_core::linear::{Layer, Layout, Matrix};
    /// use tercet_core::scalar::Scalar;
    /// use tercet_gpu::batch::executors::{Activations, Layers};
    /// use tercet_gpu::batch::{BatchOptions, Queue, Worker};
    /// use tercet_gpu::dispatch::{Dispatcher, Engine, Settings};
    /// use tercet_host::parallel::Threads;
    ///
    /// let dispatcher = Dispatcher::new(Settings::default());
    /// let layer = Layer::new(Matrix::new(Layout::Int8, 2, 3, &[1, 2, 3, 0xFF, 0, 1])?);
    /// std::thread::scope(|scope| {
    ///     let costs = dispatcher.costs();
    ///     let workers = [
    ///         Worker::by_cost("threads", Layers::new(Threads::default(), layer), costs, Engine::Threads),
    ///         Worker::by_cost("simd", Layers::new(Threads::alone(), layer), costs, Engine::Simd),
    ///         Worker::by_cost("scalar", Layers::new(Scalar, layer), costs, Engine::Scalar),
    ///     ];
    ///     let queue = Queue::in_scope(scope, BatchOptions::default(), workers)?;
    ///     let values = vec![10, 20, 30];
    ///     assert_eq!(queue.submit(Activations { values, scale: 0.5 })?.wait()?, [70.0, 10.0]);
    ///     Ok::<(), Box<dyn std::error::Error>>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn by_cost<W: Priced<J> + 'a>(
        name: impl Into<String>,
        work: W,
        costs: &Costs,
        engine: Engine,
    ) -> Self
    where
        J::Kind: 'static,
    {
        match costs.get(work.operation(), engine) {
            Some(cost) => {
                let costed = Costed::new(cost.clone(), work.price());
                Self::new(name, work).with_prediction(costed)
            }
            None => Self::new(name, work),
        }
    }
}

impl<E> Priced<Multiply> for Layers<'_, E>
where
    Self: Executor<Multiply>,
{
    /// Each batch copies the weights.
    fn price(&self) -> impl Fn(&(), usize) -> Asked + Send + Sync + 'static {
        let (rows, cols, bytes) = self.shape();
        move |(), requests| Asked {
            job: products((rows, cols, bytes), requests),
            resident: 0,
        }
    }

    fn operation(&self) -> Operation {
        Operation::Matmul
    }
}

/// Returns a product of matrices, even for one row: a queue multiplies in this way.
fn products((rows, cols, bytes): (usize, usize, usize), requests: usize) -> dispatch::Job {
    dispatch::Job {
        operation: Operation::Matmul,
        ..dispatch::Job::products(rows, cols, bytes, requests)
    }
}

#[cfg(feature = "cuda")]
impl Priced<Multiply> for super::DeviceLayers {
    /// The weights are already there.
    fn price(&self) -> impl Fn(&(), usize) -> Asked + Send + Sync + 'static {
        let shape = self.shape();
        move |(), requests| Asked {
            job: products(shape, requests),
            resident: shape.2 as u64,
        }
    }

    fn operation(&self) -> Operation {
        Operation::Matmul
    }
}

impl<R: Rows, B, M: Metric> Priced<Searching<R, M>> for Search<R, B, M>
where
    Self: Executor<Searching<R, M>>,
{
    /// The rows are already with the base.
    fn price(&self) -> impl Fn(&usize, usize) -> Asked + Send + Sync + 'static {
        let (rows, dim) = self.shape();
        let size = size_of::<R::Query>();
        let base = [rows, dim, size].map(|size| size as u64);
        let resident = base.into_iter().fold(1, u64::saturating_mul);
        move |&k, requests| Asked {
            job: dispatch::Job::among(rows, dim, size, requests, k.min(rows)),
            resident,
        }
    }

    fn operation(&self) -> Operation {
        Operation::Search
    }
}

impl<E> Priced<Assigning> for Assign<E>
where
    Self: Executor<Assigning>,
{
    fn price(&self) -> impl Fn(&(), usize) -> Asked + Send + Sync + 'static {
        let (k, dims) = self.shape();
        move |(), requests| Asked {
            job: dispatch::Job::points(Operation::Assign, requests, dims, k),
            resident: 0,
        }
    }

    fn operation(&self) -> Operation {
        Operation::Assign
    }
}

impl<T: Element, E> Priced<Quantizing<T>> for QuantizeRows<E>
where
    Self: Executor<Quantizing<T>>,
{
    fn price(&self) -> impl Fn(&usize, usize) -> Asked + Send + Sync + 'static {
        let operation = Operation::of(&self.method());
        move |&width, requests| {
            let values = (width as u64).saturating_mul(requests as u64);
            let bytes_in = values.saturating_mul(size_of::<T>() as u64);
            let bytes_out = values.saturating_add(4 * requests as u64);
            Asked {
                job: dispatch::Job::each(operation, values, bytes_in, bytes_out),
                resident: 0,
            }
        }
    }

    fn operation(&self) -> Operation {
        Operation::of(&self.method())
    }
}
