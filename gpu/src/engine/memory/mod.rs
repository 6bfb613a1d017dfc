//! Device memory: a pool, and buffers that return to it.

mod buffer;
mod pool;

pub use buffer::DeviceBuffer;
pub use pool::MemoryStats;

pub(super) use pool::Pool;
