//! Clustering on a CUDA device.
//!
//! Points are copied to the device once and stay there ([`DevicePoints`]). Every driver of [`tercet_core::cluster`]
//! runs over [`DeviceClusters`], whose whole state is on the device: a step of Lloyd's loop copies 32 bytes back.
//!
//! ```
//! use tercet_core::cluster::{Kmeans, Points, Steps, Update, kmeans};
//! use tercet_core::engine::ClusterProblem;
//! use tercet_gpu::engine::{Cuda, CudaError};
//!
//! fn two_groups(values: &[i8]) -> Result<[i8; 2], CudaError> {
//!     let mut cuda = Cuda::first()?;
//!     let points = cuda.points(&Points::new(values, 1)?)?;
//!     let mut clusters = cuda.clusters_of(&points, 2, Update::Mean)?;
//!     kmeans(&mut clusters, &Kmeans::default(), &mut Steps::Full, &mut |_, _, _| ())?;
//!     let mut centroids = [0; 2];
//!     clusters.read_centroids(&mut centroids)?;
//!     centroids.sort();
//!     Ok(centroids)
//! }
//!
//! match two_groups(&[0, 1, 2, 50, 51, 52]) {
//!     Ok(centroids) => assert_eq!(centroids, [1, 51]),
//!     Err(error) => println!("not on a GPU: {error}"),
//! }
//! ```

mod assigner;
mod cudas;
mod nearest;
mod passes;
mod points;
mod probe;
mod problem;
mod state;
mod steps;

pub use cudas::{CudasClusters, CudasPoints};
pub use points::DevicePoints;
pub use problem::DeviceClusters;
