//! Checks that a device's wgmma gives the same results as its mma.
//!
//! The kernels were tested with C++ in place of their instructions (`kernels/emulator`), and on one H200 with one
//! driver. Another driver compiles them again. So before a process first uses wgmma on a device, both kernels assign
//! the same points there: if the results differ in a bit, wgmma is not used again.

use tercet_core::cluster::{Points, Update};
use tercet_core::engine::ClusterProblem;
use tercet_core::number::Random;

use super::DevicePoints;
use super::assigner::Assigner;
use super::problem::{DeviceClusters, PointsHandle};
use crate::engine::wgmma::{self, Wgmma};
use crate::engine::{Cuda, CudaError};

/// Points, coordinates, clusters, and the blocks that share the points. Tiles have 256 points, 128 centroids and 128
/// bytes; there are four slots for parts of points; and rows of 512 bytes have windows of 256 centroids. So these
/// shapes make a block reuse slots, end tiles and rows early, and pass through more than one window of centroids. Rows
/// of up to 32 bytes, of up to 64 and of more each have their own kernel.
const SHAPES: [(usize, usize, usize, u32); 5] = [
    (1203, 100, 130, 1),
    (270, 500, 260, 1),
    (600, 7, 40, 2),
    (600, 50, 200, 2),
    (1100, 500, 300, 2),
];

/// Returns the state of the device's wgmma, and tries it now if it was never tried. Without memory for that it stays
/// untried.
pub(super) fn wgmma(cuda: &mut Cuda) -> Result<Wgmma, CudaError> {
    let ordinal = cuda.context.ordinal();
    let known = wgmma::known(ordinal);
    if known != Wgmma::Untried {
        return Ok(known);
    }
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        match agrees(cuda, seed as u64, shape) {
            Ok(true) => {}
            Ok(false) => return Ok(wgmma::note(ordinal, Wgmma::Wrong)),
            Err(error) if error.is_out_of_memory() => return Ok(Wgmma::Untried),
            Err(error) => return Err(error),
        }
    }
    Ok(wgmma::note(ordinal, Wgmma::Right))
}

/// True if both kernels give the same labels, distances and inertia for random points.
fn agrees(
    cuda: &mut Cuda,
    seed: u64,
    (n, dims, k, blocks): (usize, usize, usize, u32),
) -> Result<bool, CudaError> {
    let mut random = Random::new(seed);
    // The last shape has few values, so that distances tie.
    let values: Vec<i8> = (0..n * dims)
        .map(|_| (random.next_u64() >> 56) as u8 as i8)
        .map(|value| if dims < 16 { value % 3 } else { value })
        .collect();
    let points = cuda.points(&Points::new(&values, dims)?)?;
    let centroids = &values[(n - k) * dims..];
    let mma = Assigner::mma(cuda, points.stride)?;
    let expected = assigned(cuda, &points, centroids, mma)?;
    let found = assigned(cuda, &points, centroids, Assigner::Wgmma { blocks })?;
    Ok(found == expected)
}

/// Returns labels, distances and inertia of one kernel.
fn assigned(
    cuda: &mut Cuda,
    points: &DevicePoints,
    centroids: &[i8],
    by: Assigner,
) -> Result<(Vec<u32>, Vec<u32>, u64), CudaError> {
    let k = centroids.len() / points.dims;
    let mut problem = DeviceClusters::by(
        cuda,
        PointsHandle::Resident(points),
        (k, k),
        Update::Mean,
        by,
    )?;
    problem.set_centroids(centroids)?;
    let inertia = problem.measure()?.inertia;
    let (mut labels, mut distances) = (vec![0; points.len], vec![0; points.len]);
    problem.read_labels(&mut labels)?;
    problem.read_distances(&mut distances)?;
    Ok((labels, distances, inertia))
}
