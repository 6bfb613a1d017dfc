//! Points that stay on several devices.

use std::ops::Range;

use tercet_core::cluster::Points;

use crate::engine::cluster::DevicePoints;
use crate::engine::cluster::state::TRIED;
use crate::engine::cudas::at_once;
use crate::engine::{CudaError, Cudas};

/// int8 points in the memory of several devices, with a share on each, for any number of clusterings and assignments.
///
/// On each device they take the memory that [`DevicePoints`] describes, and room for eight more points. The host keeps
/// none of them: if a clustering needs a single point, such as a seed, it reads it from the point's device.
///
/// ```
/// use tercet_core::cluster::{Kmeans, Points, Steps, Update, kmeans};
/// use tercet_core::engine::ClusterProblem;
/// use tercet_gpu::engine::{CudaError, Cudas};
///
/// fn curve(values: &[i8], most: usize) -> Result<Vec<u64>, CudaError> {
///     let mut cudas = Cudas::all()?;
///     let points = cudas.points(&Points::new(values, 1)?)?;
///     let inertia = |k| {
///         let mut clusters = cudas.clusters_of(&points, k, Update::Mean)?;
///         let outcome = kmeans(&mut clusters, &Kmeans::default(), &mut Steps::Full, &mut |_, _, _| ())?;
///         Ok(outcome.inertia)
///     };
///     (1..=most).map(inertia).collect()
/// }
///
/// match curve(&[0, 1, 2, 50, 51, 52], 2) {
///     Ok(inertia) => assert_eq!(inertia, [3754, 4]),
///     Err(error) => println!("not on GPUs: {error}"),
/// }
/// ```
#[derive(Debug)]
pub struct CudasPoints {
    /// The range of points of each device.
    pub(super) parts: Vec<(Range<usize>, DevicePoints)>,
    pub(super) whole: Whole,
}

/// Facts about all points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub(super) len: usize,
    pub(super) dims: usize,
    pub(super) weight: u64,
    pub(super) heaviest: u32,
    /// Number of points with a positive weight.
    pub(super) counted: usize,
}

impl CudasPoints {
    /// Returns the number of points, at least 1.
    #[expect(
        clippy::len_without_is_empty,
        reason = "there is always at least one point"
    )]
    pub const fn len(&self) -> usize {
        self.whole.len
    }

    /// Returns the number of coordinates of a point, at least 1.
    pub const fn dims(&self) -> usize {
        self.whole.dims
    }

    /// Returns the number of devices that have some of them: the first ones of the engine.
    pub const fn devices(&self) -> usize {
        self.parts.len()
    }
}

impl Cudas {
    /// Copies each device's share of the points to it. O(n·d), once.
    ///
    /// # Errors
    /// [`CudaError::OnDevice`] with [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn points(&mut self, points: &Points<'_>) -> Result<CudasPoints, CudaError> {
        let shares = self.shares(points.len(), 1, points.dims());
        let devices = self.devices.iter_mut().zip(shares);
        let parts = at_once(devices, |(cuda, range)| {
            // A share has at least one point, and a range within the points is a part of them.
            let part = points.part(range.start, range.len()).unwrap_or(*points);
            let part = cuda.points_and_guests(&part, TRIED);
            Ok((range, cuda.named(part)?))
        })?;
        Ok(CudasPoints {
            parts,
            whole: Whole {
                len: points.len(),
                dims: points.dims(),
                weight: points.weight(),
                heaviest: points.heaviest(),
                counted: points.counted(),
            },
        })
    }
}
