//! Executors of a queue for the operations that benefit from grouping.
//!
//! | executor | requests | runs as | independent of |
//! |---|---|---|---|
//! | [`Search`] | queries over one base | one pass over the rows for all queries | the other queries |
//! | [`Layers`] | rows of int8 activations for one layer | one product of matrices | the other rows |
//! | `DeviceLayers` (feature `cuda`) | the same, weights resident on a device | one product of matrices | the other rows |
//! | [`Assign`] | points, to the nearest of fixed centroids | one assignment | the other points |
//! | [`QuantizeRows`] | rows of floats, those of one width together | one tensor, a group per row | the other rows |
//!
//! Each is generic over the engine: [`tercet_core::scalar::Scalar`], `tercet_host`'s threads, a CUDA device, and,
//! except for [`Assign`], several devices as one. The traits of [`tercet_core::engine`] guarantee the same bits for
//! many requests as for one at a time.
//!
//! A dispatcher's costs predict the time of a batch on an engine ([`Worker::by_cost`](crate::batch::Worker::by_cost),
//! [`Priced`]).
//!
//! A batch may have any size. The CUDA engine itself makes the shapes that tensor cores need: it stores rows of
//! activations and of points at the pitch that its kernels load, with zeros between; it pads queries to a power of two
//! (to sixteen places on tensor cores) and drops the results of the padding; and the last tile of a product skips
//! missing rows.

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
pub use room::CanAllocate;
pub use search::{Query, Search, Searching};
