//! Measures the speed of this machine, and of the engines on it.
//!
//! Two functions measure ceilings: [`bandwidth`] the memory bandwidth by working set, and [`peak`] the multiply-adds of
//! an instruction set. [`catalogue`] lists the operations with their sizes, and [`entries`] has each at any shape. A
//! [`Runner`] lets contenders ([`Contender`]) run each of them in turn, checks that the bits are those of the reference
//! engine, and returns the times beside those that the ceilings allow. An engine with its own memory and clock is a
//! [`Device`].
//!
//! ```
//! use tercet_host::measure::{Contender, Runner, Settings, catalogue};
//! use tercet_host::simd::Backend;
//!
//! let mut runner = Runner::new(Settings::quick());
//! let two = [Contender::Scalar, Contender::Threads { backend: Backend::best(), threads: 1 }];
//! let mean = catalogue(Some(1 << 14)).find(|entry| entry.operation == "exact mean").unwrap();
//! let results = runner.run(&mean.build(), &two)?;
//! assert!(results[1].seconds > 0.0 && results[1].attainable_seconds > 0.0);
//! # Ok::<(), tercet_host::measure::WrongBits>(())
//! ```

mod bandwidth;
mod case;
mod catalogue;
mod ceilings;
mod clock;
mod contender;
mod device;
pub mod entries;
pub mod input;
mod machine;
mod measured;
mod memory;
mod operation;
mod peak;
mod processor;
mod runner;
mod size;
mod task;
mod work;

pub use bandwidth::{Bandwidth, Rates, Traffic, bandwidth, curve, rates};
pub use case::{Case, Entry};
pub use catalogue::catalogue;
pub use ceilings::Ceilings;
pub use clock::Clock;
pub use contender::Contender;
pub use device::{Device, DeviceError, DeviceRun, Stopped};
pub use machine::{Machine, date, slug};
pub use measured::Measured;
pub use memory::{Growth, peak_resident, resident};
pub use operation::Bits;
pub use peak::{BackendPeak, Peak, peak};
pub use processor::{Cache, Processor};
pub use runner::{Guest, Runner, Settings, WrongBits};
pub use size::short;
pub use task::{Floats, Searched, Task};
pub use work::{Arithmetic, Bound, LeastWork, Pass};
