//! Points that stay on the device.

use tercet_core::cluster::{ClusterError, Points};

use crate::engine::{Argument, Chunks, Cuda, CudaError, DeviceBuffer, LaunchGrid};

/// The module of the kernels over rows.
pub(super) const MODULE: &str = "cluster";

/// Threads of every kernel of clustering.
pub(super) const THREADS: u32 = 256;

/// Bytes of rows that are copied to the device at a time, if they must be padded there.
const CHUNK: usize = 32 << 20;

/// int8 points in a device's memory, with their squared lengths and weights, for any number of clusterings.
///
/// On the device the length of a row is a multiple of 32 bytes (16 for up to 16 coordinates). n points of d coordinates
/// take n times that, plus 4 bytes per point for its length, and 4 for its weight if there are weights.
#[derive(Debug)]
pub struct DevicePoints {
    pub(super) rows: DeviceBuffer<i8>,
    /// ‖x‖² of each point.
    pub(super) lengths: DeviceBuffer<u32>,
    pub(super) weights: Option<DeviceBuffer<u32>>,
    pub(super) len: usize,
    pub(super) dims: usize,
    pub(super) stride: usize,
    pub(super) weight: u64,
    pub(super) heaviest: u32,
    pub(super) counted: usize,
}

impl DevicePoints {
    /// Returns the number of points, at least 1.
    #[expect(
        clippy::len_without_is_empty,
        reason = "there is always at least one point"
    )]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of coordinates of a point, at least 1.
    pub const fn dims(&self) -> usize {
        self.dims
    }

    /// As [`Points::check_clusters`].
    pub(super) const fn check_clusters(&self, clusters: usize) -> Result<(), ClusterError> {
        check_clusters(clusters, self.counted)
    }
}

/// Checks that there are at least as many points of positive weight as clusters.
pub(super) const fn check_clusters(clusters: usize, counted: usize) -> Result<(), ClusterError> {
    if clusters == 0 || clusters > counted {
        return Err(ClusterError::Clusters {
            clusters,
            points: counted,
        });
    }
    Ok(())
}

/// Returns the bytes from row to row on the device: whole vectors of 16, or of 32 if a product of the tensor cores uses
/// as many.
pub(super) const fn stride(dims: usize) -> usize {
    if dims <= 16 {
        16
    } else {
        dims.next_multiple_of(32)
    }
}

impl Cuda {
    /// Copies points to the device. O(n·d), once.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn points(&mut self, points: &Points<'_>) -> Result<DevicePoints, CudaError> {
        self.points_and_guests(points, 0)
    }

    /// As [`Cuda::points`], with room for the rows of `guests` more points after them, which do not belong to these
    /// points.
    pub(super) fn points_and_guests(
        &mut self,
        points: &Points<'_>,
        guests: usize,
    ) -> Result<DevicePoints, CudaError> {
        let (len, dims) = (points.len(), points.dims());
        let stride = stride(dims);
        let room = len.saturating_add(guests);
        let mut rows = self.room::<i8>(room.saturating_mul(stride))?;
        if stride == dims {
            self.write_at(points.values(), &mut rows, 0)?;
        } else {
            self.pack(points, stride, &rows)?;
        }
        let mut lengths = self.room::<u32>(room)?;
        self.row_norms(&rows, stride, len, &mut lengths)?;
        let weights = points
            .weights()
            .map(|weights| self.upload(weights))
            .transpose()?;
        Ok(DevicePoints {
            rows,
            lengths,
            weights,
            len,
            dims,
            stride,
            weight: points.weight(),
            heaviest: points.heaviest(),
            counted: points.counted(),
        })
    }

    /// Fills rows with those of points and zeros at their ends: they are padded on the device.
    fn pack(
        &mut self,
        points: &Points<'_>,
        stride: usize,
        rows: &DeviceBuffer<i8>,
    ) -> Result<(), CudaError> {
        let (len, dims) = (points.len(), points.dims());
        let chunks = Chunks {
            most: (CHUNK / dims).max(1),
            least: 1,
        };
        self.in_chunks(len, chunks, |cuda, range| {
            let part = &points.values()[range.start * dims..range.end * dims];
            // SAFETY: the rows from `range.start` on have room for as many of `stride` bytes. Nothing else has the rows
            // yet.
            unsafe { cuda.pack_part(part, dims, rows, range.start, stride) }
        })
    }

    /// Copies rows of `dims` bytes to those of `stride` bytes from `first` on.
    ///
    /// # Safety
    /// There is room for them that nothing else uses.
    unsafe fn pack_part(
        &mut self,
        values: &[i8],
        dims: usize,
        rows: &DeviceBuffer<i8>,
        first: usize,
        stride: usize,
    ) -> Result<(), CudaError> {
        let part = self.upload(values)?;
        let len = values.len() / dims;
        let arguments = [
            Argument::from(&part),
            count(dims),
            count(len),
            rows.at(first * stride),
            count(stride),
        ];
        let grid = LaunchGrid::strided(len * (stride / 16), 256, THREADS, 1 << 16);
        // SAFETY: the part has `len` rows of `dims` bytes; for as many of `stride` bytes there is room, as the caller
        // promises.
        unsafe { self.launch(MODULE, "cluster_pack", grid, &arguments) }
    }

    /// Copies the rows and squared lengths of guests behind points with room for them ([`Cuda::points_and_guests`]).
    pub(super) fn invite(&mut self, points: &DevicePoints, guests: &[i8]) -> Result<(), CudaError> {
        let (first, dims, stride) = (points.len, points.dims, points.stride);
        let (expected, found) = (guests.len() / dims, points.lengths.len() - first);
        if expected > found {
            return Err(CudaError::Length { expected, found });
        }
        // SAFETY: there is room. It is no point's, so that only clusterings use it, of which an engine has one at a
        // time.
        unsafe { self.pack_part(guests, dims, &points.rows, first, stride) }?;
        let arguments = [
            points.rows.at(first * stride),
            count(stride),
            count(expected),
            points.lengths.at(first),
        ];
        let grid = LaunchGrid::strided(expected, 32, THREADS, u32::MAX);
        // SAFETY: as above, for lengths; the rows were just written.
        unsafe { self.launch(MODULE, "cluster_norms", grid, &arguments) }
    }

    /// Computes the squared lengths of `len` rows.
    pub(super) fn row_norms(
        &mut self,
        rows: &DeviceBuffer<i8>,
        stride: usize,
        len: usize,
        norms: &mut DeviceBuffer<u32>,
    ) -> Result<(), CudaError> {
        let arguments = [
            Argument::from(rows),
            count(stride),
            count(len),
            Argument::from(norms),
        ];
        let grid = LaunchGrid::strided(len, 32, THREADS, u32::MAX);
        // SAFETY: there are `len` rows of `stride` bytes, written before, and room for as many lengths.
        unsafe { self.launch(MODULE, "cluster_norms", grid, &arguments) }
    }
}

/// Returns a number that fits 32 bits: there are fewer than 2³² points and clusters, and fewer coordinates.
pub(super) const fn count(value: usize) -> Argument<'static> {
    Argument::word(value as u32)
}
