//! Assigns points to the nearest of fixed centroids.

use std::fmt;

use tercet_core::cluster::{ClusterError, Nearest, Points};
use tercet_core::engine::ClusterEngine;
use tercet_host::engine::EngineError;

use super::CanAllocate;
use super::room::most;
use crate::batch::{BatchJob, Executor};

/// The job of finding the nearest centroid: the request is a point's int8 coordinates, the answer its label and the
/// squared distance, in units of codes.
#[derive(Clone, Copy, Debug)]
pub struct Assigning;

impl BatchJob for Assigning {
    type Request = Vec<i8>;
    type Answer = Nearest;
    type Error = EngineError;
    type Kind = ();

    fn kind(_: &Vec<i8>) {}
}

/// [`Assigning`] on an engine: [`ClusterEngine::nearest`] of a batch's points, with ties to the lowest centroid.
/// O(points · k · d).
///
/// ```
/// use tercet_core::scalar::Scalar;
/// use tercet_gpu::batch::executors::Assign;
/// use tercet_gpu::batch::{BatchOptions, Queue, Worker};
///
/// let work = Assign::new(Scalar, vec![0, 0, 9, 4], 2)?;
/// let queue = Queue::new(BatchOptions::default(), [Worker::new("scalar", work)])?;
/// let nearest = queue.submit(vec![3, 4])?.wait()?;
/// assert_eq!((nearest.label, nearest.distance), (0, 25));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Assign<E> {
    engine: E,
    centroids: Vec<i8>,
    dims: usize,
}

impl<E> Assign<E> {
    /// Returns the work of an engine with these centroids, k · d codes.
    ///
    /// # Errors
    /// Those of [`Points::new`] for the centroids.
    pub fn new(engine: E, centroids: Vec<i8>, dims: usize) -> Result<Self, ClusterError> {
        Points::new(&centroids, dims)?;
        Ok(Self {
            engine,
            centroids,
            dims,
        })
    }
}

impl<E> Assign<E> {
    /// Returns the number of centroids, and the coordinates of each.
    pub(super) const fn shape(&self) -> (usize, usize) {
        (self.centroids.len() / self.dims, self.dims)
    }
}

impl<E: ClusterEngine<Error: Into<EngineError>> + CanAllocate + Send> Executor<Assigning>
    for Assign<E>
{
    /// Checks the number of its coordinates.
    fn check(&self, request: &Vec<i8>) -> Result<(), EngineError> {
        let (expected, found) = (self.dims, request.len());
        if expected != found {
            return Err(ClusterError::Length { expected, found }.into());
        }
        Ok(())
    }

    fn most(&self, (): &(), wanted: usize) -> usize {
        // A point's row as a device stores it, its length, label, distance and mark; centroids with sums and counts.
        let (row, table) = (self.dims.next_multiple_of(32), self.centroids.len());
        most(&self.engine, wanted, |count| {
            [count * row, 16 * count, 10 * table.min(count * self.dims)]
        })
    }

    fn run(&mut self, (): &(), requests: &[Vec<i8>]) -> Result<Vec<Nearest>, EngineError> {
        let values = requests.concat();
        let points = Points::new(&values, self.dims)?;
        let (mut labels, mut distances) = (vec![0; requests.len()], vec![0; requests.len()]);
        self.engine
            .nearest(points, &self.centroids, &mut labels, &mut distances)
            .map_err(Into::into)?;
        let found = labels.into_iter().zip(distances);
        Ok(found
            .map(|(label, distance)| Nearest { label, distance })
            .collect())
    }

    fn splits(&self, error: &EngineError) -> bool {
        matches!(error, EngineError::NoRoom(_))
    }
}

impl<E: fmt::Debug> fmt::Debug for Assign<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assign")
            .field("engine", &self.engine)
            .field("dims", &self.dims)
            .finish_non_exhaustive()
    }
}
