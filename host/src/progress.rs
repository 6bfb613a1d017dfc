//! Reports of a long run's progress.

/// Receives the progress of a run. One thread at a time calls it. `()` ignores all calls.
pub trait Progress: Sync {
    /// The run starts; it will read `bytes` bytes of tensors.
    fn start(&self, bytes: u64) {
        let _ = bytes;
    }

    /// Work on a tensor starts.
    fn tensor(&self, name: &str) {
        let _ = name;
    }

    /// `bytes` more bytes of tensors were read. They add up to the number given to [`Progress::start`].
    fn advance(&self, bytes: u64) {
        let _ = bytes;
    }
}

impl Progress for () {}
