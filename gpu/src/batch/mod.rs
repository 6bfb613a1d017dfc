//! Groups small requests of one kind into one launch.
//!
//! A launch costs the same for one request as for many, and one pass over a matrix serves many queries. A [`Queue`]
//! takes requests one by one from any thread and groups those of one kind ([`BatchJob::kind`]). Once a batch has
//! [`BatchOptions::max_size`] requests, or the first one has waited for [`BatchOptions::max_wait`], a worker does the
//! whole batch. Each submitter gets its own answer through its [`Ticket`]. The answers have the same bits as if each
//! request ran alone.
//!
//! ```
//! use std::thread;
//!
//! use tercet_core::linear::{Layer, Layout, Matrix};
//! use tercet_gpu::batch::executors::{Activations, Layers};
//! use tercet_gpu::batch::{BatchOptions, Queue, Worker};
//! use tercet_host::parallel::Threads;
//!
//! let layer = Layer::new(Matrix::new(Layout::Int8, 2, 3, &[1, 2, 3, 0xFF, 0, 1])?);
//! thread::scope(|scope| {
//!     let work = Layers::new(Threads::default(), layer);
//!     let workers = [Worker::new("cpu", work)];
//!     let queue = Queue::in_scope(scope, BatchOptions::default(), workers)?;
//!     let ask = |values: [i8; 3]| Activations { values: values.into(), scale: 0.5 };
//!     let first = queue.submit(ask([10, 20, 30]))?;
//!     let second = queue.submit(ask([2, 0, 0]))?;
//!     assert_eq!(first.wait()?, [70.0, 10.0]);
//!     assert_eq!(second.wait()?, [1.0, -1.0]);
//!     assert_eq!(queue.shutdown().answered, 2);
//!     Ok::<(), Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//!
//! - Every accepted request ends exactly once: answered, failed ([`BatchError`]), cancelled, or refused when the queue
//!   closes.
//! - At most [`BatchOptions::capacity`] requests wait, including those in batches that have not begun. Beyond that
//!   [`Queue::submit`] waits, and [`Queue::try_submit`] and [`Queue::submit_until`] return the request with
//!   [`Reason::Full`].
//! - A ticket that is dropped or cancelled before its batch begins removes its request and makes room at once. If it is
//!   dropped later, the answer is dropped.
//! - An invalid request ([`Executor::check`]) fails alone. If a run fails or panics, each of its requests gets that
//!   error, and the queue continues. A run that failed for lack of memory ([`Executor::splits`]) is repeated in halves.
//! - Requests of one kind enter batches in the order of their submission. The order in which they end is not specified.
//!
//! # Several workers
//!
//! Each [`Worker`] is an engine or a device with a thread. A batch goes to the worker that is predicted to finish it
//! first, from its remaining work and the cost of the batch ([`Predict`]). [`Worker::by_cost`] makes a worker that
//! predicts with a dispatcher's costs. An idle worker takes over batches from a late one. All workers give the same
//! bits.
//!
//! # Padding
//!
//! The queue pads nothing. The engine on CUDA devices does it internally: it pads rows to whole loads of its kernels,
//! and queries to a power of two, at least sixteen on tensor cores, and skips rows of a tile beyond the end. See
//! [`executors`].
//!
//! # Cost
//!
//! A request costs an allocation for its slot, a short time under the queue's lock and its share of the worker's time
//! under it, and a wake-up if its submitter sleeps. Measured: 1.4 µs with 64 requests in progress for each of eight
//! threads, and 2 µs for one thread that waits for each answer (a million and 50,000 requests without work, two cores
//! of an Intel Xeon, busy with other work as well, 22 November 2026). Requests that take less time alone are not worth
//! grouping. Forming a batch is O(waiting kinds + requests of the batch + workers).
#![forbid(unsafe_code)]

mod error;
mod job;
mod lanes;
mod line;
mod meters;
mod options;
mod queue;
mod serve;
mod shared;
mod slot;
mod stats;
mod ticket;
// The loom models need no engines.
#[cfg(not(all(test, loom)))]
pub mod executors;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod property;

pub use error::{BatchError, Reason, Refused, StartError};
pub use job::{BatchJob, Executor, Linear, Predict, Worker};
pub use options::BatchOptions;
pub use queue::Queue;
pub use shared::Closing;
pub use stats::{BatchStats, Sizes, WorkerStats};
pub use ticket::Ticket;
