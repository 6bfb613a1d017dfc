//! Tercet's operations as executors of a queue, where grouping pays.
//!
//! | executor | requests | done as | does not depend on |
//! |---|---|---|---|
//! | [`Search`] | queries over one base | one pass over the rows for all queries | the other queries |
//! | [`Layers`] | rows of int8 activations for one layer | one product of matrices | the other rows |
//! | `DeviceLayers` (feature `cuda`) | the same, weights resident on a device | one product of matrices | the other rows |
//! | [`Assign`] | points, to the nearest of fixed centroids | one assignment | the other points |
//! | [`QuantizeRows`] | rows of floats, those of one width together | one tensor, a group a row | the other rows |
//!
//! Each is generic over the engine: [`tercet_core::scalar::Scalar`], `tercet_host`'s threads, a CUDA device, and but for [`Assign`] several
//! devices as one. The traits of [`tercet_core::engine`] promise for many the bits of one at a time.
//!
//! What a batch takes on which engine a dispatcher's costs tell ([`Worker::by_cost`](crate::batch::Worker::by_cost), [`Priced`]).
//!
//! Shapes that tensor cores ask for are the CUDA engine's own business: it stores rows of activations and of points at the pitch that its
//! kernels load, with zeros between; it fills up queries to a power of two (to sixteen places on tensor cores) with ones whose results
//! nobody sees; and the last tile of a product leaves out rows that are not there. A batch may have any size.

mod assign;
mod costed;
#[cfg(feature = "cuda")]
mod device_layers;
mod layers;
mod quantize;
mod room;
mod search;

pub use assign::{Assign, Assigning};
pub use costed::{Asked, Costed, Priced};
#[cfg(feature = "cuda")]
pub use device_layers::DeviceLayers;
pub use layers::{Activations, Layers, Multiply};
pub use quantize::{QuantizeRows, Quantizing, Row};
pub use room::Room;
pub use search::{Query, Search, Searching};
