//! Small requests of one kind, grouped into one launch.
//!
//! A launch costs the same for one request as for many, and one pass over a matrix serves many queries. A [`Queue`] takes requests one by
//! one from any thread, groups those of one kind ([`Job::kind`]) until a batch has [`BatchOptions::max_size`] of them or the first has
//! waited for [`BatchOptions::max_wait`], has a worker do the batch at once, and gives each submitter its own answer through its
//! [`Ticket`]. The answers have the bits that they have one at a time.
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
//! # What is promised
//!
//! - Every request that is taken ends once: answered, failed ([`BatchError`]), cancelled, or refused as the queue closes.
//! - At most [`BatchOptions::capacity`] requests wait, those of batches that have not begun included. Beyond that [`Queue::submit`]
//!   waits, [`Queue::try_submit`] and [`Queue::submit_until`] give the request back with [`Reason::Full`].
//! - A ticket that is dropped or cancelled before its batch begins takes its request out, and makes room at once; later the answer is
//!   dropped.
//! - A request that is bad in itself ([`Executor::check`]) fails alone. Where a run fails or panics, each of its requests gets that error,
//!   and the queue goes on. A run that failed for want of memory ([`Executor::splits`]) is done again in halves.
//! - Requests of one kind come into batches in the order in which they came. Nothing is said of the order in which they end.
//!
//! # Several workers
//!
//! Each [`Worker`] is an engine or a device with a thread. A batch goes to the one that is predicted to have done it first, by what it
//! still has to do and what the batch adds ([`Predict`]): by a dispatcher's costs where the worker is made with these
//! ([`Worker::by_cost`]). A worker without work takes over from one that is late. All give the same bits.
//!
//! # Padding
//!
//! Nothing is padded here. The engine on CUDA devices fills up rows to what its kernels load, queries to a power of two and sixteen at
//! least on tensor cores, and leaves out what a tile has too many, inside; see [`executors`].
//!
//! # Cost
//!
//! A request costs an allocation for its slot, a short hold of the queue's lock and its share of the worker's, and a wake-up where its
//! submitter sleeps: with 64 under way for each of eight threads 1.4 µs, for one thread that waits for each answer 2 µs (a million and
//! 50,000 requests of no work, two cores of an Intel Xeon, busy with other work as well, 22 November 2026). What takes less
//! by itself is not worth grouping. Forming a batch is O(kinds that wait + requests of the batch + workers).
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
// Whoever runs the models needs no engines.
#[cfg(not(all(test, loom)))]
pub mod executors;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod property;

pub use error::{BatchError, Reason, Refused, StartError};
pub use job::{Executor, Job, Linear, Predict, Worker};
pub use options::BatchOptions;
pub use queue::Queue;
pub use shared::Closing;
pub use stats::{BatchStats, Sizes, WorkerStats};
pub use ticket::Ticket;
