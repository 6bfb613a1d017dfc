//! What a long run tells while it goes on.

/// Receives the progress of a run. Calls come from one thread at a time; `()` listens to nothing.
pub trait Progress: Sync {
    /// The run starts; it will read `bytes` bytes of tensors.
    fn start(&self, bytes: u64) {
        let _ = bytes;
    }

    /// Work on a tensor starts.
    fn tensor(&self, name: &str) {
        let _ = name;
    }

    /// `bytes` more bytes of tensors were read; they add up to [`Progress::start`]'s.
    fn advance(&self, bytes: u64) {
        let _ = bytes;
    }
}

impl Progress for () {}
