//! Files in flash.

/// A file aligned to 32 bytes. GGUF aligns tensors to 32 bytes within the file, so kernels find every word aligned.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct Aligned<T: ?Sized>(
    /// The file.
    pub T,
);
